"""What one row of the operator table says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from dippm_lite.graph import Graph, OpNode
from dippm_lite.kernels import KernelKind

__all__ = ["MacRule", "OpKey", "OpRule", "Slots", "UnknownShapeError", "Work", "shape_of"]

OpKey = tuple[str, str]
"""``(domain, op_type)``, as in ``OpNode.key``."""

MacRule = Callable[[Graph, OpNode, "Slots"], int]
"""Multiply-accumulates of one run; raises :class:`UnknownShapeError` where a shape is missing."""


class UnknownShapeError(LookupError):
    """A cost depends on a tensor whose shape isn't known."""


class Work(str, Enum):
    """Who does the work of an operator."""

    DEVICE = "device"
    """A GPU kernel: counted."""
    FREE = "free"
    """Nobody: only the shape or the name of a tensor changes."""
    HOST = "host"
    """The CPU, always: strings, sequences, maps, classical machine learning."""
    CONTROL = "control"
    """A body that the reader inlines; met on its own, its cost is unknown."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Where an operator keeps its data, weight and bias; -1 where it has none."""

    data: int = 0
    weight: int = 1
    bias: int = 2


@dataclass(frozen=True, slots=True)
class OpRule:
    """How an operator is counted.

    Attributes:
        kind: class of the kernel that runs it.
        name: what the kernel is called.
        flops: arithmetic besides MACs, for each element of the larger of its first input and its
            first output. Transcendental functions count as the handful of instructions that
            CUDA's fast paths take; only the order of magnitude matters, as all such kernels are
            bound by memory.
        macs: rule for multiply-accumulates, None where there are none.
        slots: where its operands are.
        sparse: True where the first operand is read only as far as the output needs.
        work: who does it.
    """

    kind: KernelKind
    name: str
    flops: int = 0
    macs: MacRule | None = None
    slots: Slots = Slots()
    sparse: bool = False
    work: Work = Work.DEVICE


def shape_of(graph: Graph, node: OpNode, slot: int, output: bool = False) -> tuple[int, ...]:
    """Shape of an input or output of ``node``.

    Raises:
        UnknownShapeError: it is absent or unknown.
    """
    values = node.outputs if output else node.inputs
    spec = graph.spec(values[slot]) if 0 <= slot < len(values) else None
    if spec is None:
        side = "output" if output else "input"
        raise UnknownShapeError(f"{side} {slot} of node {node.name!r} ({node.op_type})")
    return spec.shape
