"""From a graph to the kernels that a runtime launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dippm_lite.execution import MathMode, Precision, Runtime
from dippm_lite.graph import Graph, TensorSpec
from dippm_lite.kernels import Kernel, KernelKind
from dippm_lite.lowering.autocast import autocast
from dippm_lite.lowering.costing import kernels_of
from dippm_lite.lowering.fusion import fuse
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.layouts import place_copies
from dippm_lite.lowering.numerics import Numerics, numerics_of
from dippm_lite.lowering.operators import steps_of
from dippm_lite.lowering.patterns import Matches, find_patterns
from dippm_lite.lowering.quantized import dequantized_bits, drop_dequantizers
from dippm_lite.lowering.steps import Step
from dippm_lite.lowering.views import is_view

__all__ = ["Lowering", "lower"]


@dataclass(frozen=True, slots=True)
class Lowering:
    """Kernels in execution order, and where the other nodes went.

    Each graph node is in the ``nodes`` of at least one kernel (of several, where a runtime launches
    several for it) or in exactly one of the four sets.

    Attributes:
        kernels: what is launched.
        numerics: the resolved precision.
        at_load: nodes that only prepare weights or compute shapes, done before the first inference.
        views: nodes that only change how a tensor is looked at, or nothing at all.
        host_only: nodes that run on the CPU in every runtime.
    """

    kernels: tuple[Kernel, ...]
    numerics: Numerics
    at_load: tuple[int, ...]
    views: tuple[int, ...]
    host_only: tuple[int, ...]

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, position: int) -> Kernel:
        return self.kernels[position]

    @property
    def arithmetic(self) -> tuple[MathMode, MathMode]:
        """Arithmetic of convolutions and of matrix products on the dominant type of weights."""
        return self.numerics.conv, self.numerics.matmul

    @property
    def size_of(self) -> Callable[[TensorSpec], int]:
        """Bytes of a tensor in the run-time precision."""
        return self.numerics.size_bytes


def lower(graph: Graph, runtime: Runtime, precision: Precision = Precision.AUTO) -> Lowering:
    """The kernels that ``runtime`` launches for one inference of ``graph``.

    Time is linear in the graph. Kernels of unknown operators, or with unknown shapes, are marked
    ``unknown`` and carry what is known of their bytes.
    """
    numerics = numerics_of(graph, runtime, precision)
    index = GraphIndex(graph)
    steps = _steps(index, find_patterns(index, numerics), numerics)
    bits: dict[int, int] = {}
    if runtime is Runtime.PYTORCH:
        steps = place_copies(index, steps, runtime)
        if numerics.autocast:
            steps, bits = autocast(index, steps)
    else:
        bits = dequantized_bits(index)
        steps = drop_dequantizers(index, steps)
        steps = fuse(index, place_copies(index, steps, runtime), runtime)
    kernels = kernels_of(index, steps, numerics, bits)
    launched = {i for kernel in kernels for i in kernel.nodes}
    views = {i for step in steps if step.view for i in step.nodes} | set(index.noops)
    return Lowering(
        kernels,
        numerics,
        tuple(index.at_load),
        tuple(sorted(views - launched)),
        tuple(index.host_only),
    )


def _steps(index: GraphIndex, matches: Matches, numerics: Numerics) -> list[Step]:
    """One or more steps a find, at its last node; one or more for every other live node."""
    runtime = numerics.runtime
    guests: dict[int, list[int]] = {}
    for node, last in matches.shared.items():
        guests.setdefault(last, []).append(node)
    steps: list[Step] = []
    for i in index.live:
        found = matches.by_last.get(i)
        if found is not None:
            made = found.steps
            if i in guests:
                nodes = tuple(sorted({*made[0].nodes, *guests[i]}))
                made = (replace(made[0], nodes=nodes), *made[1:])
            steps += made
        elif i not in matches.claimed:
            steps += _view(index, i) if is_view(index, i, runtime) else steps_of(index, i, runtime)
    return steps


def _view(index: GraphIndex, i: int) -> tuple[Step]:
    node = index.node(i)
    return (
        Step(
            KernelKind.DATA_MOVEMENT,
            node.op_type.lower(),
            (i,),
            index.inputs[i][:1],
            tuple(v for v in node.outputs if v >= 0),
            repeat=node.repeat,
            view=True,
        ),
    )
