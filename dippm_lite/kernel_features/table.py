"""Feature tables: named columns, each a function from a batch of kernels to one number each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "FeatureTable"]

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Column(Generic[B]):
    """One feature. ``function`` maps a batch of ``n`` kernels to ``n`` numbers in ``unit``."""

    name: str
    unit: str
    function: Callable[[B], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class FeatureTable(Generic[B]):
    """An ordered list of columns over one kind of batch.

    Attributes:
        name: what a bundle calls it.
        columns: in the order in which a model sees them.
    """

    name: str
    columns: tuple[Column[B], ...]

    @property
    def schema(self) -> tuple[tuple[str, str], ...]:
        """``(name, unit)`` of each column."""
        return tuple((column.name, column.unit) for column in self.columns)

    def schema_hash(self) -> str:
        """Sha256 of the lines ``name [unit]``, in order."""
        lines = "\n".join(f"{name} [{unit}]" for name, unit in self.schema)
        return hashlib.sha256(lines.encode()).hexdigest()

    def matrix(self, batch: B) -> NDArray[np.float64]:
        """The features of a batch.

        Shapes:
            result: (n, len(columns)), float64, C order.
        """
        sized: Any = batch
        rows = np.empty((len(sized), len(self.columns)))
        for index, column in enumerate(self.columns):
            rows[:, index] = column.function(batch)
        return rows
