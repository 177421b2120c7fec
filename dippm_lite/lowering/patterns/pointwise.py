"""Elementwise functions of one tensor, as steps."""

from __future__ import annotations

from math import prod

from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.patterns.found import Found, nearly
from dippm_lite.lowering.steps import Step
from dippm_lite.op_costs import ELEMENTWISE

__all__ = ["activation", "scaled"]

_FLOPS = {"gelu_tanh": 20, "quick_gelu": 14, **dict(ELEMENTWISE.values())}


def activation(index: GraphIndex, op: str, nodes: tuple[int, ...], data: int, last: int) -> Found:
    result = index.node(last).outputs[0]
    elements = prod(index.shape(result) or ())
    step = Step(
        KernelKind.ELEMENTWISE,
        op,
        tuple(sorted(set(nodes))),
        (data,),
        (result,),
        ElementDims(elements, 1),
        flops_other=_FLOPS[op] * elements,
        repeat=index.node(last).repeat,
    )
    return Found(step.nodes, (step,))


def scaled(index: GraphIndex, value: int, factor: float) -> tuple[int, int] | None:
    """``(x, node)`` where ``value`` is ``x * factor``, as a product or a quotient."""
    i = index.made_by(value, "Mul", "Div")
    pair = None if i is None else index.operand_and_scalar(i)
    if i is None or pair is None:
        return None
    operand, number = pair
    if index.node(i).op_type == "Div":
        if index.inputs[i][0] != operand or number == 0:
            return None
        number = 1 / number
    return (operand, i) if nearly(number, factor) else None
