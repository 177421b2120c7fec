"""Content of reductions, orderings and number ranges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dippm_lite.onnx_reader.shape_rules.calls import int_attribute, optional_int_attribute
from dippm_lite.onnx_reader.shape_rules.content import Array, Arrays, Evaluator
from dippm_lite.onnx_reader.shape_rules.reduction import reduced_axes
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["COMPUTING"]

Wanted = tuple[Tensor, ...]


def _reduction(function: Callable[..., Array], prepare: Callable[[Array], Array]) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
        axes = reduced_axes(call, arrays[0].ndim)
        if axes is None:
            return None
        keep = int_attribute(call, "keepdims", 1) != 0
        return [function(prepare(arrays[0]), axis=axes, keepdims=keep)]

    return evaluate


def _same(x: Array) -> Array:
    return x


def _sum(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    total: Array = np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    return total


def _prod(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    product: Array = np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    return product


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.dtype.kind != "f":
        raise TypeError("how a mean of integers rounds isn't defined")
    total = np.sum(x, axis=axis, keepdims=keepdims, dtype=np.float64)
    mean: Array = total / np.float64(math.prod([x.shape[i] for i in axis]))
    return mean


def _arg(function: Callable[..., Array]) -> Evaluator:
    def evaluate(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
        x, axis = arrays[0], int_attribute(call, "axis", 0)
        keep = int_attribute(call, "keepdims", 1) != 0
        if int_attribute(call, "select_last_index", 0):
            last = function(np.flip(x, axis), axis=axis, keepdims=keep)
            return [x.shape[axis] - 1 - last]
        return [function(x, axis=axis, keepdims=keep)]

    return evaluate


def _top_k(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    """Of equal values, the one with the lower index comes first."""
    x, axis = arrays[0], int_attribute(call, "axis", -1)
    if int_attribute(call, "largest", 1):
        backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = np.flip(x.shape[axis] - 1 - backwards, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    k = (wanted[0].shape or ())[axis]
    places = np.take(order, np.arange(k), axis=axis)
    return [np.take_along_axis(x, places, axis), places]


def _unique(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    """Values, first positions, inverse and counts; in order of appearance unless ``sorted``."""
    axis = optional_int_attribute(call, "axis")
    values, first, inverse, counts = np.unique(
        arrays[0], return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not int_attribute(call, "sorted", 1):
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, axis=axis or 0)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    return [values, first, inverse, counts]


def _range(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    start = arrays[0].reshape(())
    delta = arrays[2].reshape(()) if len(arrays) > 2 else np.ones((), dtype=start.dtype)
    steps = np.arange((wanted[0].shape or (0,))[0], dtype=start.dtype)
    return [start + steps * delta]


COMPUTING: dict[tuple[str, str], Evaluator] = {
    ("", "ArgMax"): _arg(np.argmax),
    ("", "ArgMin"): _arg(np.argmin),
    ("", "Range"): _range,
    ("", "ReduceL1"): _reduction(_sum, np.abs),
    ("", "ReduceMax"): _reduction(np.max, _same),
    ("", "ReduceMean"): _reduction(_mean, _same),
    ("", "ReduceMin"): _reduction(np.min, _same),
    ("", "ReduceProd"): _reduction(_prod, _same),
    ("", "ReduceSum"): _reduction(_sum, _same),
    ("", "ReduceSumSquare"): _reduction(_sum, np.square),
    ("", "TopK"): _top_k,
    ("", "Unique"): _unique,
    ("com.microsoft", "Range"): _range,
}
