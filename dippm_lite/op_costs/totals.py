"""Sums over a graph."""

from __future__ import annotations

from dippm_lite.graph import ABSENT, Graph, TensorSpec
from dippm_lite.op_costs.costs import node_macs, nodes_at_load
from dippm_lite.op_costs.elementwise_table import ELEMENTWISE
from dippm_lite.op_costs.macs import integer
from dippm_lite.op_costs.rules import UnknownShapeError

__all__ = ["graph_macs", "graph_params", "graph_weight_bytes"]

_PACKED_PRODUCTS = frozenset({("com.microsoft", "MatMulNBits"), ("com.microsoft", "MatMulBnb4")})
"""Products whose right operand is packed into bytes, K and N being attributes."""


def graph_macs(graph: Graph) -> int:
    """Multiply-accumulates of one inference, loop bodies times their trip counts.

    What is computed at load (a product of two weights) doesn't run at inference and isn't counted;
    neither are operators that are unknown or have unknown shapes, which ``lowering`` marks.
    """
    total = 0
    at_load = nodes_at_load(graph)
    for i, node in enumerate(graph.nodes):
        if i in at_load:
            continue
        try:
            total += node_macs(graph, node) * node.repeat
        except UnknownShapeError:
            continue
    return total


def graph_params(graph: Graph) -> int:
    """Elements of the weights that the file stores, floating-point or quantised, each once.

    Stored is what counts: running statistics of a BatchNormalization are among them (torch keeps
    them as buffers), and where an exporter folded it they are not. Literals that an exporter wrote
    out aren't parameters: single numbers that only elementwise operators read (the scale of an
    attention), and the ones and zeros that stand in for an absent affine part (a GroupNorm written
    as InstanceNormalization). A matrix packed into bytes (MatMulNBits) counts its K x N elements,
    not the bytes, and not the scales and zero points that belong to the packing.
    """
    packed = _packed_elements(graph)
    return sum(
        packed.get(value, spec.elements)
        for value in graph.stored_weights
        if (spec := graph.values[value].spec) is not None
        and (spec.dtype.is_floating or spec.dtype.is_quantized)
        and not _is_literal(graph, value, spec)
    )


def _packed_elements(graph: Graph) -> dict[int, int]:
    """Elements that each packed operand of a block-quantised product stands for."""
    found: dict[int, int] = {}
    for node in graph.nodes:
        if node.key in _PACKED_PRODUCTS and len(node.inputs) > 1:
            matrix, *packing = node.inputs[1:4]  # then scales and zero points
            found.update((value, 0) for value in packing if value != ABSENT)
            found[matrix] = max(integer(node, "K", 0), 0) * max(integer(node, "N", 0), 0)
    return found


def _is_literal(graph: Graph, value: int, spec: TensorSpec) -> bool:
    if spec.rank == 0:
        return True
    content = graph.values[value].constant
    readers = [graph.nodes[i] for i in graph.consumers.get(value, ())]
    if spec.elements == 1:
        return all(not n.domain and n.op_type in ELEMENTWISE.keys() - {"PRelu"} for n in readers)
    if content is None or set(content) not in ({0}, {1}):
        return False
    return all(not n.domain and n.op_type == "InstanceNormalization" for n in readers)


def graph_weight_bytes(graph: Graph) -> int:
    """Bytes of all stored weights in the file's types, each once."""
    return sum(
        spec.size_bytes
        for value in graph.stored_weights
        if (spec := graph.values[value].spec) is not None
    )
