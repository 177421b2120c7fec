"""Scaled dot-product attention written out: two products around a softmax."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dippm_lite.execution import MathMode
from dippm_lite.kernels import AttentionDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found, nearly
from dippm_lite.lowering.steps import Step

__all__ = ["attention", "sdpa"]

_MAX_MASKS = 3


@dataclass(slots=True)
class _Core:
    """Nodes from the product of queries and keys to the product with values.

    ``query`` and ``key`` are the operands of the first product, scaled or not.
    """

    nodes: list[int]
    query: int
    key: int
    value: int
    masks: list[int]
    first: int
    last: int


def _core(index: GraphIndex, softmax: int) -> _Core | None:
    nodes = [softmax]
    masks: list[int] = []
    value = index.inputs[softmax][0]
    axis = index.node(softmax).attributes.get("axis", -1 if index.graph.opset >= 13 else 1)
    if axis not in (-1, len(index.shape(value) or ()) - 1):
        return None
    first = None
    for _ in range(_MAX_MASKS + 2):
        i = index.producer(value)
        if i is None or index.node(i).domain:
            return None
        op_type = index.node(i).op_type
        if op_type == "MatMul":
            first = i
            break
        following = _score_operand(index, i, op_type, masks)
        if following is None:
            return None
        nodes.append(i)
        value = following
    if first is None:
        return None
    last = _weighted_sum(index, softmax, nodes)
    if last is None:
        return None
    query, key = index.inputs[first]
    nodes += [first, last]
    return _Core(nodes, query, key, index.inputs[last][1], masks, first, last)


def _score_operand(index: GraphIndex, i: int, op_type: str, masks: list[int]) -> int | None:
    """The scores before a scale, a mask or a cast."""
    inputs = index.inputs[i]
    if op_type == "Cast":
        return inputs[0]
    if op_type in ("Mul", "Div"):
        pair = index.operand_and_scalar(i)
        return None if pair is None or (inputs[0] != pair[0] and op_type == "Div") else pair[0]
    if op_type == "Where":
        condition, a, b = inputs
        masks.append(condition)
        return b if index.scalar(a) is not None else a if index.scalar(b) is not None else None
    if op_type != "Add" or len(inputs) != 2:
        return None
    result = index.shape(index.node(i).outputs[0])
    a, b = inputs
    scores = [
        v
        for v in (a, b)
        if index.shape(v) == result and index.made_by(v, "MatMul", "Mul", "Div", "Add", "Cast")
    ]
    if len(scores) == 2:  # a mask as large as the scores: they are what a product made
        scores = [v for v in scores if _from_product(index, v)]
    if len(scores) != 1:
        return None
    masks.append(b if scores[0] == a else a)
    return scores[0]


def _from_product(index: GraphIndex, value: int) -> bool:
    i = index.made_by(value, "MatMul", "Mul", "Div")
    if i is None:
        return False
    if index.node(i).op_type == "MatMul":
        return True
    pair = index.operand_and_scalar(i)
    return pair is not None and index.made_by(pair[0], "MatMul") is not None


def _weighted_sum(index: GraphIndex, softmax: int, nodes: list[int]) -> int | None:
    """The product with the values, after a cast and the removal of the NaNs that a fully masked
    row gives."""
    value = index.node(softmax).outputs[0]
    readers = index.readers(value)
    if len(readers) == 2:
        nan = next((i for i in readers if index.node(i).op_type == "IsNaN"), None)
        where = None if nan is None else index.only_reader(index.node(nan).outputs[0], "Where")
        if nan is None or where is None or index.inputs[where][2] != value:
            return None
        nodes += [nan, where]
        value = index.node(where).outputs[0]
    cast = index.only_reader(value, "Cast")
    if cast is not None:
        nodes.append(cast)
        value = index.node(cast).outputs[0]
    last = index.only_reader(value, "MatMul")
    return last if last is not None and index.inputs[last][0] == value else None


def _unscaled(index: GraphIndex, value: int) -> tuple[int, float, int] | None:
    """``(operand, factor, node)`` of a value that is an operand times a known number."""
    i = index.made_by(value, "Mul", "Div")
    pair = None if i is None else index.operand_and_scalar(i)
    if i is None or pair is None or pair[1] == 0:
        return None
    operand, number = pair
    if index.node(i).op_type == "Div":
        if index.inputs[i][0] != operand:
            return None
        number = 1 / number
    return operand, number, i


def _fused(index: GraphIndex, core: _Core, query: int, key: int, nodes: list[int]) -> Found | None:
    q, k, v = index.shape(query), index.shape(key), index.shape(core.value)
    if q is None or k is None or v is None or min(len(q), len(k), len(v)) < 3:
        return None
    result = index.node(core.last).outputs[0]
    out = index.shape(result)
    if out is None or len(out) < 3 or index.is_weight(core.value) or index.is_weight(key):
        return None
    heads = out[-3] if len(out) > 3 else 1
    batch = prod(out[:-2]) // max(heads, 1)
    dims = AttentionDims(batch, heads, heads, q[-2], k[-1], q[-1], v[-1])
    pairs = prod(out[:-2]) * q[-2] * k[-1]
    shared = [m for mask in core.masks for m in _mask_makers(index, mask)]
    masks = [_mask_source(index, mask) for mask in core.masks]
    step = Step(
        KernelKind.ATTENTION,
        "attention",
        tuple(sorted(set(nodes))),
        tuple(dict.fromkeys([query, key, core.value, *masks])),
        (result,),
        dims,
        pairs * (q[-1] + v[-1]),
        12 * pairs,
        index.node(core.last).repeat,
    )
    return Found(step.nodes, (step,), tuple(shared))


def _mask_makers(index: GraphIndex, mask: int) -> tuple[int, ...]:
    """The Where that turns a boolean mask into 0 and minus infinity."""
    i = index.made_by(mask, "Where")
    if i is None or len(index.inputs[i]) != 3:
        return ()
    values = (index.scalar(v) for v in index.inputs[i][1:])
    return (i,) if all(v is not None for v in values) else ()


def _mask_source(index: GraphIndex, mask: int) -> int:
    makers = _mask_makers(index, mask)
    return index.inputs[makers[0]][0] if makers else mask


def sdpa(index: GraphIndex, softmax: int, numerics: Numerics) -> Found | None:
    """``F.scaled_dot_product_attention`` as exporters write it: queries and transposed keys are
    each multiplied by the square root of the scale, which nobody does by hand."""
    core = _core(index, softmax)
    if core is None:
        return None
    query, key = _unscaled(index, core.query), _unscaled(index, core.key)
    if query is None or key is None or not nearly(query[1], key[1]):
        return None
    return _fused(index, core, query[0], key[0], [*core.nodes, query[2], key[2]])


def attention(index: GraphIndex, softmax: int, numerics: Numerics) -> Found | None:
    """Attention in any form, where the engine computes in half precision: TensorRT fuses
    multi-head attention in FP16, BF16 and INT8, not in FP32 (TensorRT developer guide)."""
    if numerics.matmul not in (MathMode.FP16, MathMode.BF16, MathMode.INT8):
        return None
    core = _core(index, softmax)
    if core is None:
        return None
    nodes = list(core.nodes)
    operands = []
    for value in (core.query, core.key):
        scaled = _unscaled(index, value)
        if scaled is not None and index.only_reader(value) == core.first:
            nodes.append(scaled[2])
            value = scaled[0]
        operands.append(value)
    return _fused(index, core, operands[0], operands[1], nodes)
