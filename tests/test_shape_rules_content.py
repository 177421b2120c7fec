"""Known contents beside those that onnxruntime computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_calls
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnxruntime_calls import Case, as_tensor, computed, f32, i64, inferred

small = st.integers(1, 4)
shapes = st.lists(small, min_size=1, max_size=3).map(tuple)
FAST = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def array_of(data: Any, shape: tuple[int, ...], low: int = -9, high: int = 9) -> np.ndarray:
    count = int(np.prod(shape))
    values = data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    return np.array(values, dtype=np.int64).reshape(shape)


def check_content(
    op_type: str, inputs: list[Any], opset: int, outputs: int = 1, **attrs: Any
) -> None:
    """With all inputs known, the outputs are known, and equal what onnxruntime computes."""
    case = Case(op_type, inputs, attrs, outputs, "", opset)
    for array, tensor in zip(computed(case), inferred(case, 10**6), strict=True):
        true = as_tensor(array)
        assert tensor is not None
        assert (tensor.dtype, tensor.shape) == (true.dtype, true.shape)
        assert onnx_calls.same_content(tensor, true), (tensor.data, true.data)


@FAST
@given(shapes, st.data())
def test_content_of_integer_arithmetic(shape: tuple[int, ...], data: Any) -> None:
    a, b = array_of(data, shape), array_of(data, shape[-1:])
    for op_type in ("Add", "Sub", "Mul", "Max", "Min"):
        check_content(op_type, [a, b], 13)
    for op_type in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        check_content(op_type, [a, b], 16)
    for op_type in ("Abs", "Neg", "Sign"):
        check_content(op_type, [a], 13)
    check_content("Clip", [a, np.int64(-2), np.int64(3)], 13)
    check_content("Pow", [a, np.int64(2)], 15)
    check_content("Where", [a > 0, a, b], 16)
    check_content("Cast", [a], 13, to=TensorProto.FLOAT)
    check_content("Cast", [a], 13, to=TensorProto.BOOL)
    divisor = np.where(b == 0, 1, b)
    check_content("Div", [a, divisor], 14)
    check_content("Mod", [a, divisor], 13)
    check_content("Mod", [a, divisor], 13, fmod=1)


@FAST
@given(shapes, st.data())
def test_content_of_float_arithmetic(shape: tuple[int, ...], data: Any) -> None:
    a = (array_of(data, shape) / 4).astype(np.float32)
    for op_type in ("Floor", "Ceil", "Round", "Reciprocal", "Exp", "Cos", "Sigmoid", "Relu"):
        check_content(op_type, [a], 13)
    check_content("Sqrt", [np.abs(a)], 13)
    check_content("IsNaN", [np.where(a < 0, np.float32(np.nan), a)], 13)
    check_content("Div", [a, a + np.float32(0.125)], 14)
    check_content("Mod", [a, a + np.float32(0.125)], 13, fmod=1)
    check_content("Cast", [a], 13, to=TensorProto.INT64)
    check_content("Cast", [a], 13, to=TensorProto.FLOAT16)
    check_content("Clip", [a], 6, min=-1.0, max=1.5)
    check_content("ReduceMean", [a], 13)


@FAST
@given(shapes, st.data())
def test_content_of_reductions(shape: tuple[int, ...], data: Any) -> None:
    a = array_of(data, shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    keep = data.draw(st.integers(0, 1))
    for op_type in ("ReduceMax", "ReduceMin"):
        check_content(op_type, [a], 13, axes=[axis], keepdims=keep)
    check_content("ReduceProd", [a.astype(np.float32)], 13, axes=[axis], keepdims=keep)
    check_content("ReduceSum", [a, i64(axis)], 13, keepdims=keep)
    check_content("ReduceSum", [a], 13, keepdims=keep)
    last = data.draw(st.integers(0, 1))
    for op_type in ("ArgMax", "ArgMin"):
        floats = a.astype(np.float32)
        check_content(op_type, [floats], 13, axis=axis, keepdims=keep, select_last_index=last)
    exclusive, reverse = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    check_content("CumSum", [a, np.int64(axis)], 14, exclusive=exclusive, reverse=reverse)
    k, largest = data.draw(st.integers(1, shape[axis])), data.draw(st.integers(0, 1))
    check_content("TopK", [a, i64(k)], 11, 2, axis=axis, largest=largest)
    check_content("Unique", [a.astype(np.float32)], 11, 4, sorted=data.draw(st.integers(0, 1)))
    check_content("Unique", [a.astype(np.float32)], 11, 4, axis=axis)


@FAST
@given(shapes, st.data())
def test_content_of_moved_elements(shape: tuple[int, ...], data: Any) -> None:
    a, rank = array_of(data, shape), len(shape)
    axis = data.draw(st.integers(-rank, rank - 1))
    size = shape[axis]
    check_content("Transpose", [a], 13, perm=data.draw(st.permutations(range(rank))))
    check_content("Reshape", [a, i64(-1)], 14)
    check_content("Unsqueeze", [a, i64(axis)], 13)
    check_content("Squeeze", [a[None], i64(0)], 13)
    check_content("Flatten", [a], 13, axis=axis)
    check_content("Concat", [a, a], 13, axis=axis)
    check_content("Tile", [a, array_of(data, (rank,), 1, 2)], 13)
    check_content("Expand", [a, i64(2, *shape)], 13)
    bounds = [array_of(data, (1,)) for _ in range(2)]
    step = i64(data.draw(st.sampled_from([1, 2, -1, -2])))
    check_content("Slice", [a, *bounds, i64(axis), step], 13)
    parts = array_of(data, (2,), 0, 0) + i64(size // 2, size - size // 2)
    check_content("Split", [a, parts], 13, 2, axis=axis)
    pads = array_of(data, (2 * rank,), 0, 1)
    check_content("Pad", [a, pads, np.int64(7)], 13)
    check_content("Pad", [a, pads], 13, mode="edge")
    if min(shape) > 1:
        check_content("Pad", [a, pads], 13, mode="reflect")
    if rank > 1:
        diagonal = np.int64(data.draw(st.integers(-2, 2)))
        check_content("Trilu", [a, diagonal], 14, upper=data.draw(st.integers(0, 1)))
    check_content("NonZero", [a], 13)
    check_content("Compress", [a, array_of(data, (size,), 0, 1) > 0], 11, axis=axis)
    check_content("Shape", [a], 15, start=data.draw(st.integers(-3, 3)))
    check_content("Size", [a], 13)


@FAST
@given(shapes, shapes, st.data())
def test_content_of_indexed_elements(
    shape: tuple[int, ...], picks: tuple[int, ...], data: Any
) -> None:
    a, rank = array_of(data, shape), len(shape)
    axis = data.draw(st.integers(-rank, rank - 1))
    size = shape[axis]
    check_content("Gather", [a, array_of(data, picks, -size, size - 1)], 13, axis=axis)
    within = tuple(data.draw(st.integers(1, n)) for n in shape)
    indices = array_of(data, within, -size, size - 1)
    check_content("GatherElements", [a, indices], 13, axis=axis)
    depth = data.draw(st.integers(1, rank))
    rows = np.stack([array_of(data, (2,), 0, shape[i] - 1) for i in range(depth)], axis=-1)
    check_content("GatherND", [a, rows], 13)
    updates = array_of(data, (2, *shape[depth:]))
    check_content("ScatterND", [a, rows, updates], 16, reduction="add")
    assume(len({tuple(row) for row in rows.tolist()}) == 2)
    check_content("ScatterND", [a, rows, updates], 16)
    places = np.indices(within)[axis]
    check_content("ScatterElements", [a, places, array_of(data, within)], 16, axis=axis)
    hot = data.draw(st.integers(-rank - 1, rank))
    check_content("OneHot", [a, np.int64(5), i64(3, 4)], 11, axis=hot)


@FAST
@given(st.integers(-5, 5), st.integers(-5, 20), st.sampled_from([1, 2, 3, -1, -2]))
def test_content_of_generated_numbers(start: int, limit: int, delta: int) -> None:
    check_content("Range", [np.int64(start), np.int64(limit), np.int64(delta)], 11)
    check_content(
        "Range", [np.float32(start / 2), np.float32(limit / 3), np.float32(delta / 4)], 11
    )
    check_content("ConstantOfShape", [i64(abs(start), 3)], 9)
    value = helper.make_tensor("value", TensorProto.INT64, [1], [limit])
    check_content("ConstantOfShape", [i64(2, abs(start))], 9, value=value)
    check_content("EyeLike", [f32(3, 4)], 9, k=delta)
