"""Steps to kernels: bytes and arithmetic in the run-time precision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from dippm_lite.graph import DType
from dippm_lite.kernels import ElementDims, Kernel, KernelKind, OpCost
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.steps import Step

__all__ = ["kernels_of"]

_PRODUCTS = frozenset(
    {
        KernelKind.CONV,
        KernelKind.DEPTHWISE_CONV,
        KernelKind.GEMM,
        KernelKind.BATCHED_GEMM,
    }
)
_QUANTIZES_INSIDE = frozenset(
    {"DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "MatMulIntegerToFloat", "QAttention"}
)
_INT8_BITS = 8


def kernels_of(
    index: GraphIndex, steps: Iterable[Step], numerics: Numerics, bits: Mapping[int, int]
) -> tuple[Kernel, ...]:
    """One kernel for each step that isn't a view. ``bits`` are those of values whose storage
    differs from what the precision says."""
    costing = _Costing(index, numerics, bits)
    return tuple(costing.kernel(step) for step in steps if not step.view)


class _Costing:
    def __init__(self, index: GraphIndex, numerics: Numerics, bits: Mapping[int, int]) -> None:
        self.index = index
        self.numerics = numerics
        self.bits = bits

    def kernel(self, step: Step) -> Kernel:
        unknown = step.unknown or any(
            self.index.spec(v) is None for v in (*step.inputs, *step.outputs)
        )
        quantized = self._is_quantized(step)
        dtype = self._dtype(step)
        math = self.numerics.math(step.kind, dtype, quantized)
        known = not unknown or step.macs or step.dims != ElementDims(0)
        return Kernel(
            kind=step.kind if known else KernelKind.OTHER,
            op=step.op,
            cost=self._cost(step, dtype),
            dims=step.dims,
            math=math,
            nodes=step.nodes,
            inputs=step.inputs,
            outputs=step.outputs,
            repeat=step.repeat,
            unknown=unknown,
        )

    def _dtype(self, step: Step) -> DType:
        """The first floating-point type among operands and results."""
        for value in (*step.inputs, *step.outputs):
            spec = self.index.spec(value)
            if spec is not None and spec.dtype.is_floating and spec.dtype.itemsize_bits >= 16:
                if step.bits.get(value, self.bits.get(value, 0)) == 16:
                    return DType.FLOAT16
                return spec.dtype
        return self.numerics.weights if step.kind in _PRODUCTS else DType.FLOAT

    def _element_bits(self, step: Step, value: int) -> int:
        spec = self.index.spec(value)
        if spec is None:
            return 0
        special = step.bits.get(value) or self.bits.get(value)
        if special:
            return special
        if self.numerics.quantizes(step.kind) and spec.dtype.is_floating:
            return min(spec.dtype.itemsize_bits, _INT8_BITS)
        return self.numerics.bits(spec.dtype)

    def _bytes(self, step: Step, value: int, elements: int | None = None) -> int:
        spec = self.index.spec(value)
        if spec is None:
            return 0
        count = spec.elements if elements is None else min(elements, spec.elements)
        return (count * self._element_bits(step, value) + 7) // 8

    def _cost(self, step: Step, dtype: DType) -> OpCost:
        read = weights = 0
        written = sum(self._bytes(step, v) for v in step.outputs)
        produced = sum(prod(self.index.shape(v) or ()) for v in step.outputs)
        for position, value in enumerate(step.inputs):
            part = produced if step.sparse and position == 0 else None
            size = self._bytes(step, value, part)
            if self.index.is_weight(value):
                weights += size
            else:
                read += size
        plain = self.numerics.bits(dtype)
        temp_bits = step.temp_bits
        if step.temp_elements and not temp_bits:
            temp_bits = self._element_bits(step, step.inputs[0]) if step.inputs else plain
        written += step.temp_elements * temp_bits // 8
        weights += step.extra_weights * plain // 8
        return OpCost(step.macs, step.flops_other, read, written, weights)

    def _is_quantized(self, step: Step) -> bool:
        """True where both operands of a product are bytes: quantised in the file, or read through
        a DequantizeLinear."""
        if self.numerics.quantizes(step.kind):
            return True
        if any(self.index.node(i).op_type in _QUANTIZES_INSIDE for i in step.nodes):
            return step.kind is not KernelKind.ELEMENTWISE
        if step.kind not in _PRODUCTS or len(step.inputs) < 2:
            return False
        data = step.inputs[0]
        weight = next((v for v in step.inputs[1:] if self._rank(v) > 1), step.inputs[1])
        return self._in_bytes(data) and self._in_bytes(weight)

    def _rank(self, value: int) -> int:
        return len(self.index.shape(value) or ())

    def _in_bytes(self, value: int) -> bool:
        spec = self.index.spec(value)
        if spec is None:
            return False
        return spec.dtype.is_quantized or 0 < self.bits.get(value, 0) <= _INT8_BITS
