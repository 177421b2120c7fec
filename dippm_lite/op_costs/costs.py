"""The cost of one operator, in the element types of the file."""

from __future__ import annotations

from math import prod

from dippm_lite.graph import ABSENT, Graph, OpNode, ValueKind
from dippm_lite.kernels import KernelKind, OpCost
from dippm_lite.op_costs.contrib_table import CONTRIB_RULES
from dippm_lite.op_costs.onnx_table import ONNX_RULES
from dippm_lite.op_costs.rules import OpRule, UnknownShapeError, Work

__all__ = [
    "find_rule",
    "is_computed_at_load",
    "is_free",
    "node_cost",
    "node_macs",
    "nodes_at_load",
    "other_flops",
    "runs_on_gpu",
]

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"}
    | {"Multinomial", "Bernoulli"}
)

_HOST_DOMAINS = frozenset({"ai.onnx.contrib", "com.microsoft.extensions"})
"""onnxruntime-extensions: tokenizers, image and audio codecs, all of them on the CPU."""

_ON_HOST = OpRule(KernelKind.OTHER, "extension", work=Work.HOST)


def find_rule(node: OpNode) -> OpRule | None:
    """The row of the operator table for ``node``; None for an operator that has none."""
    if node.domain in _HOST_DOMAINS:
        return _ON_HOST
    return ONNX_RULES.get(node.key) or CONTRIB_RULES.get(node.key)


def runs_on_gpu(node: OpNode) -> bool:
    """False for operators that no runtime has a GPU kernel for: strings, sequences, maps, and
    classical machine learning. An unknown operator is taken to run on the GPU."""
    rule = find_rule(node)
    return rule is None or rule.work is not Work.HOST


def is_computed_at_load(graph: Graph, node: OpNode) -> bool:
    """True where every output is known before the first inference: shape arithmetic on the host,
    or weights prepared from other weights (transposed, cast, dequantised)."""
    outputs = [graph.values[v].kind for v in node.outputs if v != ABSENT]
    return bool(outputs) and all(k in (ValueKind.WEIGHT, ValueKind.HOST) for k in outputs)


def nodes_at_load(graph: Graph) -> frozenset[int]:
    """Nodes whose results no input's data goes into: shape arithmetic, weights prepared from other
    weights, and what follows from both (position embeddings, causal masks, zero initial states).

    One inference after another, they give the same once the shapes are bound, so they are done
    before the first. Eager PyTorch does repeat those on the device, a handful of small kernels, but
    files traced at fixed shapes no longer show them.
    """
    changing = set(graph.inputs)
    at_load = []
    for i, node in enumerate(graph.nodes):
        if is_computed_at_load(graph, node) or (
            node.op_type not in _RANDOM
            and changing.isdisjoint(node.inputs)
            and not _is_source(node)
        ):
            at_load.append(i)
        else:
            changing.update(v for v in node.outputs if v != ABSENT)
    return frozenset(at_load)


def _is_source(node: OpNode) -> bool:
    """True for an operator without inputs: only a Constant gives the same every time."""
    return all(v == ABSENT for v in node.inputs) and node.op_type != "Constant"


def is_free(graph: Graph, node: OpNode) -> bool:
    """True where an inference spends nothing on ``node``: it only renames or reshapes a tensor,
    or is computed at load."""
    rule = find_rule(node)
    return (rule is not None and rule.work is Work.FREE) or is_computed_at_load(graph, node)


def node_macs(graph: Graph, node: OpNode) -> int:
    """Multiply-accumulates of one run; 0 for operators that have none.

    Raises:
        UnknownShapeError: the count depends on a shape that isn't known.
    """
    rule = find_rule(node)
    return 0 if rule is None or rule.macs is None else rule.macs(graph, node, rule.slots)


def other_flops(graph: Graph, node: OpNode, rule: OpRule) -> int:
    """Arithmetic besides MACs: ``rule.flops`` for each element of the larger of first input and
    first output."""
    sizes = [
        prod(spec.shape)
        for value in (*node.inputs[:1], *node.outputs[:1])
        if (spec := graph.spec(value)) is not None
    ]
    return rule.flops * max(sizes, default=0)


def node_cost(graph: Graph, node: OpNode) -> OpCost | None:
    """Cost of one run of ``node`` (``node.repeat`` isn't applied), tensors in the file's types.

    Free and host-only operators cost nothing. None means that the cost can't be told: the operator
    is unknown, a control-flow body was not inlined, or a shape is missing.
    """
    rule = find_rule(node)
    if rule is None:
        return None
    if rule.work in (Work.FREE, Work.HOST) or is_computed_at_load(graph, node):
        return OpCost()
    if rule.work is Work.CONTROL:
        return None
    read = weights = written = 0
    for value in node.outputs:
        if value == ABSENT:
            continue
        spec = graph.spec(value)
        if spec is None:
            return None
        written += spec.size_bytes
    for position, value in enumerate(dict.fromkeys(node.inputs)):
        if value == ABSENT or graph.values[value].kind is ValueKind.HOST:
            continue
        spec = graph.spec(value)
        if spec is None:
            return None
        size = spec.size_bytes
        if rule.sparse and position == 0:
            size = min(size, written)
        if graph.values[value].kind is ValueKind.WEIGHT:
            weights += size
        else:
            read += size
    try:
        macs = node_macs(graph, node)
    except UnknownShapeError:
        return None
    return OpCost(macs, other_flops(graph, node, rule), read, written, weights)
