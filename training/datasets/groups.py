"""Which records are near-duplicates, so that no split may separate them.

Two records belong to one group where they have the same architecture hash (operators and dataflow
without sizes, :func:`training.corpus.canonical.shape_free_fingerprint`: another width, resolution
or sequence length), or where the catalog gives them the same name but for the size (``@288``), an
alias counting as a name. The second rule catches networks whose operators change with the
resolution. Batch and precision are not part of a record, so they can't cross by construction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

__all__ = ["SHORT", "Grouped", "base_name", "connected", "group_records", "short"]

SHORT = 12
"""Hex digits of a hash that are kept: two of 10,000 records share them with probability 2e-7, and
freezing checks that none do."""


class Grouped(Protocol):
    """What a split needs of a record; :class:`training.corpus.records.Record` has it."""

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


_SAME_SOURCE = {"step": "transformers"}
"""Catalog sources that build the same networks: a decoder's step and its prefill."""


def short(digest: str) -> str:
    """The first :data:`SHORT` digits of a hash."""
    return digest[:SHORT]


def base_name(name: str) -> str:
    """A catalog name without its size: ``"timm/resnet50@288"`` to ``"timm/resnet50"``."""
    source, _, rest = name.partition("/")
    return f"{_SAME_SOURCE.get(source, source)}/{rest.partition('@')[0]}"


def connected(links: Iterable[Sequence[str]]) -> dict[str, str]:
    """Each key to the smallest key that it is linked with, directly or through others.

    Args:
        links: keys that belong together, one or more in each.
    """
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while parents[key] != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    for keys in links:
        for key in keys:
            parents.setdefault(key, key)
        first = root(keys[0])
        for key in keys[1:]:
            low, high = sorted((first, root(key)))
            parents[high] = first = low
    return {key: root(key) for key in parents}


def group_records(
    records: Iterable[Grouped], previous: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Short fingerprint to group hash, for each record.

    A group's hash is the smallest short architecture hash in it. It depends on the set of records
    alone, and a record that joins no group changes none. ``previous`` (an earlier result) keeps the
    hashes of groups that records have joined since; where a new record joins two earlier groups
    to one, the smaller of their hashes stands.
    """
    records = tuple(records)
    roots = connected(
        (f"architecture {record.architecture}", *(f"name {base}" for base in _names(record)))
        for record in records
    )
    hashes: dict[str, set[str]] = defaultdict(set)
    kept: dict[str, set[str]] = defaultdict(set)
    for record in records:
        root = roots[f"architecture {record.architecture}"]
        hashes[root].add(short(record.architecture))
        earlier = (previous or {}).get(short(record.fingerprint))
        if earlier is not None:
            kept[root].add(earlier)
    groups = {root: min(kept[root] or hashes[root]) for root in hashes}
    return {
        short(record.fingerprint): groups[roots[f"architecture {record.architecture}"]]
        for record in records
    }


def _names(record: Grouped) -> set[str]:
    return {base_name(name) for name in (record.name, *record.aliases)}
