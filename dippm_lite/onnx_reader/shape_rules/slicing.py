"""Operators that cut tensors, join them or add a border."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.broadcasting import common_size
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    is_bounded,
    optional,
    optional_int_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = [
    "RULES",
    "Cut",
    "joined_shape",
    "pad_widths",
    "slice_cuts",
    "split_sizes",
]

Cut = tuple[int, int, int, int]
"""One axis of a Slice: axis, first index, index past the last, step; already clamped."""


def slice_cuts(call: OpCall, shape: Shape) -> list[Cut] | None:
    """The cuts of a Slice, or None where its bounds aren't known.

    ``starts``, ``ends`` and ``axes`` are attributes up to opset 9; later they are inputs, and
    ``steps`` with them.
    """
    starts = ints_attribute(call, "starts")
    if starts is not None:
        ends = ints_attribute(call, "ends")
        if ends is None:
            raise ShapeRuleError("attribute 'ends' is missing")
        axes = ints_attribute(call, "axes")
        steps: tuple[int, ...] | None = None
    else:
        starts, ends = int_content(given(call, 1)), int_content(given(call, 2))
        axes_input, steps_input = optional(call, 3), optional(call, 4)
        axes = None if axes_input is None else int_content(axes_input)
        steps = None if steps_input is None else int_content(steps_input)
        if (axes_input is not None and axes is None) or (steps_input is not None and steps is None):
            return None
    if starts is None or ends is None:
        return None
    if axes is None:
        axes = tuple(range(len(starts)))
    if steps is None:
        steps = (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ShapeRuleError("starts, ends, axes and steps have different lengths")
    return [
        _cut(axis_within(axis, len(shape)), shape, start, end, step)
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True)
    ]


def _cut(axis: int, shape: Shape, start: int, end: int, step: int) -> Cut:
    """Clamp as ONNX defines it: a negative step starts at 0 at least, and ends at -1 at least."""
    if step == 0:
        raise ShapeRuleError("a step is 0")
    size = shape[axis]
    start += size if start < 0 else 0
    end += size if end < 0 else 0
    if step > 0:
        return axis, min(max(start, 0), size), min(max(end, 0), size), step
    return axis, min(max(start, 0), size - 1), min(max(end, -1), size - 1), step


def _slice(call: OpCall) -> Outputs:
    """Where the bounds aren't known, the whole input is an upper bound."""
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    cuts = slice_cuts(call, x.shape)
    if cuts is None:
        return (Tensor(x.dtype, x.shape, bounded=True),)
    sizes = list(x.shape)
    for axis, start, end, step in cuts:
        sizes[axis] = max(0, -((start - end) // step))
    return (Tensor(x.dtype, tuple(sizes)),)


def split_sizes(call: OpCall, size: int) -> tuple[int, ...] | None:
    """The sizes of the parts along the split axis; None where they aren't known."""
    parts = ints_attribute(call, "split")
    if parts is None:
        tensor = optional(call, 1)
        if tensor is not None:
            parts = int_content(tensor)
            if parts is None:
                return None
    if parts:
        if len(parts) != call.n_outputs:
            raise ShapeRuleError(f"{len(parts)} parts go to {call.n_outputs} outputs")
        if min(parts) < 0:
            raise ShapeRuleError("a part has a negative size")
        if sum(parts) != size and not is_bounded(call):
            raise ShapeRuleError(f"the parts add up to {sum(parts)}, not {size}")
        return parts
    count = optional_int_attribute(call, "num_outputs")
    if count is not None and count != call.n_outputs:
        raise ShapeRuleError(f"num_outputs is {count}, but there are {call.n_outputs} outputs")
    count = call.n_outputs
    if count < 1:
        return ()
    chunk = -(-size // count)
    last = size - chunk * (count - 1)
    if (last != chunk and 0 < call.opset < 18 and not is_bounded(call)) or last < 0:
        raise ShapeRuleError(f"size {size} doesn't divide into {count} parts")
    return (chunk,) * (count - 1) + (last,)


def _split(call: OpCall) -> Outputs:
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),) * call.n_outputs
    axis = axis_within(int_attribute(call, "axis", 0), len(shape))
    sizes = split_sizes(call, shape[axis])
    if sizes is None:
        return (Tensor(x.dtype, shape, bounded=True),) * call.n_outputs
    before, after = shape[:axis], shape[axis + 1 :]
    return tuple([Tensor(x.dtype, (*before, size, *after)) for size in sizes])


def joined_shape(call: OpCall, shapes: list[Shape | None], axis: int) -> Shape | None:
    """The shape of tensors put together along ``axis``; None where one is unknown."""
    first = shapes[0]
    if first is None:
        return None
    axis = axis_within(axis, len(first))
    sizes = list(first)
    for shape in shapes[1:]:
        if shape is None:
            return None
        if len(shape) != len(sizes):
            raise ShapeRuleError(f"shapes {first} and {shape} can't be joined")
        for i, size in enumerate(shape):
            if i == axis:
                sizes[i] += size
            elif sizes[i] != size:
                sizes[i] = common_size(call, sizes[i], size, f"sizes along axis {i}")
    return tuple(sizes)


def _concat(call: OpCall) -> Outputs:
    """The axis is 1 by default in opset 1 and required later."""
    tensors = [given(call, i) for i in range(max(len(call.inputs), 1))]
    axis = int_attribute(call, "axis", 1 if call.opset < 4 else None)
    shape = joined_shape(call, [tensor.shape for tensor in tensors], axis)
    return (Tensor(tensors[0].dtype, shape),)


def pad_widths(call: OpCall, rank: int) -> list[tuple[int, int]] | None:
    """``(begin, end)`` of each axis, or None where they aren't known. They are attribute
    ``paddings`` in opset 1, ``pads`` up to opset 10, and inputs later."""
    pads = ints_attribute(call, "pads")
    if pads is None:
        pads = ints_attribute(call, "paddings")
    axes: tuple[int, ...] | None = None
    if pads is None:
        pads = int_content(given(call, 1))
        axes_input = optional(call, 3)
        if axes_input is not None:
            axes = int_content(axes_input)
            if axes is None:
                return None
    if pads is None:
        return None
    places = range(rank) if axes is None else [axis_within(axis, rank) for axis in axes]
    if len(pads) != 2 * len(places):
        raise ShapeRuleError(f"there are {len(pads)} pads for {len(places)} axes")
    widths = [(0, 0)] * rank
    for i, axis in enumerate(places):
        widths[axis] = (pads[i], pads[i + len(places)])
    return widths


def _pad(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    widths = pad_widths(call, len(x.shape))
    if widths is None:
        return (Tensor(x.dtype, None),)
    sizes = [begin + size + end for size, (begin, end) in zip(x.shape, widths, strict=True)]
    return (Tensor(x.dtype, tuple(sizes)),)


def _center_crop_pad(call: OpCall) -> Outputs:
    x = given(call, 0)
    wanted = int_content(given(call, 1))
    if x.shape is None or wanted is None:
        return (Tensor(x.dtype, None),)
    axes = ints_attribute(call, "axes")
    if axes is None:
        axes = tuple(range(len(x.shape)))
    if len(axes) != len(wanted):
        raise ShapeRuleError(f"there are {len(wanted)} sizes for {len(axes)} axes")
    sizes = list(x.shape)
    for axis, size in zip(axes, wanted, strict=True):
        sizes[axis_within(axis, len(sizes))] = size
    return (Tensor(x.dtype, tuple(sizes)),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "CenterCropPad"): _center_crop_pad,
    ("", "Concat"): _concat,
    ("", "Pad"): _pad,
    ("", "Slice"): _slice,
    ("", "Split"): _split,
    ("com.microsoft", "Pad"): _pad,
}
