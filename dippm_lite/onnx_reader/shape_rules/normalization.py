"""Normalisations and their fused forms."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    axis_within,
    dtype_attribute,
    given,
    int_attribute,
    like,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.shape_rules.elementwise import keep
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"
_NHWC = "com.ms.internal.nhwc"
_FLOAT = DType.FLOAT


def _batch_normalization(call: OpCall) -> Outputs:
    """The data, then statistics of shape (C,): running mean and variance, and up to opset 13 the
    saved ones."""
    x, mean = given(call, 0), given(call, 3)
    statistics = Tensor(mean.dtype, mean.shape)
    if x.shape is not None and mean.shape is not None and len(mean.shape) == 1:
        channels = x.shape[1] if len(x.shape) > 1 else 1
        spatial = int_attribute(call, "spatial", 1)
        if call.domain == "" and spatial and channels != mean.shape[0] and not mean.bounded:
            raise ShapeRuleError(f"{channels} channels have {mean.shape[0]} statistics")
    return like(x), statistics, statistics, statistics, statistics


def _channel_normalization(call: OpCall) -> Outputs:
    """InstanceNormalization, GroupNormalization and LRN: channels are axis 1."""
    x = given(call, 0)
    if x.shape is not None and len(x.shape) < 2:
        raise ShapeRuleError(f"input {x.shape} has no channels")
    groups = int_attribute(call, "num_groups", 1)
    if groups < 1 or (x.shape is not None and x.shape[1] % groups):
        raise ShapeRuleError(f"channels don't divide into {groups} groups")
    return (like(x),)


def _layer_normalization(call: OpCall) -> Outputs:
    """The data, then mean and inverse deviation of each row, in the type of ``stash_type``."""
    x = given(call, 0)
    stash = dtype_attribute(call, "stash_type", _FLOAT)
    rows = x.shape
    if rows is not None:
        axis = axis_within(int_attribute(call, "axis", -1), len(rows))
        rows = rows[:axis] + (1,) * (len(rows) - axis)
        scale = optional(call, 1)
        if scale is not None and scale.shape is not None:
            broadcast(call, x.shape, scale.shape)
    statistics = Tensor(stash, rows)
    return like(x), statistics, statistics


def _rms_normalization(call: OpCall) -> Outputs:
    """The result is in the type of the scale."""
    x, scale = given(call, 0), given(call, 1)
    if x.shape is not None:
        axis_within(int_attribute(call, "axis", -1), len(x.shape))
        broadcast(call, x.shape, scale.shape)
    return (Tensor(scale.dtype, x.shape),)


def _skip_layer_normalization(call: OpCall) -> Outputs:
    """The data, mean, inverse deviation, and the sum of input, skip and bias."""
    x, skip = given(call, 0), given(call, 1)
    rows = None if x.shape is None else (*x.shape[:-1], 1)
    if not x.shape and x.shape is not None:
        raise ShapeRuleError("a scalar has no rows")
    if x.shape != skip.shape:
        broadcast(call, x.shape, skip.shape)
    statistics = Tensor(_FLOAT, rows)
    return like(x), statistics, statistics, like(x)


def _embed_layer_normalization(call: OpCall) -> Outputs:
    """Token ids (batch, sequence) to (batch, sequence, hidden), a mask index (batch,), and the
    sum of the embeddings."""
    ids, embedding = given(call, 0), given(call, 2)
    dtype = embedding.dtype
    if call.op_type == "QEmbedLayerNormalization":
        dtype = given(call, 8).dtype
    if ids.shape is None or embedding.shape is None:
        return Tensor(dtype, None), Tensor(ids.dtype, None), Tensor(dtype, None)
    rank_is(ids.shape, 2, "the input")
    rank_is(embedding.shape, 2, "the embedding")
    out = Tensor(dtype, (*ids.shape, embedding.shape[1]))
    return out, Tensor(ids.dtype, ids.shape[:1]), out


def _skip_group_norm(call: OpCall) -> Outputs:
    """The result, and the sum of input, skip and bias."""
    x = like(given(call, 0))
    return x, x


def _rms_norm_rotary(call: OpCall) -> Outputs:
    """(B, S, heads, stride) to (B, S, heads * width), and the values before the rotation."""
    x = given(call, 0)
    dtype = DType.FLOAT16 if int_attribute(call, "output_fp16", 0) else DType.BFLOAT16
    if x.shape is None:
        return Tensor(dtype, None), Tensor(_FLOAT, None)
    rank_is(x.shape, 4, "the input")
    batch, steps, heads, stride = x.shape
    width = int_attribute(call, "input_width", 0) or stride
    flat = int_attribute(call, "flatten_batch", 0)
    shape = (1, batch * steps, heads * width) if flat else (batch, steps, heads * width)
    return Tensor(dtype, shape), Tensor(_FLOAT, (batch, steps, heads, width))


RULES: dict[tuple[str, str], Rule] = {
    **{
        ("", name): _channel_normalization
        for name in ("GroupNormalization", "InstanceNormalization", "LRN")
    },
    **{(_NHWC, name): keep for name in ("InstanceNormalization", "LRN")},
    **{(_MICROSOFT, name): keep for name in ("BranchwiseRMSNorm", "GatedRMSNorm", "GroupNorm")},
    ("", "BatchNormalization"): _batch_normalization,
    ("", "LayerNormalization"): _layer_normalization,
    ("", "LpNormalization"): keep,
    ("", "MeanVarianceNormalization"): keep,
    ("", "RMSNormalization"): _rms_normalization,
    ("", "SimplifiedLayerNormalization"): _layer_normalization,
    (_NHWC, "BatchNormalization"): _batch_normalization,
    (_MICROSOFT, "EmbedLayerNormalization"): _embed_layer_normalization,
    (_MICROSOFT, "LayerNormalization"): _layer_normalization,
    (_MICROSOFT, "QEmbedLayerNormalization"): _embed_layer_normalization,
    (_MICROSOFT, "RMSNormRotary"): _rms_norm_rotary,
    (_MICROSOFT, "SimplifiedLayerNormalization"): _layer_normalization,
    (_MICROSOFT, "SkipGroupNorm"): _skip_group_norm,
    (_MICROSOFT, "SkipLayerNormalization"): _skip_layer_normalization,
    (_MICROSOFT, "SkipSimplifiedLayerNormalization"): _skip_layer_normalization,
}
