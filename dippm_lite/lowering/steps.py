"""The intermediate form between graph and kernels: one step for what a framework calls an operator.

Patterns and single operators become steps; layouts, fusion and autocast rewrite lists of steps;
costing turns each step that isn't a view into a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dippm_lite.kernels import Dims, ElementDims, KernelKind

__all__ = ["Step"]

_NOTHING = ElementDims(0)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens at inference.

    Attributes:
        kind, op, dims, repeat, unknown: as in ``Kernel``.
        nodes: graph nodes it stands for, ascending.
        inputs: values it reads, weights among them; scalars known in advance are not.
        outputs: values it writes.
        macs, flops_other: work of one run.
        sparse: the first input is read only as far as the outputs need.
        view: nothing is launched: the output looks at the first input's storage.
        perm: for a view of several nodes, the order of axes that they come to.
        extra_weights: elements of weights that it reads and the file no longer holds.
        temp_elements: elements written to a tensor that the graph has no value for.
        temp_bits: bits of each of them; 0 for those of the first input.
        bits: storage of single values as this step sees them, where it differs from the rest.
    """

    kind: KernelKind
    op: str
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dims: Dims = _NOTHING
    macs: int = 0
    flops_other: int = 0
    repeat: int = 1
    unknown: bool = False
    sparse: bool = False
    view: bool = False
    perm: tuple[int, ...] | None = None
    extra_weights: int = 0
    temp_elements: int = 0
    temp_bits: int = 0
    bits: Mapping[int, int] = field(default_factory=dict)
