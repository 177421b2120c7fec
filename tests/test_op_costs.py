"""Operator costs against hand formulas, numpy, torch's own counter and published figures."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from math import prod

import numpy as np
import onnx.defs
import pytest
import torch
from graph_builder import graph, node
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dippm_lite.graph import DType, Graph, OpNode, TensorSpec, Value, ValueKind
from dippm_lite.onnx_reader import read_graph
from dippm_lite.op_costs import (
    graph_macs,
    graph_params,
    graph_weight_bytes,
    is_free,
    node_cost,
    node_macs,
    runs_on_gpu,
)
from dippm_lite.op_costs.onnx_table import ONNX_RULES

MS = "com.microsoft"


def macs(*nodes_and_inputs: object, **options: object) -> int:
    return graph_macs(graph(*nodes_and_inputs, **options))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def no_fast_path() -> Iterator[None]:
    """nn.MultiheadAttention's fused inference operator is neither exported nor counted."""
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


def exported(model: nn.Module, *inputs: torch.Tensor) -> Graph:
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), inputs, file, dynamo=False, opset_version=17)
    return read_graph(file.getvalue()).graph


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x)[0]


COUNTED = {
    "convolution": (nn.Conv2d(6, 10, 3, stride=2, padding=1), (2, 6, 13, 17)),
    "grouped": (nn.Conv2d(8, 12, 3, groups=4, dilation=2), (3, 8, 20, 11)),
    "depthwise": (nn.Conv2d(8, 8, 5, padding=2, groups=8), (1, 8, 12, 12)),
    "one dimension": (nn.Conv1d(4, 6, 7, stride=3), (2, 4, 100)),
    "three dimensions": (nn.Conv3d(2, 4, (1, 3, 3)), (1, 2, 5, 9, 9)),
    "transposed": (nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1), (2, 6, 9, 7)),
    "grouped transposed": (nn.ConvTranspose2d(6, 4, 3, groups=2), (1, 6, 9, 9)),
    "linear of a matrix": (nn.Linear(24, 7), (5, 24)),
    "linear of a batch": (nn.Linear(24, 7), (2, 3, 5, 24)),
    "attention": (Attention(), (2, 10, 32)),
    "mlp": (nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)), (4, 8)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_macs_are_half_the_flops_that_torch_counts(name: str) -> None:
    model, shape = COUNTED[name]
    x = torch.rand(shape)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(x)
    assert graph_macs(exported(model, x)) * 2 == counter.get_total_flops() > 0


@pytest.mark.parametrize("name", COUNTED)
def test_params_are_those_of_the_module(name: str) -> None:
    model, shape = COUNTED[name]
    read = exported(model, torch.rand(shape))
    assert graph_params(read) == sum(p.numel() for p in model.parameters())
    assert graph_weight_bytes(read) >= 4 * graph_params(read)


@settings(max_examples=40, deadline=None)
@given(
    batch_a=st.lists(st.sampled_from([1, 2, 3]), max_size=3),
    batch_b=st.lists(st.sampled_from([1, 2, 3]), max_size=3),
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    vectors=st.tuples(st.booleans(), st.booleans()),
)
def test_matmul_follows_numpy(
    batch_a: list[int], batch_b: list[int], sizes: tuple[int, int, int], vectors: tuple[bool, bool]
) -> None:
    m, k, n = sizes
    a = (k,) if vectors[0] else (*batch_a, m, k)
    b = (k,) if vectors[1] else (*batch_b, k, n)
    try:
        result = np.matmul(np.ones(a), np.ones(b))
    except ValueError:
        return
    read = graph([node("MatMul", "a b", "y")], {"a": a, "b": b})
    # each element of a product of ones is the number of products that were summed
    assert graph_macs(read) == int(result.sum())


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm_minds_its_flags(trans_a: int, trans_b: int) -> None:
    a, b = ((3, 5), (5, 7))
    read = graph(
        [node("Gemm", "a b c", "y", transA=trans_a, transB=trans_b)],
        {"a": a[::-1] if trans_a else a, "b": b[::-1] if trans_b else b, "c": (7,)},
    )
    assert graph_macs(read) == 3 * 5 * 7


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
        ("bhqd,bhkd->bhqk", [(2, 3, 5, 4), (2, 3, 6, 4)], 2 * 3 * 5 * 6 * 4),
        ("...ij,...jk->...ik", [(7, 2, 3), (7, 3, 4)], 7 * 2 * 3 * 4),
        ("i,j->ij", [(6,), (7,)], 42),
        ("ij,jk", [(2, 3), (3, 4)], 24),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], 2 * 3 * 4 + 2 * 4 * 5),
        ("ij->ji", [(2, 3)], 0),
    ],
)
def test_einsum_multiplies_all_labels_of_a_pair(
    equation: str, shapes: list[tuple[int, ...]], expected: int
) -> None:
    names = "abc"[: len(shapes)]
    read = graph(
        [node("Einsum", " ".join(names), "y", equation=equation)],
        dict(zip(names, shapes, strict=True)),
    )
    assert graph_macs(read) == expected


