"""Multiply-accumulates of convolutions, matrix products and recurrent layers.

One MAC is one multiplication with its addition (2 FLOPs). Bias and activation aren't among them.
Padding is counted like data, as in every published count.
"""

from __future__ import annotations

from math import prod

from dippm_lite.graph import ABSENT, Graph, OpNode
from dippm_lite.op_costs.rules import Slots, shape_of

__all__ = [
    "conv_macs",
    "conv_transpose_macs",
    "flag",
    "gemm_macs",
    "integer",
    "matmul_inner",
    "matmul_macs",
    "moe_macs",
    "recurrent_macs",
    "word_conv_macs",
]


def integer(node: OpNode, name: str, default: int) -> int:
    """An integer attribute."""
    value = node.attributes.get(name, default)
    return int(value) if isinstance(value, int | float) else default


def flag(node: OpNode, name: str) -> bool:
    """A 0/1 attribute that defaults to 0."""
    return integer(node, name, 0) != 0


def conv_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``numel(out) * Cin / group * prod(kernel)``: the weight is (Cout, Cin / group, *kernel), or
    channels last in the NHWC variants, with the same product."""
    return prod(shape_of(graph, node, 0, output=True)) * prod(
        shape_of(graph, node, slots.weight)[1:]
    )


def conv_transpose_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``numel(in) * Cout / group * prod(kernel)``: the weight is (Cin, Cout / group, *kernel)."""
    return prod(shape_of(graph, node, slots.data)) * prod(shape_of(graph, node, slots.weight)[1:])


def matmul_inner(node: OpNode, shape_a: tuple[int, ...]) -> int:
    """Length of the contracted axis, from the left operand (numpy's rules; a 1-D operand is a
    row). ``transA`` and ``transBatchA`` are FusedMatMul's: the second moves the first axis behind
    the other batch axes before anything else."""
    if len(shape_a) < 2:
        return prod(shape_a)
    if flag(node, "transBatchA"):
        shape_a = (*shape_a[1:-1], shape_a[0], shape_a[-1])
    return shape_a[-2] if flag(node, "transA") else shape_a[-1]


def matmul_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``numel(out) * K``; broadcast batch axes and 1-D operands are in the output's shape."""
    inner = matmul_inner(node, shape_of(graph, node, slots.data))
    return prod(shape_of(graph, node, 0, output=True)) * inner


def gemm_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``M * N * K`` of ``op(A) (M, K) @ op(B) (K, N)``."""
    shape = shape_of(graph, node, slots.data)
    inner = shape[0] if flag(node, "transA") else shape[-1]
    return prod(shape_of(graph, node, 0, output=True)) * inner


def recurrent_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``T * B * D * gates * H * (I + H)``: both weight matrices once for each step and sample."""
    shape = shape_of(graph, node, slots.data)
    weights = prod(shape_of(graph, node, slots.weight)) + prod(
        shape_of(graph, node, slots.weight + 1)
    )
    return prod(shape[:2]) * weights


def moe_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """``tokens * k * (elements of one expert)``: each token visits ``k`` experts."""
    tokens = prod(shape_of(graph, node, slots.data)[:-1])
    quantized = node.op_type == "QMoE"
    packed = 8 // max(integer(node, "expert_weight_bits", 4), 1) if quantized else 1
    expert = 0
    for slot in (2, 5, 8) if quantized else (2, 4, 6):
        if slot < len(node.inputs) and node.inputs[slot] != ABSENT:
            expert += prod(shape_of(graph, node, slot)[1:]) * packed
    return tokens * max(integer(node, "k", 1), 1) * expert


def word_conv_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """WordConvEmbedding: a 1-D convolution over the characters of each word, valid padding."""
    words = prod(shape_of(graph, node, 0)[:-1])
    characters = shape_of(graph, node, 0)[-1]
    weight = shape_of(graph, node, slots.weight)
    return words * max(characters - weight[2] + 1, 0) * prod(weight)
