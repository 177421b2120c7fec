"""Attention operators of domain ``com.microsoft`` that update a cache or a state in place."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.attention import split_heads
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    given,
    int_attribute,
    length_attribute,
    like,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"


def _sparse(call: OpCall) -> Outputs:
    """SparseAttention: packed or separate Q, K, V; the caches keep their capacity."""
    q, past_key, past_value = given(call, 0), given(call, 3), given(call, 4)
    return _query_shaped(call, q, optional(call, 1) is None), like(past_key), like(past_value)


def _paged(call: OpCall) -> Outputs:
    """PagedAttention and SparsePagedAttention: (tokens, hidden), caches updated in place."""
    q, cache = given(call, 0), given(call, 3)
    value_cache = optional(call, 4)
    y = _query_shaped(call, q, optional(call, 1) is None)
    width = int_attribute(call, "v_head_size", 0)
    if width > 0 and y.shape:
        y = Tensor(y.dtype, (*y.shape[:-1], length_attribute(call, "num_heads") * width))
    return y, like(cache), None if value_cache is None else like(value_cache)


def _query_shaped(call: OpCall, q: Tensor, packed: bool) -> Tensor:
    """The query without the keys and values that may be packed behind it."""
    if not q.shape or not packed:
        return like(q)
    heads, kv_heads = length_attribute(call, "num_heads"), length_attribute(call, "kv_num_heads")
    size = split_heads(q.shape[-1], heads + 2 * kv_heads)
    return Tensor(q.dtype, (*q.shape[:-1], heads * size))


def _decoder_attention(call: OpCall) -> Outputs:
    """(steps, batch, hidden); what becomes of the caches depends on inputs that are data."""
    q = given(call, 0)
    return like(q), Tensor(q.dtype, None), Tensor(q.dtype, None)


def _gated_delta_net(call: OpCall) -> Outputs:
    """Tokens (tokens, heads, size) of q, k and v, or all three packed, to (tokens, heads, v_size),
    with one head for each of the query's or the value's, whichever are more; the state is
    (batch, v_heads, v_size, size)."""
    q, v, state = given(call, 0), optional(call, 2), optional(call, 6)
    final = Tensor(q.dtype if state is None else state.dtype, None)
    if state is not None:
        final = like(state)
    if q.shape is None:
        return Tensor(q.dtype, None), final
    if v is not None and v.shape is not None:
        rank_is(q.shape, 3, "the query")
        rank_is(v.shape, 3, "the value")
        return Tensor(q.dtype, (q.shape[0], max(q.shape[1], v.shape[1]), v.shape[2])), final
    if v is None and state is not None and state.shape is not None:
        rank_is(state.shape, 4, "the state")
        return Tensor(q.dtype, (*q.shape[:1], *state.shape[1:3])), final
    return Tensor(q.dtype, None), final


RULES: dict[tuple[str, str], Rule] = {
    (_MICROSOFT, "DecoderAttention"): _decoder_attention,
    (_MICROSOFT, "GatedDeltaNet"): _gated_delta_net,
    (_MICROSOFT, "PagedAttention"): _paged,
    (_MICROSOFT, "SparseAttention"): _sparse,
    (_MICROSOFT, "SparsePagedAttention"): _paged,
}
