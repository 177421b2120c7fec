"""Multiply-accumulates of operators that carry a state along the sequence."""

from __future__ import annotations

from math import prod

from dippm_lite.graph import Graph, OpNode
from dippm_lite.op_costs.macs import integer
from dippm_lite.op_costs.rules import Slots, shape_of

__all__ = ["causal_conv_macs", "linear_attention_macs"]


def linear_attention_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """Each token adds ``k v^T`` to a (Dk, Dv) state of each key head and multiplies the state with
    each query head; the delta rules multiply it with the key as well."""
    batch, steps, q_width = shape_of(graph, node, slots.data)[:3]
    q_heads = max(integer(node, "q_num_heads", 1), 1)
    kv_heads = max(integer(node, "kv_num_heads", q_heads), 1)
    k_dim = q_width // q_heads
    v_dim = shape_of(graph, node, 2)[-1] // kv_heads
    rule = node.attributes.get("update_rule", "gated_delta")
    name = rule.decode("ascii", "replace") if isinstance(rule, bytes) else str(rule)
    products = q_heads + kv_heads * (2 if "delta" in name else 1)
    return batch * steps * k_dim * v_dim * products


def causal_conv_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """A depthwise convolution: ``numel(out) * kernel``."""
    return prod(shape_of(graph, node, 0, output=True)) * shape_of(graph, node, slots.weight)[-1]
