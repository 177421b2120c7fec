"""Each pattern, however exporters and people write it, becomes the kernel it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import pi, sqrt

import numpy as np
import onnx
import pytest
from graph_builder import graph, node

from dippm_lite.execution import Precision, Runtime
from dippm_lite.graph import Graph
from dippm_lite.kernels import AttentionDims, RowDims
from dippm_lite.lowering import PATTERNS, lower

ENGINES = [Runtime.ONNXRUNTIME, Runtime.TENSORRT]
X = {"x": (2, 6, 16)}
IMAGE = {"x": (2, 8, 10, 10)}


def ops(read: Graph, runtime: Runtime, precision: Precision = Precision.AUTO) -> list[str]:
    return [kernel.op for kernel in lower(read, runtime, precision)]


def last_axis(opset: int) -> tuple[dict[str, object], str]:
    """How ReduceMean takes its axes: an attribute before opset 18, an input from then on."""
    return ({"axes": [-1]}, "") if opset < 18 else ({}, " axes")


def moments(opset: int, square: str = "pow", again: bool = False) -> list[onnx.NodeProto]:
    """Mean, centred data and root of the variance of ``x``."""
    attributes, axes = last_axis(opset)
    square_node = {
        "pow": node("Pow", "d two", "s"),
        "mul": node("Mul", "d d", "s"),
    }[square]
    return [
        node("ReduceMean", "x" + axes, "m", **attributes),
        node("Sub", "x m", "d"),
        *([node("Sub", "x m", "d2")] if again else []),
        square_node,
        node("ReduceMean", "s" + axes, "v", **attributes),
        node("Add", "v eps", "ve"),
        node("Sqrt", "ve", "r"),
    ]


NORM_WEIGHTS = {"two": 2.0, "one": 1.0, "eps": 1e-5, "w": (16,), "b": (16,)}
AXES = {"axes": np.array([-1], np.int64)}
AFFINE = [node("Mul", "n w", "nw"), node("Add", "nw b", "y")]

LAYER_NORMS: dict[str, Callable[[], Graph]] = {
    "torchscript": lambda: graph(
        [*moments(13), node("Div", "d r", "n"), *AFFINE], X, weights=NORM_WEIGHTS, opset=13
    ),
    "axes as input": lambda: graph(
        [*moments(18), node("Div", "d r", "n"), *AFFINE], X, weights=NORM_WEIGHTS | AXES, opset=18
    ),
    "square by product": lambda: graph(
        [*moments(13, "mul"), node("Div", "d r", "n"), *AFFINE],
        X,
        weights=NORM_WEIGHTS,
        opset=13,
    ),
    "two subtractions": lambda: graph(
        [*moments(13, again=True), node("Div", "d2 r", "n"), *AFFINE],
        X,
        weights=NORM_WEIGHTS,
        opset=13,
    ),
    "reciprocal": lambda: graph(
        [*moments(13), node("Reciprocal", "r", "i"), node("Mul", "d i", "n"), *AFFINE],
        X,
        weights=NORM_WEIGHTS,
        opset=13,
    ),
    "weight first": lambda: graph(
        [
            *moments(13),
            node("Div", "d r", "n"),
            node("Mul", "w n", "nw"),
            node("Add", "b nw", "y"),
        ],
        X,
        weights=NORM_WEIGHTS,
        opset=13,
    ),
    "tensorflow": lambda: graph(
        [
            *moments(13, "mul"),
            node("Reciprocal", "r", "i"),
            node("Mul", "i w", "f"),
            node("Mul", "x f", "xf"),
            node("Mul", "m f", "mf"),
            node("Sub", "b mf", "o"),
            node("Add", "xf o", "y"),
        ],
        X,
        weights=NORM_WEIGHTS,
        opset=13,
    ),
    "one operator": lambda: graph(
        [node("LayerNormalization", "x w b", "y")], X, weights={"w": (16,), "b": (16,)}
    ),
}


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("form", LAYER_NORMS)
def test_layer_norm(form: str, runtime: Runtime) -> None:
    lowered = lower(LAYER_NORMS[form](), runtime)
    assert [k.op for k in lowered] == ["layer_norm"]
    assert lowered[0].dims == RowDims(rows=12, cols=16)
    assert lowered[0].cost.weight_bytes == 2 * 16 * 4


def test_layer_norm_without_affine_part() -> None:
    read = graph([*moments(13), node("Div", "d r", "y")], X, weights=NORM_WEIGHTS, opset=13)
    assert ops(read, Runtime.PYTORCH) == ["layer_norm"]


def test_a_norm_over_leading_axes_is_not_a_layer_norm() -> None:
    nodes = [*moments(13), node("Div", "d r", "y")]
    for each in nodes:
        if each.op_type == "ReduceMean":
            each.attribute[0].ints[:] = [1]
    assert "layer_norm" not in ops(graph(nodes, X, weights=NORM_WEIGHTS, opset=13), Runtime.PYTORCH)


def rms(*ending: onnx.NodeProto) -> Graph:
    start = [
        node("Pow", "x two", "s"),
        node("ReduceMean", "s", "v", axes=[-1]),
        node("Add", "v eps", "ve"),
        node("Sqrt", "ve", "r"),
    ]
    return graph([*start, *ending], X, weights=NORM_WEIGHTS, opset=13)


RMS_NORMS = {
    "divided": lambda: rms(node("Div", "x r", "n"), node("Mul", "w n", "y")),
    "times reciprocal": lambda: rms(
        node("Reciprocal", "r", "i"), node("Mul", "x i", "n"), node("Mul", "n w", "y")
    ),
    "times quotient": lambda: rms(
        node("Div", "one r", "i"), node("Mul", "x i", "n"), node("Mul", "w n", "y")
    ),
}


@pytest.mark.parametrize("form", RMS_NORMS)
def test_rms_norm_is_fused_by_engines_and_written_out_in_pytorch(form: str) -> None:
    read = RMS_NORMS[form]()
    for runtime in ENGINES:
        assert ops(read, runtime) == ["rms_norm"]
    eager = ops(read, Runtime.PYTORCH)
    assert eager[:3] == ["pow", "mean", "add"]
    assert len(eager) == len(read.nodes)


def gelu(*ending: onnx.NodeProto, start: onnx.NodeProto | None = None) -> Graph:
    nodes = [
        start or node("Div", "x sqrt2", "u"),
        node("Erf", "u", "e"),
        node("Add", "e one", "g"),
        *ending,
    ]
    weights = {"sqrt2": sqrt(2), "isqrt2": 1 / sqrt(2), "one": 1.0, "half": 0.5}
    return graph(nodes, X, weights=weights)


GELUS = {
    "torchscript": lambda: gelu(node("Mul", "x g", "xg"), node("Mul", "xg half", "y")),
    "dynamo": lambda: gelu(node("Mul", "half g", "hg"), node("Mul", "x hg", "y")),
    "by reciprocal": lambda: gelu(
        node("Mul", "x g", "xg"),
        node("Mul", "half xg", "y"),
        start=node("Mul", "isqrt2 x", "u"),
    ),
    "one operator": lambda: graph([node("Gelu", "x", "y")], X, opset=20),
    "contrib": lambda: graph([node("Gelu", "x", "y", "com.microsoft")], X),
}


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("form", GELUS)
def test_gelu(form: str, runtime: Runtime) -> None:
    assert ops(GELUS[form](), runtime) == ["gelu"]


def test_gelu_by_hand_is_fused_by_engines_alone() -> None:
    read = gelu(node("Mul", "x half", "h"), node("Mul", "h g", "y"))
    for runtime in ENGINES:
        assert ops(read, runtime) == ["gelu"]
    assert sorted(ops(read, Runtime.PYTORCH)) == ["add", "div", "erf", "mul", "mul"]


def gelu_tanh(cube: Sequence[onnx.NodeProto], ending: Sequence[onnx.NodeProto]) -> Graph:
    nodes = [
        *cube,
        node("Mul", "kappa c", "kc"),
        node("Add", "x kc", "s"),
        node("Mul", "beta s", "u"),
        node("Tanh", "u", "t"),
        node("Add", "t one", "g"),
        *ending,
    ]
    weights = {"kappa": 0.044715, "beta": sqrt(2 / pi), "one": 1.0, "half": 0.5, "three": 3.0}
    return graph(nodes, X, weights=weights)


POWER = [node("Pow", "x three", "c")]
PRODUCT = [node("Mul", "x x", "xx"), node("Mul", "x xx", "c")]
EXPORTED_ENDS = {
    "torchscript": (PRODUCT, [node("Mul", "x g", "xg"), node("Mul", "half xg", "y")]),
    "dynamo": (POWER, [node("Mul", "half g", "hg"), node("Mul", "x hg", "y")]),
}


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("form", EXPORTED_ENDS)
def test_gelu_tanh(form: str, runtime: Runtime) -> None:
    assert ops(gelu_tanh(*EXPORTED_ENDS[form]), runtime) == ["gelu_tanh"]


def test_gelu_new_of_gpt2_launches_eight_kernels_in_eager_pytorch() -> None:
    read = gelu_tanh(POWER, [node("Mul", "half x", "h"), node("Mul", "h g", "y")])
    for runtime in ENGINES:
        assert ops(read, runtime) == ["gelu_tanh"]
    # transformers' NewGELUActivation: 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))
    assert len(ops(read, Runtime.PYTORCH)) == 8


def test_fast_gelu_with_the_factors_multiplied_out() -> None:
    nodes = [
        node("Mul", "x beta", "xb"),
        node("Mul", "x kappa", "xk"),
        node("Mul", "xk x", "kxx"),
        node("Add", "one kxx", "p"),
        node("Mul", "xb p", "u"),
        node("Tanh", "u", "t"),
        node("Add", "t one", "g"),
        node("Mul", "x half", "h"),
        node("Mul", "h g", "y"),
    ]
    weights = {"kappa": 0.044715, "beta": sqrt(2 / pi), "one": 1.0, "half": 0.5}
    for runtime in ENGINES:
        assert ops(graph(nodes, X, weights=weights), runtime) == ["gelu_tanh"]


SIMPLE = {
    "silu": [node("Sigmoid", "x", "s"), node("Mul", "x s", "y")],
    "hard_swish": [node("HardSigmoid", "x", "s", alpha=1 / 6), node("Mul", "s x", "y")],
    "hard_swish clip": [
        node("Add", "x three", "a"),
        node("Clip", "a zero six", "c"),
        node("Mul", "x c", "p"),
        node("Div", "p six", "y"),
    ],
    "hard_swish clip first": [
        node("Add", "x three", "a"),
        node("Clip", "a zero six", "c"),
        node("Div", "c six", "q"),
        node("Mul", "x q", "y"),
    ],
    "hard_sigmoid": [
        node("Add", "x three", "a"),
        node("Clip", "a zero six", "c"),
        node("Div", "c six", "y"),
    ],
    "mish": [node("Softplus", "x", "s"), node("Tanh", "s", "t"), node("Mul", "x t", "y")],
    "softplus": [
        node("Softplus", "x", "s"),
        node("Greater", "x twenty", "big"),
        node("Where", "big x s", "y"),
    ],
}
NUMBERS = {"three": 3.0, "zero": 0.0, "six": 6.0, "twenty": 20.0}


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("form", SIMPLE)
def test_activations(form: str, runtime: Runtime) -> None:
    assert ops(graph(SIMPLE[form], X, weights=NUMBERS), runtime) == [form.split()[0]]


def test_clip_bounds_may_be_attributes() -> None:
    nodes = [
        node("Add", "x three", "a"),
        node("Clip", "a", "c", min=0.0, max=6.0),
        node("Mul", "x c", "p"),
        node("Div", "p six", "y"),
    ]
    assert ops(graph(nodes, X, weights=NUMBERS, opset=9), Runtime.PYTORCH) == ["hard_swish"]


def test_quick_gelu_is_no_operator_of_pytorch() -> None:
    nodes = [
        node("Mul", "x factor", "u"),
        node("Sigmoid", "u", "s"),
        node("Mul", "x s", "y"),
    ]
    read = graph(nodes, X, weights={"factor": 1.702})
    assert ops(read, Runtime.PYTORCH) == ["mul", "sigmoid", "mul"]
    for runtime in ENGINES:
        assert ops(read, runtime) == ["quick_gelu"]


def test_the_gate_of_a_squeeze_and_excitation_is_no_activation() -> None:
    nodes = [node("Sigmoid", "gate", "s"), node("Mul", "x s", "y")]
    read = graph(nodes, IMAGE | {"gate": (2, 8, 1, 1)})
    assert ops(read, Runtime.PYTORCH) == ["sigmoid", "mul"]


def test_what_something_else_reads_is_not_fused_away() -> None:
    nodes = [
        node("Sigmoid", "x", "s"),
        node("Mul", "x s", "y"),
        node("Neg", "s", "z"),
    ]
    assert ops(graph(nodes, X, "y z"), Runtime.PYTORCH) == ["sigmoid", "mul", "neg"]
    nodes = [node("Sigmoid", "x", "s"), node("Mul", "x s", "y")]
    assert ops(graph(nodes, X, "y s"), Runtime.PYTORCH) == ["sigmoid", "mul"]


def test_group_norm() -> None:
    nodes = [
        node("Reshape", "x groups", "g"),
        node("InstanceNormalization", "g ones zeros", "n"),
        node("Reshape", "n back", "r"),
        node("Mul", "r w", "rw"),
        node("Add", "rw b", "y"),
    ]
    weights = {
        "groups": np.array([0, 4, -1], np.int64),
        "back": np.array([2, 8, 10, 10], np.int64),
        "ones": np.ones(4, np.float32),
        "zeros": np.zeros(4, np.float32),
        "w": (8, 1, 1),
        "b": (8, 1, 1),
    }
    for runtime in Runtime:
        lowered = lower(graph(nodes, IMAGE, weights=weights), runtime)
        assert [k.op for k in lowered] == ["group_norm"]
        assert lowered[0].dims == RowDims(rows=8, cols=200)


@pytest.mark.parametrize("swap", [False, True])
def test_linear_takes_its_bias(swap: bool) -> None:
    addition = "b p" if swap else "p b"
    read = graph(
        [node("MatMul", "x w", "p"), node("Add", addition, "y")],
        X,
        weights={"w": (16, 5), "b": (5,)},
    )
    for runtime in Runtime:
        lowered = lower(read, runtime)
        assert [k.op for k in lowered] == ["linear"]
        dims = lowered[0].dims
        assert (dims.batch, dims.m, dims.n, dims.k, dims.weight_b) == (1, 12, 5, 16, True)


def test_a_sum_with_positions_is_no_bias() -> None:
    read = graph(
        [node("MatMul", "x w", "p"), node("Add", "p e", "y")],
        X,
        weights={"w": (16, 5), "e": (6, 5)},
    )
    assert ops(read, Runtime.PYTORCH) == ["linear", "add"]


def attention(
    scale: str = "",
    mask: bool = False,
    prescaled: bool = False,
    nan_guard: bool = False,
    transpose: str = "once",
    merge: bool = False,
) -> Graph:
    """(B, H, S, D) queries, keys and values in the forms that exporters and people write."""
    keys = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2])]
    if transpose == "by way of one batch axis":
        keys = [
            node("Reshape", "k flat", "kf"),
            node("Transpose", "kf", "kft", perm=[0, 2, 1]),
            node("Reshape", "kft full", "kt"),
        ]
    nodes = [*keys]
    q, k = "q", "kt"
    if prescaled:
        nodes += [node("Mul", "q root", "qs"), node("Mul", "kt root", "ks")]
        q, k = "qs", "ks"
    nodes.append(node("MatMul", f"{q} {k}", "s0"))
    score = "s0"
    if scale:
        nodes.append(node(scale, "s0 factor", "s1"))
        score = "s1"
    if mask:
        nodes += [node("Where", "m zero low", "mf"), node("Add", f"{score} mf", "s2")]
        score = "s2"
    nodes.append(node("Softmax", score, "p", axis=-1))
    weights = "p"
    if nan_guard:
        nodes += [node("IsNaN", "p", "nan"), node("Where", "nan zero p", "pg")]
        weights = "pg"
    nodes.append(node("MatMul", f"{weights} v", "heads" if merge else "y"))
    if merge:
        nodes.append(node("Transpose", "heads", "swapped", perm=[0, 2, 1, 3]))
        nodes.append(node("Reshape", "swapped merged", "y"))
    inputs = {"q": (2, 4, 6, 8), "k": (2, 4, 7, 8), "v": (2, 4, 7, 8)}
    constants = {
        "root": 8**-0.25,
        "factor": 8**0.5 if scale == "Div" else 8**-0.5,
        "zero": 0.0,
        "low": -1e9,
        "m": np.ones((2, 1, 6, 7), bool),
        "flat": np.array([-1, 7, 8], np.int64),
        "full": np.array([2, 4, 8, 7], np.int64),
        "merged": np.array([2, 6, 32], np.int64),
    }
    if mask:
        # a mask that depends on the input, as a padding mask does
        nodes.insert(0, node("Greater", "pad zero", "m"))
        inputs["pad"] = (2, 1, 6, 7)
        del constants["m"]
    return graph(nodes, inputs, weights=constants)


SDPA = {
    "torchscript": lambda: attention(prescaled=True, merge=True),
    "dynamo": lambda: attention(prescaled=True, transpose="by way of one batch axis", merge=True),
    "masked": lambda: attention(prescaled=True, mask=True, nan_guard=True, merge=True),
}
DIMS = AttentionDims(2, 4, 4, 6, 7, 8, 8)


@pytest.mark.parametrize("form", SDPA)
def test_scaled_dot_product_attention_is_one_kernel_in_pytorch(form: str) -> None:
    lowered = lower(SDPA[form](), Runtime.PYTORCH)
    assert [k.op for k in lowered if k.op != "greater"] == ["attention"]
    kernel = next(k for k in lowered if k.op == "attention")
    assert kernel.dims == DIMS
    assert kernel.cost.macs == 2 * 4 * 6 * 7 * (8 + 8)


@pytest.mark.parametrize("scale", ["Mul", "Div"])
def test_attention_by_hand_stays_in_pieces_in_pytorch(scale: str) -> None:
    found = ops(attention(scale), Runtime.PYTORCH)
    assert found == ["bmm", scale.lower(), "softmax", "bmm"]


@pytest.mark.parametrize(
    "form",
    [
        *SDPA.values(),
        lambda: attention("Mul", merge=True),
        lambda: attention("Div", mask=True, merge=True),
    ],
)
def test_tensorrt_fuses_attention_in_half_precision(form: Callable[[], Graph]) -> None:
    half = ops(form(), Runtime.TENSORRT, Precision.FP16)
    assert [op for op in half if op != "greater"] == ["attention"]
    assert "attention" not in ops(form(), Runtime.TENSORRT, Precision.TF32)


def test_a_softmax_over_the_queries_is_no_attention() -> None:
    read = attention("Mul")
    turned = tuple(
        replace(n, attributes={"axis": 2}) if n.op_type == "Softmax" else n for n in read.nodes
    )
    found = ops(replace(read, nodes=turned), Runtime.TENSORRT, Precision.FP16)
    assert "attention" not in found


def test_onnxruntime_keeps_attention_in_pieces_with_the_scale_inside() -> None:
    assert ops(attention("Mul"), Runtime.ONNXRUNTIME) == ["bmm", "softmax", "bmm"]
    assert ops(attention(prescaled=True), Runtime.ONNXRUNTIME) == ["bmm", "softmax", "bmm"]


def test_one_mask_for_many_layers_costs_nothing_of_its_own() -> None:
    nodes = [node("Greater", "pad zero", "m"), node("Where", "m zero low", "mf")]
    for layer, source in (("a", "q"), ("b", "ya")):
        nodes += [
            node("Transpose", "k", f"kt{layer}", perm=[0, 1, 3, 2]),
            node("Mul", f"{source} root", f"qs{layer}"),
            node("Mul", f"kt{layer} root", f"ks{layer}"),
            node("MatMul", f"qs{layer} ks{layer}", f"s{layer}"),
            node("Add", f"s{layer} mf", f"sm{layer}"),
            node("Softmax", f"sm{layer}", f"p{layer}", axis=-1),
            node("MatMul", f"p{layer} k", f"y{layer}"),
        ]
    read = graph(
        nodes,
        {"q": (2, 4, 7, 8), "k": (2, 4, 7, 8), "pad": (2, 1, 7, 7)},
        "yb",
        {"root": 8**-0.25, "zero": 0.0, "low": -1e9},
    )
    assert ops(read, Runtime.PYTORCH) == ["greater", "attention", "attention"]


def batch_norm(
    source: onnx.NodeProto, weights: dict[str, object], inputs: dict[str, object]
) -> Graph:
    statistics = dict.fromkeys(("g", "beta", "mean", "var"), (8,))
    return graph(
        [source, node("BatchNormalization", "c g beta mean var", "y")],
        inputs,
        weights=weights | statistics,
    )


NORMALIZED = {
    "conv": (node("Conv", "x w", "c"), {"w": (8, 8, 3, 3)}, IMAGE),
    "conv with bias": (node("Conv", "x w b", "c"), {"w": (8, 8, 3, 3), "b": (8,)}, IMAGE),
    "conv_transpose": (node("ConvTranspose", "x w", "c"), {"w": (8, 8, 2, 2)}, IMAGE),
    "linear": (node("Gemm", "x w b", "c"), {"w": (16, 8), "b": (8,)}, {"x": (4, 16)}),
}


@pytest.mark.parametrize("form", NORMALIZED)
def test_batch_norm_is_folded_by_engines_and_launched_by_pytorch(form: str) -> None:
    read = batch_norm(*NORMALIZED[form])
    op = form.split()[0]
    for runtime in ENGINES:
        assert ops(read, runtime) == [op]
    assert ops(read, Runtime.PYTORCH) == [op, "batch_norm"]
    assert lower(read, Runtime.PYTORCH)[1].cost.weight_bytes == 4 * 8 * 4


def test_constants_of_a_channel_are_folded_into_a_convolution() -> None:
    nodes = [node("Conv", "x w", "c"), node("Mul", "c s", "m"), node("Add", "m b", "y")]
    weights = {"w": (8, 8, 3, 3), "s": (1, 8, 1, 1), "b": (8, 1, 1)}
    for runtime in ENGINES:
        assert ops(graph(nodes, IMAGE, weights=weights), runtime) == ["conv"]
    assert ops(graph(nodes, IMAGE, weights=weights), Runtime.PYTORCH) == ["conv", "mul", "add"]
    everywhere = weights | {"b": (1, 8, 8, 8)}
    found = ops(graph(nodes, IMAGE, weights=everywhere), Runtime.ONNXRUNTIME)
    assert found == ["conv", "add"]


def test_batch_norm_before_an_activation_stays() -> None:
    read = graph(
        [node("BatchNormalization", "x g b m v", "n"), node("Relu", "n", "y")],
        IMAGE,
        weights=dict.fromkeys("gbmv", (8,)),
    )
    assert ops(read, Runtime.PYTORCH) == ["batch_norm", "relu"]
    assert ops(read, Runtime.ONNXRUNTIME) == ["batch_norm", "relu"]
    assert ops(read, Runtime.TENSORRT) == ["batch_norm+relu"]


def slices(axis: int, *bounds: tuple[int, int]) -> tuple[list[onnx.NodeProto], dict[str, object]]:
    nodes, weights = [], {"axis": np.array([axis], np.int64)}
    for i, (start, stop) in enumerate(bounds):
        weights[f"from{i}"] = np.array([start], np.int64)
        weights[f"to{i}"] = np.array([stop], np.int64)
        nodes.append(node("Slice", f"x from{i} to{i} axis", f"part{i}"))
    return nodes, weights


def test_roll_is_two_slices_the_other_way_round() -> None:
    nodes, weights = slices(1, (2, 6), (0, 2))
    read = graph([*nodes, node("Concat", "part0 part1", "y", axis=1)], X, weights=weights)
    for runtime in Runtime:
        assert ops(read, runtime) == ["roll"]


def test_slices_that_make_up_the_whole_are_a_split_in_onnxruntime() -> None:
    nodes, weights = slices(2, (0, 8), (8, 16))
    nodes += [node("Relu", "part0", "y"), node("Neg", "part1", "z")]
    read = graph(nodes, X, "y z", weights)
    assert ops(read, Runtime.ONNXRUNTIME) == ["split", "relu", "neg"]
    assert ops(read, Runtime.PYTORCH) == ["relu", "neg"]
    nodes, weights = slices(2, (0, 8), (9, 16))
    nodes += [node("Relu", "part0", "y"), node("Neg", "part1", "z")]
    found = ops(graph(nodes, X, "y z", weights), Runtime.ONNXRUNTIME)
    assert sorted(found) == ["neg", "relu", "slice", "slice"]


def test_a_concatenation_of_a_concatenation_is_one() -> None:
    inputs = dict.fromkeys("abc", (2, 3))
    nested = [node("Concat", "a b", "ab", axis=1), node("Concat", "ab c", "y", axis=-1)]
    across = [node("Concat", "a b", "ab", axis=1), node("Concat", "ab ab", "y", axis=0)]
    assert ops(graph(nested, inputs), Runtime.PYTORCH) == ["cat"]
    assert ops(graph(across, inputs), Runtime.PYTORCH) == ["cat", "cat"]


def test_padding_that_an_average_counts_belongs_to_the_pool() -> None:
    nodes = [
        node("Pad", "x pads", "p"),
        node("AveragePool", "p", "y", kernel_shape=[3, 3], strides=[2, 2]),
    ]
    pads = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}
    for runtime in Runtime:
        assert ops(graph(nodes, IMAGE, weights=pads), runtime) == ["avg_pool"]


def test_padding_by_nothing_copies_in_eager_pytorch_alone() -> None:
    read = graph(
        [node("Pad", "x pads", "p"), node("Relu", "p", "y")],
        IMAGE,
        weights={"pads": np.zeros(8, np.int64)},
    )
    assert ops(read, Runtime.PYTORCH) == ["copy", "relu"]
    for runtime in ENGINES:
        assert ops(read, runtime) == ["relu"]


def test_padding_fills_and_copies_in_eager_pytorch() -> None:
    pads = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}
    read = graph([node("Pad", "x pads", "y")], IMAGE, weights=pads)
    assert ops(read, Runtime.PYTORCH) == ["fill", "copy"]
    read = graph([node("Pad", "x pads", "y", mode="reflect")], IMAGE, weights=pads)
    assert ops(read, Runtime.PYTORCH) == ["pad"]


def test_every_row_of_the_table_has_a_name_anchors_and_a_reason() -> None:
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)
    for pattern in PATTERNS:
        assert pattern.anchors and pattern.runtimes and pattern.note
