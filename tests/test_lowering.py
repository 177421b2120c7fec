"""What must hold of every lowering, whatever the network: nothing lost, nothing invented."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from graph_builder import graph, node
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.execution import MathMode, Precision, Runtime
from dippm_lite.graph import ABSENT, DType, Graph, OpNode, TensorSpec, Value, ValueKind
from dippm_lite.kernels import ElementDims, GemmDims, Kernel, KernelKind
from dippm_lite.lowering import Lowering, dominant_dtype, lower, numerics_of
from dippm_lite.onnx_reader import read_graph
from dippm_lite.op_costs import graph_macs

FILES = sorted((Path(__file__).parent / "data" / "networks").glob("*.onnx"))
MS = "com.microsoft"


@cache
def network(file: str, batch_size: int = 2) -> Graph:
    return read_graph(next(f for f in FILES if f.name == file), batch_size=batch_size).graph


def substance(kernel: Kernel) -> tuple[object, ...]:
    """A kernel without the numbers of nodes and values."""
    return kernel.kind, kernel.op, kernel.dims, kernel.cost, kernel.math, kernel.repeat


def ops(lowering: Lowering) -> list[str]:
    return [kernel.op for kernel in lowering]


def assert_accounts_for_all(read: Graph, lowering: Lowering) -> None:
    launched = {i for kernel in lowering for i in kernel.nodes}
    rest = [*lowering.at_load, *lowering.views, *lowering.host_only]
    assert len(rest) == len(set(rest))
    assert launched.isdisjoint(rest)
    assert launched | set(rest) == set(range(len(read.nodes)))
    assert all(kernel.nodes == tuple(sorted(set(kernel.nodes))) for kernel in lowering)


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("file", [f.name for f in FILES])
def test_every_node_and_every_mac_is_in_a_kernel(file: str, runtime: Runtime) -> None:
    read = network(file)
    for precision in (Precision.AUTO, Precision.AMP, Precision.INT8):
        lowering = lower(read, runtime, precision)
        assert_accounts_for_all(read, lowering)
        assert sum(k.cost.macs * k.repeat for k in lowering) == graph_macs(read) > 0
        assert not any(kernel.unknown for kernel in lowering)


LOOKS = frozenset(
    {"Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Expand", "Gather"}
    | {"Flatten", "Identity", "Dropout", "Cast", "Concat", "Pad"}
)


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("file", [f.name for f in FILES])
def test_kernels_come_in_an_order_that_can_run(file: str, runtime: Runtime) -> None:
    read = network(file)
    lowering = lower(read, runtime)
    written = {i for i in range(len(read.values)) if i not in read.producers}
    for i in lowering.at_load:
        written.update(read.nodes[i].outputs)

    def is_ready(value: int) -> bool:
        """Written, or a view of what is written."""
        if value in written:
            return True
        made_by = read.nodes[read.producers[value]]
        return made_by.op_type in LOOKS and all(is_ready(v) for v in made_by.inputs if v != ABSENT)

    for kernel in lowering:
        assert all(is_ready(value) for value in kernel.inputs), kernel.op
        written.update(kernel.outputs)
    assert all(is_ready(value) for value in read.outputs)


@pytest.mark.parametrize("file", [f.name for f in FILES])
def test_macs_are_linear_in_the_batch(file: str) -> None:
    one, three = (
        sum(k.cost.macs for k in lower(network(file, batch), Runtime.PYTORCH)) for batch in (1, 3)
    )
    assert three == 3 * one


def reordered(read: Graph, seed: int) -> Graph:
    """The same graph with other names, other numbers and another topological order."""
    chance = random.Random(seed)
    numbers = list(range(len(read.values)))
    chance.shuffle(numbers)
    values: list[Value] = [read.values[0]] * len(numbers)
    for old, new in enumerate(numbers):
        values[new] = replace(read.values[old], name=f"tensor {chance.random()}")
    waiting = {
        i: {read.producers[v] for v in each.inputs if v in read.producers}
        for i, each in enumerate(read.nodes)
    }
    followers: dict[int, list[int]] = {}
    for i, sources in waiting.items():
        for source in sources:
            followers.setdefault(source, []).append(i)
    ready = [i for i, sources in waiting.items() if not sources]
    nodes = []
    while ready:
        i = ready.pop(chance.randrange(len(ready)))
        old = read.nodes[i]
        inputs, outputs = (
            tuple(v if v == ABSENT else numbers[v] for v in group)
            for group in (old.inputs, old.outputs)
        )
        nodes.append(replace(old, name=f"node {i}", inputs=inputs, outputs=outputs))
        for follower in followers.get(i, ()):
            waiting[follower].discard(i)
            if not waiting[follower]:
                ready.append(follower)
    ends = (tuple(numbers[v] for v in group) for group in (read.inputs, read.outputs))
    return Graph("renamed", tuple(values), tuple(nodes), *ends, read.opset)


INVARIANT = [
    "resnet50.torchscript18.onnx",
    "efficientnet_b0.dynamo18.onnx",
    "vit_b_16.dynamo18.onnx",
    "swin_tiny.torchscript13.onnx",
    "gpt2.torchscript18.onnx",
    "yolov8n.torchscript17.onnx",
]


def test_reordering_really_reorders() -> None:
    read = network("swin_tiny.torchscript13.onnx")
    orders = {tuple(n.name for n in reordered(read, seed).nodes) for seed in range(3)}
    assert len(orders) == 3


@settings(max_examples=8, deadline=None)
@given(
    file=st.sampled_from(INVARIANT),
    runtime=st.sampled_from(list(Runtime)),
    precision=st.sampled_from([Precision.AUTO, Precision.AMP, Precision.FP16]),
    seed=st.integers(0, 2**32),
)
def test_names_and_order_of_nodes_do_not_matter(
    file: str, runtime: Runtime, precision: Precision, seed: int
) -> None:
    read = network(file)
    shuffled = reordered(read, seed)
    expected = Counter(map(substance, lower(read, runtime, precision)))
    assert Counter(map(substance, lower(shuffled, runtime, precision))) == expected


def test_a_residual_sum_joins_the_deeper_branch_in_either_order() -> None:
    main = [node("Conv", "x a", "m1"), node("Relu", "m1", "m2"), node("Conv", "m2 a", "m3")]
    side = [node("Conv", "x a", "d")]
    end = [node("Add", "d m3", "s"), node("Relu", "s", "y")]
    for nodes in ([*main, *side, *end], [*side, *main, *end]):
        read = graph(nodes, {"x": (1, 8, 9, 9)}, weights={"a": (8, 8, 1, 1)})
        for runtime in (Runtime.ONNXRUNTIME, Runtime.TENSORRT):
            found = {k.op: [read.values[v].name for v in k.inputs] for k in lower(read, runtime)}
            assert sorted(found) == ["conv", "conv+add+relu", "conv+relu"]
            assert found["conv"][0] == "x"
            assert found["conv+add+relu"][0] == "m2"


def test_onnxruntime_fuses_relu_into_a_convolution_and_nothing_else() -> None:
    weights = {"w": (8, 8, 1, 1)}
    shape = {"x": (1, 8, 9, 9)}
    relu = graph([node("Conv", "x w", "c"), node("Relu", "c", "y")], shape, weights=weights)
    sigmoid = graph([node("Conv", "x w", "c"), node("Sigmoid", "c", "y")], shape, weights=weights)
    assert ops(lower(relu, Runtime.ONNXRUNTIME)) == ["conv+relu"]
    assert ops(lower(sigmoid, Runtime.ONNXRUNTIME)) == ["conv", "sigmoid"]
    assert ops(lower(sigmoid, Runtime.TENSORRT)) == ["conv+sigmoid"]
    assert ops(lower(sigmoid, Runtime.PYTORCH)) == ["conv", "sigmoid"]


def test_a_result_with_two_readers_is_written_out() -> None:
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("Add", "c r", "y")]
    read = graph(nodes, {"x": (1, 8, 9, 9)}, weights={"w": (8, 8, 1, 1)})
    assert ops(lower(read, Runtime.TENSORRT)) == ["conv", "relu+add"]
    assert ops(lower(read, Runtime.ONNXRUNTIME)) == ["conv", "relu", "add"]


def test_tensorrt_runs_a_chain_of_elementwise_layers_as_one_kernel() -> None:
    nodes = [node("Exp", "x", "a"), node("Mul", "a z", "b"), node("Tanh", "b", "y")]
    read = graph(nodes, {"x": (4, 5), "z": (4, 5)})
    kernel = lower(read, Runtime.TENSORRT)[0]
    assert kernel.op == "exp+mul+tanh"
    assert kernel.dims == ElementDims(20, 2)
    assert (kernel.cost.read_bytes, kernel.cost.write_bytes) == (160, 80)


def test_a_residual_sum_and_its_norm_are_one_kernel_in_onnxruntime() -> None:
    nodes = [
        node("Add", "x z", "s"),
        node("LayerNormalization", "s w b", "n"),
        node("Add", "s n", "y"),
    ]
    read = graph(nodes, {"x": (2, 6, 8), "z": (2, 6, 8)}, weights={"w": (8,), "b": (8,)})
    lowering = lower(read, Runtime.ONNXRUNTIME)
    assert ops(lowering) == ["add+layer_norm", "add"]
    assert [read.values[v].name for v in lowering[0].outputs] == ["s", "n"]


def test_tensorrt_writes_concatenated_parts_in_place() -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Neg", "z", "b"),
        node("Concat", "a b", "c", axis=1),
        node("MaxPool", "c", "y", kernel_shape=[2, 2]),
    ]
    read = graph(nodes, {"x": (1, 4, 6, 6), "z": (1, 4, 6, 6)})
    assert ops(lower(read, Runtime.TENSORRT)) == ["relu", "neg", "max_pool"]
    assert ops(lower(read, Runtime.ONNXRUNTIME)) == ["relu", "neg", "cat", "max_pool"]


def test_convolution_kernels_have_their_sizes() -> None:
    read = graph(
        [node("Conv", "x w", "y", group=8, strides=[2, 1], pads=[1, 0, 1, 0], dilations=[1, 2])],
        {"x": (3, 8, 9, 11)},
        weights={"w": (8, 1, 3, 3)},
    )
    kernel = lower(read, Runtime.PYTORCH)[0]
    dims = kernel.dims
    assert kernel.kind is KernelKind.DEPTHWISE_CONV
    assert (dims.batch, dims.in_channels, dims.out_channels, dims.groups) == (3, 8, 8, 8)
    assert (dims.input_size, dims.output_size, dims.kernel_size) == ((9, 11), (5, 7), (3, 3))
    assert (dims.strides, dims.dilations, dims.pads) == ((2, 1), (1, 2), (1, 0, 1, 0))


def test_automatic_padding_is_spelled_out() -> None:
    read = graph(
        [node("Conv", "x w", "y", auto_pad="SAME_UPPER", strides=[2, 2])],
        {"x": (1, 4, 10, 11)},
        weights={"w": (4, 4, 3, 3)},
    )
    # TensorFlow's rule: ceil(size / stride) results, the odd element of padding at the end
    assert lower(read, Runtime.PYTORCH)[0].dims.pads == (0, 1, 1, 1)


def test_eager_pytorch_adds_the_bias_of_a_dense_convolution_in_a_kernel_of_its_own() -> None:
    def kernels(channels: int, groups: int) -> list[str]:
        weights = {"w": (channels, channels // groups, 3, 3), "b": (channels,)}
        nodes = [node("Conv", "x w b", "y", group=groups)]
        return ops(
            lower(graph(nodes, {"x": (1, channels, 9, 9)}, weights=weights), Runtime.PYTORCH)
        )

    assert kernels(8, 1) == ["conv", "add"]
    assert kernels(8, 2) == ["conv", "add"]
    assert kernels(8, 8) == ["conv"]


@pytest.mark.parametrize(
    ("shape_b", "weight", "op", "dims"),
    [
        ((16, 5), True, "linear", GemmDims(1, 12, 5, 16, True)),
        ((16, 5), False, "mm", GemmDims(1, 12, 5, 16, False)),
        ((2, 16, 5), False, "bmm", GemmDims(2, 6, 5, 16, False)),
        ((2, 16, 5), True, "bmm", GemmDims(2, 6, 5, 16, True)),
        ((16,), True, "linear", GemmDims(1, 12, 1, 16, True)),
    ],
)
def test_products(shape_b: tuple[int, ...], weight: bool, op: str, dims: GemmDims) -> None:
    nodes = [node("MatMul", "x b", "y")]
    inputs = {"x": (2, 6, 16)}
    if weight:
        read = graph(nodes, inputs, weights={"b": shape_b})
    else:
        read = graph(nodes, inputs | {"b": shape_b})
    kernel = lower(read, Runtime.PYTORCH)[0]
    assert (kernel.op, kernel.dims) == (op, dims)
    assert kernel.kind is (KernelKind.BATCHED_GEMM if op == "bmm" else KernelKind.GEMM)


def test_contrib_attention_is_a_projection_and_an_attention() -> None:
    read = graph(
        [node("Attention", "x w b", "y", MS, num_heads=4)],
        {"x": (2, 6, 32)},
        weights={"w": (32, 96), "b": (96,)},
    )
    projection, core = lower(read, Runtime.ONNXRUNTIME)
    assert (projection.op, projection.dims) == ("linear", GemmDims(1, 12, 96, 32))
    assert projection.cost.write_bytes == 12 * 96 * 4
    assert core.op == "attention"
    assert (core.dims.batch, core.dims.heads, core.dims.qk_head_dim) == (2, 4, 8)


def test_einsum_is_the_product_it_stands_for() -> None:
    read = graph(
        [node("Einsum", "a b", "y", equation="bhqd,bhkd->bhqk")],
        {"a": (2, 3, 5, 4), "b": (2, 3, 6, 4)},
    )
    kernel = lower(read, Runtime.PYTORCH)[0]
    assert (kernel.op, kernel.dims) == ("bmm", GemmDims(6, 5, 6, 4, False))


def test_operands_of_broadcasting_count_at_their_own_size() -> None:
    read = graph(
        [node("Mul", "x s", "m"), node("Mul", "m half", "y")],
        {"x": (2, 8, 5, 5), "s": (2, 8, 1, 1)},
        weights={"half": 0.5},
    )
    first, second = lower(read, Runtime.PYTORCH)
    assert (first.dims, first.cost.read_bytes) == (ElementDims(400, 2), 1600 + 64)
    assert (second.dims, second.cost.read_bytes) == (ElementDims(400, 1), 1600)


def test_an_unknown_operator_is_a_marked_kernel_with_its_bytes() -> None:
    read = graph(
        [node("Mystery", "x", "z", "nobody.knows"), node("Relu", "x", "y")], {"x": (2, 3)}, "y z"
    )
    kernel = next(k for k in lower(read, Runtime.PYTORCH) if k.unknown)
    assert (kernel.kind, kernel.op) == (KernelKind.OTHER, "mystery")
    assert kernel.cost.read_bytes == 24


def test_a_missing_shape_marks_the_kernel() -> None:
    values = (
        Value("x", None, ValueKind.INPUT),
        Value("w", TensorSpec((8, 8, 3, 3), DType.FLOAT), ValueKind.WEIGHT, stored=True),
        Value("y", None, ValueKind.ACTIVATION),
        Value("z", None, ValueKind.ACTIVATION),
    )
    nodes = (OpNode("a", "", "Conv", (0, 1), (2,)), OpNode("b", "", "Relu", (2,), (3,)))
    read = Graph("g", values, nodes, (0,), (3,), 17)
    for runtime in Runtime:
        lowering = lower(read, runtime)
        assert all(kernel.unknown for kernel in lowering)
        assert sum(kernel.cost.macs for kernel in lowering) == 0
        assert_accounts_for_all(read, lowering)


def test_classical_models_and_strings_leave_no_kernel() -> None:
    read = graph(
        [node("Normalizer", "x", "n", "ai.onnx.ml"), node("Relu", "n", "y")], {"x": (2, 3)}
    )
    lowering = lower(read, Runtime.ONNXRUNTIME)
    assert lowering.host_only == (0,)
    assert ops(lowering) == ["relu"]


def test_loop_bodies_keep_their_trip_count_and_do_not_mix() -> None:
    spec = TensorSpec((2, 16), DType.FLOAT)
    values = (
        Value("x", spec, ValueKind.INPUT),
        Value("s", spec, ValueKind.ACTIVATION),
        Value("y", spec, ValueKind.ACTIVATION),
    )
    nodes = (
        OpNode("a", "", "Sigmoid", (0,), (1,), repeat=4),
        OpNode("b", "", "Mul", (0, 1), (2,), repeat=1),
    )
    for runtime in Runtime:
        lowering = lower(Graph("g", values, nodes, (0,), (2,), 17), runtime)
        assert [(k.op, k.repeat) for k in lowering] == [("sigmoid", 4), ("mul", 1)]


def test_a_lowering_is_the_sequence_of_its_kernels() -> None:
    read = graph([node("Relu", "x", "z"), node("Neg", "z", "y")], {"x": (2, 3)})
    lowering = lower(read, Runtime.PYTORCH, Precision.AUTO)
    assert tuple(lowering) == lowering.kernels
    assert len(lowering) == 2
    assert lowering[1].op == "neg"


# precision


def small_network(elem: np.dtype | type = np.float32) -> Graph:
    weights = {
        "w": np.ones((8, 4, 3, 3), elem),
        "f": np.ones((288, 16), elem),
        "shape": np.array([2, 288], np.int64),
    }
    nodes = [
        node("Conv", "x w", "c"),
        node("Relu", "c", "r"),
        node("Reshape", "r shape", "v"),
        node("MatMul", "v f", "y"),
    ]
    types = {np.float32: 1, np.float16: 10, np.float64: 11}
    return graph(nodes, {"x": (2, 4, 8, 8)}, weights=weights, elem_type=types[elem])


@pytest.mark.parametrize(
    ("runtime", "precision", "conv", "matmul", "itemsize"),
    [
        (Runtime.PYTORCH, Precision.AUTO, MathMode.TF32, MathMode.FP32, 4),
        (Runtime.ONNXRUNTIME, Precision.AUTO, MathMode.TF32, MathMode.TF32, 4),
        (Runtime.TENSORRT, Precision.FP32, MathMode.FP32, MathMode.FP32, 4),
        (Runtime.PYTORCH, Precision.TF32, MathMode.TF32, MathMode.TF32, 4),
        (Runtime.PYTORCH, Precision.FP16, MathMode.FP16, MathMode.FP16, 2),
        (Runtime.PYTORCH, Precision.BF16, MathMode.BF16, MathMode.BF16, 2),
        (Runtime.TENSORRT, Precision.AMP, MathMode.FP16, MathMode.FP16, 2),
        (Runtime.TENSORRT, Precision.INT8, MathMode.INT8, MathMode.INT8, 1),
    ],
)
def test_a_precision_sets_arithmetic_and_bytes(
    runtime: Runtime, precision: Precision, conv: MathMode, matmul: MathMode, itemsize: int
) -> None:
    lowering = lower(small_network(), runtime, precision)
    assert lowering.arithmetic == (conv, matmul)
    first, last = lowering[0], lowering[len(lowering) - 1]
    assert (first.math, last.math) == (conv, matmul)
    assert first.cost.weight_bytes == 8 * 4 * 9 * itemsize
    assert first.cost.read_bytes == 2 * 4 * 64 * itemsize
    assert last.cost.write_bytes == 2 * 16 * itemsize


def test_automatic_precision_follows_the_file() -> None:
    assert dominant_dtype(small_network()) is DType.FLOAT
    half = small_network(np.float16)
    assert dominant_dtype(half) is DType.FLOAT16
    lowering = lower(half, Runtime.PYTORCH)
    assert lowering.arithmetic == (MathMode.FP16, MathMode.FP16)
    assert {kernel.math for kernel in lowering} == {MathMode.FP16}
    assert lowering[0].cost.weight_bytes == 8 * 4 * 9 * 2
    whole = lower(half, Runtime.PYTORCH, Precision.FP32)
    assert whole[0].cost.weight_bytes == 8 * 4 * 9 * 4
    assert (
        numerics_of(small_network(np.float64), Runtime.PYTORCH, Precision.AUTO).conv
        is MathMode.FP64
    )


def test_size_of_is_the_size_in_the_run_time_precision() -> None:
    lowering = lower(small_network(), Runtime.TENSORRT, Precision.FP16)
    assert lowering.size_of(TensorSpec((3, 5), DType.FLOAT)) == 30
    assert lowering.size_of(TensorSpec((3, 5), DType.INT64)) == 120


def test_autocast_casts_every_operand_of_a_product() -> None:
    read = graph(
        [node("MatMul", "x w", "p"), node("Add", "p b", "h"), node("Add", "x h", "y")],
        {"x": (4, 16)},
        weights={"w": (16, 16), "b": (16,)},
    )
    lowering = lower(read, Runtime.PYTORCH, Precision.AMP)
    assert ops(lowering) == ["cast", "cast", "cast", "linear", "add"]
    data, weight, bias, product, total = lowering
    assert (data.cost.read_bytes, data.cost.write_bytes) == (4 * 16 * 4, 4 * 16 * 2)
    assert (weight.cost.weight_bytes, weight.cost.write_bytes) == (16 * 16 * 4, 16 * 16 * 2)
    assert (bias.cost.weight_bytes, bias.cost.write_bytes) == (64, 32)
    assert product.math is MathMode.FP16
    assert product.cost.weight_bytes == (16 * 16 + 16) * 2
    # the sum reads half and float and writes float, without a cast
    assert total.cost.read_bytes == 4 * 16 * (4 + 2)
    assert total.cost.write_bytes == 4 * 16 * 4


def test_autocast_runs_norms_in_full_precision() -> None:
    read = graph(
        [node("MatMul", "x w", "h"), node("LayerNormalization", "h g b", "y")],
        {"x": (4, 16)},
        weights={"w": (16, 16), "g": (16,), "b": (16,)},
    )
    lowering = lower(read, Runtime.PYTORCH, Precision.AMP)
    assert ops(lowering) == ["cast", "cast", "linear", "cast", "layer_norm"]
    norm = lowering[4]
    assert norm.math is MathMode.FP32
    assert norm.cost.read_bytes == norm.cost.write_bytes == 4 * 16 * 4


# quantised models


def quantized() -> Graph:
    scales = {"s": 0.1, "z": np.array(0, np.int8), "ws": (8,), "wz": np.zeros(8, np.int8)}
    weights = {"w": np.ones((8, 3, 3, 3), np.int8), "b": (8,)} | scales
    nodes = [
        node("QuantizeLinear", "x s z", "xq"),
        node("DequantizeLinear", "xq s z", "xd"),
        node("DequantizeLinear", "w ws wz", "wd", axis=0),
        node("Conv", "xd wd b", "c"),
        node("Relu", "c", "r"),
        node("QuantizeLinear", "r s z", "rq"),
        node("DequantizeLinear", "rq s z", "rd"),
        node("MaxPool", "rd", "y", kernel_shape=[2, 2]),
    ]
    return graph(nodes, {"x": (1, 3, 10, 10)}, weights=weights)


@pytest.mark.parametrize("runtime", [Runtime.ONNXRUNTIME, Runtime.TENSORRT])
def test_engines_run_quantised_convolutions_in_bytes(runtime: Runtime) -> None:
    read = quantized()
    lowering = lower(read, runtime)
    assert ops(lowering) == ["quantize", "conv+relu+quantize", "max_pool"]
    conv = lowering[1]
    assert conv.math is MathMode.INT8
    assert conv.cost.read_bytes == 3 * 100
    assert conv.cost.write_bytes == 8 * 64
    assert conv.cost.weight_bytes == 8 * 27 + 8 * 4
    assert lowering[2].cost.read_bytes == 8 * 64
    assert_accounts_for_all(read, lowering)


def test_eager_pytorch_fakes_quantisation() -> None:
    lowering = lower(quantized(), Runtime.PYTORCH)
    assert ops(lowering) == ["fake_quantize", "conv", "add", "relu", "fake_quantize", "max_pool"]
    assert lowering[1].math is MathMode.TF32


def test_a_dequantised_output_is_written_as_float() -> None:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    read = graph(nodes, {"x": (4, 5)}, weights={"s": 0.1, "z": np.array(0, np.int8)})
    lowering = lower(read, Runtime.ONNXRUNTIME)
    assert ops(lowering) == ["quantize", "dequantize"]
    assert lowering[1].cost.write_bytes == 80


def test_weight_only_quantisation_computes_in_the_type_of_the_activations() -> None:
    read = graph(
        [node("MatMulNBits", "x w s", "y", MS, K=64, N=24, bits=4, block_size=32)],
        {"x": (2, 5, 64)},
        weights={"w": np.zeros((24, 2, 16), np.uint8), "s": (48,)},
    )
    kernel = lower(read, Runtime.ONNXRUNTIME)[0]
    assert (kernel.op, kernel.math) == ("linear_nbits", MathMode.TF32)
    assert kernel.dims == GemmDims(1, 10, 24, 64)
    assert kernel.cost.weight_bytes == 24 * 2 * 16 + 48 * 4


@pytest.mark.parametrize("wide", [False, True])
def test_long_and_wide_graphs_take_linear_time(wide: bool) -> None:
    spec = TensorSpec((4, 4), DType.FLOAT)
    length = 8000
    values = [Value("x", spec, ValueKind.INPUT)]
    nodes = []
    for i in range(length):
        op_type = ("Sigmoid", "Sqrt", "Transpose", "Softmax")[i % 4]
        values.append(Value(f"v{i}", spec, ValueKind.ACTIVATION))
        nodes.append(OpNode(f"n{i}", "", op_type, (0 if wide else i,), (i + 1,)))
    read = Graph("g", tuple(values), tuple(nodes), (0,), tuple(range(1, length + 1)), 17)
    started = time.process_time()
    for runtime in Runtime:
        lower(read, runtime)
    # about 3 s; quadratic work on this many nodes would take minutes
    assert time.process_time() - started < 40
