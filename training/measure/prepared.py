"""A workload made ready: a call that runs one pass, and what times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.measure.timing import Timer

__all__ = ["Prepared"]


@dataclass(frozen=True)
class Prepared:
    """Ready to be timed.

    Attributes:
        call: runs one pass over inputs that are on the device already.
        timer: measures it.
        facts: what a row says of the network besides the plan's line.
    """

    call: Callable[[], object]
    timer: Timer
    facts: Mapping[str, Any] = field(default_factory=dict)
