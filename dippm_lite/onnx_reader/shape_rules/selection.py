"""Operators whose output size depends on the data: upper bounds, exact where the data is known."""

from __future__ import annotations

import math

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    axis_within,
    given,
    int_attribute,
    int_content,
    int_scalar,
    is_bounded,
    optional,
    optional_int_attribute,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_INT64 = DType.INT64


def _non_zero(call: OpCall) -> Outputs:
    """(rank, n): at most, every element differs from zero."""
    shape = given(call, 0).shape
    if shape is None:
        return (Tensor(_INT64, None),)
    return (Tensor(_INT64, (len(shape), math.prod(shape)), bounded=True),)


def _compress(call: OpCall) -> Outputs:
    """The slices, or the elements where no axis is given, whose condition is true. Conditions may
    be fewer than the slices, but not more of them count."""
    x, condition = given(call, 0), given(call, 1)
    shape = x.shape
    axis = optional_int_attribute(call, "axis")
    if shape is None:
        return (Tensor(x.dtype, None),)
    if axis is not None:
        axis = axis_within(axis, len(shape))
    size = math.prod(shape) if axis is None else shape[axis]
    flags = int_content(condition)
    if flags is not None:
        kept, bounded = sum(1 for flag in flags[:size] if flag), False
    else:
        declared = size if condition.shape is None else math.prod(condition.shape)
        kept, bounded = min(size, declared), True
    if axis is None:
        return (Tensor(x.dtype, (kept,), bounded=bounded),)
    return (Tensor(x.dtype, (*shape[:axis], kept, *shape[axis + 1 :]), bounded=bounded),)


def _unique(call: OpCall) -> Outputs:
    """Values, first positions, inverse and counts; at most, every element or slice is unique."""
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return Tensor(x.dtype, None), *(Tensor(_INT64, None),) * 3
    axis = optional_int_attribute(call, "axis")
    if axis is None:
        size = math.prod(shape)
        shape = (size,)
    else:
        size = shape[axis_within(axis, len(shape))]
    positions = Tensor(_INT64, (size,), bounded=True)
    inverse = Tensor(_INT64, (size,))
    return Tensor(x.dtype, shape, bounded=True), positions, inverse, positions


def _unique_with_counts(call: OpCall) -> Outputs:
    """com.microsoft's Unique, on a vector: values, inverse and counts."""
    values, positions, inverse, _ = _unique(call)
    return values, inverse, positions


def _top_k(call: OpCall) -> Outputs:
    """The k largest or smallest along an axis; k is an attribute in opset 1. A k that isn't known
    is bounded by the size of the axis."""
    x = given(call, 0)
    shape = x.shape
    k = optional_int_attribute(call, "k")
    if k is None:
        k = int_scalar(given(call, 1))
    if shape is None:
        return Tensor(x.dtype, None), Tensor(_INT64, None)
    axis = axis_within(int_attribute(call, "axis", -1), len(shape))
    bounded = k is None
    if k is None:
        k = shape[axis]
    elif k < 0 or (k > shape[axis] and not is_bounded(call)):
        raise ShapeRuleError(f"k {k} is outside of size {shape[axis]}")
    shape = (*shape[:axis], min(k, shape[axis]), *shape[axis + 1 :])
    return Tensor(x.dtype, shape, bounded=bounded), Tensor(_INT64, shape, bounded=bounded)


def _non_max_suppression(call: OpCall) -> Outputs:
    """Boxes (N, B, 4) and scores (N, C, B) to (selected, 3): at most
    ``max_output_boxes_per_class``, which is 0 where it is absent, or all B, for each of the
    N * C classes."""
    boxes, scores = given(call, 0).shape, given(call, 1).shape
    limit = optional(call, 2)
    most = 0 if limit is None else int_scalar(limit)
    if boxes is not None:
        rank_is(boxes, 3, "the boxes")
    if scores is None:
        return (Tensor(_INT64, None),)
    rank_is(scores, 3, "the scores")
    count = scores[2] if most is None else min(max(most, 0), scores[2])
    return (Tensor(_INT64, (scores[0] * scores[1] * count, 3), bounded=True),)


def _remove_padding(call: OpCall) -> Outputs:
    """(batch, sequence, hidden) to the tokens that aren't padding: at most, all of them."""
    x, counts = given(call, 0), given(call, 1)
    shape = x.shape
    if shape is None:
        int32 = Tensor(counts.dtype, None)
        return Tensor(x.dtype, None), int32, int32, Tensor(counts.dtype, (1,))
    rank_is(shape, 3, "the input")
    return (
        Tensor(x.dtype, (shape[0] * shape[1], shape[2]), bounded=True),
        Tensor(counts.dtype, shape[:2]),
        Tensor(counts.dtype, (shape[0] + 1,)),
        Tensor(counts.dtype, (1,)),
    )


def _restore_padding(call: OpCall) -> Outputs:
    """(tokens, hidden) and offsets (batch, sequence) to (batch, sequence, hidden)."""
    x, offsets = given(call, 0), given(call, 1)
    if x.shape is None or offsets.shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 2, "the input")
    return (Tensor(x.dtype, (*offsets.shape, x.shape[1])),)


def _efficient_nms(call: OpCall) -> Outputs:
    """TensorRT's plugin: count, boxes, scores and classes, padded to ``max_output_boxes``."""
    boxes = given(call, 0)
    most = int_attribute(call, "max_output_boxes", 100)
    if boxes.shape is None:
        return (None,) * 4
    batch = boxes.shape[:1]
    int32 = DType.INT32
    return (
        Tensor(int32, (*batch, 1)),
        Tensor(boxes.dtype, (*batch, most, 4)),
        Tensor(boxes.dtype, (*batch, most)),
        Tensor(int32, (*batch, most)),
    )


def _dynamic_time_warping(call: OpCall) -> Outputs:
    """A path through an (m, n) cost matrix: shorter than m + n."""
    shape = given(call, 0).shape
    if shape is None:
        return (Tensor(DType.INT32, None),)
    if len(shape) < 2:
        raise ShapeRuleError(f"shape {shape} holds no matrix")
    length = max(shape[-1] + shape[-2] - 1, 0)
    return (Tensor(DType.INT32, (2, length), bounded=True),)


def _all_finite(call: OpCall) -> Outputs:
    return (Tensor(DType.BOOL, ()),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Compress"): _compress,
    ("", "EfficientNMS_TRT"): _efficient_nms,
    ("", "NonMaxSuppression"): _non_max_suppression,
    ("", "NonZero"): _non_zero,
    ("", "TopK"): _top_k,
    ("", "Unique"): _unique,
    ("com.microsoft", "DynamicTimeWarping"): _dynamic_time_warping,
    ("com.microsoft", "IsAllFinite"): _all_finite,
    ("com.microsoft", "RemovePadding"): _remove_padding,
    ("com.microsoft", "RestorePadding"): _restore_padding,
    ("com.microsoft", "Unique"): _unique_with_counts,
}
