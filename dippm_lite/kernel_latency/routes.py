"""Which measured model speaks for a kernel: one function for each kind, and their table.

Where kernels of a class were never measured, the closest measured class stands in: its efficiency
against the peak of the kernel's own arithmetic, times a stated factor. Such parts are not
``measured``, and callers widen the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

from dippm_lite.execution import MathMode, Runtime
from dippm_lite.kernel_features import element_op_code, row_op_code
from dippm_lite.kernel_latency.parts import STREAM, Part
from dippm_lite.kernels import (
    ConvDims,
    ElementDims,
    GemmDims,
    Kernel,
    KernelKind,
    RecurrentDims,
    RowDims,
)

__all__ = ["parts_of"]

_ITEMSIZE: Mapping[MathMode, float] = MappingProxyType(
    {
        MathMode.FP64: 8.0,
        MathMode.FP32: 4.0,
        MathMode.TF32: 4.0,
        MathMode.FP16: 2.0,
        MathMode.BF16: 2.0,
        MathMode.INT8: 1.0,
    }
)
_HALF = (MathMode.FP16, MathMode.BF16)
_CHANNELS_FIRST = (Runtime.PYTORCH, Runtime.ONNXRUNTIME)

# Constants without measured kernels behind them. The first block was set by hand so that twelve
# convolutional networks of TorchBench (fp16, eager, A100-SXM4-40GB, 2023-04-07) and NVIDIA's
# EfficientNet-B0 (TF32) come out about right: those rows are no test of this package.

_TENSOR_CORE_CONV = 1.3
"""Time of a convolution on tensor cores against a matrix product of the same size: an implicit
product also computes addresses."""
_IMPLICIT_GEMM = 1.15
"""The same on FMA units."""
_LAYOUT_CHANGE = {MathMode.TF32: 1.0, MathMode.FP16: 1.3, MathMode.BF16: 1.3, MathMode.INT8: 1.3}
"""Time of transposing a tensor to channels last or back, against one elementwise pass over it;
cuDNN has more TF32 kernels than fp16 kernels that take channels first."""
_DEPTHWISE = 5.0
"""Time of a depthwise convolution against streaming its elements as 2-byte numbers."""
_STRIDED = 1.5
"""Time of transposes, slices and concatenations against one elementwise pass."""
_WINDOWED = 1.5
"""The same for pooling and resizing."""
_REDUCED = 1.2
"""The same for reductions."""
_FLASH_ATTENTION = 1.6
"""Time of fused attention against a matrix product: FlashAttention-2 (Dao, 2023) reaches 0.5 to
0.73 of the fp16 peak of an A100."""


def parts_of(kernel: Kernel, runtime: Runtime) -> tuple[Part, ...]:
    """The parts that add up to the time of one run of ``kernel`` under ``runtime``."""
    parts = _ROUTES[kernel.kind](kernel)
    if runtime in _CHANNELS_FIRST and kernel.kind is KernelKind.CONV:
        return (*parts, *_layout_changes(kernel))
    return parts


def _layout_changes(kernel: Kernel) -> tuple[Part, ...]:
    """cuDNN's tensor-core kernels work channels last: where tensors are channels first it
    transposes the input before and the output after."""
    if kernel.math not in _LAYOUT_CHANGE:
        return ()
    cost = kernel.cost
    return tuple(
        _pass_over(2 * size, size, _LAYOUT_CHANGE[kernel.math])
        for size in (cost.read_bytes, cost.write_bytes)
    )


def _product(
    math: MathMode,
    sizes: tuple[int, int, int, int],
    factor: float = 1.0,
    *,
    linear: bool = True,
    measured: bool = True,
) -> Part:
    """``sizes``: batch, m, n, k."""
    sizes = (max(sizes[0], 1), max(sizes[1], 1), max(sizes[2], 1), max(sizes[3], 1))
    if math in (MathMode.FP32, MathMode.FP64):
        model = "linear_fp32" if linear else "bmm_fp32"
        measured = measured and math is MathMode.FP32
    else:
        model = "linear_fp16"
        measured = measured and linear and math in _HALF
    return Part(model, tuple(map(float, sizes)), math, _ITEMSIZE[math], measured, factor)


def _pass_over(moved_bytes: float, written_bytes: float, factor: float, code: int = 0) -> Part:
    """One elementwise kernel of operator ``code`` over so many bytes, as fp32 elements."""
    moved = max(moved_bytes / 4.0, 1.0)
    written = min(max(written_bytes / 4.0, moved / 16, 1.0), moved)
    sizes = (written, moved, float(code))
    return Part("element_fp32", sizes, MathMode.FP32, 4.0, False, factor)


def _bytes(kernel: Kernel, factor: float = 1.0) -> Part:
    """One pass over the kernel's bytes."""
    cost, dims = kernel.cost, kernel.dims
    operands = dims.operands if isinstance(dims, ElementDims) else 1
    code = element_op_code(kernel.op, operands)
    return _pass_over(cost.total_bytes, cost.write_bytes, factor, code)


def _gemm(kernel: Kernel) -> tuple[Part, ...]:
    dims = kernel.dims
    if not isinstance(dims, GemmDims):
        return (_bytes(kernel),)
    linear = kernel.kind is KernelKind.GEMM and dims.batch == 1
    return (_product(kernel.math, (dims.batch, dims.m, dims.n, dims.k), linear=linear),)


