"""Attention operators of the ONNX standard, and the recurrences that replace attention."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.broadcasting import common_size
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    int_attribute,
    length_attribute,
    like,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "split_heads"]


def split_heads(width: int, heads: int) -> int:
    """The size of one of ``heads`` heads in ``width`` features."""
    if width % heads:
        raise ShapeRuleError(f"{width} features don't divide into {heads} heads")
    return width // heads


def _by_heads(call: OpCall, shape: Shape, attribute: str) -> Shape:
    """(batch, heads, steps, size), whichever of the two forms the operand has."""
    if len(shape) == 4:
        return shape
    rank_is(shape, 3, "an operand of attention")
    heads = length_attribute(call, attribute)
    return (shape[0], heads, shape[1], split_heads(shape[2], heads))


def _attention(call: OpCall) -> Outputs:
    """Q, K, V as (batch, heads, steps, size) or (batch, steps, heads * size), with an optional
    past (batch, heads, past, size). The result has Q's form; present keys and values and the
    scores (batch, heads, q_steps, past + steps) are always 4-D."""
    q, k, v = given(call, 0), given(call, 1), given(call, 2)
    past_key, past_value = optional(call, 4), optional(call, 5)
    dtypes = (q.dtype, k.dtype, v.dtype, q.dtype)
    if q.shape is None or k.shape is None or v.shape is None:
        return tuple([Tensor(dtype, None) for dtype in dtypes])
    batch, heads, steps, size = _by_heads(call, q.shape, "q_num_heads")
    kv_batch, kv_heads, kv_steps, k_size = _by_heads(call, k.shape, "kv_num_heads")
    _, v_heads, v_steps, v_size = _by_heads(call, v.shape, "kv_num_heads")
    common_size(call, size, k_size, "head sizes of query and key")
    common_size(call, kv_steps, v_steps, "lengths of key and value")
    split_heads(heads, max(kv_heads, 1))
    present_key: Shape | None = (kv_batch, kv_heads, kv_steps, k_size)
    present_value: Shape | None = (kv_batch, v_heads, v_steps, v_size)
    if past_key is not None:
        present_key = _with_past(past_key.shape, present_key)
    if past_value is not None:
        present_value = _with_past(past_value.shape, present_value)
    scores = None if present_key is None else (batch, heads, steps, present_key[2])
    y = (batch, heads, steps, v_size) if len(q.shape) == 4 else (batch, steps, heads * v_size)
    shapes = (y, present_key, present_value, scores)
    return tuple([Tensor(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)])


def _with_past(past: Shape | None, new: Shape | None) -> Shape | None:
    """Keys or values (batch, heads, steps, size) behind those of the past."""
    if past is None or new is None:
        return None
    rank_is(past, 4, "the past")
    return (new[0], new[1], past[2] + new[2], new[3])


def _flex_attention(call: OpCall) -> Outputs:
    """(B, Hq, L, size) and values (B, Hkv, S, v_size) to (B, Hq, L, v_size)."""
    q, v = given(call, 0), given(call, 2)
    for shape in (q.shape, v.shape):
        if shape is not None:
            rank_is(shape, 4, "an operand of attention")
    if q.shape is None or v.shape is None:
        return (Tensor(q.dtype, None),)
    return (Tensor(q.dtype, (*q.shape[:3], v.shape[3])),)


def _rotary_embedding(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is not None and len(x.shape) not in (3, 4):
        raise ShapeRuleError(f"input {x.shape} has neither 3 nor 4 dimensions")
    return (like(x),)


def _linear_attention(call: OpCall) -> Outputs:
    """Packed (B, T, heads * size) operands to (B, T, heads * v_size), and the recurrent state
    (B, kv_heads, size, v_size), of which ``state_window`` keeps several.

    The kv heads may outnumber the query's, and then they decide the output's."""
    query, value = given(call, 0), given(call, 2)
    past = optional(call, 3)
    heads, kv_heads = length_attribute(call, "q_num_heads"), length_attribute(call, "kv_num_heads")
    state_dtype = query.dtype if past is None else past.dtype
    if query.shape is None or value.shape is None:
        return Tensor(query.dtype, None), Tensor(state_dtype, None)
    rank_is(query.shape, 3, "the query")
    rank_is(value.shape, 3, "the value")
    size = split_heads(query.shape[2], heads)
    v_size = split_heads(value.shape[2], kv_heads)
    state: Shape = (query.shape[0], kv_heads, size, v_size)
    window = int_attribute(call, "state_window", 0)
    if window > 0:
        state = (window, *state)
    y = (*query.shape[:2], max(heads, kv_heads) * v_size)
    return Tensor(query.dtype, y), Tensor(state_dtype, state)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Attention"): _attention,
    ("", "LinearAttention"): _linear_attention,
    ("", "RotaryEmbedding"): _rotary_embedding,
    ("ai.onnx.preview", "FlexAttention"): _flex_attention,
    ("com.microsoft", "LinearAttention"): _linear_attention,
    ("com.microsoft", "MRotaryEmbedding"): _rotary_embedding,
    ("com.microsoft", "RotaryEmbedding"): _rotary_embedding,
}
