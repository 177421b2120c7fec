"""Gated and piecewise activations that exporters write out in elementary operators."""

from __future__ import annotations

from dippm_lite.lowering.index import GraphIndex, is_plain
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found, nearly
from dippm_lite.lowering.patterns.pointwise import activation, scaled

__all__ = [
    "hard_sigmoid",
    "hard_swish",
    "hard_swish_clip",
    "mish",
    "quick_gelu",
    "silu",
    "softplus",
]


def silu(index: GraphIndex, sigmoid: int, numerics: Numerics) -> Found | None:
    """``x * sigmoid(x)``."""
    data = index.inputs[sigmoid][0]
    mul = index.only_reader(index.node(sigmoid).outputs[0], "Mul")
    if mul is None or data not in index.inputs[mul]:
        return None
    return activation(index, "silu", (sigmoid, mul), data, mul)


def quick_gelu(index: GraphIndex, sigmoid: int, numerics: Numerics) -> Found | None:
    """``x * sigmoid(1.702 * x)``."""
    argument = scaled(index, index.inputs[sigmoid][0], 1.702)
    mul = index.only_reader(index.node(sigmoid).outputs[0], "Mul")
    if argument is None or mul is None or argument[0] not in index.inputs[mul]:
        return None
    return activation(index, "quick_gelu", (argument[1], sigmoid, mul), argument[0], mul)


def hard_swish(index: GraphIndex, gate: int, numerics: Numerics) -> Found | None:
    """``x * HardSigmoid(x)`` with PyTorch's slope of 1/6."""
    alpha = index.node(gate).attributes.get("alpha", 0.2)
    data = index.inputs[gate][0]
    mul = index.only_reader(index.node(gate).outputs[0], "Mul")
    if not isinstance(alpha, float) or not nearly(alpha, 1 / 6) or mul is None:
        return None
    if data not in index.inputs[mul]:
        return None
    return activation(index, "hard_swish", (gate, mul), data, mul)


def _shifted_clip(index: GraphIndex, clip: int) -> tuple[int, int] | None:
    """``(x, add)`` where node ``clip`` is ``clip(x + 3, 0, 6)``."""
    node, inputs = index.node(clip), index.inputs[clip]
    if len(inputs) >= 3:
        low, high = index.scalar(inputs[1]), index.scalar(inputs[2])
    else:
        bounds = (node.attributes.get("min"), node.attributes.get("max"))
        low, high = (float(b) if isinstance(b, int | float) else None for b in bounds)
    add = index.made_by(inputs[0], "Add")
    pair = None if add is None else index.operand_and_scalar(add)
    if add is None or pair is None or not nearly(pair[1], 3.0):
        return None
    return (pair[0], add) if nearly(low, 0.0) and nearly(high, 6.0) else None


def hard_swish_clip(index: GraphIndex, clip: int, numerics: Numerics) -> Found | None:
    """``x * clip(x + 3, 0, 6) / 6``, the division before or after the product."""
    shifted = _shifted_clip(index, clip)
    if shifted is None:
        return None
    data, add = shifted
    first = index.only_reader(index.node(clip).outputs[0], "Mul", "Div")
    if first is None:
        return None
    middle = index.node(first).outputs[0]
    second = index.only_reader(middle, "Mul", "Div")
    if second is None:
        return None
    divides = scaled(index, middle, 1 / 6)
    if divides is not None and data in index.inputs[second]:
        if index.node(second).op_type == "Mul":
            return activation(index, "hard_swish", (add, clip, first, second), data, second)
        return None
    result = index.node(second).outputs[0]
    divides = scaled(index, result, 1 / 6)
    if divides is None or data not in index.inputs[first] or not _is_mul(index, first):
        return None
    return activation(index, "hard_swish", (add, clip, first, second), data, second)


def _is_mul(index: GraphIndex, i: int) -> bool:
    return is_plain(index.node(i), "Mul")


def hard_sigmoid(index: GraphIndex, clip: int, numerics: Numerics) -> Found | None:
    """``clip(x + 3, 0, 6) / 6``."""
    shifted = _shifted_clip(index, clip)
    last = index.only_reader(index.node(clip).outputs[0], "Mul", "Div")
    if shifted is None or last is None:
        return None
    if scaled(index, index.node(last).outputs[0], 1 / 6) is None:
        return None
    return activation(index, "hard_sigmoid", (shifted[1], clip, last), shifted[0], last)


def mish(index: GraphIndex, softplus_node: int, numerics: Numerics) -> Found | None:
    """``x * tanh(softplus(x))``."""
    data = index.inputs[softplus_node][0]
    tanh = index.only_reader(index.node(softplus_node).outputs[0], "Tanh")
    mul = None if tanh is None else index.only_reader(index.node(tanh).outputs[0], "Mul")
    if tanh is None or mul is None or data not in index.inputs[mul]:
        return None
    return activation(index, "mish", (softplus_node, tanh, mul), data, mul)


def softplus(index: GraphIndex, node: int, numerics: Numerics) -> Found | None:
    """``where(x > threshold, x, softplus(x))``: how dynamo keeps large inputs exact."""
    data = index.inputs[node][0]
    where = index.only_reader(index.node(node).outputs[0], "Where")
    if where is None or index.inputs[where][1] != data:
        return None
    greater = index.made_by(index.inputs[where][0], "Greater")
    if greater is None or index.inputs[greater][0] != data:
        return None
    return activation(index, "softplus", (node, greater, where), data, where)