@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrent_layers_run_all_gates_at_every_step(
    op_type: str, gates: int, directions: int
) -> None:
    steps, batch, inputs, hidden = 7, 2, 5, 3
    direction = "bidirectional" if directions == 2 else "forward"
    read = graph(
        [node(op_type, "x w r", "y", hidden_size=hidden, direction=direction)],
        {"x": (steps, batch, inputs)},
        weights={
            "w": (directions, gates * hidden, inputs),
            "r": (directions, gates * hidden, hidden),
        },
    )
    assert graph_macs(read) == steps * batch * directions * gates * hidden * (inputs + hidden)


def test_attention_of_the_standard_counts_past_and_both_products() -> None:
    read = graph(
        [node("Attention", "q k v _ pk pv", "y present_k present_v")],
        {"q": (2, 8, 5, 16), "k": (2, 2, 6, 16), "v": (2, 2, 6, 12)}
        | {"pk": (2, 2, 10, 16), "pv": (2, 2, 10, 12)},
        opset=23,
    )
    assert graph_macs(read) == 2 * 8 * 5 * (6 + 10) * (16 + 12)


def test_contrib_attention_counts_its_projection() -> None:
    batch, length, width, heads = 2, 6, 32, 4
    read = graph(
        [node("Attention", "x w b", "y", MS, num_heads=heads)],
        {"x": (batch, length, width)},
        weights={"w": (width, 3 * width), "b": (3 * width,)},
    )
    projection = batch * length * width * 3 * width
    assert graph_macs(read) == projection + 2 * batch * length * length * width


def test_multi_head_attention_counts_the_two_products_alone() -> None:
    read = graph(
        [node("MultiHeadAttention", "q k v", "y", MS, num_heads=4)],
        {"q": (2, 6, 32), "k": (2, 9, 32), "v": (2, 9, 32)},
    )
    assert graph_macs(read) == 2 * 2 * 6 * 9 * 32


def test_grouped_query_attention_has_all_query_heads() -> None:
    read = graph(
        [
            node(
                "GroupQueryAttention", "q k v pk pv _ _", "y ok ov", MS, num_heads=8, kv_num_heads=2
            )
        ],
        {"q": (1, 3, 8 * 16), "k": (1, 3, 2 * 16), "v": (1, 3, 2 * 16)}
        | {"pk": (1, 2, 5, 16), "pv": (1, 2, 5, 16)},
        outputs="y ok ov",
    )
    assert graph_macs(read) == 1 * 8 * 3 * (3 + 5) * (16 + 16)


def test_quantized_operators_cost_what_the_float_operator_does() -> None:
    weights = {"s": 0.1, "w": np.ones((8, 3, 3, 3), np.int8), "z": np.array(0, np.int8)}
    quantized = graph(
        [node("QLinearConv", "x s z w s z s z", "y", kernel_shape=[3, 3])],
        {"x": (1, 3, 10, 10)},
        weights=weights,
        elem_type=TensorProto.INT8,
    )
    integer = graph(
        [node("ConvInteger", "x w", "y", kernel_shape=[3, 3])],
        {"x": (1, 3, 10, 10)},
        weights={"w": weights["w"]},
        elem_type=TensorProto.INT8,
    )
    plain = graph(
        [node("Conv", "x w", "y", kernel_shape=[3, 3])],
        {"x": (1, 3, 10, 10)},
        weights={"w": (8, 3, 3, 3)},
    )
    assert graph_macs(quantized) == graph_macs(integer) == graph_macs(plain) == 8 * 64 * 27


