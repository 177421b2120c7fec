"""Apply the pattern table to a graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found, is_sound
from dippm_lite.lowering.patterns.table import PATTERNS

__all__ = ["Matches", "find_patterns"]


@dataclass(slots=True)
class Matches:
    """Finds by their last node, and all claimed nodes."""

    by_last: dict[int, Found] = field(default_factory=dict)
    claimed: set[int] = field(default_factory=set)
    shared: dict[int, int] = field(default_factory=dict)
    """A node that several finds need, to the last node of one of them."""


def find_patterns(index: GraphIndex, numerics: Numerics) -> Matches:
    """All finds for the runtime of ``numerics``. Each node is an anchor for a fixed number of
    rows, and each row looks at a bounded number of nodes."""
    anchors: dict[str, list[int]] = {}
    for i in index.live:
        node = index.node(i)
        if not node.domain:
            anchors.setdefault(node.op_type, []).append(i)
    matches = Matches()
    shared: dict[int, list[Found]] = {}
    for pattern in PATTERNS:
        if numerics.runtime not in pattern.runtimes:
            continue
        for op_type in pattern.anchors:
            for i in anchors.get(op_type, ()):
                if i in matches.claimed:
                    continue
                found = pattern.match(index, i, numerics)
                if found is None or not matches.claimed.isdisjoint(found.nodes):
                    continue
                if not is_sound(index, found):
                    continue
                matches.claimed.update(found.nodes)
                matches.by_last[max(found.nodes)] = found
                for node_index in found.shared:
                    shared.setdefault(node_index, []).append(found)
    _claim_shared(index, matches, shared)
    return matches


def _claim_shared(index: GraphIndex, matches: Matches, shared: dict[int, list[Found]]) -> None:
    for i, finds in shared.items():
        readers = {r for v in index.node(i).outputs for r in index.readers(v)}
        users = {n for found in finds for n in found.nodes}
        held = any(v in index.held for v in index.node(i).outputs)
        if i not in matches.claimed and readers <= users and not held:
            matches.claimed.add(i)
            matches.shared[i] = max(finds[0].nodes)
