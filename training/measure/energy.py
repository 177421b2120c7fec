"""Energy of a pass from the GPU's total energy counter, over seconds of passes back to back.

The counter moves in steps of some tens of milliseconds, so the span is from one step to another,
and long: its two ends are each known to the length of a chunk of calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from training.measure.timing import Timer

__all__ = ["Energy", "EnergyCounter", "Unavailable", "measure_energy"]

SPAN_S = 2.0
CHUNK_S = 0.02
"""Calls are made in chunks of about this long between two looks at the counter."""

STANDSTILL_S = 1.0
"""A counter that doesn't move for so long while the GPU works counts nothing."""


class EnergyCounter(Protocol):
    """A counter that only rises."""

    def energy_j(self) -> float:
        """Joules since some moment; OSError where the device has no such counter."""
        ...


@dataclass(frozen=True, slots=True)
class Energy:
    """``energy_j`` of one pass, the mean board power, and what they are the mean of."""

    energy_j: float
    power_w: float
    span_s: float
    passes: int


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a figure is missing."""

    reason: str


def measure_energy(
    call: Callable[[], object],
    counter: EnergyCounter,
    timer: Timer,
    latency_ms: float,
    *,
    span_s: float = SPAN_S,
    clock: Callable[[], float] = time.perf_counter,
) -> Energy | Unavailable:
    """Mean energy of ``call`` over at least ``span_s`` seconds of calls, or why there is none.

    Args:
        latency_ms: about how long a call takes, for the size of a chunk.
    """
    chunk = max(1, int(CHUNK_S * 1e3 / max(latency_ms, 1e-6)))

    def run() -> None:
        for _ in range(chunk):
            call()
        timer.finish()

    def wait_for_step(last: float, least: float) -> tuple[float, float, int] | None:
        """Run until the counter moves and ``least`` is past: its value, the time, the calls."""
        moved, calls = clock(), 0
        while True:
            run()
            calls += chunk
            now, value = clock(), counter.energy_j()
            if value != last:
                moved, last = now, value
                if now >= least:
                    return value, now, calls
            elif now - moved > STANDSTILL_S:
                return None

    try:
        start = wait_for_step(counter.energy_j(), 0.0)
        end = start and wait_for_step(start[0], start[1] + span_s)
    except OSError as error:
        return Unavailable(str(error))
    if not start or not end:
        return Unavailable(f"the energy counter stood still for {STANDSTILL_S:g} s of work")
    joules, seconds, passes = end[0] - start[0], end[1] - start[1], end[2]
    if joules <= 0:
        return Unavailable(f"the energy counter moved by {joules:g} J")
    return Energy(joules / passes, joules / seconds, seconds, passes)
