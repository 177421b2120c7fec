"""What inference engines fuse beyond patterns: epilogues of products and chains of elementwise
kernels.

A group grows from a step by steps that alone read its result. It is launched where its last step
stood, which keeps every input ready. Where two operands of a sum could take it in, the one farther
from the graph's inputs does, so that the order in which a file lists its nodes doesn't matter.

- onnxruntime (CUDA): convolution with Relu, or with a sum and Relu (FusedConv takes no other
  activation on CUDA); a residual sum before a norm (SkipLayerNormalization); a mask before a
  softmax (BiasSoftmax); quantisation of a result. All else stays apart.
- TensorRT: convolutions and products take any elementwise epilogue of their result's size, a
  residual sum included; chains of elementwise layers run as one kernel; concatenation is written in
  place by what feeds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.steps import Step

__all__ = ["fuse"]

_CONVS = frozenset({KernelKind.CONV, KernelKind.DEPTHWISE_CONV})
_EPILOGUE_HOSTS = _CONVS | {KernelKind.GEMM, KernelKind.BATCHED_GEMM, KernelKind.ELEMENTWISE}
_SKIP_NORMS = frozenset({"layer_norm", "rms_norm"})
_SOURCES = frozenset({"fill", "random"})


@dataclass(slots=True)
class _Group:
    members: list[int]
    depth: int
    at: int
    outputs: list[int] = field(default_factory=list)


class _Fusion:
    def __init__(self, index: GraphIndex, steps: list[Step]) -> None:
        self.index = index
        self.steps = steps
        self.base: dict[int, int] = {}
        self.readers: dict[int, set[int]] = {}
        self.depth = [0] * len(steps)
        self.group_of: dict[int, _Group] = {}  # storage to the group that writes it last
        self.groups: list[_Group] = []
        made_at: dict[int, int] = {}
        for k, step in enumerate(steps):
            sources = [self.base.get(v, v) for v in step.inputs]
            if step.view:
                self.base.update((v, sources[0]) for v in step.outputs)
                continue
            self.depth[k] = 1 + max((made_at.get(v, 0) for v in sources), default=0)
            for value in sources:
                self.readers.setdefault(value, set()).add(k)
            made_at.update((v, self.depth[k]) for v in step.outputs)
        self.held = {self.base.get(v, v) for v in index.held}

    def elements(self, value: int) -> int:
        return prod(self.index.shape(value) or ())

    def alone(self, value: int) -> bool:
        """True if one step reads the value and nobody else needs it."""
        return len(self.readers.get(value, ())) == 1 and value not in self.held

    def open_group(self, value: int, step: Step) -> _Group | None:
        """The group that makes a value which ``step`` alone reads."""
        storage = self.base.get(value, value)
        group = self.group_of.get(storage)
        if group is None or not self.alone(storage):
            return None
        return group if self.steps[group.members[0]].repeat == step.repeat else None

    def start(self, k: int) -> None:
        step = self.steps[k]
        group = _Group([k], self.depth[k], k, list(step.outputs))
        self.groups.append(group)
        self.group_of.update((v, group) for v in step.outputs)

    def join(self, group: _Group, k: int, keep: Iterable[int] = ()) -> None:
        """Add step ``k`` to a group; of what it wrote before only ``keep`` stays visible."""
        group.members.append(k)
        group.depth = max(group.depth, self.depth[k])
        group.at = k
        group.outputs = [*keep, *self.steps[k].outputs]
        self.group_of.update((v, group) for v in self.steps[k].outputs)

    def result(self) -> list[Step]:
        at: dict[int, list[Step]] = {}
        for group in self.groups:
            if group.members:
                at.setdefault(group.at, []).append(self.merged(group))
        out: list[Step] = []
        for k, step in enumerate(self.steps):
            out += at.get(k, ())
            if step.view:
                out.append(step)
        return out

    def merged(self, group: _Group) -> Step:
        steps = [self.steps[k] for k in group.members]
        head = steps[0]
        if len(steps) == 1:
            return head
        inside = {v for step in steps for v in step.outputs}
        inputs = tuple(
            dict.fromkeys(
                v for step in steps for v in step.inputs if self.base.get(v, v) not in inside
            )
        )
        kind_step = next((s for s in steps if s.kind is not KernelKind.ELEMENTWISE), head)
        dims = kind_step.dims
        if isinstance(dims, ElementDims) and kind_step.kind is KernelKind.ELEMENTWISE:
            dims = ElementDims(max(self.elements(v) for v in group.outputs), len(inputs))
        return replace(
            head,
            kind=kind_step.kind,
            op="+".join(step.op for step in steps),
            nodes=tuple(sorted({n for step in steps for n in step.nodes})),
            inputs=inputs,
            outputs=tuple(group.outputs),
            dims=dims,
            macs=sum(step.macs for step in steps),
            flops_other=sum(step.flops_other for step in steps),
            extra_weights=sum(step.extra_weights for step in steps),
        )


def fuse(index: GraphIndex, steps: list[Step], runtime: Runtime) -> list[Step]:
    """The steps as an engine groups them."""
    fusion = _Fusion(index, steps)
    tensorrt = runtime is Runtime.TENSORRT
    for k, step in enumerate(steps):
        if step.view:
            continue
        if step.unknown or not (_into_tensorrt if tensorrt else _into_onnxruntime)(fusion, k):
            fusion.start(k)
    fused = fusion.result()
    return _written_in_place(index, fused) if tensorrt else fused


def _into_tensorrt(fusion: _Fusion, k: int) -> bool:
    step = fusion.steps[k]
    if step.kind is not KernelKind.ELEMENTWISE or len(step.outputs) != 1 or step.op in _SOURCES:
        return False
    best: _Group | None = None
    for value in step.inputs:
        group = fusion.open_group(value, step)
        if group is None or len(group.outputs) != 1:
            continue
        head = fusion.steps[group.members[0]]
        same_size = fusion.elements(group.outputs[0]) == fusion.elements(step.outputs[0])
        if head.kind not in _EPILOGUE_HOSTS or head.unknown or not same_size:
            continue
        if best is None or group.depth > best.depth:
            best = group
    if best is None:
        return False
    fusion.join(best, k)
    return True


def _into_onnxruntime(fusion: _Fusion, k: int) -> bool:
    step = fusion.steps[k]
    if not step.inputs:
        return False
    group = fusion.open_group(step.inputs[0], step)
    if step.op == "quantize" and group is not None and len(group.outputs) == 1:
        fusion.join(group, k)
        return True
    if step.op == "relu" and group is not None:
        return _conv_relu(fusion, k, group)
    if step.op == "softmax" and group is not None and _is_sum(fusion, group):
        fusion.join(group, k)
        return True
    if step.op in _SKIP_NORMS:
        return _skip_norm(fusion, k)
    return False


def _is_sum(fusion: _Fusion, group: _Group) -> bool:
    return len(group.members) == 1 and fusion.steps[group.members[0]].op == "add"


def _conv_relu(fusion: _Fusion, k: int, group: _Group) -> bool:
    """Convolution and Relu, or convolution, sum and Relu."""
    head = fusion.steps[group.members[0]]
    if head.kind in _CONVS and len(group.members) == 1:
        fusion.join(group, k)
        return True
    if not _is_sum(fusion, group):
        return False
    best: _Group | None = None
    for value in head.inputs:
        other = fusion.open_group(value, head)
        if other is None or len(other.members) > 1:
            continue
        conv = fusion.steps[other.members[0]]
        same_size = fusion.elements(other.outputs[0]) == fusion.elements(head.outputs[0])
        if conv.kind in _CONVS and same_size and (best is None or other.depth > best.depth):
            best = other
    if best is None:
        return False
    fusion.join(best, group.members[0])
    group.members.clear()
    fusion.join(best, k)
    return True


def _skip_norm(fusion: _Fusion, k: int) -> bool:
    """A sum of two tensors of one size and the norm of it; the sum may have other readers."""
    step = fusion.steps[k]
    total = fusion.base.get(step.inputs[0], step.inputs[0])
    group = fusion.group_of.get(total)
    if group is None or not _is_sum(fusion, group):
        return False
    head = fusion.steps[group.members[0]]
    sizes = {fusion.elements(v) for v in head.inputs}
    weights = any(fusion.index.is_weight(v) for v in head.inputs)
    if head.repeat != step.repeat or len(head.inputs) != 2 or len(sizes) != 1 or weights:
        return False
    first = group.at
    fusion.join(group, k, () if fusion.alone(total) else (total,))
    group.at = first  # all it reads is ready there, and others may read the sum before the norm
    return True


def _written_in_place(index: GraphIndex, steps: list[Step]) -> list[Step]:
    """Concatenations whose inputs are each made by a kernel and concatenated nowhere else become
    views: their producers write into the whole."""
    made = {v for step in steps if not step.view for v in step.outputs}
    uses: dict[int, int] = {}
    for step in steps:
        if step.op == "cat":
            for value in step.inputs:
                uses[value] = uses.get(value, 0) + 1
    return [
        replace(step, view=True)
        if step.op == "cat"
        and isinstance(step.dims, ElementDims)
        and step.dims.operands == len(step.inputs)
        and all(v in made and uses[v] == 1 and v not in index.held for v in step.inputs)
        else step
        for step in steps
    ]