def test_four_bit_products_count_unpacked_columns() -> None:
    k, n, block = 64, 24, 32
    read = graph(
        [node("MatMulNBits", "x w s", "y", MS, K=k, N=n, bits=4, block_size=block)],
        {"x": (2, 5, k)},
        weights={"w": np.zeros((n, k // block, block // 2), np.uint8), "s": (n * k // block,)},
    )
    assert graph_macs(read) == 2 * 5 * k * n
    assert graph_params(read) == k * n
    assert graph_weight_bytes(read) == k * n // 2 + 4 * n * k // block


def test_every_operator_of_the_standard_has_a_row() -> None:
    schemas = {
        (s.domain, s.name) for s in onnx.defs.get_all_schemas() if s.domain in ("", "ai.onnx.ml")
    }
    assert len(schemas) > 200
    assert schemas <= set(ONNX_RULES)


def test_an_unknown_operator_has_no_cost_rather_than_none() -> None:
    read = graph([node("Mystery", "x", "y", "nobody.knows")], {"x": (2, 3)})
    assert node_cost(read, read.nodes[0]) is None


def test_a_missing_shape_gives_no_cost() -> None:
    values = (
        Value("x", None, ValueKind.INPUT),
        Value("w", TensorSpec((3, 4), DType.FLOAT), ValueKind.WEIGHT, stored=True),
        Value("y", None, ValueKind.ACTIVATION),
    )
    read = Graph("g", values, (OpNode("n", "", "MatMul", (0, 1), (2,)),), (0,), (2,), 17)
    assert node_cost(read, read.nodes[0]) is None
    assert graph_macs(read) == 0


def test_strings_and_classical_models_do_not_run_on_a_gpu() -> None:
    names = [("ai.onnx.ml", "TreeEnsembleClassifier"), ("", "StringNormalizer"), ("", "SequenceAt")]
    for domain, op_type in names:
        assert not runs_on_gpu(OpNode("n", domain, op_type, (), ()))
    assert runs_on_gpu(OpNode("n", "", "Conv", (), ()))
    assert runs_on_gpu(OpNode("n", "nobody.knows", "Conv", (), ()))


def test_a_reshape_is_free_and_a_transpose_is_not() -> None:
    read = graph(
        [
            node("Reshape", "x shape", "flat"),
            node("Transpose", "flat", "y", perm=[1, 0]),
        ],
        {"x": (2, 3, 4)},
        weights={"shape": np.array([6, 4], np.int64)},
    )
    reshape, transpose = read.nodes
    assert is_free(read, reshape)
    assert not is_free(read, transpose)
    cost = node_cost(read, transpose)
    assert cost is not None
    assert (cost.read_bytes, cost.write_bytes, cost.weight_bytes) == (96, 96, 0)


def test_an_embedding_reads_the_rows_it_needs() -> None:
    read = graph(
        [node("Gather", "table ids", "y")],
        {"ids": (2, 7)},
        weights={"table": (1000, 16)},
        elem_type=TensorProto.INT64,
    )
    cost = node_cost(read, read.nodes[0])
    assert cost is not None
    assert cost.weight_bytes == cost.write_bytes == 2 * 7 * 16 * 4
    assert cost.read_bytes == 2 * 7 * 8


def test_bias_and_activation_are_not_macs() -> None:
    read = graph(
        [node("Conv", "x w b", "y", kernel_shape=[1, 1])],
        {"x": (1, 4, 5, 5)},
        weights={"w": (6, 4, 1, 1), "b": (6,)},
    )
    cost = node_cost(read, read.nodes[0])
    assert cost is not None
    assert cost.macs == 6 * 25 * 4
    assert cost.flops_other == 6 * 25


def test_a_loop_body_counts_as_often_as_it_runs() -> None:
    values = (
        Value("x", TensorSpec((2, 3), DType.FLOAT), ValueKind.INPUT),
        Value("w", TensorSpec((3, 4), DType.FLOAT), ValueKind.WEIGHT, stored=True),
        Value("y", TensorSpec((2, 4), DType.FLOAT), ValueKind.ACTIVATION),
    )
    body = OpNode("n", "", "MatMul", (0, 1), (2,), repeat=5)
    read = Graph("g", values, (body,), (0,), (2,), 17)
    assert graph_macs(read) == 5 * 24
    assert node_macs(read, body) == 24


def test_running_statistics_are_stored_and_literals_are_not_parameters() -> None:
    read = graph(
        [
            node("BatchNormalization", "x g b m v", "n"),
            node("Mul", "n half", "z"),
            node("Add", "z eps", "y"),
        ],
        {"x": (1, 4, 5, 5)},
        weights=dict.fromkeys("gbmv", (4,)) | {"half": 0.5, "eps": np.array([1e-5], np.float32)},
    )
    assert graph_params(read) == 4 * 4


def test_what_no_input_goes_into_is_not_counted() -> None:
    read = graph(
        [node("MatMul", "w u", "wu"), node("MatMul", "x wu", "y")],
        {"x": (2, 3)},
        weights={"w": (3, 4), "u": (4, 5)},
    )
    assert graph_macs(read) == 2 * 3 * 5


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 4)] * 3),
    spatial=st.lists(st.integers(5, 9), min_size=1, max_size=3),
    kernel=st.integers(1, 3),
    batch=st.integers(1, 3),
)
def test_convolution_counts_each_output_once(
    sizes: tuple[int, int, int], spatial: list[int], kernel: int, batch: int
) -> None:
    groups, inner, outer = sizes
    shape = (groups * outer, inner, *[kernel] * len(spatial))
    read = graph(
        [node("Conv", "x w", "y", group=groups)],
        {"x": (batch, groups * inner, *spatial)},
        weights={"w": shape},
    )
    positions = prod(size - kernel + 1 for size in spatial)
    expected = batch * positions * groups * outer * inner * kernel ** len(spatial)
    assert graph_macs(read) == expected
