"""Which columns a model was trained on, and how that list is told apart from another."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import zip_longest

__all__ = ["FeatureSchema"]


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """An ordered list of feature columns; ``columns`` holds ``(name, unit)``."""

    columns: tuple[tuple[str, str], ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """``name [unit]`` of each column."""
        return tuple(f"{name} [{unit}]" for name, unit in self.columns)

    @property
    def digest(self) -> str:
        """Sha256 of the lines: sees a renamed, moved, added or removed column."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def difference(self, other: FeatureSchema) -> str | None:
        """The first column in which ``other`` differs, as a clause; None where nothing does."""
        for number, (mine, theirs) in enumerate(zip_longest(self.lines, other.lines), start=1):
            if mine == theirs:
                continue
            if theirs is None:
                return f"column {number}, {mine!r}, is missing"
            if mine is None:
                return f"column {number}, {theirs!r}, is unexpected"
            return f"column {number} is {theirs!r}, expected {mine!r}"
        return None
