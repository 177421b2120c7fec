"""Operators that change spatial sizes: by scale, by block, or back from im2col's columns."""

from __future__ import annotations

import math

import numpy as np

from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    float_attribute,
    float_content,
    floats_attribute,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    length_attribute,
    optional,
    quoted,
    rank_is,
    text_attribute,
)
from dippm_lite.onnx_reader.shape_rules.windows import padding, per_axis
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]


def _scaled(size: int, scale: float) -> int:
    """``floor(size * scale)`` in single precision, as runtimes compute it."""
    if not 0 < scale < 2**63:
        raise ShapeRuleError(f"scale {scale} is outside of its range")
    product = float(np.float32(size) * np.float32(scale))
    if not product < 2**63:
        raise ShapeRuleError(f"scale {scale} is too large for size {size}")
    return math.floor(product)


def _scaled_shape(shape: Shape, axes: Shape, scales: tuple[float, ...]) -> Shape:
    if len(scales) != len(axes):
        raise ShapeRuleError(f"there are {len(scales)} scales for {len(axes)} axes")
    sizes = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        sizes[axis] = _scaled(shape[axis], scale)
    return tuple(sizes)


def _resize(call: OpCall) -> Outputs:
    """(X, scales) in opset 10, (X, roi, scales, sizes) later, where the unused one of the two
    may be an empty tensor."""
    x = given(call, 0)
    shape = x.shape
    if 0 < call.opset < 11 or len(call.inputs) == 2:
        scales, sizes = optional(call, 1), None
    else:
        scales, sizes = _unless_empty(optional(call, 2)), _unless_empty(optional(call, 3))
    if shape is None:
        return (Tensor(x.dtype, None),)
    if scales is None and sizes is None:
        raise ShapeRuleError("there are neither scales nor sizes")
    axes = ints_attribute(call, "axes")
    axes = (
        tuple(range(len(shape)))
        if axes is None
        else tuple([axis_within(axis, len(shape)) for axis in axes])
    )
    if sizes is not None:
        wanted = int_content(sizes)
        return (Tensor(x.dtype, None if wanted is None else _sized(call, shape, axes, wanted)),)
    factors = None if scales is None else float_content(scales)
    return (Tensor(x.dtype, None if factors is None else _scaled_shape(shape, axes, factors)),)


def _unless_empty(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None or tensor.shape == (0,) else tensor


def _sized(call: OpCall, shape: Shape, axes: Shape, wanted: Shape) -> Shape:
    """The sizes asked for; ``keep_aspect_ratio_policy`` takes one scale for all of them."""
    if len(wanted) != len(axes):
        raise ShapeRuleError(f"there are {len(wanted)} sizes for {len(axes)} axes")
    policy = text_attribute(call, "keep_aspect_ratio_policy", "stretch")
    sizes = list(shape)
    if policy == "stretch":
        for axis, size in zip(axes, wanted, strict=True):
            sizes[axis] = size
        return tuple(sizes)
    if policy not in ("not_larger", "not_smaller"):
        raise ShapeRuleError(f"keep_aspect_ratio_policy {quoted(policy)} is not known")
    ratios = [
        np.float32(size) / np.float32(shape[axis])
        for axis, size in zip(axes, wanted, strict=True)
        if shape[axis]
    ]
    if not ratios:
        return shape
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    for axis in axes:
        sizes[axis] = math.floor(float(scale * np.float32(shape[axis])) + 0.5)
    return tuple(sizes)


def _upsample(call: OpCall) -> Outputs:
    """Scales are attributes up to opset 8 (height and width in opset 1) and an input later."""
    x = given(call, 0)
    scales = floats_attribute(call, "scales")
    if scales is None and "height_scale" in call.attributes:
        scales = (
            1.0,
            1.0,
            float_attribute(call, "height_scale"),
            float_attribute(call, "width_scale"),
        )
    if scales is None:
        scales = float_content(given(call, 1))
    if x.shape is None or scales is None:
        return (Tensor(x.dtype, None),)
    return (Tensor(x.dtype, _scaled_shape(x.shape, tuple(range(len(x.shape))), scales)),)


def _depth_to_space(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 4, "the input")
    block = length_attribute(call, "blocksize")
    n, c, h, w = x.shape
    if c % (block * block):
        raise ShapeRuleError(f"{c} channels don't divide into blocks of {block} x {block}")
    return (Tensor(x.dtype, (n, c // (block * block), h * block, w * block)),)


def _space_to_depth(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 4, "the input")
    block = length_attribute(call, "blocksize")
    n, c, h, w = x.shape
    if h % block or w % block:
        raise ShapeRuleError(f"size {h} x {w} doesn't divide into blocks of {block}")
    return (Tensor(x.dtype, (n, c * block * block, h // block, w // block)),)


def _col2im(call: OpCall) -> Outputs:
    """(N, C * block, L) to (N, C, image...)."""
    x = given(call, 0)
    image, block = int_content(given(call, 1)), int_content(given(call, 2))
    if x.shape is None or image is None or block is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 3, "the input")
    per_axis(call, "strides", len(image))
    padding(call, len(image))
    elements = math.prod(block) if len(block) == len(image) else 0
    if elements < 1 or x.shape[1] % elements:
        raise ShapeRuleError(f"{x.shape[1]} rows don't divide into blocks of {block}")
    return (Tensor(x.dtype, (x.shape[0], x.shape[1] // elements, *image)),)


def _crop(call: OpCall) -> Outputs:
    """The retired Crop: ``border`` (left, top, right, bottom) off, or down to ``scale``."""
    x = given(call, 0)
    border = ints_attribute(call, "border")
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 4, "the input")
    if border is None or len(border) != 4:
        raise ShapeRuleError("attribute 'border' doesn't have 4 entries")
    size = ints_attribute(call, "scale")
    if size is None:
        left, top, right, bottom = border
        size = (x.shape[2] - top - bottom, x.shape[3] - left - right)
    if len(size) != 2:
        raise ShapeRuleError("attribute 'scale' doesn't have 2 entries")
    return (Tensor(x.dtype, (*x.shape[:2], *size)),)


def _reorder(call: OpCall) -> Outputs:
    """NCHWc's ReorderInput and ReorderOutput: to NCHW sizes from NHWC or back, without the
    channels that padded the last block."""
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(shape, 4, "the input")
    channels_last = int_attribute(call, "channels_last", 0)
    if call.op_type == "ReorderInput":
        n, c, h, w = (shape[0], shape[3], *shape[1:3]) if channels_last else shape
        return (Tensor(x.dtype, (n, c, h, w)),)
    n, _, h, w = shape
    c = int_attribute(call, "channels")
    return (Tensor(x.dtype, (n, h, w, c) if channels_last else (n, c, h, w)),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Col2Im"): _col2im,
    ("", "Crop"): _crop,
    ("", "DepthToSpace"): _depth_to_space,
    ("", "Resize"): _resize,
    ("", "SpaceToDepth"): _space_to_depth,
    ("", "Upsample"): _upsample,
    ("com.microsoft.nchwc", "ReorderInput"): _reorder,
    ("com.microsoft.nchwc", "ReorderOutput"): _reorder,
    ("com.microsoft.nchwc", "Upsample"): _upsample,
    ("com.ms.internal.nhwc", "Resize"): _resize,
}
