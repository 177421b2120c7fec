"""Sizes of the attention operators of ONNX and of onnxruntime, projections apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from dippm_lite.graph import ABSENT, Graph, OpNode
from dippm_lite.op_costs.macs import flag, integer
from dippm_lite.op_costs.rules import OpKey, Slots, UnknownShapeError, shape_of

__all__ = ["ATTENTION_SIZES", "AttentionSizes", "attention_macs", "attention_sizes"]


@dataclass(frozen=True, slots=True)
class AttentionSizes:
    """What an attention operator computes.

    ``kv_len`` includes the past. Where the operator projects its input itself, ``tokens``,
    ``features`` and ``projected`` are the (m, k, n) of that product, else 0.
    """

    batch: int
    heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    qk_head_dim: int
    v_head_dim: int
    causal: bool = False
    tokens: int = 0
    features: int = 0
    projected: int = 0

    @property
    def core_macs(self) -> int:
        """Scores and weighted sum over all positions; a causal mask doesn't lower the count."""
        pairs = self.batch * self.heads * self.q_len * self.kv_len
        return pairs * (self.qk_head_dim + self.v_head_dim)

    @property
    def projection_macs(self) -> int:
        return self.tokens * self.features * self.projected


def _given(node: OpNode, slot: int) -> bool:
    return slot < len(node.inputs) and node.inputs[slot] != ABSENT


def _split_heads(shape: tuple[int, ...], heads: int) -> tuple[int, int, int, int]:
    """(batch, heads, length, head size) of a (B, H, S, D) or (B, S, H * D) operand."""
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    if len(shape) != 3:
        raise UnknownShapeError(f"attention operand of shape {shape}")
    return shape[0], heads, shape[1], shape[2] // max(heads, 1)


def _onnx(graph: Graph, node: OpNode) -> AttentionSizes:
    """ai.onnx Attention (23 and later) and ai.onnx.preview FlexAttention: Q, K, V, mask, past."""
    heads = integer(node, "q_num_heads", 1)
    batch, heads, q_len, qk_dim = _split_heads(shape_of(graph, node, 0), heads)
    kv_default = integer(node, "kv_num_heads", heads)
    _, kv_heads, kv_len, _ = _split_heads(shape_of(graph, node, 1), kv_default)
    v_dim = _split_heads(shape_of(graph, node, 2), kv_default)[3]
    if node.op_type == "Attention" and _given(node, 4):
        kv_len += shape_of(graph, node, 4)[2]
    causal = flag(node, "is_causal")
    return AttentionSizes(batch, heads, kv_heads, q_len, kv_len, qk_dim, v_dim, causal)


