"""Which record of a corpus a network's name means, other sizes and merged names included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from training.corpus.records import Record

__all__ = ["GraphIndex"]


@dataclass(frozen=True)
class GraphIndex:
    """Names of a corpus; ``timm/resnet50@224`` is found where 224 is the network's own size."""

    _records: dict[str, Record] = field(default_factory=dict)
    _sized: dict[tuple[str, int], Record] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> GraphIndex:
        """The index of all names and aliases of ``records``."""
        index = cls()
        for record in records:
            for name in (record.name, *record.aliases):
                index._records[name] = record
                size = _size(record)
                if size is not None and "@" not in name:
                    index._sized[name, size] = record
        return index

    def find(self, name: str) -> Record | None:
        """The record of that name."""
        stem, _, size = name.partition("@")
        found = self._records.get(name)
        if found is None and size.isdigit():
            found = self._sized.get((stem, int(size)))
        return found


def _size(record: Record) -> int | None:
    """Pixels of the first input, if it is a square image or the frames of a video of squares."""
    shape: Sequence[int] = record.inputs[0][1] if record.inputs else ()
    square = len(shape) >= 3 and shape[-1] == shape[-2]
    return int(shape[-1]) if square else None
