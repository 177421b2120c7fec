"""What the shape rules know, and how they speak of what isn't known."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from dippm_lite.graph import AttributeValue, DType
from dippm_lite.onnx_reader.shape_rules import TensorSequence, has_rule, infer
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

FLOAT, INT64, INT32, UINT8 = DType.FLOAT, DType.INT64, DType.INT32, DType.UINT8
MICROSOFT = "com.microsoft"
WITH_SUBGRAPHS = {("", "If"), ("", "Loop"), ("", "Scan"), ("", "SequenceMap")}


def t(*shape: int, dtype: DType = FLOAT, bounded: bool = False) -> Tensor:
    return Tensor(dtype, shape, bounded=bounded)


def ints(*values: int) -> Tensor:
    return Tensor(INT64, (len(values),), np.array(values, dtype=np.int64))


def floats(*values: float) -> Tensor:
    return Tensor(FLOAT, (len(values),), np.array(values, dtype=np.float32))


def scalar(value: int) -> Tensor:
    return Tensor(INT64, (), np.array(value, dtype=np.int64))


def call(
    op_type: str,
    *inputs: Tensor | None,
    domain: str = "",
    opset: int = 18,
    n_outputs: int = 1,
    **attributes: AttributeValue,
) -> tuple[Tensor | None, ...]:
    return infer(OpCall(domain, op_type, opset, attributes, inputs, n_outputs))


def shape_of(*args: Any, **kwargs: Any) -> tuple[int, ...] | None:
    tensor = call(*args, **kwargs)[0]
    assert tensor is not None
    return tensor.shape


def test_every_standard_operator_has_a_rule_but_those_with_subgraphs() -> None:
    operators = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert {key for key in operators if not has_rule(*key)} == WITH_SUBGRAPHS


def test_nothing_is_said_of_an_operator_without_a_rule() -> None:
    assert not has_rule("my.domain", "Conv")
    assert call("Conv", t(1, 3, 8, 8), domain="my.domain", n_outputs=3) == (None, None, None)


def test_the_number_of_outputs_is_that_of_the_slots() -> None:
    assert len(call("Dropout", t(2), n_outputs=1)) == 1
    assert call("Relu", t(2), n_outputs=3)[1:] == (None, None)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "dtype"),
    [
        ("Relu", [Tensor(FLOAT, None)], {}, FLOAT),
        ("Conv", [Tensor(FLOAT, None), t(4, 3, 3, 3)], {}, FLOAT),
        ("Conv", [t(1, 3, 8, 8), Tensor(FLOAT, None)], {}, FLOAT),
        ("Cast", [Tensor(FLOAT, None)], {"to": 7}, INT64),
        ("Shape", [Tensor(FLOAT, None)], {}, INT64),
        ("Equal", [Tensor(FLOAT, None), t(3)], {}, DType.BOOL),
        ("ArgMax", [Tensor(FLOAT, None)], {}, INT64),
        ("MatMulInteger", [Tensor(UINT8, None), t(3, 3, dtype=UINT8)], {}, INT32),
        ("Reshape", [t(4, 6), Tensor(INT64, (2,))], {}, FLOAT),
        ("ConstantOfShape", [Tensor(INT64, (2,))], {}, FLOAT),
        ("QuantizeLinear", [Tensor(FLOAT, None), t(), None], {}, UINT8),
    ],
)
def test_types_pass_through_what_has_no_known_rank(
    op_type: str, inputs: list[Tensor], attributes: dict[str, Any], dtype: DType
) -> None:
    assert call(op_type, *inputs, **attributes) == (Tensor(dtype, None),)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "text"),
    [
        (
            "Conv",
            [t(1, 3, 8, 8), t(4, 4, 3, 3)],
            {},
            "channels of input and weight differ: 3 and 4",
        ),
        ("Conv", [t(1, 3, 2, 2), t(4, 3, 3, 3)], {}, "a window of 3"),
        ("Conv", [t(1, 3, 8, 8), t(4, 3, 3)], {}, "the weight has rank 3, not 4"),
        ("Conv", [t(1, 3, 8, 8)], {}, "input 1 is missing"),
        ("Conv", [t(1, 3, 8, 8), t(4, 3, 3, 3)], {"strides": (0, 1)}, "'strides'"),
        ("Conv", [t(1, 3, 8, 8), t(4, 3, 3, 3)], {"pads": 1}, "'pads' is not a list of integers"),
        ("MatMul", [t(2, 3), t(4, 5)], {}, "inner sizes of the product differ: 3 and 4"),
        ("Gemm", [t(2, 3, 4), t(4, 5)], {}, "a matrix has rank 3, not 2"),
        ("Add", [t(2, 3), t(2, 4)], {}, "do not broadcast"),
        ("Softmax", [t(2, 3)], {"axis": 5}, "axis 5 is outside of rank 2"),
        ("Concat", [t(2, 3), t(2, 4)], {"axis": 0}, "sizes along axis 1 differ: 3 and 4"),
        ("Reshape", [t(2, 3), ints(4, -1)], {}, "can't become"),
        ("Transpose", [t(2, 3)], {"perm": (0, 0)}, "doesn't order"),
        ("Split", [t(5)], {}, "doesn't divide"),
        ("Squeeze", [t(2, 3), ints(0)], {}, "can't be squeezed"),
        ("TopK", [t(3), ints(4)], {}, "k 4 is outside of size 3"),
        ("Cast", [t(3)], {"to": 99}, "99 is no element type"),
        ("Cast", [t(3)], {}, "'to' is missing"),
        ("MaxPool", [t(1, 1, 4)], {}, "'kernel_shape' is missing"),
        ("Resize", [t(1, 1, 4), None, None], {}, "neither scales nor sizes"),
        ("LSTM", [t(5, 2, 3), t(1, 16, 3), t(1, 16, 4)], {"hidden_size": 5}, "hidden_size 5"),
        ("Slice", [t(4), ints(0), ints(4), ints(0), ints(0)], {}, "a step is 0"),
    ],
)
def test_contradictions_are_named(
    op_type: str, inputs: list[Tensor | None], attributes: dict[str, Any], text: str
) -> None:
    with pytest.raises(ShapeRuleError, match=text):
        call(op_type, *inputs, opset=17, n_outputs=2 if op_type == "Split" else 1, **attributes)


def test_operators_of_opset_1_take_attributes() -> None:
    assert shape_of("Reshape", t(2, 6), opset=1, shape=(3, -1)) == (3, 4)
    assert shape_of("Pad", t(2, 3), opset=1, paddings=(0, 1, 0, 1)) == (2, 5)
    assert shape_of("Upsample", t(1, 1, 3, 4), opset=1, height_scale=2.0, width_scale=3.0) == (
        1, 1, 6, 12,
    )  # fmt: skip
    assert shape_of("Tile", t(2, 3), ints(4), ints(1), opset=1) == (2, 12)
    assert shape_of("Concat", t(2, 3), t(2, 4), opset=1) == (2, 7)
    assert call("Cast", t(2), opset=1, to=b"FLOAT16") == (t(2, dtype=DType.FLOAT16),)
    assert call("Dropout", t(2), opset=6, n_outputs=2) == (t(2), t(2))


def test_broadcasting_before_opset_7_is_asked_for_and_may_start_at_an_axis() -> None:
    image, channel = t(2, 3, 4, 5), t(3)
    assert shape_of("Add", image, channel, opset=6, broadcast=1, axis=1) == (2, 3, 4, 5)
    assert shape_of("Mul", image, t(4, 5), opset=6, broadcast=1) == (2, 3, 4, 5)
    with pytest.raises(ShapeRuleError, match="broadcast=1"):
        call("Add", image, t(5), opset=6)
    with pytest.raises(ShapeRuleError, match="does not fit"):
        call("Add", image, channel, opset=6, broadcast=1, axis=2)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "bound"),
    [
        ("NonZero", [t(3, 4)], {}, (2, 12)),
        ("Unique", [t(3, 4)], {}, (12,)),
        ("Compress", [t(3, 4), t(2, dtype=DType.BOOL)], {"axis": 1}, (3, 2)),
        ("NonMaxSuppression", [t(2, 9, 4), t(2, 5, 9), ints(3)], {}, (30, 3)),
        ("NonMaxSuppression", [t(2, 9, 4), t(2, 5, 9), t(1, dtype=INT64)], {}, (90, 3)),
        ("NonMaxSuppression", [t(2, 9, 4), t(2, 5, 9)], {}, (0, 3)),
        ("TopK", [t(3, 9), t(1, dtype=INT64)], {}, (3, 9)),
        ("Slice", [t(3, 9), t(1, dtype=INT64), ints(9)], {}, (3, 9)),
    ],
)
def test_sizes_that_depend_on_the_data_are_bounded(
    op_type: str, inputs: list[Tensor], attributes: dict[str, Any], bound: tuple[int, ...]
) -> None:
    tensor = call(op_type, *inputs, **attributes)[0]
    assert tensor is not None and (tensor.shape, tensor.bounded) == (bound, True)


def test_what_follows_from_a_bound_is_bounded_and_contradicts_nothing() -> None:
    first, second = t(100, 4, bounded=True), t(300, 4, bounded=True)
    assert call("Add", first, second) == (t(100, 4, bounded=True),)
    assert call("MatMul", first, t(4, 5)) == (t(100, 5, bounded=True),)
    assert call("Concat", first, second, axis=1) == (t(100, 8, bounded=True),)
    assert call("Reshape", first, ints(7, -1)) == (t(7, 58, bounded=True),)
    assert call("ReduceMax", first, keepdims=0) == (t(),)
    (sizes,) = call("Shape", first)
    assert sizes is not None and sizes.bounded
    (filled,) = call("ConstantOfShape", sizes)
    assert filled is not None and (filled.shape, filled.bounded) == ((100, 4), True)


def test_known_data_makes_a_bounded_size_exact() -> None:
    (positions,) = call("NonZero", ints(0, 5, 0, 7))
    assert positions is not None and positions.shape == (1, 2) and not positions.bounded
    (kept,) = call("Compress", t(3, 4), ints(1, 0, 1, 1), axis=1)
    assert kept == t(3, 3)


def test_a_chain_of_shape_arithmetic_is_followed_to_its_end() -> None:
    """What exporters write for ``x.view(x.size(0), -1, heads, x.size(2) // heads)``."""
    x = t(8, 128, 768)
    (sizes,) = call("Shape", x)
    (batch,) = call("Gather", sizes, scalar(0))
    (width,) = call("Gather", sizes, scalar(2))
    (head,) = call("Div", width, scalar(12))
    (batch_1d,), (head_1d,) = call("Unsqueeze", batch, ints(0)), call("Unsqueeze", head, ints(0))
    (target,) = call("Concat", batch_1d, ints(-1), ints(12), head_1d, axis=0)
    assert call("Reshape", x, target) == (t(8, 128, 12, 64),)


def test_sequences_carry_their_elements() -> None:
    (parts,) = call("SplitToSequence", t(2, 7, 3), scalar(3), axis=1)
    assert isinstance(parts, TensorSequence)
    assert [element.shape for element in parts.elements or ()] == [(2, 3, 3), (2, 3, 3), (2, 1, 3)]
    assert call("SequenceLength", parts)[0].data == 3  # type: ignore[union-attr]
    assert call("SequenceAt", parts, scalar(-1)) == (t(2, 1, 3),)
    assert call("ConcatFromSequence", parts, axis=1) == (t(2, 7, 3),)
    (steps,) = call("SplitToSequence", t(2, 7, 3), axis=1, keepdims=0)
    assert call("SequenceAt", steps, t(dtype=INT64)) == (t(2, 3),)
    assert call("ConcatFromSequence", steps, axis=1, new_axis=1) == (t(2, 7, 3),)
    (shorter,) = call("SequenceErase", steps)
    (longer,) = call("SequenceInsert", shorter, t(9))
    assert call("SequenceAt", longer, scalar(6)) == (t(9),)
    assert call("SequenceAt", longer, t(dtype=INT64)) == (Tensor(FLOAT, None),)
    with pytest.raises(ShapeRuleError, match="position 7"):
        call("SequenceAt", longer, scalar(7))


Q, KV = t(2, 5, 32), t(2, 7, 16)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "shapes"),
    [
        ("BiasAdd", [t(2, 64, 320), t(320), t(2, 64, 320)], {}, [(2, 64, 320)]),
        ("BiasSplitGelu", [t(2, 64, 2560), t(2560)], {}, [(2, 64, 1280)]),
        ("GroupNorm", [t(2, 8, 8, 320)], {"groups": 32, "activation": 1}, [(2, 8, 8, 320)]),
        ("SkipGroupNorm", [t(2, 8, 8, 320)], {}, [(2, 8, 8, 320), (2, 8, 8, 320)]),
        ("NhwcConv", [t(1, 9, 9, 3), t(4, 3, 3, 3)], {"strides": (2, 2)}, [(1, 4, 4, 4)]),
        ("NhwcFusedConv", [t(1, 9, 9, 3), t(4, 3, 3, 3)], {}, [(1, 7, 7, 4)]),
        ("PackedAttention", [t(40, 16), t(16, 48)], {"num_heads": 4}, [(40, 16)]),
        (
            "PackedAttention",
            [t(40, 16), t(16, 20)],
            {"num_heads": 2, "qkv_hidden_sizes": (8, 8, 4)},
            [(40, 4)],
        ),
        ("PackedMultiHeadAttention", [t(40, 4, 3, 8)], {"num_heads": 4}, [(40, 32)]),
        (
            "PackedMultiHeadAttention",
            [t(40, 32), t(40, 32), t(40, 16)],
            {"num_heads": 4},
            [(40, 16)],
        ),
        ("MultiHeadAttention", [t(2, 5, 4, 3, 8)], {"num_heads": 4}, [(2, 5, 32)]),
        (
            "MultiHeadAttention",
            [Q, t(2, 7, 4, 2, 8)],
            {"num_heads": 4},
            [(2, 5, 32), (2, 4, 7, 8), (2, 4, 7, 8), (2, 4, 5, 7)],
        ),
        (
            "PagedAttention",
            [t(40, 96), None, None, t(10, 16, 2, 16), t(10, 16, 2, 16)],
            {"num_heads": 2, "kv_num_heads": 2},
            [(40, 32), (10, 16, 2, 16), (10, 16, 2, 16)],
        ),
        (
            "SparseAttention",
            [Q, KV, KV, t(2, 2, 99, 8), t(2, 2, 99, 8)],
            {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16},
            [(2, 5, 32), (2, 2, 99, 8), (2, 2, 99, 8)],
        ),
        (
            "GatedDeltaNet",
            [t(40, 4, 16), t(40, 4, 16), t(40, 8, 32), None, None, None, t(2, 8, 32, 16)],
            {},
            [(40, 8, 32), (2, 8, 32, 16)],
        ),
        ("RelativePositionBias", [t(32, 8), scalar(5), scalar(7)], {}, [(1, 8, 5, 7)]),
        ("GatedRelativePositionBias", [t(2, 5, 32)], {"num_heads": 4}, [(2, 4, 5, 5)]),
        ("LongformerAttention", [t(1, 64, 32)], {"num_heads": 2, "window": 8}, [(1, 64, 32)]),
        ("QMoE", [t(40, 64)], {}, [(40, 64)]),
        ("GemmFastGelu", [t(2, 3), t(3, 4)], {}, [(2, 4)]),
        ("GemmFloat8", [t(2, 3), t(4, 3)], {"transB": 1, "dtype": 10}, [(2, 4)]),
        ("MatMulBlockQuantizedFp8Weight", [t(2, 5, 32), t(8, 32)], {}, [(2, 5, 8)]),
        ("MatMulFpQ4", [t(3, 32), t(999, dtype=UINT8), ints(32, 8)], {}, [(3, 8)]),
        ("Rfft", [t(2, 8)], {"signal_ndim": 1}, [(2, 5, 2)]),
        ("Irfft", [t(2, 5, 2)], {"signal_ndim": 1}, [(2, 8)]),
        ("QLinearReduceMean", [t(2, 3, 5, 5, dtype=UINT8)], {"axes": (2, 3)}, [(2, 3, 1, 1)]),
        ("TorchEmbedding", [t(9, 4), t(2, 5, dtype=INT64)], {}, [(2, 5, 4)]),
    ],
)  # fmt: skip
def test_operators_that_only_run_on_a_gpu_follow_their_documentation(
    op_type: str,
    inputs: list[Tensor | None],
    attributes: dict[str, Any],
    shapes: list[tuple[int, ...]],
) -> None:
    """Shapes as in onnxruntime's docs/ContribOperators.md."""
    outputs = call(op_type, *inputs, domain=MICROSOFT, n_outputs=len(shapes), **attributes)
    assert [tensor and tensor.shape for tensor in outputs] == shapes


