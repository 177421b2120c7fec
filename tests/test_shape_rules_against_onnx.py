"""Random calls: the rules agree with onnx's own shape inference wherever that knows the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_calls
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.shape_inference import InferenceError, infer_node_outputs

from dippm_lite.onnx_reader.shape_rules import infer
from dippm_lite.onnx_reader.tensors import ShapeRuleError, Tensor

FAST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

Operand = tuple[int, ...] | np.ndarray | None
"""A float tensor of that shape, a tensor of known content, or an absent input."""


def onnx_says(
    node: onnx.NodeProto, operands: Mapping[str, Operand], opset: int
) -> list[tuple[int, tuple[int, ...]] | None]:
    """``(type number, shape)`` of each output by onnx, None where it leaves something open."""
    types, data = {}, {}
    for name, operand in operands.items():
        if isinstance(operand, np.ndarray):
            code = helper.np_dtype_to_tensor_dtype(operand.dtype)
            types[name] = helper.make_tensor_type_proto(code, operand.shape)
            data[name] = numpy_helper.from_array(operand)
        elif operand is not None:
            types[name] = helper.make_tensor_type_proto(TensorProto.FLOAT, operand)
    found = infer_node_outputs(
        onnx.defs.get_schema(node.op_type, opset, ""),
        node,
        types,
        data,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=10,
    )
    answers: list[tuple[int, tuple[int, ...]] | None] = []
    for name in node.output:
        kind = found[name].tensor_type if name in found else None
        if kind is None or not kind.HasField("shape"):
            answers.append(None)
            continue
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        known = [size for size in sizes if size is not None]
        answers.append((kind.elem_type, tuple(known)) if len(known) == len(sizes) else None)
    return answers


def rules_say(
    node: onnx.NodeProto, operands: Mapping[str, Operand], opset: int
) -> tuple[Tensor | None, ...]:
    values: dict[str, Tensor | None] = {}
    for name, operand in operands.items():
        if isinstance(operand, np.ndarray):
            code = helper.np_dtype_to_tensor_dtype(operand.dtype)
            values[name] = onnx_calls.tensor_of_array(operand, code, known=True)
        elif operand is not None:
            values[name] = Tensor(onnx_calls.DTYPES[TensorProto.FLOAT], operand)
    return infer(onnx_calls.call_of(node, values, {"": opset}))


def check(
    op_type: str, operands: list[Operand], opset: int, n_outputs: int = 1, **attrs: Any
) -> None:
    """Both sources agree; a call that onnx refuses, or gives a size below 0, the rules refuse."""
    names = [f"x{i}" if operand is not None else "" for i, operand in enumerate(operands)]
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op_type, names, outputs, **attrs)
    given_operands = {name: x for name, x in zip(names, operands, strict=True) if name}
    try:
        expected = onnx_says(node, given_operands, opset)
    except InferenceError:
        with pytest.raises(ShapeRuleError):
            rules_say(node, given_operands, opset)
        return
    assume(all(answer is None or all(size >= 0 for size in answer[1]) for answer in expected))
    found = rules_say(node, given_operands, opset)
    for answer, tensor in zip(expected, found, strict=True):
        if answer is not None:
            assert tensor is not None and not tensor.bounded
            assert (tensor.dtype, tensor.shape) == (onnx_calls.DTYPES[answer[0]], answer[1])


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


sizes = st.integers(1, 6)
shapes = st.lists(sizes, min_size=1, max_size=4).map(tuple)
seldom = st.integers(0, 9).map(lambda x: x == 0)


@st.composite
def windows(draw: Any, min_size: int = 4) -> dict[str, Any]:
    """Spatial sizes with a kernel that fits into them, and its attributes."""
    rank = draw(st.integers(1, 3))

    def each(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    attributes: dict[str, Any] = {"strides": each(1, 3)}
    if draw(st.booleans()):
        attributes["dilations"] = each(1, 2)
    auto_pad = draw(st.sampled_from([None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if auto_pad:
        attributes["auto_pad"] = auto_pad
    if auto_pad in (None, "NOTSET"):
        attributes["pads"] = each(0, 1) + each(0, 1)
    return {"spatial": each(min_size, 9), "kernel": each(1, 2), "attributes": attributes}


@FAST
@given(windows(), st.integers(1, 3), st.integers(1, 2), st.sampled_from([1, 11, 22]), seldom)
def test_convolutions(window: dict[str, Any], outs: int, group: int, opset: int, bad: bool) -> None:
    channels = 2 * group + bad
    x = (2, channels, *window["spatial"])
    w = (outs * group, 2, *window["kernel"])
    try:
        check("Conv", [x, w, (outs * group,)], opset, group=group, **window["attributes"])
    except pytest.fail.Exception:
        raise
    except ShapeRuleError as error:
        assert bad and "channels" in str(error)  # onnx doesn't compare channels


@FAST
@given(windows(), st.integers(1, 2), st.data())
def test_transposed_convolutions(window: dict[str, Any], group: int, data: Any) -> None:
    rank = len(window["spatial"])
    attributes = dict(window["attributes"])
    pick = data.draw(st.sampled_from(["none", "padding", "shape"]))
    if pick == "padding":
        attributes["output_padding"] = [1] * rank
        attributes["strides"] = [2] * rank
        attributes.pop("auto_pad", None)  # onnx adds the padding behind SAME, runtimes don't
    if pick == "shape":
        attributes["output_shape"] = [9] * rank
        attributes.pop("pads", None)
    x = (2, 2 * group, *window["spatial"])
    check("ConvTranspose", [x, (2 * group, 3, *window["kernel"])], 22, group=group, **attributes)


@FAST
@given(windows(), st.sampled_from(["MaxPool", "AveragePool", "LpPool"]), st.booleans())
def test_pooling_with_the_ceil_mode_that_drops_windows_in_the_padding(
    window: dict[str, Any], op_type: str, ceil_mode: bool
) -> None:
    x = (2, 3, *window["spatial"])
    outputs = 2 if op_type == "MaxPool" else 1
    attributes = {**window["attributes"], "ceil_mode": int(ceil_mode)}
    check(op_type, [x], 22, outputs, kernel_shape=window["kernel"], **attributes)


@FAST
@given(windows(), st.sampled_from([1, 8, 10, 12]))
def test_pooling_of_older_opsets(window: dict[str, Any], opset: int) -> None:
    attributes = dict(window["attributes"])
    if opset < 10:
        attributes.pop("dilations", None)
    x = (2, 3, *window["spatial"])
    check("MaxPool", [x], opset, kernel_shape=window["kernel"], **attributes)


@FAST
@given(shapes, st.data())
def test_resize(shape: tuple[int, ...], data: Any) -> None:
    rank = len(shape)
    axes = data.draw(st.permutations(range(rank)))[: data.draw(st.integers(1, rank))]
    attributes: dict[str, Any] = {"axes": axes} if data.draw(st.booleans()) else {}
    count = len(axes) if attributes else rank
    if data.draw(st.booleans()):
        scales = data.draw(
            st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 1 / 3]), min_size=count, max_size=count)
        )
        empty = np.empty(0, dtype=np.int64) if data.draw(st.booleans()) else None
        operands: list[Operand] = [shape, None, np.array(scales, dtype=np.float32), empty]
        check("Resize", operands[: 3 if empty is None else 4], 19, **attributes)
    else:
        wanted = data.draw(st.lists(st.integers(1, 12), min_size=count, max_size=count))
        attributes["keep_aspect_ratio_policy"] = data.draw(
            st.sampled_from(["stretch", "not_larger", "not_smaller"])
        )
        check("Resize", [shape, None, None, ints(*wanted)], 19, **attributes)


@FAST
@given(shapes, st.data())
def test_upsample(shape: tuple[int, ...], data: Any) -> None:
    scales = data.draw(
        st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0]), min_size=len(shape), max_size=len(shape))
    )
    check("Upsample", [shape], 7, scales=scales)
    check("Upsample", [shape, np.array(scales, dtype=np.float32)], 9)


@FAST
@given(shapes, st.data())
def test_slice(shape: tuple[int, ...], data: Any) -> None:
    rank = len(shape)
    axes = data.draw(st.permutations(range(rank)))[: data.draw(st.integers(1, rank))]
    bounds = st.integers(-8, 8) | st.sampled_from([2**31 - 1, 2**63 - 1, -(2**63)])
    each = {"min_size": len(axes), "max_size": len(axes)}
    starts, ends = data.draw(st.lists(bounds, **each)), data.draw(st.lists(bounds, **each))
    steps = data.draw(st.lists(st.sampled_from([1, 1, 2, 3, -1, -2]), **each))
    axes = [axis - rank if data.draw(st.booleans()) else axis for axis in axes]
    check("Slice", [shape, ints(*starts), ints(*ends), ints(*axes), ints(*steps)], 13)
    check("Slice", [shape], 1, starts=starts, ends=ends, axes=[axis % rank for axis in axes])


@FAST
@given(shapes, st.lists(st.integers(-1, 6), min_size=1, max_size=4), st.booleans(), st.data())
def test_reshape(shape: tuple[int, ...], target: list[int], allowzero: bool, data: Any) -> None:
    if data.draw(st.booleans()):  # one that fits
        order = data.draw(st.permutations(shape))
        target = [*order[:-1], -1] if data.draw(st.booleans()) else list(order)
    if -1 not in target:  # onnx doesn't count elements then
        copied = [n or shape[i] for i, n in enumerate(target) if n or i < len(shape)]
        elements = math.prod(target if allowzero else copied)
        assume(len(copied) == len(target) and elements == math.prod(shape))
    check("Reshape", [shape, ints(*target)], 14, allowzero=int(allowzero))
    if not allowzero:
        check("Reshape", [shape, ints(*target)], 5)


@FAST
@given(shapes, shapes, st.integers(-4, 4))
def test_gather_and_its_relatives(
    data: tuple[int, ...], indices: tuple[int, ...], axis: int
) -> None:
    check("Gather", [data, np.zeros(indices, dtype=np.int64)], 13, axis=axis)
    if -len(data) <= axis < len(data):  # onnx lets an axis outside of the rank pass
        check("Squeeze", [data], 11, axes=[axis])
    check("Unsqueeze", [data], 11, axes=[axis])
    check("Squeeze", [data, ints(axis)], 13)
    check("Unsqueeze", [data, ints(axis)], 13)
    check("Flatten", [data], 13, axis=axis)
    check("ArgMax", [data], 13, axis=axis, keepdims=0)
    if len(data) == len(indices) and -len(data) <= axis < len(data):
        check("GatherElements", [data, np.zeros(indices, dtype=np.int64)], 13, axis=axis)
    check("GatherND", [data, np.zeros(indices, dtype=np.int64)], 13)
    check("OneHot", [np.zeros(data, np.int64), ints(5), np.zeros(2, np.float32)], 11, axis=axis)


@FAST
@given(shapes, st.data())
def test_topk(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(1, shape[axis]))
    check("TopK", [shape, ints(k)], 11, 2, axis=axis)
    check("TopK", [shape], 1, 2, axis=axis, k=k)


@FAST
@given(shapes, st.data())
def test_concat_split_and_pad(shape: tuple[int, ...], data: Any) -> None:
    rank = len(shape)
    axis = data.draw(st.integers(-rank, rank - 1))
    others = [
        (*shape[: axis % rank], data.draw(sizes), *shape[axis % rank + 1 :]) for _ in range(2)
    ]
    if data.draw(seldom):
        others[0] = (*others[0], 1)
    check("Concat", [shape, *others], 13, axis=axis)
    parts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    total = sum(parts) + data.draw(seldom)
    whole = (*shape[: axis % rank], total, *shape[axis % rank + 1 :])
    check("Split", [whole, ints(*parts)], 13, len(parts), axis=axis)
    check("Split", [whole], 2, len(parts), axis=axis, split=parts)
    check("Split", [whole], 18, len(parts), axis=axis, num_outputs=len(parts))
    if total % len(parts) == 0:
        check("Split", [whole], 13, len(parts), axis=axis)
    pads = data.draw(st.lists(st.integers(-1, 3), min_size=2 * rank, max_size=2 * rank))
    check("Pad", [shape, ints(*pads)], 13)
    check("Pad", [shape], 2, pads=pads)
    check("Pad", [shape, ints(1, 2), None, ints(axis)], 18)


@FAST
@given(shapes, st.data())
def test_reductions(shape: tuple[int, ...], data: Any) -> None:
    rank = len(shape)
    axes = data.draw(
        st.lists(st.integers(-rank, rank - 1), max_size=2, unique_by=lambda a: a % rank)
    )
    keep, noop = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    if axes:
        check("ReduceMean", [shape], 13, axes=axes, keepdims=keep)
    check("ReduceMax", [shape], 13, keepdims=keep)
    check("ReduceSum", [shape, ints(*axes)], 13, keepdims=keep, noop_with_empty_axes=noop)
    check("ReduceMin", [shape], 20, keepdims=keep, noop_with_empty_axes=noop)


@FAST
@given(shapes, shapes)
def test_broadcasting(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check("Add", [a, b], 14)
    check("Less", [a, b], 13)
    check("Max", [a, b, a], 13)
    check("Where", [np.ones(a, dtype=bool), b, a], 16)
    check("Expand", [a, ints(*b)], 13)
    check("MatMul", [a, b], 13)


EQUATIONS = [
    "ij,jk->ik", "ij,kj->ik", "ij,jk", "...ij,...jk->...ik", "b...i,b...i->b...", "ij->ji",
    "ii->i", "i...->...", "...", "ij,ij", "bhid,bhjd->bhij", " i j , j -> i ", "ij,j", "zyx->",
    "a...,...b->...ab",
]  # fmt: skip


@FAST
@given(st.sampled_from(EQUATIONS), st.data())
def test_einsum_as_numpy_has_it(equation: str, data: Any) -> None:
    terms = equation.split("->")[0].replace(" ", "").split(",")
    letters = {letter: data.draw(sizes) for letter in "abdhijkxyz"}
    batch = data.draw(st.lists(sizes, max_size=2))
    operands: list[Operand] = []
    for term in terms:
        shape: list[int] = []
        for piece in term.replace("...", "~"):
            shape += batch if piece == "~" else [letters[piece]]
        operands.append(tuple(shape))
    if data.draw(seldom):
        operands[0] = (*(operands[0] or ()), 7)
    node = helper.make_node(
        "Einsum", [f"x{i}" for i in range(len(terms))], ["y"], equation=equation
    )
    named = {f"x{i}": operand for i, operand in enumerate(operands)}
    try:
        true = np.einsum(equation, *[np.ones(operand or ()) for operand in operands]).shape
    except ValueError:
        with pytest.raises(ShapeRuleError):
            rules_say(node, named, 12)
        return
    (tensor,) = rules_say(node, named, 12)
    assert tensor is not None and tensor.shape == true


@FAST
@given(shapes, st.data())
def test_moving_axes(shape: tuple[int, ...], data: Any) -> None:
    check("Transpose", [shape], 13, perm=data.draw(st.permutations(range(len(shape)))))
    check("Transpose", [shape], 13)
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
    check("Tile", [shape, ints(*repeats)], 13)
    check(
        "Shape", [shape], 15, start=data.draw(st.integers(-5, 5)), end=data.draw(st.integers(-5, 5))
    )
    block = data.draw(st.integers(1, 3))
    image = (2, 4 * block**2, 2 * block, 3 * block + data.draw(seldom))
    check("DepthToSpace", [image], 13, blocksize=block)
    if image[3] % block == 0:
        check("SpaceToDepth", [image], 13, blocksize=block)


@FAST
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.booleans())
def test_gemm(m: int, k: int, n: int, trans_a: bool, trans_b: bool) -> None:
    a = (k, m) if trans_a else (m, k)
    b = (n, k) if trans_b else (k, n)
    check("Gemm", [a, b, (n,)], 13, transA=int(trans_a), transB=int(trans_b))


@FAST
@given(
    st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]),
    st.sampled_from([("forward", 1), ("reverse", 1), ("bidirectional", 2)]),
    st.integers(0, 1),
    sizes,
)
def test_recurrent_layers(
    layer: tuple[str, int], direction: tuple[str, int], layout: int, hidden: int
) -> None:
    (op_type, gates), (name, directions) = layer, direction
    operands: list[Operand] = [
        (5, 2, 3),
        (directions, gates * hidden, 3),
        (directions, gates * hidden, hidden),
    ]
    attributes = {"hidden_size": hidden, "direction": name, "layout": layout}
    check(op_type, operands, 14, 3 if op_type == "LSTM" else 2, **attributes)


@FAST
@given(st.integers(-5, 5), st.integers(-5, 20), st.sampled_from([1, 2, 3, -1, -2]))
def test_ranges(start: int, limit: int, delta: int) -> None:
    operands: list[Operand] = [np.array(value, dtype=np.int64) for value in (start, limit, delta)]
    check("Range", operands, 11)
    operands = [np.array(value, dtype=np.float32) for value in (start, limit, delta)]
    check("Range", operands, 11)
    check("ConstantOfShape", [ints(abs(start), abs(limit))], 9)


def test_a_wrong_answer_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        node = helper.make_node("Relu", ["x0"], ["y0"])
        (answer,) = onnx_says(node, {"x0": (2, 3)}, 14)
        (tensor,) = rules_say(node, {"x0": (2, 4)}, 14)
        assert answer is not None and tensor is not None and tensor.shape == answer[1]
