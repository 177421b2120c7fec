"""Attention operators of domain ``com.microsoft``: input projections, packed operands, biases."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.attention import split_heads
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    int_attribute,
    int_scalar,
    ints_attribute,
    length_attribute,
    like,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.shape_rules.elementwise import keep
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"


def _projected_sizes(call: OpCall, weight: Tensor) -> tuple[int, int] | None:
    """``(hidden, v_hidden)`` of a merged projection (in, q + k + v); ``qkv_hidden_sizes`` tells
    them where v differs."""
    sizes = ints_attribute(call, "qkv_hidden_sizes")
    if sizes:
        if len(sizes) != 3:
            raise ShapeRuleError(f"qkv_hidden_sizes {sizes} doesn't have 3 entries")
        return sizes[0], sizes[2]
    if weight.shape is None:
        return None
    rank_is(weight.shape, 2, "the projection weight")
    width = split_heads(weight.shape[1], 3)
    return width, width


def _present(call: OpCall, past: Tensor | None, state: Shape) -> Shape | None:
    """The merged cache (2, batch, heads, steps, size): the past's own buffer where it is shared,
    else past steps and new ones."""
    if past is None:
        return state
    if past.shape is None:
        return None
    rank_is(past.shape, 5, "the past")
    if int_attribute(call, "past_present_share_buffer", 0):
        return past.shape
    return (*state[:3], past.shape[3] + state[3], state[4])


def _merged(call: OpCall, weight: Tensor, past: Tensor | None, like_: Tensor) -> Outputs:
    """(batch, steps, in) through the projection to (batch, steps, v_hidden), and the cache."""
    x = given(call, 0).shape
    sizes = _projected_sizes(call, weight)
    heads = length_attribute(call, "num_heads")
    if x is None or sizes is None:
        return Tensor(like_.dtype, None), Tensor(like_.dtype, None)
    rank_is(x, 3, "the input")
    hidden, v_hidden = sizes
    state = (2, x[0], heads, x[1], split_heads(hidden, heads))
    return (
        Tensor(like_.dtype, (x[0], x[1], v_hidden)),
        Tensor(like_.dtype, _present(call, past, state)),
    )


def _attention(call: OpCall) -> Outputs:
    """Attention and DecoderMaskedSelfAttention."""
    return _merged(call, given(call, 1), optional(call, 4), given(call, 0))


def _qattention(call: OpCall) -> Outputs:
    """QAttention: the result is in the type of the scales."""
    return _merged(call, given(call, 1), optional(call, 8), given(call, 3))


def _packed_attention(call: OpCall) -> Outputs:
    """Tokens without padding: (tokens, in) to (tokens, v_hidden)."""
    x = given(call, 0)
    sizes = _projected_sizes(call, given(call, 1))
    if x.shape is None or sizes is None:
        return (Tensor(x.dtype, None),)
    rank_is(x.shape, 2, "the input")
    return (Tensor(x.dtype, (x.shape[0], sizes[1])),)


def _packed_multi_head(call: OpCall) -> Outputs:
    """Q (tokens, hidden) and V (tokens, v_hidden), or all in (tokens, heads, 3, size)."""
    q, v = given(call, 0), optional(call, 2)
    if q.shape is None:
        return (Tensor(q.dtype, None),)
    if len(q.shape) == 4:
        return (Tensor(q.dtype, (q.shape[0], q.shape[1] * q.shape[3])),)
    rank_is(q.shape, 2, "the query")
    if v is not None and v.shape is not None:
        rank_is(v.shape, 2, "the value")
        return (Tensor(q.dtype, (q.shape[0], v.shape[1])),)
    return (Tensor(q.dtype, None if v is not None else q.shape),)


def _multi_head(call: OpCall) -> Outputs:
    """MultiHeadAttention, whose past is inputs 6 and 7."""
    return _separate(call, past_at=6, share_at=8)


def _masked_multi_head(call: OpCall) -> Outputs:
    """DecoderMaskedMultiHeadAttention, whose past is inputs 5 and 6."""
    return _separate(call, past_at=5, share_at=7)


def _separate(call: OpCall, past_at: int, share_at: int) -> Outputs:
    """Q (batch, steps, hidden) with K and V apart, K and V packed as (batch, steps, heads, 2,
    size), or all packed as (batch, steps, heads, 3, size); K and V may also come from a cache
    (batch, heads, steps, size). Outputs: the result, present keys and values, the scores."""
    q, k, v = given(call, 0), optional(call, 1), optional(call, 2)
    heads = length_attribute(call, "num_heads")
    unknown = Tensor(q.dtype, None)
    if (
        q.shape is None
        or (k is not None and k.shape is None)
        or (v is not None and v.shape is None)
    ):
        return (unknown,) * 4
    if len(q.shape) not in (3, 5):
        raise ShapeRuleError(f"query {q.shape} has neither 3 nor 5 dimensions")
    batch, steps = q.shape[:2]
    if len(q.shape) == 5:
        heads, size = q.shape[2], q.shape[4]
    else:
        size = split_heads(q.shape[2], heads)
    kv_steps, v_size = steps, size
    if k is not None and k.shape is not None:
        if len(k.shape) not in (3, 4, 5):
            raise ShapeRuleError(f"key {k.shape} has no known form")
        kv_steps = k.shape[2] if len(k.shape) == 4 else k.shape[1]
    elif len(q.shape) == 3:
        size = v_size = split_heads(q.shape[2], 3 * heads)
    if v is not None and v.shape is not None:
        if len(v.shape) not in (3, 4):
            raise ShapeRuleError(f"value {v.shape} has no known form")
        v_size = v.shape[3] if len(v.shape) == 4 else split_heads(v.shape[2], heads)
    y = Tensor(q.dtype, (batch, steps, heads * v_size))
    past = optional(call, past_at)
    total: int | None = kv_steps
    if past is not None:
        total = _total_steps(call, past, kv_steps, share_at)
    if total is None:
        return y, unknown, unknown, unknown
    return (
        y,
        Tensor(q.dtype, (batch, heads, total, size)),
        Tensor(q.dtype, (batch, heads, total, v_size)),
        Tensor(q.dtype, (batch, heads, steps, total)),
    )


def _total_steps(call: OpCall, past: Tensor, new: int, share_at: int) -> int | None:
    if past.shape is None:
        return None
    rank_is(past.shape, 4, "the past")
    shared = int_attribute(call, "past_present_share_buffer", 0) or optional(call, share_at)
    return past.shape[2] if shared else past.shape[2] + new


def _grouped_query(call: OpCall) -> Outputs:
    """GroupQueryAttention: the cache (batch, kv_heads, steps, size) has room for the larger of
    the past and the total length. Where the total isn't known, past and new steps bound it."""
    q, past, total = given(call, 0), optional(call, 3), optional(call, 6)
    heads, kv_heads = length_attribute(call, "num_heads"), length_attribute(call, "kv_num_heads")
    past_dtype = q.dtype if past is None else past.dtype
    if q.shape is None:
        return Tensor(q.dtype, None), *(Tensor(past_dtype, None),) * 2, Tensor(q.dtype, None)
    rank_is(q.shape, 3, "the query")
    batch, steps, width = q.shape
    packed = optional(call, 1) is None
    size = split_heads(width, heads + 2 * kv_heads if packed else heads)
    y = Tensor(q.dtype, (batch, steps, heads * size))
    length = int_scalar(total)
    bounded = length is None
    capacity: int | None = steps if length is None else max(length, steps)
    stored_size = size
    if past is not None:
        if past.shape is None:
            capacity = None
        else:
            rank_is(past.shape, 4, "the past")
            stored_size = past.shape[3]
            sums = past.shape[2] + steps
            capacity = sums if length is None else max(past.shape[2], length)
    if capacity is None:
        return y, *(Tensor(past_dtype, None),) * 2, Tensor(q.dtype, None)
    present = Tensor(past_dtype, (batch, kv_heads, capacity, stored_size), bounded=bounded)
    keys = capacity if length is None else length
    scores = Tensor(q.dtype, (batch, heads, steps, keys), bounded=bounded)
    return y, present, present, scores


