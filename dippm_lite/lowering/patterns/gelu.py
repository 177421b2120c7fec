"""GELU in elementary operators: through erf, and through tanh."""

from __future__ import annotations

from math import pi, sqrt

from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found, nearly
from dippm_lite.lowering.patterns.pointwise import activation, scaled

__all__ = ["gelu_erf", "gelu_erf_by_hand", "gelu_tanh", "gelu_tanh_by_hand"]

_BETA, _KAPPA = sqrt(2 / pi), 0.044715  # of the tanh approximation, Hendrycks and Gimpel 2016


def _plus_one(index: GraphIndex, value: int) -> int | None:
    """The one reader of ``value``, if it adds 1."""
    i = index.only_reader(value, "Add")
    pair = None if i is None else index.operand_and_scalar(i)
    return i if pair is not None and nearly(pair[1], 1.0) else None


def _half_product(index: GraphIndex, gate: int, data: int) -> tuple[list[int], bool] | None:
    """The nodes that make ``0.5 * data * gate`` out of ``gate`` in any order, and whether the half
    was taken of ``data`` first, as people write it (exporters never do)."""
    nodes: list[int] = []
    value, has_half, has_data, by_hand = gate, False, False, False
    while not (has_half and has_data):
        i = index.only_reader(value, "Mul", "Div")
        if i is None or len(nodes) == 2:
            return None
        nodes.append(i)
        a, b = index.inputs[i]
        other = b if a == value else a
        number = index.scalar(other)
        if not has_half and number is not None:
            factor = 0.5 if index.node(i).op_type == "Mul" else 2.0
            if not nearly(number, factor):
                return None
            has_half = True
        elif index.node(i).op_type != "Mul":
            return None
        elif not has_data and other == data:
            has_data = True
        else:
            half = None if has_half or has_data else scaled(index, other, 0.5)
            if half is None or half[0] != data:
                return None
            nodes.append(half[1])
            has_half = has_data = by_hand = True
            return nodes[::-1], by_hand
        value = index.node(i).outputs[0]
    return nodes, by_hand


def _gelu_erf(index: GraphIndex, erf: int) -> tuple[Found, bool] | None:
    argument = scaled(index, index.inputs[erf][0], 1 / sqrt(2))
    plus = _plus_one(index, index.node(erf).outputs[0])
    if argument is None or plus is None:
        return None
    data, div = argument
    product = _half_product(index, index.node(plus).outputs[0], data)
    if product is None:
        return None
    nodes, by_hand = product
    return activation(index, "gelu", (div, erf, plus, *nodes), data, nodes[-1]), by_hand


def gelu_erf(index: GraphIndex, erf: int, numerics: Numerics) -> Found | None:
    """``x * 0.5 * (1 + erf(x / sqrt 2))`` as exporters write ``F.gelu``."""
    found = _gelu_erf(index, erf)
    return None if found is None or found[1] else found[0]


def gelu_erf_by_hand(index: GraphIndex, erf: int, numerics: Numerics) -> Found | None:
    """The same as people write it, the half taken of ``x`` first."""
    found = _gelu_erf(index, erf)
    return None if found is None else found[0]


def _cubic(index: GraphIndex, value: int) -> tuple[int, tuple[int, ...]] | None:
    """``(x, nodes)`` where ``value`` is ``x ** 3``."""
    i = index.made_by(value, "Pow", "Mul")
    if i is None:
        return None
    if index.node(i).op_type == "Pow":
        data, exponent = index.inputs[i]
        return (data, (i,)) if nearly(index.scalar(exponent), 3.0) else None
    a, b = index.inputs[i]
    for data, square in ((a, b), (b, a)):
        j = index.made_by(square, "Mul", "Pow")
        if j is None:
            continue
        left, right = index.inputs[j]
        power = index.node(j).op_type == "Pow" and nearly(index.scalar(right), 2.0)
        if left == data and (right == data or power):
            return data, (j, i)
    return None


def _tanh_argument(index: GraphIndex, value: int) -> tuple[int, tuple[int, ...]] | None:
    """``(x, nodes)`` where ``value`` is ``sqrt(2/pi) * (x + 0.044715 * x**3)``, or the product
    ``x * sqrt(2/pi) * (1 + 0.044715 * x * x)``."""
    outer = scaled(index, value, _BETA)
    if outer is not None:
        add = index.made_by(outer[0], "Add")
        if add is None:
            return None
        a, b = index.inputs[add]
        for data, term in ((a, b), (b, a)):
            kappa = scaled(index, term, _KAPPA)
            cubic = None if kappa is None else _cubic(index, kappa[0])
            if kappa is not None and cubic is not None and cubic[0] == data:
                return data, (*cubic[1], kappa[1], add, outer[1])
        return None
    product = index.made_by(value, "Mul")
    if product is None:
        return None
    a, b = index.inputs[product]
    for left, right in ((a, b), (b, a)):
        first, add = scaled(index, left, _BETA), index.made_by(right, "Add")
        pair = None if add is None else index.operand_and_scalar(add)
        if first is None or add is None or pair is None or not nearly(pair[1], 1.0):
            continue
        square = index.made_by(pair[0], "Mul")
        if square is None:
            continue
        data = first[0]
        c, d = index.inputs[square]
        for x, y in ((c, d), (d, c)):
            kappa = scaled(index, x, _KAPPA)
            if y == data and kappa is not None and kappa[0] == data:
                return data, (first[1], kappa[1], square, add, product)
    return None


def _gelu_tanh(index: GraphIndex, tanh: int) -> tuple[Found, bool] | None:
    argument = _tanh_argument(index, index.inputs[tanh][0])
    plus = _plus_one(index, index.node(tanh).outputs[0])
    if argument is None or plus is None:
        return None
    data, inner = argument
    product = _half_product(index, index.node(plus).outputs[0], data)
    if product is None:
        return None
    nodes, by_hand = product
    all_nodes = (*inner, tanh, plus, *nodes)
    return activation(index, "gelu_tanh", all_nodes, data, nodes[-1]), by_hand


def gelu_tanh(index: GraphIndex, tanh: int, numerics: Numerics) -> Found | None:
    """``F.gelu(x, approximate="tanh")`` as exporters write it."""
    found = _gelu_tanh(index, tanh)
    return None if found is None or found[1] else found[0]


def gelu_tanh_by_hand(index: GraphIndex, tanh: int, numerics: Numerics) -> Found | None:
    """``0.5 * x * (1 + tanh(...))`` in elementary operators, GPT-2's ``gelu_new``."""
    found = _gelu_tanh(index, tanh)
    return None if found is None else found[0]
