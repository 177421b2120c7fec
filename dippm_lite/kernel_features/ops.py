"""Names of measured elementwise and row-wise operators, and what stands in for the others.

A code is the position in the table; it is a category to the trees, never a quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["ELEMENT_OPS", "ROW_OPS", "element_op_code", "row_op_code"]

ELEMENT_OPS: tuple[str, ...] = (
    "relu", "add", "mul", "div", "pow", "gelu", "tanh",
    "add_scalar", "mul_scalar", "div_scalar", "pow_scalar",
    "swiglu", "embedding", "rotary_embedding",
)  # fmt: skip
"""Elementwise operators with measured kernels; ``_scalar`` has one tensor operand."""

ROW_OPS: tuple[str, ...] = ("layer_norm", "softmax", "rms_norm")
"""Row-wise operators with measured kernels."""

_ELEMENT_STAND_IN: Mapping[str, str] = MappingProxyType(
    {
        "sub": "add", "mean_of": "add", "max": "add", "min": "add", "where": "add",
        "prelu": "mul", "mod": "div", "sigmoid": "tanh", "silu": "tanh", "exp": "tanh",
        "log": "tanh", "erf": "gelu", "mish": "gelu", "softplus": "gelu", "gelu_tanh": "gelu",
        "sqrt": "tanh", "reciprocal": "tanh", "sin": "tanh", "cos": "tanh", "selu": "tanh",
        "elu": "tanh", "celu": "tanh", "gather": "embedding",
    }
)  # fmt: skip
"""Operators of about the same arithmetic per element and as many operands; on an A100 all of them
are bound by memory, so what matters is the number of operands."""

_SCALAR_FORMS = frozenset({"add", "mul", "div", "pow"})


def element_op_code(op: str, operands: int) -> int:
    """Position in :data:`ELEMENT_OPS` of ``op`` (a fused name counts by its first part), or of
    what is closest to it among the operators of ``operands`` tensor operands."""
    name = op.split("+", 1)[0]
    name = _ELEMENT_STAND_IN.get(name, name)
    if name not in ELEMENT_OPS:
        name = "add" if operands > 1 else "relu"
    if operands < 2 and name in _SCALAR_FORMS:
        name = f"{name}_scalar"
    return ELEMENT_OPS.index(name)


def row_op_code(op: str) -> int:
    """Position in :data:`ROW_OPS` of ``op`` or of what is closest to it."""
    name = op.split("+", 1)[0]
    if name in ROW_OPS:
        return ROW_OPS.index(name)
    return ROW_OPS.index("softmax" if "softmax" in name or "max" in name else "layer_norm")
