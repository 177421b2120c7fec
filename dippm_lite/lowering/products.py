"""Steps of matrix products and attention."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from dippm_lite.graph import ABSENT
from dippm_lite.kernels import AttentionDims, Dims, ElementDims, GemmDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.steps import Step
from dippm_lite.op_costs import (
    AttentionSizes,
    Contraction,
    OpRule,
    UnknownShapeError,
    attention_sizes,
    flag,
    integer,
    matmul_inner,
    node_macs,
    other_flops,
    parse_einsum,
    shape_of,
)

__all__ = ["attention_steps", "einsum_step", "gemm_step", "matmul_step", "moe_step", "operands"]

_NBITS = frozenset({"MatMulNBits", "MatMulBnb4", "MatMulFpQ4"})


def operands(index: GraphIndex, values: Iterable[int]) -> tuple[int, ...]:
    """What a kernel reads of ``values``: present, each once. Scalars and small host values (axes,
    pads, sizes) are arguments of the launch."""
    return tuple(v for v in dict.fromkeys(values) if v != ABSENT and not index.is_argument(v))


def _product(
    index: GraphIndex, i: int, rule: OpRule, op: str, dims: GemmDims, kind: KernelKind
) -> Step:
    node = index.node(i)
    return Step(
        kind,
        op,
        (i,),
        operands(index, index.inputs[i]),
        operands(index, node.outputs),
        dims,
        node_macs(index.graph, node),
        other_flops(index.graph, node, rule),
        node.repeat,
    )


def gemm_step(index: GraphIndex, i: int, rule: OpRule) -> Step:
    """Gemm: ``linear`` where the right operand is a weight, else ``mm``."""
    graph, node = index.graph, index.node(i)
    result = shape_of(graph, node, 0, output=True)
    data = shape_of(graph, node, rule.slots.data)
    if len(result) != 2 or len(data) != 2:
        raise UnknownShapeError(f"operands of node {node.name!r} ({node.op_type})")
    weight_b = index.is_weight(index.inputs[i][rule.slots.weight])
    inner = data[0] if flag(node, "transA") else data[1]
    dims = GemmDims(1, result[0], result[1], inner, weight_b)
    return _product(index, i, rule, "linear" if weight_b else "mm", dims, KernelKind.GEMM)


def matmul_step(index: GraphIndex, i: int, rule: OpRule) -> Step:
    """MatMul: one GEMM over all leading axes where the right operand is a single matrix (as
    ``torch.matmul`` folds it), else one product for each batch entry."""
    graph, node = index.graph, index.node(i)
    a = shape_of(graph, node, rule.slots.data)
    weight_b = index.is_weight(index.inputs[i][rule.slots.weight])
    inner = matmul_inner(node, a)
    if node.op_type in _NBITS:
        n = integer(node, "N", shape_of(graph, node, 0, output=True)[-1])
        dims = GemmDims(1, prod(a[:-1]), n, inner)
        return _product(index, i, rule, "linear_nbits", dims, KernelKind.GEMM)
    b = shape_of(graph, node, rule.slots.weight)
    n = 1 if len(b) < 2 else b[-2] if flag(node, "transB") else b[-1]
    out = prod(shape_of(graph, node, 0, output=True))
    single_a = len(a) < 3
    if prod(b[:-2]) == 1 and not flag(node, "transBatchA"):
        rows = out // max(n, 1)
        if weight_b or len(b) < 3 or single_a:
            dims = GemmDims(1, rows, n, inner, weight_b)
            name = "linear" if weight_b else "mm"
            return _product(index, i, rule, name, dims, KernelKind.GEMM)
    m = 1 if len(a) < 2 else a[-1] if flag(node, "transA") else a[-2]
    batch = out // max(m * n, 1)
    dims = GemmDims(batch, m, n, inner, weight_b)
    return _product(index, i, rule, "bmm", dims, KernelKind.BATCHED_GEMM)


def einsum_step(index: GraphIndex, i: int, rule: OpRule) -> Step:
    """Einsum of two operands as the batched product it is; of one as a sum or a copy; of more by
    its total work alone."""
    graph, node = index.graph, index.node(i)
    contraction = parse_einsum(graph, node)
    if contraction is None:
        raise UnknownShapeError(f"equation of node {node.name!r}")
    out = prod(shape_of(graph, node, 0, output=True))
    if len(contraction.operands) != 2:
        kind = KernelKind.DATA_MOVEMENT if len(contraction.operands) < 2 else KernelKind.OTHER
        dims: Dims = ElementDims(out, len(contraction.operands))
        return Step(
            kind,
            "einsum",
            (i,),
            operands(index, index.inputs[i]),
            operands(index, node.outputs),
            dims,
            node_macs(graph, node),
            0,
            node.repeat,
        )
    gemm = _einsum_dims(contraction, index.is_weight(index.inputs[i][1]))
    if gemm.batch == 1 and gemm.weight_b:
        return _product(index, i, rule, "linear", gemm, KernelKind.GEMM)
    return _product(index, i, rule, "bmm", gemm, KernelKind.BATCHED_GEMM)


def _einsum_dims(contraction: Contraction, weight_b: bool) -> GemmDims:
    left, right = (frozenset(labels) for labels in contraction.operands)
    kept = frozenset(contraction.result)

    def size(labels: frozenset[str]) -> int:
        return prod(contraction.sizes[label] for label in labels)

    shared = left & right
    # a label of one operand that the result drops is summed; its work is counted with its side
    return GemmDims(
        size(shared & kept), size(left - right), size(right - left), size(shared - kept), weight_b
    )


def attention_steps(index: GraphIndex, i: int, rule: OpRule) -> tuple[Step, ...]:
    """A fused attention operator, after the product that projects its input, where it has one."""
    node = index.node(i)
    sizes = attention_sizes(index.graph, node)
    inputs = operands(index, index.inputs[i])
    outputs = operands(index, node.outputs)
    core = Step(
        KernelKind.ATTENTION,
        "attention",
        (i,),
        inputs,
        outputs,
        attention_dims(sizes),
        sizes.core_macs,
        rule.flops * sizes.batch * sizes.heads * sizes.q_len * sizes.kv_len,
        node.repeat,
    )
    if not sizes.projected:
        return (core,)
    weights = tuple(v for v in inputs[1:] if index.is_weight(v))
    projection = Step(
        KernelKind.GEMM,
        "linear",
        (i,),
        (inputs[0], *weights),
        (),
        GemmDims(1, sizes.tokens, sizes.projected, sizes.features),
        sizes.projection_macs,
        sizes.tokens * sizes.projected,
        node.repeat,
        temp_elements=sizes.tokens * sizes.projected,
    )
    rest = tuple(v for v in inputs if v not in weights)
    return projection, Step(
        core.kind, core.op, (i,), rest, outputs, core.dims, core.macs, core.flops_other, node.repeat
    )


def attention_dims(sizes: AttentionSizes) -> AttentionDims:
    return AttentionDims(
        sizes.batch,
        sizes.heads,
        sizes.kv_heads,
        sizes.q_len,
        sizes.kv_len,
        sizes.qk_head_dim,
        sizes.v_head_dim,
        sizes.causal,
    )


def moe_step(index: GraphIndex, i: int, rule: OpRule) -> Step:
    """Mixture of experts as one grouped product: every token visits ``k`` of the experts."""
    graph, node = index.graph, index.node(i)
    data = shape_of(graph, node, 0)
    experts = max(shape_of(graph, node, rule.slots.weight)[0], 1)
    visits = prod(data[:-1]) * max(integer(node, "k", 1), 1)
    macs = node_macs(graph, node)
    inner = max(data[-1], 1)
    rows = max(visits // experts, 1)
    dims = GemmDims(experts, rows, macs // max(experts * rows * inner, 1), inner)
    return _product(index, i, rule, "moe", dims, KernelKind.BATCHED_GEMM)
