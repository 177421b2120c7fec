"""Content of elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from dippm_lite.onnx_reader.shape_rules.calls import (
    float_attribute,
    int_attribute,
    text_attribute,
)
from dippm_lite.onnx_reader.shape_rules.content import Array, Arrays, Evaluator
from dippm_lite.onnx_reader.shape_rules.storage import NATIVE
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["COMPUTING", "MOVING"]

Wanted = tuple[Tensor, ...]


def _unary(function: Callable[[Array], Array]) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
        return [function(arrays[0])]

    return evaluate


def _binary(function: Callable[[Array, Array], Array | None]) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
        if 0 < call.opset < 7 and "axis" in call.attributes:
            return None  # numpy aligns the last axes, opset 6 any
        result = function(arrays[0], arrays[1])
        return None if result is None else [result]

    return evaluate


def _variadic(function: Callable[[Array, Array], Array]) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
        return [reduce(function, arrays)]

    return evaluate


def _mean(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [reduce(np.add, arrays) / np.float32(len(arrays))]


def _divide(a: Array, b: Array) -> Array | None:
    """Integers are divided towards zero; by zero, no content is known."""
    if a.dtype.kind not in "iu":
        return np.true_divide(a, b)
    if not b.all():
        return None
    quotient = np.floor_divide(a, b)
    inexact = np.multiply(quotient, b) != a
    return np.where(inexact & ((a < 0) != (b < 0)), quotient + 1, quotient)


def _modulo(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    """The sign is the divisor's, or the dividend's where ``fmod`` is 1."""
    a, b = arrays[:2]
    if a.dtype.kind in "iu" and not b.all():
        return None
    return [np.fmod(a, b) if int_attribute(call, "fmod", 0) else np.mod(a, b)]


def _shift(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    left = text_attribute(call, "direction", "") == "LEFT"
    return [(np.left_shift if left else np.right_shift)(arrays[0], arrays[1])]


def _clip(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    """Bounds are attributes up to opset 10 and inputs later; the upper one wins."""
    values = arrays[0]
    low = float_attribute(call, "min", -np.inf) if len(arrays) == 1 else None
    high = float_attribute(call, "max", np.inf) if len(arrays) == 1 else None
    if len(arrays) > 1 and call.inputs[1] is not None:
        values = np.maximum(values, arrays[1])
    if len(arrays) > 2 and call.inputs[2] is not None:
        values = np.minimum(values, arrays[2])
    if low is not None and high is not None:
        values = np.minimum(np.maximum(values, low), high)
    return [values]


def _is_inf(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    x = arrays[0]
    positive = np.isposinf(x) if int_attribute(call, "detect_positive", 1) else np.zeros_like(x)
    negative = np.isneginf(x) if int_attribute(call, "detect_negative", 1) else np.zeros_like(x)
    return [np.logical_or(positive, negative)]


def _cast(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    """Floats lose their fraction in an integer; those that don't fit have no defined value."""
    x, target = arrays[0], NATIVE.get(wanted[0].dtype)
    if x.dtype.kind == "f" and target is not None and target.kind in "iu":
        limits = np.iinfo(target.name)
        whole = np.trunc(x.astype(np.float64))
        fits = (whole >= float(limits.min)) & (whole < float(limits.max) + 1)
        return [whole.astype(target)] if fits.all() else None
    return [x]


def _bit_cast(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    target = NATIVE.get(wanted[0].dtype)
    if target is None or target.itemsize != arrays[0].dtype.itemsize:
        return None
    return [np.ascontiguousarray(arrays[0]).view(target).reshape(arrays[0].shape)]


def _where(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [np.where(arrays[0], arrays[1], arrays[2])]


def _cumulate(function: Callable[..., Array], neutral: int) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
        x, axis = arrays[0], int(arrays[1].reshape(()))
        backwards = int_attribute(call, "reverse", 0) != 0
        x = np.flip(x, axis) if backwards else x
        total = function(x, axis=axis, dtype=x.dtype)
        if int_attribute(call, "exclusive", 0):
            total = np.roll(total, 1, axis)
            index: list[slice | int] = [slice(None)] * x.ndim
            index[axis] = 0
            total[tuple(index)] = neutral
        return [np.flip(total, axis) if backwards else total]

    return evaluate


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(np.negative(x)))


COMPUTING: dict[tuple[str, str], Evaluator] = {
    ("", "Abs"): _unary(np.abs),
    ("", "Add"): _binary(np.add),
    ("", "And"): _binary(np.logical_and),
    ("", "BitCast"): _bit_cast,
    ("", "BitShift"): _shift,
    ("", "BitwiseAnd"): _binary(np.bitwise_and),
    ("", "BitwiseNot"): _unary(np.bitwise_not),
    ("", "BitwiseOr"): _binary(np.bitwise_or),
    ("", "BitwiseXor"): _binary(np.bitwise_xor),
    ("", "Cast"): _cast,
    ("", "CastLike"): _cast,
    ("", "Ceil"): _unary(np.ceil),
    ("", "Clip"): _clip,
    ("", "Cos"): _unary(np.cos),
    ("", "CumProd"): _cumulate(np.cumprod, neutral=1),
    ("", "CumSum"): _cumulate(np.cumsum, neutral=0),
    ("", "Div"): _binary(_divide),
    ("", "Equal"): _binary(np.equal),
    ("", "Exp"): _unary(np.exp),
    ("", "Floor"): _unary(np.floor),
    ("", "Greater"): _binary(np.greater),
    ("", "GreaterOrEqual"): _binary(np.greater_equal),
    ("", "IsInf"): _is_inf,
    ("", "IsNaN"): _unary(np.isnan),
    ("", "Less"): _binary(np.less),
    ("", "LessOrEqual"): _binary(np.less_equal),
    ("", "Log"): _unary(np.log),
    ("", "Max"): _variadic(np.maximum),
    ("", "Mean"): _mean,
    ("", "Min"): _variadic(np.minimum),
    ("", "Mod"): _modulo,
    ("", "Mul"): _binary(np.multiply),
    ("", "Neg"): _unary(np.negative),
    ("", "Not"): _unary(np.logical_not),
    ("", "Or"): _binary(np.logical_or),
    ("", "Pow"): _binary(np.power),
    ("", "Reciprocal"): _unary(np.reciprocal),
    ("", "Relu"): _unary(lambda x: np.maximum(x, x.dtype.type(0))),
    ("", "Round"): _unary(np.rint),
    ("", "Sigmoid"): _unary(_sigmoid),
    ("", "Sign"): _unary(np.sign),
    ("", "Sin"): _unary(np.sin),
    ("", "Sqrt"): _unary(np.sqrt),
    ("", "Sub"): _binary(np.subtract),
    ("", "Sum"): _variadic(np.add),
    ("", "Tanh"): _unary(np.tanh),
    ("", "Xor"): _binary(np.logical_xor),
}

MOVING: dict[tuple[str, str], Evaluator] = {("", "Where"): _where}