def _relative_position_bias(call: OpCall) -> Outputs:
    """A table (buckets, heads) to (1, heads, q_steps, k_steps)."""
    table = given(call, 0)
    q_steps, k_steps = int_scalar(given(call, 1)), int_scalar(given(call, 2))
    if table.shape is None or q_steps is None or k_steps is None:
        return (Tensor(table.dtype, None),)
    rank_is(table.shape, 2, "the table")
    return (Tensor(table.dtype, (1, table.shape[1], q_steps, k_steps)),)


def _gated_relative_position_bias(call: OpCall) -> Outputs:
    """(batch, heads, steps, steps); packed tokens tell batch and steps by their offsets."""
    q, offsets = given(call, 0), optional(call, 6)
    heads = length_attribute(call, "num_heads")
    shape = q.shape if offsets is None else offsets.shape
    if shape is None:
        return (Tensor(q.dtype, None),)
    if len(shape) < 2:
        raise ShapeRuleError(f"shape {shape} has no batch and steps")
    return (Tensor(q.dtype, (shape[0], heads, shape[1], shape[1])),)


def _gemma_rotary(call: OpCall) -> Outputs:
    """The embedding, then q, its rotated half, k and its rotated half: rotated q and k."""
    return like(given(call, 1)), like(given(call, 3))


RULES: dict[tuple[str, str], Rule] = {
    **{
        (_MICROSOFT, name): keep
        for name in (
            "LongformerAttention", "MoE", "MoEPacked", "QMoE", "QOrderedAttention",
            "QOrderedLongformerAttention",
        )
    },
    (_MICROSOFT, "Attention"): _attention,
    (_MICROSOFT, "DecoderMaskedMultiHeadAttention"): _masked_multi_head,
    (_MICROSOFT, "DecoderMaskedSelfAttention"): _attention,
    (_MICROSOFT, "GatedRelativePositionBias"): _gated_relative_position_bias,
    (_MICROSOFT, "GemmaRotaryEmbedding"): _gemma_rotary,
    (_MICROSOFT, "GroupQueryAttention"): _grouped_query,
    (_MICROSOFT, "MultiHeadAttention"): _multi_head,
    (_MICROSOFT, "PackedAttention"): _packed_attention,
    (_MICROSOFT, "PackedMultiHeadAttention"): _packed_multi_head,
    (_MICROSOFT, "QAttention"): _qattention,
    (_MICROSOFT, "RelativePositionBias"): _relative_position_bias,
}  # fmt: skip
