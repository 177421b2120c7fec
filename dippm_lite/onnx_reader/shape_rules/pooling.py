"""Pooling over windows, over whole maps and over regions of interest."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    length_attribute,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.shape_rules.windows import (
    padding,
    per_axis,
    swapped_layout,
    window_counts,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"
_NCHWC = "com.microsoft.nchwc"
_NHWC = "com.ms.internal.nhwc"


def _kernel(call: OpCall, x: Shape) -> Shape:
    """``kernel_shape``, which every pooling requires."""
    if len(x) < 3:
        raise ShapeRuleError(f"input {x} has no spatial axes")
    if ints_attribute(call, "kernel_shape") is None:
        raise ShapeRuleError("attribute 'kernel_shape' is missing")
    return per_axis(call, "kernel_shape", len(x) - 2)


def _pooled(call: OpCall, x: Shape | None) -> Shape | None:
    """(N, C, spatial...) to (N, C, windows...)."""
    if x is None:
        return None
    ceil_mode = int_attribute(call, "ceil_mode", 0) != 0
    return (*x[:2], *window_counts(call, x[2:], _kernel(call, x), ceil_mode))


def _pool(call: OpCall) -> Outputs:
    """Pooled values; MaxPool's second output holds their positions."""
    x = given(call, 0)
    shape = _pooled(call, x.shape)
    return Tensor(x.dtype, shape), Tensor(DType.INT64, shape)


def _nhwc_pool(call: OpCall) -> Outputs:
    x = given(call, 0)
    shape = _pooled(call, swapped_layout(x.shape, to_channels_last=False))
    return (Tensor(x.dtype, swapped_layout(shape, to_channels_last=True)),)


def _qlinear_pool(call: OpCall) -> Outputs:
    return _nhwc_pool(call) if int_attribute(call, "channels_last", 0) else _pool(call)[:1]


def _global_pool(call: OpCall) -> Outputs:
    """(N, C, spatial...) to (N, C, 1...); ``channels_last`` or the domain may move C behind."""
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),)
    if len(shape) < 2:
        raise ShapeRuleError(f"input {shape} has no channels")
    ones = (1,) * (len(shape) - 2)
    if call.domain == _NHWC or int_attribute(call, "channels_last", 0):
        return (Tensor(x.dtype, (shape[0], *ones, shape[-1])),)
    return (Tensor(x.dtype, (*shape[:2], *ones)),)


def _unpool(call: OpCall) -> Outputs:
    """The inverse of MaxPool; an input may give the output's shape."""
    x, wanted = given(call, 0), optional(call, 2)
    if wanted is not None:
        return (Tensor(x.dtype, int_content(wanted)),)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    kernel = _kernel(call, x.shape)
    strides = per_axis(call, "strides", len(kernel))
    _, pads = padding(call, len(kernel))
    sizes = [(size - 1) * strides[i] + kernel[i] - pads[i] for i, size in enumerate(x.shape[2:])]
    return (Tensor(x.dtype, (*x.shape[:2], *sizes)),)


def _per_region(x: Tensor, rois: Tensor, size: Shape | None) -> Outputs:
    """(N, C, H, W) and (regions, 4 or 5) to (regions, C, *size)."""
    if x.shape is not None:
        rank_is(x.shape, 4, "the input")
    if rois.shape is not None:
        rank_is(rois.shape, 2, "the regions")
    if x.shape is None or rois.shape is None or size is None:
        return (Tensor(x.dtype, None),)
    return (Tensor(x.dtype, (rois.shape[0], x.shape[1], *size)),)


def _roi_align(call: OpCall) -> Outputs:
    size = (length_attribute(call, "output_height", 1), length_attribute(call, "output_width", 1))
    return _per_region(given(call, 0), given(call, 1), size)


def _max_roi_pool(call: OpCall) -> Outputs:
    if ints_attribute(call, "pooled_shape") is None:
        raise ShapeRuleError("attribute 'pooled_shape' is missing")
    return _per_region(given(call, 0), given(call, 1), per_axis(call, "pooled_shape", 2))


def _crop_and_resize(call: OpCall) -> Outputs:
    size = int_content(given(call, 3))
    if size is not None and len(size) != 2:
        raise ShapeRuleError(f"crop_size has {len(size)} entries, not 2")
    return _per_region(given(call, 0), given(call, 1), size)


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): _pool for name in ("AveragePool", "LpPool", "MaxPool")},
    **{
        (domain, name): _global_pool
        for domain in ("", _NCHWC, _NHWC)
        for name in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
    },
    **{(_NHWC, name): _nhwc_pool for name in ("AveragePool", "LpPool", "MaxPool")},
    ("", "MaxRoiPool"): _max_roi_pool,
    ("", "MaxUnpool"): _unpool,
    ("", "RoiAlign"): _roi_align,
    (_MICROSOFT, "CropAndResize"): _crop_and_resize,
    (_MICROSOFT, "MaxpoolWithMask"): _pool,
    (_MICROSOFT, "NhwcMaxPool"): _nhwc_pool,
    (_MICROSOFT, "QLinearAveragePool"): _qlinear_pool,
    (_MICROSOFT, "QLinearGlobalAveragePool"): _global_pool,
    (_NCHWC, "AveragePool"): _pool,
    (_NCHWC, "MaxPool"): _pool,
    (_NHWC, "QLinearAveragePool"): _nhwc_pool,
}
