"""Layouts against torch's own strides, and the copies that eager PyTorch makes."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
import torch
from graph_builder import graph, node
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.execution import Runtime
from dippm_lite.graph import Graph
from dippm_lite.lowering import lower
from dippm_lite.lowering.strides import Layout


def layout_of(tensor: torch.Tensor) -> Layout:
    return Layout(tuple(tensor.shape), tensor.stride())


@st.composite
def views(draw: st.DrawFn) -> torch.Tensor:
    """A tensor that was permuted, cut and broadcast."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    tensor = torch.zeros(shape).permute(draw(st.permutations(range(len(shape)))))
    for axis, size in enumerate(tensor.shape):
        if draw(st.booleans()) and size > 1:
            tensor = tensor.narrow(axis, 0, draw(st.integers(1, size)))
        if size == 1 and draw(st.booleans()):
            sizes = [-1] * tensor.dim()
            sizes[axis] = 3
            tensor = tensor.expand(sizes)
    return tensor


@st.composite
def factorisations(draw: st.DrawFn, elements: int) -> list[int]:
    """A shape of so many elements."""
    shape = []
    while elements > 1 and len(shape) < 5:
        divisors = [d for d in range(1, elements + 1) if elements % d == 0]
        shape.append(draw(st.sampled_from(divisors)))
        elements //= shape[-1]
    return [*shape, elements]


@settings(max_examples=300, deadline=None)
@given(tensor=views(), data=st.data())
def test_a_reshape_is_a_view_exactly_where_torch_can_view(
    tensor: torch.Tensor, data: st.DataObject
) -> None:
    shape = data.draw(factorisations(tensor.numel()))
    seen = layout_of(tensor).reshape(shape)
    try:
        expected = tensor.view(shape)
    except RuntimeError:
        assert seen is None
        return
    assert seen is not None
    sizes = zip(seen.strides, expected.stride(), shape, strict=True)
    assert all(ours == theirs for ours, theirs, size in sizes if size > 1)


@settings(max_examples=100, deadline=None)
@given(tensor=views())
def test_contiguity_is_what_torch_says(tensor: torch.Tensor) -> None:
    layout = layout_of(tensor)
    assert layout.is_contiguous == tensor.is_contiguous()
    if tensor.dim() == 4 and not tensor.is_contiguous():
        expected = tensor.is_contiguous(memory_format=torch.channels_last)
        assert layout.is_channels_last == expected


def test_expansion_repeats_with_stride_zero() -> None:
    tensor = torch.zeros(3, 1, 4)
    assert Layout.dense((3, 1, 4)).expand((2, 3, 5, 4)) == layout_of(tensor.expand(2, 3, 5, 4))


