"""Reading a call: its inputs, its attributes and the contents that are known.

Every check of a type or of an index is made here, so that a rule meets nothing but the kinds it
asks for, and whatever a file holds instead becomes a :class:`ShapeRuleError`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = [
    "MAX_RANK",
    "Outputs",
    "Rule",
    "Shape",
    "axis_within",
    "dtype_attribute",
    "dtype_from_code",
    "float_attribute",
    "float_content",
    "floats_attribute",
    "given",
    "int_attribute",
    "int_content",
    "int_scalar",
    "ints_attribute",
    "is_bounded",
    "length_attribute",
    "like",
    "optional",
    "optional_int_attribute",
    "quoted",
    "rank_is",
    "text_attribute",
]

Shape = tuple[int, ...]
Outputs = tuple[Tensor | None, ...]
Rule = Callable[[OpCall], Outputs]

MAX_RANK = 256
"""Most dimensions of a tensor. ONNX sets no limit, numpy's is 64; without one, a file of a few
bytes doubles a rank with each node."""


def given(call: OpCall, index: int) -> Tensor:
    """Input ``index``, which the operator requires."""
    inputs = call.inputs
    if index < len(inputs):
        tensor = inputs[index]
        if tensor is not None:
            return tensor
    raise ShapeRuleError(f"input {index} is missing")


def optional(call: OpCall, index: int) -> Tensor | None:
    """Input ``index``, or None where the call leaves it out."""
    return call.inputs[index] if index < len(call.inputs) else None


def like(tensor: Tensor) -> Tensor:
    """A tensor of the same type and shape with other content."""
    if tensor.data is None:
        return tensor
    return Tensor(tensor.dtype, tensor.shape, None, tensor.bounded)


def is_bounded(call: OpCall) -> bool:
    """True where an input's sizes are only bounds: sizes that differ then contradict nothing."""
    return any(tensor is not None and tensor.bounded for tensor in call.inputs)


def rank_is(shape: Shape, rank: int, what: str) -> None:
    """Raise unless ``shape`` has exactly ``rank`` dimensions."""
    if len(shape) != rank:
        raise ShapeRuleError(f"{what} has rank {len(shape)}, not {rank}")


def axis_within(axis: int, rank: int) -> int:
    """``axis`` counted from the front, for a tensor of ``rank`` dimensions."""
    if -rank <= axis < rank:
        return axis + rank if axis < 0 else axis
    raise ShapeRuleError(f"axis {axis} is outside of rank {rank}")


def optional_int_attribute(call: OpCall, name: str) -> int | None:
    """An INT attribute, or None where it is not set."""
    value = call.attributes.get(name)
    if value is None or isinstance(value, int):
        return value
    raise ShapeRuleError(f"attribute '{name}' is not an integer")


def int_attribute(call: OpCall, name: str, default: int | None = None) -> int:
    """An INT attribute; required where ``default`` is None."""
    value = call.attributes.get(name, default)
    if isinstance(value, int):
        return value
    if value is None:
        raise ShapeRuleError(f"attribute '{name}' is missing")
    raise ShapeRuleError(f"attribute '{name}' is not an integer")


def length_attribute(call: OpCall, name: str, default: int | None = None) -> int:
    """An INT attribute that counts something and so has to be positive."""
    value = int_attribute(call, name, default)
    if value < 1:
        raise ShapeRuleError(f"attribute '{name}' is {value}, not positive")
    return value


def ints_attribute(call: OpCall, name: str) -> tuple[int, ...] | None:
    """An INTS attribute, or None where it is not set."""
    values = call.attributes.get(name)
    if values is None:
        return None
    if isinstance(values, tuple):
        ints = tuple([value for value in values if isinstance(value, int)])
        if len(ints) == len(values):
            return ints
    raise ShapeRuleError(f"attribute '{name}' is not a list of integers")


def float_attribute(call: OpCall, name: str, default: float | None = None) -> float:
    """A FLOAT attribute; required where ``default`` is None."""
    value = call.attributes.get(name, default)
    if isinstance(value, (float, int)):
        return value
    if value is None:
        raise ShapeRuleError(f"attribute '{name}' is missing")
    raise ShapeRuleError(f"attribute '{name}' is not a number")


def floats_attribute(call: OpCall, name: str) -> tuple[float, ...] | None:
    """A FLOATS attribute, or None where it is not set."""
    values = call.attributes.get(name)
    if values is None:
        return None
    if isinstance(values, tuple):
        floats = tuple([value for value in values if isinstance(value, (float, int))])
        if len(floats) == len(values):
            return floats
    raise ShapeRuleError(f"attribute '{name}' is not a list of numbers")


def text_attribute(call: OpCall, name: str, default: str) -> str:
    """A STRING attribute, decoded."""
    value = call.attributes.get(name, default)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    raise ShapeRuleError(f"attribute '{name}' is not a string")


def quoted(text: str) -> str:
    """``text`` from a file as one short line for a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def dtype_from_code(code: int) -> DType:
    """The element type that ``TensorProto.DataType`` gives the number ``code``."""
    dtype = dtype_of(code)
    if dtype is DType.UNDEFINED:
        raise ShapeRuleError(f"{code} is no element type")
    return dtype


def dtype_attribute(call: OpCall, name: str, default: DType) -> DType:
    """An INT attribute that names an element type; 0 counts as not set."""
    code = optional_int_attribute(call, name)
    return dtype_from_code(code) if code else default


def int_content(tensor: Tensor) -> tuple[int, ...] | None:
    """The content of an integer tensor as a flat tuple, or None where it is not known."""
    data = tensor.data
    if data is None:
        return None
    if data.dtype.kind == "b":
        data = data.astype(np.uint8)
    if data.dtype.kind not in "iu":
        raise ShapeRuleError("a tensor of integers is expected")
    return tuple(data.ravel().tolist())


def int_scalar(tensor: Tensor | None) -> int | None:
    """The content of a one-element integer tensor, or None where it is absent or not known."""
    values = None if tensor is None else int_content(tensor)
    if values is None:
        return None
    if len(values) != 1:
        raise ShapeRuleError(f"one integer is expected, not {len(values)}")
    return values[0]


def float_content(tensor: Tensor) -> tuple[float, ...] | None:
    """The content of a numeric tensor as a flat tuple, or None where it is not known."""
    data = tensor.data
    if data is None:
        return None
    if data.dtype.kind not in "fiu":
        raise ShapeRuleError("a tensor of numbers is expected")
    return tuple(data.ravel().tolist())
