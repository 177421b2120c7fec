"""Operators that keep a shape or broadcast several."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast, broadcast_all
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    dtype_attribute,
    dtype_from_code,
    given,
    int_attribute,
    int_scalar,
    like,
    optional_int_attribute,
    quoted,
    text_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "arithmetic", "keep", "pair_shape"]

_BOOL = DType.BOOL
_UNDEFINED = DType.UNDEFINED

_KEEPING = (
    "Abs", "Acos", "Acosh", "Affine", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil",
    "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "ImageScaler", "LeakyRelu", "Log", "Mish", "Neg", "Not", "PRelu",
    "ParametricSoftplus", "Reciprocal", "Relu", "Round", "Scale", "ScaledTanh", "Selu", "Shrink",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh",
    "ThresholdedRelu",
)  # fmt: skip

_ARITHMETIC = (
    "Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Mod", "Mul", "Pow",
    "StringConcat", "Sub", "SwiGLU",
)  # fmt: skip

_COMPARING = (
    "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor",
)  # fmt: skip


def keep(call: OpCall) -> Outputs:
    """One output of the first input's type and shape.

    PRelu is among these operators: its slope broadcasts to X alone, and files of every opset
    hold slopes of shape (C,) which only some runtimes take.
    """
    return (like(given(call, 0)),)


def _identity(call: OpCall) -> Outputs:
    """The input itself, content included."""
    return (given(call, 0),)


def _keep_along_axis(call: OpCall) -> Outputs:
    """As :func:`keep`, for operators whose ``axis`` has to exist. Up to opset 12, where a tensor is
    flattened to a matrix at the axis, it may also be the rank."""
    x = given(call, 0)
    if x.shape:
        axis = int_attribute(call, "axis", -1)
        if axis != len(x.shape):
            axis_within(axis, len(x.shape))
    return (like(x),)


def _accumulate(call: OpCall) -> Outputs:
    """CumSum and CumProd: the axis is an input."""
    x = given(call, 0)
    axis = int_scalar(given(call, 1))
    if x.shape is not None and axis is not None:
        axis_within(axis, len(x.shape))
    return (like(x),)


def pair_shape(call: OpCall, a: Tensor, b: Tensor) -> Shape | None:
    """The shape of an elementwise operator on two tensors.

    Up to opset 6 the second operand is spread over the first only where ``broadcast`` is 1: its
    dimensions match those of the first from ``axis`` on, or the last ones.
    """
    if 0 < call.opset < 7 and call.domain == "":
        return _legacy_pair_shape(call, a.shape, b.shape)
    return broadcast(call, a.shape, b.shape)


def _legacy_pair_shape(call: OpCall, a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None or a == b:
        return a
    if int_attribute(call, "broadcast", 0) == 0:
        raise ShapeRuleError(f"shapes {a} and {b} differ without broadcast=1")
    start = optional_int_attribute(call, "axis")
    if start is None:
        start = len(a) - len(b)
    elif start < 0:
        start += len(a)
    matched = a[start : start + len(b)] if start >= 0 else ()
    if len(matched) != len(b) or any(
        size not in (1, other) for size, other in zip(b, matched, strict=True)
    ):
        raise ShapeRuleError(f"shape {b} does not fit into {a} at axis {start}")
    return a


def arithmetic(call: OpCall) -> Outputs:
    """Two operands, the result in the first one's type."""
    a, b = given(call, 0), given(call, 1)
    dtype = b.dtype if a.dtype is _UNDEFINED else a.dtype
    return (Tensor(dtype, pair_shape(call, a, b)),)


def _comparison(call: OpCall) -> Outputs:
    """Two operands, a BOOL result."""
    a, b = given(call, 0), given(call, 1)
    return (Tensor(_BOOL, pair_shape(call, a, b)),)


def _variadic(call: OpCall) -> Outputs:
    """Any number of operands of one type."""
    first = given(call, 0)
    shapes = [given(call, i).shape for i in range(len(call.inputs))]
    return (Tensor(first.dtype, broadcast_all(call, shapes)),)


def _where(call: OpCall) -> Outputs:
    condition, x, y = given(call, 0), given(call, 1), given(call, 2)
    dtype = y.dtype if x.dtype is _UNDEFINED else x.dtype
    return (Tensor(dtype, broadcast_all(call, [condition.shape, x.shape, y.shape])),)


def _predicate(call: OpCall) -> Outputs:
    """A BOOL for each element."""
    return (Tensor(_BOOL, given(call, 0).shape),)


def _cast(call: OpCall) -> Outputs:
    """Cast and BitCast; ``to`` is a type's name in opset 1 and its number later."""
    x = given(call, 0)
    if isinstance(call.attributes.get("to"), (str, bytes)):
        name = text_attribute(call, "to", "")
        if name not in DType.__members__:
            raise ShapeRuleError(f"{quoted(name)} is no element type")
        return (Tensor(DType[name], x.shape),)
    return (Tensor(dtype_from_code(int_attribute(call, "to")), x.shape),)


def _cast_like(call: OpCall) -> Outputs:
    return (Tensor(given(call, 1).dtype, given(call, 0).shape),)


def _dropout(call: OpCall) -> Outputs:
    """The data, and a mask in the data's type up to opset 9, BOOL later."""
    x = given(call, 0)
    return like(x), Tensor(x.dtype if 0 < call.opset < 10 else _BOOL, x.shape)


def _random_like(call: OpCall) -> Outputs:
    """RandomNormalLike, RandomUniformLike, Bernoulli: the ``dtype`` asked for, or the input's."""
    x = given(call, 0)
    return (Tensor(dtype_attribute(call, "dtype", x.dtype), x.shape),)


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): keep for name in _KEEPING},
    **{("", name): arithmetic for name in _ARITHMETIC},
    **{("", name): _comparison for name in _COMPARING},
    **{("", name): _variadic for name in ("Max", "Mean", "Min", "Sum")},
    **{("", name): _predicate for name in ("IsInf", "IsNaN", "RegexFullMatch")},
    **{("", name): _keep_along_axis for name in ("Hardmax", "LogSoftmax", "Softmax")},
    **{("", name): _accumulate for name in ("CumProd", "CumSum")},
    **{("", name): _cast for name in ("BitCast", "Cast")},
    **{("", name): _random_like for name in ("Bernoulli", "RandomNormalLike", "RandomUniformLike")},
    ("", "CastLike"): _cast_like,
    ("", "Dropout"): _dropout,
    **{("", name): _identity for name in ("Identity", "MemcpyFromHost", "MemcpyToHost")},
    ("", "Where"): _where,
}