def heads(batch: int, merge: bool = False) -> Graph:
    """Queries and keys split into heads, multiplied; optionally the heads merged again."""
    length, width, count = 6, 32, 4
    nodes: list[onnx.NodeProto] = []
    for name in "qkv":
        nodes += [
            node("Reshape", f"{name} split", f"{name}r"),
            node("Transpose", f"{name}r", f"{name}h", perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Transpose", "kh", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "qh kt", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p vh", "o" if merge else "y"),
    ]
    if merge:
        nodes += [
            node("Transpose", "o", "ot", perm=[0, 2, 1, 3]),
            node("Reshape", "ot merged", "y"),
        ]
    return graph(
        nodes,
        dict.fromkeys("qkv", (batch, length, width)),
        weights={
            "split": np.array([batch, length, count, width // count], np.int64),
            "merged": np.array([batch, length, width], np.int64),
        },
    )


def copies(read: Graph, runtime: Runtime = Runtime.PYTORCH) -> list[list[str]]:
    """Node types behind each copy."""
    moved = ("copy", "transpose", "expand")
    return [
        [read.nodes[i].op_type for i in kernel.nodes]
        for kernel in lower(read, runtime)
        if kernel.op in moved
    ]


def test_split_heads_are_copied_for_bmm_and_once_more_to_merge() -> None:
    # transformers' BERT in eager mode: a clone each for q, k and v, and one for the context
    assert copies(heads(2)) == [
        ["Reshape", "Transpose"],
        ["Reshape", "Transpose", "Transpose"],
        ["Reshape", "Transpose"],
    ]
    assert copies(heads(2, merge=True))[3:] == [["Transpose", "Reshape"]]


def test_a_single_sample_needs_no_copy_to_split_its_heads() -> None:
    assert copies(heads(1)) == []
    assert len(copies(heads(1, merge=True))) == 1


def test_onnxruntime_transposes_once_and_leaves_the_last_swap_to_the_product() -> None:
    assert len(copies(heads(2, merge=True), Runtime.ONNXRUNTIME)) == 4


def test_onnxruntime_cancels_the_transposes_around_convolutions_in_another_layout() -> None:
    # as tf2onnx writes a network whose tensors are (N, H, W, C)
    nodes = [
        node("Transpose", "x", "t0", perm=[0, 3, 1, 2]),
        node("Conv", "t0 w", "c0"),
        node("Transpose", "c0", "u0", perm=[0, 2, 3, 1]),
        node("Sigmoid", "u0", "s"),
        node("Transpose", "s", "t1", perm=[0, 3, 1, 2]),
        node("Conv", "t1 w", "c1"),
        node("Transpose", "c1", "y", perm=[0, 2, 3, 1]),
    ]
    read = graph(nodes, {"x": (2, 6, 6, 8)}, weights={"w": (8, 8, 1, 1)})
    found = [kernel.op for kernel in lower(read, Runtime.ONNXRUNTIME)]
    assert found == ["transpose", "conv", "sigmoid", "conv", "transpose"]


def test_tensorrt_reads_heads_where_they_are() -> None:
    assert copies(heads(2), Runtime.TENSORRT) == []


def one(nodes: list[onnx.NodeProto], shape: tuple[int, ...], **weights: object) -> list[str]:
    read = graph(nodes, {"x": shape}, weights=weights)
    return [kernel.op for kernel in lower(read, Runtime.PYTORCH)]


def test_a_view_that_nothing_needs_as_a_tensor_is_free() -> None:
    transpose = node("Transpose", "x", "t", perm=[0, 2, 1])
    assert one([transpose, node("Relu", "t", "y")], (2, 3, 4)) == ["relu"]
    assert one([transpose, node("Identity", "t", "y")], (2, 3, 4)) == []


def test_norms_and_softmax_make_their_input_contiguous() -> None:
    transpose = node("Transpose", "x", "t", perm=[0, 2, 1])
    assert one([transpose, node("Softmax", "t", "y", axis=-1)], (2, 3, 4)) == ["copy", "softmax"]
    norm = node("LayerNormalization", "t w b", "y")
    assert one([transpose, norm], (2, 3, 4), w=(3,), b=(3,)) == ["copy", "layer_norm"]


def test_an_elementwise_result_keeps_the_order_of_its_operand() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Relu", "t", "r"),
        node("Transpose", "r", "back", perm=[0, 2, 1]),
        node("Softmax", "back", "y", axis=-1),
    ]
    assert one(nodes, (2, 3, 4)) == ["relu", "softmax"]


def test_channels_last_flows_through_convolutions() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
        node("Conv", "t w", "c"),
        node("Transpose", "c", "u", perm=[0, 2, 3, 1]),
        node("LayerNormalization", "u g b", "y"),
    ]
    assert one(nodes, (2, 5, 5, 8), w=(8, 8, 1, 1), g=(8,), b=(8,)) == ["conv", "layer_norm"]


def test_linear_of_a_permuted_tensor_copies_and_adds_its_bias_apart() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("MatMul", "t w", "p"),
        node("Add", "p b", "y"),
    ]
    # as torch.nn.functional.linear does: clone, mm, add
    assert one(nodes, (2, 6, 8), w=(6, 5), b=(5,)) == ["copy", "linear", "add"]


def test_shuffling_channels_is_one_copy() -> None:
    nodes = [
        node("Reshape", "x apart", "a"),
        node("Transpose", "a", "t", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "t together", "s"),
        node("Relu", "s", "y"),
    ]
    apart, together = np.array([2, 2, 4, 5, 5]), np.array([2, 8, 5, 5])
    assert one(nodes, (2, 8, 5, 5), apart=apart, together=together) == ["copy", "relu"]


def test_taking_one_index_is_a_view_and_taking_a_list_is_not() -> None:
    single = [node("Gather", "x first", "t", axis=1), node("Relu", "t", "y")]
    assert one(single, (2, 3, 4), first=np.array(0)) == ["relu"]
    assert one(single, (2, 3, 4), first=np.array([0, 2])) == ["gather", "relu"]


def test_a_backward_slice_is_a_copy() -> None:
    def sliced(step: int) -> list[str]:
        return one(
            [node("Slice", "x from to axis step", "t"), node("Relu", "t", "y")],
            (2, 6),
            **{"from": np.array([5 if step < 0 else 0]), "to": np.array([-99 if step < 0 else 6])},
            axis=np.array([1]),
            step=np.array([step]),
        )

    assert sliced(2) == ["relu"]
    assert sliced(-1) == ["slice", "relu"]


def test_a_copy_reads_and_writes_its_elements_once() -> None:
    read = graph(
        [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Softmax", "t", "y", axis=-1)],
        {"x": (2, 3, 4)},
    )
    kernel = lower(read, Runtime.PYTORCH)[0]
    assert kernel.cost.read_bytes == kernel.cost.write_bytes == 4 * prod((2, 3, 4))
    assert [read.values[v].name for v in (*kernel.inputs, *kernel.outputs)] == ["x", "t"]
