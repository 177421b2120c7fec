"""What a pattern is, what it finds, and the checks that every find must pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.steps import Step

__all__ = ["ALL", "ENGINES", "PYTORCH", "Found", "Pattern", "is_sound", "nearly"]

PYTORCH = frozenset({Runtime.PYTORCH})
ENGINES = frozenset({Runtime.ONNXRUNTIME, Runtime.TENSORRT})
ALL = frozenset(Runtime)


@dataclass(frozen=True, slots=True)
class Found:
    """Nodes that belong together, and the steps that they are.

    ``shared`` are nodes that other finds of the same pattern need too (a mask made once for all
    layers): they are claimed if nothing else reads them.
    """

    nodes: tuple[int, ...]
    steps: tuple[Step, ...]
    shared: tuple[int, ...] = ()


Matcher = Callable[[GraphIndex, int, Numerics], Found | None]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One row of the pattern table.

    Attributes:
        name: what it recognises.
        anchors: operators of the default domain from which ``match`` looks around, a bounded
            number of nodes far, so that all matching takes time linear in the graph.
        match: the matcher; gets the index, the anchor node and the numerics.
        runtimes: where it applies.
        note: why, or what it stands for.
    """

    name: str
    anchors: tuple[str, ...]
    match: Matcher
    runtimes: frozenset[Runtime]
    note: str


def is_sound(index: GraphIndex, found: Found) -> bool:
    """True if nothing outside the find reads what only exists inside it, and all its nodes run
    equally often."""
    nodes = frozenset(found.nodes)
    results = {v for step in found.steps for v in step.outputs}
    repeat = index.node(found.nodes[0]).repeat
    for i in found.nodes:
        node = index.node(i)
        if node.repeat != repeat:
            return False
        for value in node.outputs:
            if value == ABSENT or value in results:
                continue
            readers = index.readers(value)
            if value in index.held or len(readers) > len(nodes) or not nodes.issuperset(readers):
                return False
    return True


def nearly(number: float | None, target: float) -> bool:
    """Equal up to the rounding of a half-precision constant."""
    return number is not None and abs(number - target) <= 2e-3 * max(1.0, abs(target))