def test_a_cache_whose_total_length_is_not_known_is_bounded_by_past_and_new_steps() -> None:
    inputs = [t(2, 1, 32), t(2, 1, 16), t(2, 1, 16), t(2, 2, 6, 8), t(2, 2, 6, 8)]
    lengths = [t(2, dtype=INT32), t(dtype=INT32)]
    _, key, value = call(
        "GroupQueryAttention", *inputs, *lengths, domain=MICROSOFT, n_outputs=3, num_heads=4,
        kv_num_heads=2,
    )  # fmt: skip
    assert key == value == t(2, 2, 7, 8, bounded=True)


@pytest.mark.parametrize("domain", ["qonnx.custom_op.general", "onnx.brevitas"])
def test_fake_quantisation_keeps_shape_and_type(domain: str) -> None:
    for op_type in ("Quant", "BipolarQuant", "Trunc"):
        assert call(op_type, t(2, 3), t(), t(), t(), domain=domain) == (t(2, 3),)


def test_small_floats_are_kept_as_float32_and_rounded_to_bfloat16() -> None:
    (tensor,) = call("Cast", floats(1.0, 1.00390625, 1.01171875, float("nan")), to=16)
    assert tensor is not None and tensor.dtype is DType.BFLOAT16 and tensor.data is not None
    assert tensor.data.dtype == np.float32
    expected = np.array([1.0, 1.0, 1.015625, np.nan])  # ties go to the even mantissa
    np.testing.assert_array_equal(tensor.data, expected)
    (eighth,) = call("Cast", floats(1.0), to=17)
    assert eighth == t(1, dtype=DType.FLOAT8E4M3FN)
