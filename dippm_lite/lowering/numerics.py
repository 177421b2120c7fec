"""What a precision means for a workload: bytes of tensors, arithmetic of kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dippm_lite.execution import MathMode, Precision, Runtime, resolve_precision
from dippm_lite.graph import DType, Graph, TensorSpec
from dippm_lite.kernels import KernelKind

__all__ = ["Numerics", "dominant_dtype", "numerics_of"]

_ARITHMETIC = frozenset({DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16})
"""Types that a precision converts; 8-bit and smaller ones are storage formats and stay."""

_FLOAT_BITS = {
    Precision.FP32: 32,
    Precision.TF32: 32,
    Precision.FP16: 16,
    Precision.BF16: 16,
    Precision.AMP: 16,
    Precision.INT8: 16,
}

_VECTOR_MATH = {
    DType.DOUBLE: MathMode.FP64,
    DType.FLOAT16: MathMode.FP16,
    DType.BFLOAT16: MathMode.BF16,
}

_QUANTIZABLE = frozenset({KernelKind.CONV, KernelKind.DEPTHWISE_CONV, KernelKind.GEMM})
_CONVOLUTIONS = frozenset({KernelKind.CONV, KernelKind.DEPTHWISE_CONV})
_PRODUCTS = frozenset(
    {
        KernelKind.GEMM,
        KernelKind.BATCHED_GEMM,
        KernelKind.ATTENTION,
        KernelKind.RECURRENT,
    }
)


def dominant_dtype(graph: Graph) -> DType:
    """The floating-point type of most weight elements; of the inputs where no weight has one;
    FLOAT where nothing has."""
    counts: Counter[DType] = Counter()
    for value in graph.stored_weights:
        spec = graph.values[value].spec
        if spec is not None and spec.dtype in _ARITHMETIC:
            counts[spec.dtype] += spec.elements
    if not counts:
        for value in graph.inputs:
            spec = graph.values[value].spec
            if spec is not None and spec.dtype in _ARITHMETIC:
                counts[spec.dtype] += spec.elements
    return max(counts, key=lambda dtype: (counts[dtype], dtype.value), default=DType.FLOAT)


@dataclass(frozen=True, slots=True)
class Numerics:
    """A resolved precision.

    ``conv`` and ``matmul`` are the arithmetic of kernels on tensors of type ``weights``: what
    ``auto`` became.
    """

    runtime: Runtime
    precision: Precision
    weights: DType
    conv: MathMode
    matmul: MathMode

    @property
    def autocast(self) -> bool:
        """True for mixed precision as PyTorch does it: weights stay fp32, casts are kernels.
        Elsewhere ``amp`` means fp16."""
        return self.runtime is Runtime.PYTORCH and self.precision is Precision.AMP

    def bits(self, dtype: DType) -> int:
        """Bits of one element in device memory."""
        if dtype not in _ARITHMETIC or self.precision is Precision.AUTO:
            return dtype.itemsize_bits
        return 32 if self.autocast else _FLOAT_BITS[self.precision]

    def size_bytes(self, spec: TensorSpec) -> int:
        """Bytes of a tensor in device memory."""
        return (spec.elements * self.bits(spec.dtype) + 7) // 8

    def quantizes(self, kind: KernelKind) -> bool:
        """True where ``int8`` turns the kernel's operands into bytes: convolutions and products
        with a weight. All else stays in fp16, as TensorRT does without a better calibration."""
        return self.precision is Precision.INT8 and kind in _QUANTIZABLE

    def math(self, kind: KernelKind, dtype: DType, quantized: bool = False) -> MathMode:
        """Arithmetic of a kernel whose operands have type ``dtype`` in the file."""
        if quantized:
            return MathMode.INT8
        if kind in _CONVOLUTIONS or kind in _PRODUCTS:
            dtype = dtype if dtype in _ARITHMETIC else self.weights
            conv, matmul = resolve_precision(self.precision, self.runtime, dtype)
            mode = conv if kind in _CONVOLUTIONS else matmul
            return MathMode.FP16 if mode is MathMode.INT8 and kind not in _QUANTIZABLE else mode
        if self.precision is Precision.AUTO or self.autocast:
            return _VECTOR_MATH.get(dtype, MathMode.FP32)
        if self.precision is Precision.BF16:
            return MathMode.BF16
        return MathMode.FP16 if _FLOAT_BITS[self.precision] == 16 else MathMode.FP32


def numerics_of(graph: Graph, runtime: Runtime, precision: Precision) -> Numerics:
    """The numerics of a graph's workload, ``auto`` resolved by its :func:`dominant_dtype`."""
    weights = dominant_dtype(graph)
    conv, matmul = resolve_precision(precision, runtime, weights)
    return Numerics(runtime, precision, weights, conv, matmul)