def _projecting(past_slot: int, packed: bool = False) -> Callable[[Graph, OpNode], AttentionSizes]:
    """com.microsoft Attention and its kin: input (B, S, C) times weights (C, q + k + v)."""

    def sizes(graph: Graph, node: OpNode) -> AttentionSizes:
        shape = shape_of(graph, node, 0)
        features, projected = shape_of(graph, node, 1)[-2:]
        if packed:
            batch, q_len = shape_of(graph, node, 3)[:2]
        elif len(shape) == 3:
            batch, q_len = shape[:2]
        else:
            raise UnknownShapeError(f"attention input of shape {shape}")
        heads = max(integer(node, "num_heads", 1), 1)
        hidden = node.attributes.get("qkv_hidden_sizes")
        if isinstance(hidden, tuple) and len(hidden) == 3:
            q_size, v_size = int(hidden[0]), int(hidden[2])
        else:
            q_size = v_size = projected // 3
        kv_len = q_len
        if past_slot >= 0 and _given(node, past_slot):
            kv_len += shape_of(graph, node, past_slot)[3]
        causal = flag(node, "unidirectional")
        dims = (batch, heads, heads, q_len, kv_len, q_size // heads, v_size // heads)
        return AttentionSizes(*dims, causal, prod(shape[:-1]), features, projected)

    return sizes


def _multi_head(past_slot: int, packed: bool = False) -> Callable[[Graph, OpNode], AttentionSizes]:
    """com.microsoft MultiHeadAttention and its kin: projected q, k, v as (B, S, H * D), or packed
    into the query as (B, S, H, 3, D), or keys and values as (B, H, L, D)."""

    def sizes(graph: Graph, node: OpNode) -> AttentionSizes:
        heads = max(integer(node, "num_heads", 1), 1)
        query = shape_of(graph, node, 0)
        if packed:
            batch, q_len = shape_of(graph, node, 4)[:2]
            dim = query[-1] if len(query) == 4 else query[-1] // heads
            v_dim = shape_of(graph, node, 2)[-1] // heads if _given(node, 2) else dim
            return AttentionSizes(batch, heads, heads, q_len, q_len, dim, v_dim)
        if len(query) == 5:
            batch, q_len, heads, _, dim = query
            kv_len, v_dim = q_len, dim
        else:
            batch, _, q_len, dim = _split_heads(query, heads)
            kv_len, v_dim = q_len, dim
            if _given(node, 1):
                key = shape_of(graph, node, 1)
                kv_len = key[2] if len(key) == 4 else key[1]
                v_dim = dim if len(key) == 5 else v_dim
            if _given(node, 2):
                v_dim = _split_heads(shape_of(graph, node, 2), heads)[3]
        if past_slot >= 0 and _given(node, past_slot):
            kv_len += shape_of(graph, node, past_slot)[2]
        causal = flag(node, "unidirectional")
        return AttentionSizes(batch, heads, heads, q_len, kv_len, dim, v_dim, causal)

    return sizes


def _grouped(graph: Graph, node: OpNode) -> AttentionSizes:
    """com.microsoft GroupQueryAttention and SparseAttention: always causal. The past is a buffer
    that may be longer than what it holds, so the length of the output cache is an upper bound."""
    heads = max(integer(node, "num_heads", 1), 1)
    kv_heads = max(integer(node, "kv_num_heads", heads), 1)
    batch, q_len, width = shape_of(graph, node, 0)
    dim = width // heads if _given(node, 1) else width // (heads + 2 * kv_heads)
    kv_len = q_len
    present = graph.spec(node.outputs[1]) if len(node.outputs) > 1 else None
    if present is not None and present.rank == 4:
        kv_len = present.shape[2]
    elif _given(node, 3):
        kv_len += shape_of(graph, node, 3)[2]
    return AttentionSizes(batch, heads, kv_heads, q_len, kv_len, dim, dim, causal=True)


_MS = "com.microsoft"

ATTENTION_SIZES: dict[OpKey, Callable[[Graph, OpNode], AttentionSizes]] = {
    ("", "Attention"): _onnx,
    ("ai.onnx.preview", "FlexAttention"): _onnx,
    (_MS, "Attention"): _projecting(past_slot=4),
    (_MS, "QAttention"): _projecting(past_slot=8),
    (_MS, "DecoderMaskedSelfAttention"): _projecting(past_slot=4),
    (_MS, "PackedAttention"): _projecting(past_slot=-1, packed=True),
    (_MS, "MultiHeadAttention"): _multi_head(past_slot=6),
    (_MS, "DecoderMaskedMultiHeadAttention"): _multi_head(past_slot=5),
    (_MS, "PackedMultiHeadAttention"): _multi_head(past_slot=-1, packed=True),
    (_MS, "GroupQueryAttention"): _grouped,
    (_MS, "SparseAttention"): _grouped,
}
"""One row an operator."""


def attention_sizes(graph: Graph, node: OpNode) -> AttentionSizes:
    """Sizes of an operator of :data:`ATTENTION_SIZES`.

    Raises:
        UnknownShapeError: a shape that it depends on is unknown or makes no sense.
    """
    try:
        return ATTENTION_SIZES[node.key](graph, node)
    except (IndexError, ValueError) as error:
        raise UnknownShapeError(f"operands of node {node.name!r} ({node.op_type})") from error


def attention_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """Projections plus ``B * H * Sq * Skv * (Dqk + Dv)``."""
    del slots
    sizes = attention_sizes(graph, node)
    return sizes.projection_macs + sizes.core_macs
