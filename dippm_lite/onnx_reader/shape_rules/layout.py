"""Operators that lay the same elements out anew."""

from __future__ import annotations

import math

import numpy as np

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast
from dippm_lite.onnx_reader.shape_rules.calls import (
    MAX_RANK,
    Outputs,
    Rule,
    Shape,
    axis_within,
    given,
    int_attribute,
    int_content,
    int_scalar,
    ints_attribute,
    is_bounded,
    optional,
    optional_int_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "unsqueezed_shape"]

_INT64 = DType.INT64
_MAX_INT64 = 2**63 - 1


def _reshape(call: OpCall) -> Outputs:
    """The target is attribute ``shape`` in opset 1 and input 1 later: 0 copies a dimension (unless
    ``allowzero``), -1 takes what is left."""
    x = given(call, 0)
    target = ints_attribute(call, "shape") if len(call.inputs) == 1 else None
    if target is None:
        wanted = given(call, 1)
        target = int_content(wanted)
        if target is None:
            return (Tensor(x.dtype, _flat_shape(x.shape, wanted.shape)),)
    return (Tensor(x.dtype, _reshaped(call, x.shape, target)),)


def _flat_shape(shape: Shape | None, target: Shape | None) -> Shape | None:
    """The result of a target whose length alone is known: one dimension holds all elements."""
    if target == (1,) and shape is not None:
        return (math.prod(shape),)
    return () if target == (0,) else None


def _reshaped(call: OpCall, shape: Shape | None, target: Shape) -> Shape | None:
    sizes = list(target)
    if len(sizes) > MAX_RANK:
        raise ShapeRuleError(f"target shape has {len(sizes)} dimensions")
    if sizes and min(sizes) < -1:
        raise ShapeRuleError(f"target shape {target} has a negative size")
    if 0 in sizes and not int_attribute(call, "allowzero", 0):
        if shape is None:
            return None
        for i, size in enumerate(sizes):
            if size == 0:
                if i >= len(shape):
                    raise ShapeRuleError(f"target shape {target} copies a size that {shape} lacks")
                sizes[i] = shape[i]
    if -1 not in sizes:
        if shape is not None and math.prod(sizes) != math.prod(shape) and not is_bounded(call):
            raise ShapeRuleError(f"shape {shape} can't become {target}")
        return tuple(sizes)
    hole = sizes.index(-1)
    rest = math.prod(sizes[:hole]) * math.prod(sizes[hole + 1 :])
    if rest < 0:
        raise ShapeRuleError(f"target shape {target} has more than one -1")
    if shape is None:
        return None
    elements = math.prod(shape)
    if rest == 0:
        if elements and not is_bounded(call):
            raise ShapeRuleError(f"shape {shape} can't become {target}")
        sizes[hole] = 0
    else:
        if elements % rest and not is_bounded(call):
            raise ShapeRuleError(f"shape {shape} can't become {target}")
        sizes[hole] = -(-elements // rest)
    return tuple(sizes)


def _flatten(call: OpCall) -> Outputs:
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),)
    axis = int_attribute(call, "axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise ShapeRuleError(f"axis {axis} is outside of rank {len(shape)}")
    if axis < 0:
        axis += len(shape)
    return (Tensor(x.dtype, (math.prod(shape[:axis]), math.prod(shape[axis:]))),)


def _transpose(call: OpCall) -> Outputs:
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),)
    perm = ints_attribute(call, "perm")
    if perm is None:
        return (Tensor(x.dtype, shape[::-1]),)
    if len(perm) != len(shape) or sorted(perm) != list(range(len(shape))):
        raise ShapeRuleError(f"perm {perm[:16]} doesn't order {len(shape)} axes")
    return (Tensor(x.dtype, tuple([shape[axis] for axis in perm])),)


def _axes(call: OpCall) -> tuple[bool, tuple[int, ...]]:
    """``(known, axes)`` of Squeeze and Unsqueeze: attribute up to opset 12, input 1 later; no
    axes at all read as ``(True, ())``."""
    axes = ints_attribute(call, "axes")
    if axes is None:
        tensor = optional(call, 1)
        if tensor is None:
            return True, ()
        axes = int_content(tensor)
    return axes is not None, axes or ()