def _conv(kernel: Kernel) -> tuple[Part, ...]:
    dims, math = kernel.dims, kernel.math
    if not isinstance(dims, ConvDims):
        return (_bytes(kernel),)
    if math is MathMode.FP32 and _is_measured_conv(dims):
        height, width = dims.output_size
        sizes = (
            dims.batch, dims.in_channels, dims.out_channels, *dims.input_size, height, width,
            *dims.kernel_size,
        )  # fmt: skip
        return (Part("conv_fp32", tuple(float(max(size, 1)) for size in sizes), math, 4.0, True),)
    taps, groups = prod(dims.kernel_size), max(dims.groups, 1)
    if dims.transposed:
        pixels = dims.batch * prod(dims.input_size)
        sizes4 = (groups, pixels, taps * dims.out_channels // groups, dims.in_channels // groups)
    else:
        pixels = dims.batch * prod(dims.output_size)
        sizes4 = (groups, pixels, dims.out_channels // groups, taps * dims.in_channels // groups)
    factor = _IMPLICIT_GEMM if math in (MathMode.FP32, MathMode.FP64) else _TENSOR_CORE_CONV
    return (_product(math, sizes4, factor, linear=groups == 1, measured=False),)


def _depthwise(kernel: Kernel) -> tuple[Part, ...]:
    """Bound by instructions for each element, whatever its size in bytes and wherever it lies."""
    elements = kernel.cost.total_bytes / _ITEMSIZE[kernel.math]
    return (Part(STREAM, (2 * elements,), kernel.math, 2.0, False, _DEPTHWISE),)


def _is_measured_conv(dims: ConvDims) -> bool:
    return (
        len(dims.kernel_size) == 2
        and dims.kernel_size == (3, 3)
        and dims.strides == (1, 1)
        and dims.dilations == (1, 1)
        and dims.groups == 1
        and not dims.transposed
    )


def _attention(kernel: Kernel) -> tuple[Part, ...]:
    cost = kernel.cost
    # A product of the same work, wide enough to fill the device as attention's blocks do.
    side = 128
    depth = max(cost.macs // (side * side), 1)
    batch = max(depth // 1024, 1)
    return (
        _product(
            kernel.math, (batch, side, side, max(depth // batch, 1)), _FLASH_ATTENTION,
            linear=False, measured=False,
        ),
    )  # fmt: skip


def _element(kernel: Kernel) -> tuple[Part, ...]:
    dims = kernel.dims
    if kernel.math in _HALF and isinstance(dims, ElementDims) and kernel.op in _FUSED_HALF:
        elements = float(max(dims.elements, 1))
        code = float(element_op_code(kernel.op, dims.operands))
        sizes = (elements, elements * _FUSED_HALF[kernel.op], code)
        return (Part("element_fp16", sizes, kernel.math, 2.0, True),)
    return (replace(_bytes(kernel), measured=kernel.math is MathMode.FP32),)


_FUSED_HALF: Mapping[str, float] = MappingProxyType({"swiglu": 3.0, "rotary_embedding": 2.0})
"""Fused kernels of language models, and the elements they move for each one written."""


def _rows(kernel: Kernel) -> tuple[Part, ...]:
    dims = kernel.dims
    if not isinstance(dims, RowDims):
        return (_bytes(kernel, _REDUCED),)
    half, name = kernel.math in _HALF, kernel.op.split("+", 1)[0]
    sizes = (float(max(dims.rows, 1)), float(max(dims.cols, 1)), float(row_op_code(kernel.op)))
    itemsize = _ITEMSIZE[kernel.math]
    if name == "rms_norm":
        return (Part("row_fp16", sizes, kernel.math, itemsize, half),)
    measured = not half and name in ("layer_norm", "softmax")
    return (Part("row_fp32", sizes, kernel.math, itemsize, measured),)


def _recurrent(kernel: Kernel) -> tuple[Part, ...]:
    dims, math = kernel.dims, kernel.math
    if not isinstance(dims, RecurrentDims):
        return (_bytes(kernel),)
    width = dims.gates * dims.hidden_size
    steps = dims.steps * dims.directions
    inputs = (1, dims.batch * dims.steps, width * dims.directions, dims.input_size)
    step = (1, dims.batch, width, dims.hidden_size)
    return (
        _product(math, inputs, measured=False),
        _product(math, step, float(max(steps, 1)), measured=False),
    )


def _with(factor: float) -> Callable[[Kernel], tuple[Part, ...]]:
    return lambda kernel: (_bytes(kernel, factor),)


_ROUTES: Mapping[KernelKind, Callable[[Kernel], tuple[Part, ...]]] = MappingProxyType(
    {
        KernelKind.CONV: _conv,
        KernelKind.DEPTHWISE_CONV: _depthwise,
        KernelKind.GEMM: _gemm,
        KernelKind.BATCHED_GEMM: _gemm,
        KernelKind.ATTENTION: _attention,
        KernelKind.ELEMENTWISE: _element,
        KernelKind.NORMALIZATION: _rows,
        KernelKind.REDUCTION: _with(_REDUCED),
        KernelKind.SOFTMAX: _rows,
        KernelKind.POOLING: _with(_WINDOWED),
        KernelKind.DATA_MOVEMENT: _with(_STRIDED),
        KernelKind.GATHER: _with(_STRIDED),
        KernelKind.RESIZE: _with(_WINDOWED),
        KernelKind.RECURRENT: _recurrent,
        KernelKind.OTHER: _with(_WINDOWED),
    }
)
