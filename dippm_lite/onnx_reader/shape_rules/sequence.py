"""Sequences and optionals.

A sequence travels as a :class:`TensorSequence`: a Tensor whose shape is that of its elements
where they agree, with the elements beside it where their number is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    dtype_attribute,
    given,
    int_attribute,
    int_content,
    int_scalar,
    is_bounded,
    optional,
)
from dippm_lite.onnx_reader.shape_rules.slicing import joined_shape
from dippm_lite.onnx_reader.shape_rules.storage import STORAGE
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "TensorSequence"]

MAX_ELEMENTS = 1024
"""Longest sequence whose elements are listed one by one."""


@dataclass(frozen=True, slots=True)
class TensorSequence(Tensor):
    """A sequence of tensors: ``dtype`` and ``shape`` are those of every element (``shape`` is None
    where they differ or aren't known); ``elements`` is None where even their number isn't known."""

    elements: tuple[Tensor, ...] | None = None


def _sequence(dtype: DType, elements: tuple[Tensor, ...]) -> TensorSequence:
    shapes = {element.shape for element in elements}
    shape = shapes.pop() if len(shapes) == 1 else None
    if len(elements) > MAX_ELEMENTS:
        return TensorSequence(dtype, shape)
    return TensorSequence(dtype, shape, elements=elements)


def _elements(tensor: Tensor) -> tuple[Tensor, ...] | None:
    return tensor.elements if isinstance(tensor, TensorSequence) else None


def _place(position: int | None, length: int) -> int | None:
    """A position, negative from the back, within ``length`` places."""
    if position is None:
        return None
    if not -length <= position < length:
        raise ShapeRuleError(f"position {position} is outside of {length} elements")
    return position % length


def _construct(call: OpCall) -> Outputs:
    elements = tuple([given(call, i) for i in range(max(len(call.inputs), 1))])
    return (_sequence(elements[0].dtype, elements),)


def _empty(call: OpCall) -> Outputs:
    return (TensorSequence(dtype_attribute(call, "dtype", DType.FLOAT), None, elements=()),)


def _at(call: OpCall) -> Outputs:
    sequence, position = given(call, 0), int_scalar(given(call, 1))
    elements = _elements(sequence)
    if elements is None:
        return (Tensor(sequence.dtype, sequence.shape),)
    place = _place(position, len(elements))
    return (Tensor(sequence.dtype, sequence.shape) if place is None else elements[place],)


def _insert(call: OpCall) -> Outputs:
    sequence, tensor, position = given(call, 0), given(call, 1), optional(call, 2)
    elements = _elements(sequence)
    if elements is None:
        shape = sequence.shape if sequence.shape == tensor.shape else None
        return (TensorSequence(tensor.dtype, shape),)
    place = len(elements) if position is None else int_scalar(position)
    if place is None:
        shape = _sequence(tensor.dtype, (*elements, tensor)).shape
        return (TensorSequence(tensor.dtype, shape),)
    if not -len(elements) <= place <= len(elements):
        raise ShapeRuleError(f"position {place} is outside of {len(elements)} elements")
    place += len(elements) if place < 0 else 0
    return (_sequence(tensor.dtype, (*elements[:place], tensor, *elements[place:])),)


def _erase(call: OpCall) -> Outputs:
    sequence, position = given(call, 0), optional(call, 1)
    elements = _elements(sequence)
    place = None
    if elements is not None:
        place = _place(-1 if position is None else int_scalar(position), len(elements))
    if elements is None or place is None:
        return (TensorSequence(sequence.dtype, sequence.shape),)
    return (_sequence(sequence.dtype, elements[:place] + elements[place + 1 :]),)


def _length(call: OpCall) -> Outputs:
    elements = _elements(given(call, 0))
    count = None if elements is None else np.array(len(elements), dtype=np.int64)
    return (Tensor(DType.INT64, (), count),)


def _split_to_sequence(call: OpCall) -> Outputs:
    """Parts of the sizes in ``split``, of one size if it is a scalar, of 1 where it is absent
    (then ``keepdims`` 0 drops the axis)."""
    x, split = given(call, 0), optional(call, 1)
    if x.shape is None:
        return (TensorSequence(x.dtype, None),)
    axis = axis_within(int_attribute(call, "axis", 0), len(x.shape))
    size = x.shape[axis]
    keep = split is not None or int_attribute(call, "keepdims", 1) != 0
    if split is None:
        if size > MAX_ELEMENTS:
            part = _part(x, axis, 0, 1, keep)
            return (TensorSequence(x.dtype, part.shape),)
        sizes: Shape | None = (1,) * size
    else:
        sizes = _part_sizes(call, split, size)
    if sizes is None:
        return (TensorSequence(x.dtype, None),)
    if x.data is None and sizes and min(sizes) == max(sizes):
        return (_sequence(x.dtype, (_part(x, axis, 0, sizes[0], keep),) * len(sizes)),)
    parts, start = [], 0
    for part_size in sizes:
        parts.append(_part(x, axis, start, part_size, keep))
        start += part_size
    return (_sequence(x.dtype, tuple(parts)),)


def _part_sizes(call: OpCall, split: Tensor, size: int) -> Shape | None:
    sizes = int_content(split)
    if sizes is None:
        return None
    if split.shape == ():
        if sizes[0] < 1:
            raise ShapeRuleError(f"a part has size {sizes[0]}")
        count = -(-size // sizes[0])
        if count > MAX_ELEMENTS:
            return None
        return tuple([min(sizes[0], size - i * sizes[0]) for i in range(count)])
    if len(sizes) > MAX_ELEMENTS:
        return None
    if (sizes and min(sizes) < 0) or (sum(sizes) != size and not is_bounded(call)):
        raise ShapeRuleError(f"the parts don't add up to {size}")
    return sizes


def _part(x: Tensor, axis: int, start: int, size: int, keep: bool) -> Tensor:
    whole = x.shape or ()
    shape = whole[:axis] + ((size,) if keep else ()) + whole[axis + 1 :]
    if x.data is None or start + size > whole[axis]:
        return Tensor(x.dtype, shape, None, x.bounded)
    index = (slice(None),) * axis + (slice(start, start + size),)
    return Tensor(x.dtype, shape, x.data[index].reshape(shape), x.bounded)


def _concat(call: OpCall) -> Outputs:
    """ConcatFromSequence, which stacks where ``new_axis`` is 1."""
    sequence = given(call, 0)
    elements = _elements(sequence)
    axis = int_attribute(call, "axis")
    if not elements:
        return (Tensor(sequence.dtype, None),)
    shapes = [element.shape for element in elements]
    if int_attribute(call, "new_axis", 0):
        first = shapes[0]
        if first is None or sequence.shape is None:
            return (Tensor(sequence.dtype, None),)
        place = axis_within(axis, len(first) + 1)
        stacked = (*first[:place], len(elements), *first[place:])
        return (_with_joined_content(sequence.dtype, stacked, elements, place, np.stack),)
    shape = joined_shape(call, shapes, axis)
    return (_with_joined_content(sequence.dtype, shape, elements, axis, np.concatenate),)


def _with_joined_content(
    dtype: DType,
    shape: Shape | None,
    elements: tuple[Tensor, ...],
    axis: int,
    join: Callable[..., NDArray[Any]],
) -> Tensor:
    """A tensor of ``shape`` with the content of all ``elements`` where it is known and small."""
    contents = [element.data for element in elements if element.data is not None]
    if shape is None or len(contents) < len(elements) or math.prod(shape) > MAX_KNOWN_ELEMENTS:
        return Tensor(dtype, shape)
    content = join(contents, axis=axis)
    if content.shape != shape or content.dtype != STORAGE.get(dtype):
        return Tensor(dtype, shape)
    return Tensor(dtype, shape, content)


def _optional(call: OpCall) -> Outputs:
    """Optional and OptionalGetElement: an optional travels as what it holds."""
    return (optional(call, 0),)


def _has_element(call: OpCall) -> Outputs:
    """Known where the input is left out; an input that is given may still hold nothing."""
    absent = np.array(False) if optional(call, 0) is None else None
    return (Tensor(DType.BOOL, (), absent),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "ConcatFromSequence"): _concat,
    ("", "Optional"): _optional,
    ("", "OptionalGetElement"): _optional,
    ("", "OptionalHasElement"): _has_element,
    ("", "SequenceAt"): _at,
    ("", "SequenceConstruct"): _construct,
    ("", "SequenceEmpty"): _empty,
    ("", "SequenceErase"): _erase,
    ("", "SequenceInsert"): _insert,
    ("", "SequenceLength"): _length,
    ("", "SplitToSequence"): _split_to_sequence,
}