def _squeeze(call: OpCall) -> Outputs:
    x = given(call, 0)
    known, axes = _axes(call)
    shape = x.shape
    if shape is None or not known:
        return (Tensor(x.dtype, None),)
    if not axes:
        return (Tensor(x.dtype, tuple([size for size in shape if size != 1])),)
    dropped = {axis_within(axis, len(shape)) for axis in axes}
    for axis in dropped:
        if shape[axis] != 1 and not is_bounded(call):
            raise ShapeRuleError(f"axis {axis} of {shape} can't be squeezed")
    return (Tensor(x.dtype, tuple([s for i, s in enumerate(shape) if i not in dropped])),)


def unsqueezed_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """``shape`` with 1 at each of ``axes``, which count in the result."""
    rank = len(shape) + len(axes)
    added = {axis_within(axis, rank) for axis in axes}
    if len(added) != len(axes):
        raise ShapeRuleError(f"axes {axes[:16]} repeat one another")
    sizes = iter(shape)
    return tuple([1 if i in added else next(sizes) for i in range(rank)])


def _unsqueeze(call: OpCall) -> Outputs:
    x = given(call, 0)
    known, axes = _axes(call)
    if x.shape is None or not known:
        return (Tensor(x.dtype, None),)
    return (Tensor(x.dtype, unsqueezed_shape(x.shape, axes)),)


def _expand_dims(call: OpCall) -> Outputs:
    """com.microsoft's ExpandDims: one axis, as an input."""
    x, axis = given(call, 0), int_scalar(given(call, 1))
    if x.shape is None or axis is None:
        return (Tensor(x.dtype, None),)
    return (Tensor(x.dtype, unsqueezed_shape(x.shape, (axis,))),)


def _expand(call: OpCall) -> Outputs:
    x = given(call, 0)
    return (Tensor(x.dtype, broadcast(call, x.shape, int_content(given(call, 1)))),)


def _tile(call: OpCall) -> Outputs:
    """Repeats of each axis; opset 1 has the repeats of a single axis instead."""
    x = given(call, 0)
    shape = x.shape
    repeats = int_content(given(call, 1))
    if shape is None or repeats is None:
        return (Tensor(x.dtype, None),)
    if len(call.inputs) > 2:
        axis = int_scalar(given(call, 2))
        if axis is None or len(repeats) != 1:
            return (Tensor(x.dtype, None),)
        axis = axis_within(axis, len(shape))
        repeats = (1,) * axis + repeats + (1,) * (len(shape) - axis - 1)
    if len(repeats) != len(shape):
        raise ShapeRuleError(f"{len(repeats)} repeats don't fit rank {len(shape)}")
    if repeats and min(repeats) < 0:
        raise ShapeRuleError(f"repeats {repeats} has a negative entry")
    return (Tensor(x.dtype, tuple([s * n for s, n in zip(shape, repeats, strict=True)])),)


def _keep_matrices(call: OpCall) -> Outputs:
    """Trilu and Inverse: each matrix keeps its place."""
    x = given(call, 0)
    if x.shape is not None and len(x.shape) < 2:
        raise ShapeRuleError(f"shape {x.shape} holds no matrices")
    return (Tensor(x.dtype, x.shape),)


def _shape(call: OpCall) -> Outputs:
    """The input's dimensions from ``start`` to ``end``, both clamped as a Python slice is."""
    shape = given(call, 0).shape
    if shape is None:
        return (Tensor(_INT64, None),)
    start, end = int_attribute(call, "start", 0), optional_int_attribute(call, "end")
    sizes = shape[start:end]
    if sizes and max(sizes) > _MAX_INT64:
        return (Tensor(_INT64, (len(sizes),)),)
    return (Tensor(_INT64, (len(sizes),), np.array(sizes, dtype=np.int64)),)


def _size(call: OpCall) -> Outputs:
    shape = given(call, 0).shape
    elements = None if shape is None else math.prod(shape)
    if elements is None or elements > _MAX_INT64:
        return (Tensor(_INT64, ()),)
    return (Tensor(_INT64, (), np.array(elements, dtype=np.int64)),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Expand"): _expand,
    ("", "Flatten"): _flatten,
    ("", "Reshape"): _reshape,
    ("", "Shape"): _shape,
    ("", "Size"): _size,
    ("", "Squeeze"): _squeeze,
    ("", "Tile"): _tile,
    ("", "Transpose"): _transpose,
    ("", "Trilu"): _keep_matrices,
    ("", "Unsqueeze"): _unsqueeze,
    ("com.microsoft", "ExpandDims"): _expand_dims,
    ("com.microsoft", "Inverse"): _keep_matrices,
    ("com.microsoft", "Trilu"): _keep_matrices,
}
