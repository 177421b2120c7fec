"""Sums over a graph."""

from __future__ import annotations

from dippm_lite.graph import Graph, TensorSpec
from dippm_lite.op_costs.costs import node_macs, nodes_at_load
from dippm_lite.op_costs.elementwise_table import ELEMENTWISE
from dippm_lite.op_costs.rules import UnknownShapeError

__all__ = ["graph_macs", "graph_params", "graph_weight_bytes"]


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
    as InstanceNormalization). A weight packed into bytes (4-bit, MatMulNBits) counts its bytes.
    """
    return sum(
        spec.elements
        for value in graph.stored_weights
        if (spec := graph.values[value].spec) is not None
        and (spec.dtype.is_floating or spec.dtype.is_quantized)
        and not _is_literal(graph, value, spec)
    )


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
