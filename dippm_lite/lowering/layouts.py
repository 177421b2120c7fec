"""Which views stay views, and where a copy makes them real.

Every value gets a layout (sizes and strides). A view costs nothing until something reads it that
can't take its strides; then a copy is launched. In eager PyTorch each reader makes its own copy, as
ATen's operators call ``contiguous`` or ``reshape`` for themselves; an engine makes it once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT
from dippm_lite.kernels import ElementDims, GemmDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.reads import (
    CHANNELED,
    TAKES,
    takes_any,
    takes_channels,
    takes_matrices,
    takes_rows,
)
from dippm_lite.lowering.steps import Step
from dippm_lite.lowering.strides import Layout
from dippm_lite.lowering.views import view_layout

__all__ = ["place_copies"]

_BATCH_NORM = "batch_norm"
_LONGEST_CHAIN = 32  # views in a row that one copy is named after


def place_copies(index: GraphIndex, steps: Iterable[Step], runtime: Runtime) -> list[Step]:
    """The steps with a copy before each that can't read a view as it is, and with the copy's step
    in place of a Reshape that no view gives."""
    return _Placement(index, runtime).run(steps)


class _Placement:
    def __init__(self, index: GraphIndex, runtime: Runtime) -> None:
        self.index = index
        self.runtime = runtime
        self.default, self.by_kind = TAKES[runtime]
        self.layouts: dict[int, Layout] = {}
        self.base: dict[int, int] = {}  # view to the value whose storage it looks at
        self.chain: dict[int, tuple[int, ...]] = {}  # view to the nodes that lead to it
        self.spoken_for: set[int] = set()
        self.out: list[Step] = []

    def run(self, steps: Iterable[Step]) -> list[Step]:
        for step in steps:
            if step.view:
                self._look(step)
            else:
                self._launch(step)
        if self.runtime is not Runtime.PYTORCH:
            for value in self.index.graph.outputs:
                same = self.index.same(value)
                layout = self._layout(same)
                if layout is not None and not layout.is_contiguous:
                    maker = self.index.producer(same)
                    self._copy(same, 1, () if maker is None else (maker,))
        return self.out

    def _layout(self, value: int) -> Layout | None:
        if value not in self.layouts:
            shape = self.index.shape(value)
            if shape is None:
                return None
            self.layouts[value] = Layout.dense(shape)
        return self.layouts[value]

    def _look(self, step: Step) -> None:
        """A view: its layout if it has one, else the copy that gives it."""
        source = step.inputs[0]
        node = step.nodes[-1]
        layout = self._layout(source)
        if step.perm is not None and layout is not None:
            self._seen(source, step.outputs[0], layout.permute(step.perm), step.nodes)
            self.out.append(step)
            return
        for slot, value in enumerate(self.index.node(node).outputs):
            if value == ABSENT:
                continue
            seen = None if layout is None else view_layout(self.index, node, layout, slot)
            if seen is None and layout is not None and not layout.is_contiguous:
                if self.runtime is Runtime.PYTORCH:
                    self._copy_reshaped(step, source, value)
                    continue
                self._copy(source, step.repeat, step.nodes)
                layout = self._layout(source)
                seen = None if layout is None else view_layout(self.index, node, layout, slot)
            self._seen(source, value, seen, step.nodes)
        self.out.append(step)

    def _seen(self, source: int, value: int, layout: Layout | None, nodes: tuple[int, ...]) -> None:
        """``value`` is a view of ``source`` through ``nodes``."""
        if layout is not None:
            self.layouts[value] = layout
        self.base[value] = self.base.get(source, source)
        self.chain[value] = (*self.chain.get(source, ())[-_LONGEST_CHAIN:], *nodes)

    def _launch(self, step: Step) -> None:
        takes = self.by_kind.get(step.kind, self.default)
        if step.op == _BATCH_NORM and takes is takes_any:
            takes = takes_channels
        bias: int | None = None
        for position, value in enumerate(step.inputs):
            layout = self._layout(value)
            if layout is None or layout.is_contiguous or self.index.is_weight(value):
                continue
            if position and step.kind is KernelKind.GEMM and takes is takes_rows:
                continue  # a right operand or addend: BLAS takes what is left of strides
            if isinstance(step.dims, GemmDims) and takes is takes_matrices:
                layout = self._broadcast_batch(step, layout)
            if not takes(step, layout):
                self._copy(value, step.repeat, step.nodes)
            if (
                position == 0
                and step.op == "linear"
                and takes is takes_rows
                and len(layout.shape) > 2
            ):
                bias = next((v for v in step.inputs[2:] if self.index.is_weight(v)), None)
        if bias is None:
            self.out.append(step)
        else:
            self.out += self._bias_apart(step, bias)
        layout = self._result(step)
        for value in step.outputs:
            shape = self.index.shape(value)
            if shape is not None:
                fits = layout is not None and layout.shape == shape
                self.layouts[value] = layout if fits and layout else Layout.dense(shape)

    def _bias_apart(self, step: Step, bias: int) -> tuple[Step, Step]:
        """``F.linear`` of a tensor with more than two axes takes addmm only if it is contiguous;
        else the product comes first and the bias is added to it."""
        result = step.outputs[0]
        elements = prod(self.index.shape(result) or ())
        product = replace(step, inputs=tuple(v for v in step.inputs if v != bias))
        addition = Step(
            KernelKind.ELEMENTWISE,
            "add",
            step.nodes[-1:],
            (result, bias),
            (result,),
            ElementDims(elements, 2),
            flops_other=elements,
            repeat=step.repeat,
        )
        return replace(product, flops_other=step.flops_other - elements), addition

    def _broadcast_batch(self, step: Step, layout: Layout) -> Layout:
        """An operand of ``bmm`` is first expanded to the whole batch."""
        result = self.index.shape(step.outputs[0]) if step.outputs else None
        rank = len(layout.shape)
        if result is None or len(result) < 3 or rank < 2:
            return layout
        return layout.expand((*result[:-2], *layout.shape[-2:]))

    def _result(self, step: Step) -> Layout | None:
        """The layout in which a step writes, where it isn't simply row-major."""
        if not step.inputs:
            return None
        if step.kind is KernelKind.ELEMENTWISE or step.op == "copy":
            return self._elementwise(step)
        if self.runtime is Runtime.ONNXRUNTIME:
            return None
        first = self._layout(step.inputs[0])
        shape = self.index.shape(step.outputs[0]) if step.outputs else None
        if first is None or shape is None:
            return None
        if step.kind is KernelKind.ATTENTION and len(shape) == 4:
            return Layout.dense(shape, (0, 2, 1, 3))
        keeps = step.kind in CHANNELED or step.op == "cat"
        if keeps and first.is_channels_last and len(shape) == len(first.shape):
            return Layout.dense(shape, (0, *range(2, len(shape)), 1))
        return None

    def _elementwise(self, step: Step) -> Layout | None:
        shape = self.index.shape(step.outputs[0]) if step.outputs else None
        for value in step.inputs:
            layout = self._layout(value)
            if layout is not None and layout.shape == shape and not layout.is_broadcast:
                return None if layout.is_contiguous else Layout.dense(shape, layout.order)
        return None

    def _nodes(self, value: int, otherwise: tuple[int, ...]) -> tuple[int, ...]:
        """View nodes that a copy of ``value`` stands for: those no other copy stands for yet."""
        chain = self.chain.get(value, ())
        fresh = tuple(sorted(i for i in chain if i not in self.spoken_for))
        self.spoken_for.update(fresh)
        return fresh or chain[-1:] or otherwise

    def _copy(self, value: int, repeat: int, reader: tuple[int, ...]) -> None:
        """Make ``value`` contiguous, for one reader (PyTorch) or for all (engines)."""
        layout = self._layout(value)
        op = "copy"
        if self.runtime is not Runtime.PYTORCH:
            op = "expand" if layout is not None and layout.is_broadcast else "transpose"
        is_view = value in self.base
        elements = prod(self.index.shape(value) or ())
        step = Step(
            KernelKind.DATA_MOVEMENT,
            op,
            self._nodes(value, reader[-1:]),
            (self.base.get(value, value),),
            (value,) if is_view else (),
            ElementDims(elements, 1),
            repeat=repeat,
            sparse=is_view,
            temp_elements=0 if is_view else elements,
        )
        self.out.append(step)
        if self.runtime is not Runtime.PYTORCH:
            self.layouts[value] = Layout.dense(self.index.shape(value) or ())

    def _copy_reshaped(self, view: Step, source: int, value: int) -> None:
        """``reshape`` of a tensor that no view can give: a new tensor."""
        shape = self.index.shape(value) or ()
        nodes = tuple(sorted({*self._nodes(source, ()), *view.nodes}))
        step = replace(
            view,
            op="copy",
            nodes=nodes,
            inputs=(source,),
            outputs=(value,),
            dims=ElementDims(prod(shape), 1),
            view=False,
        )
        self.out.append(step)
        self.layouts[value] = Layout.dense(shape)
