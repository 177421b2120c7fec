"""Whatever a file holds, the rules answer or raise ShapeRuleError, in little time and memory."""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_calls import OPERATORS, Generator

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules import MAX_RANK, infer
from dippm_lite.onnx_reader.shape_rules.storage import STORAGE
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, OpCall, ShapeRuleError, Tensor

FLOAT, INT64 = DType.FLOAT, DType.INT64


def check_is_sound(tensor: Tensor | None) -> None:
    if tensor is None:
        return
    assert isinstance(tensor.dtype, DType)
    if tensor.shape is None:
        assert tensor.data is None
        return
    assert isinstance(tensor.shape, tuple) and len(tensor.shape) <= MAX_RANK
    assert all(type(size) is int and 0 <= size < 2**63 for size in tensor.shape)
    if tensor.data is not None:
        assert tensor.data.shape == tensor.shape
        assert tensor.data.size <= MAX_KNOWN_ELEMENTS
        assert tensor.data.dtype == STORAGE[tensor.dtype]


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_calls_raise_nothing_else(seed: int) -> None:
    generator = Generator(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            call = generator.call()
            try:
                outputs = infer(call)
            except ShapeRuleError as error:
                assert "\n" not in str(error) and len(str(error)) < 12_000
                continue
            assert len(outputs) == call.n_outputs
            for tensor in outputs:
                check_is_sound(tensor)


def test_the_random_calls_reach_answers_and_refusals_of_nearly_every_operator() -> None:
    generator, answered, refused = Generator(1), set(), set()
    for _ in range(15_000):
        call = generator.call()
        try:
            infer(call)
            answered.add((call.domain, call.op_type))
        except ShapeRuleError:
            refused.add((call.domain, call.op_type))
    assert len(answered) > 0.95 * len(OPERATORS)
    assert len(refused) > 0.8 * len(OPERATORS)


def ints(*values: int) -> Tensor:
    return Tensor(INT64, (len(values),), np.array(values, dtype=np.int64))


def one(value: float, dtype: DType = INT64) -> Tensor:
    return Tensor(dtype, (), np.array(value, dtype=STORAGE[dtype]))


EMPTY = Tensor(FLOAT, (2**40, 0), np.empty((2**40, 0), dtype=np.float32))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "shape"),
    [
        ("ConstantOfShape", [ints(2**44)], {}, (2**44,)),
        ("ConstantOfShape", [ints(2**40, 0)], {}, (2**40, 0)),
        ("Range", [one(0), one(2**60), one(1)], {}, (2**60,)),
        ("Range", [one(0, FLOAT), one(1e18, FLOAT), one(1, FLOAT)], {}, (999999984306749440,)),
        ("Expand", [ints(7), ints(2**50)], {}, (2**50,)),
        ("Tile", [ints(7, 8), ints(2**50)], {}, (2**51,)),
        ("OneHot", [ints(1), one(2**40), ints(0, 1)], {}, (1, 2**40)),
        ("Pad", [ints(1), ints(2**40, 2**40)], {}, (2**41 + 1,)),
        ("OneHot", [ints(), one(2**40), ints(0, 1)], {}, (0, 2**40)),
        ("EyeLike", [EMPTY], {}, (2**40, 0)),
        ("Trilu", [EMPTY], {}, (2**40, 0)),
        ("EyeLike", [Tensor(FLOAT, (2**20, 2**20))], {}, (2**20, 2**20)),
        ("CenterCropPad", [ints(1), ints(2**45)], {}, (2**45,)),
        ("RandomNormal", [], {"shape": (2**40,)}, (2**40,)),
        ("Where", [Tensor(DType.BOOL, (2**20, 1)), ints(1), Tensor(INT64, (2**20,))], {}, None),
        ("Add", [Tensor(INT64, (2**32, 1)), Tensor(INT64, (2**32,))], {}, (2**32, 2**32)),
    ],
)  # fmt: skip
def test_huge_results_have_a_shape_but_are_never_allocated(
    op_type: str,
    inputs: list[Tensor],
    attributes: dict[str, tuple[int, ...]],
    shape: tuple[int, ...] | None,
) -> None:
    tracemalloc.start()
    (tensor,) = infer(OpCall("", op_type, 18, attributes, tuple(inputs), 1))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tensor is not None and tensor.data is None
    assert tensor.shape == (shape or (2**20, 2**20))
    assert peak_bytes < 200_000


def test_a_chain_that_doubles_the_rank_ends() -> None:
    tensor: Tensor | None = ints(0)
    with pytest.raises(ShapeRuleError, match="dimensions"):
        for _ in range(100):
            assert tensor is not None
            unknown = Tensor(INT64, tensor.shape)
            both = OpCall(
                "", "Gather", 18, {}, (Tensor(FLOAT, (1, *(unknown.shape or ()))), unknown), 1
            )
            (tensor,) = infer(both)


def test_a_chain_that_multiplies_a_size_ends() -> None:
    tensor: Tensor | None = Tensor(FLOAT, (2,))
    with pytest.raises(ShapeRuleError, match="64 bits"):
        for _ in range(100):
            assert tensor is not None
            (tensor,) = infer(OpCall("", "Tile", 18, {}, (tensor, ints(2**20)), 1))


def test_long_lists_cost_little_time() -> None:
    long = Tensor(INT64, (MAX_KNOWN_ELEMENTS,), np.full(MAX_KNOWN_ELEMENTS, 2**40))
    x = Tensor(FLOAT, (2, 3))
    start = time.perf_counter()
    for op_type in (
        "Reshape",
        "Expand",
        "Tile",
        "Unsqueeze",
        "Pad",
        "ReduceSum",
        "ConstantOfShape",
    ):
        inputs = (long,) if op_type == "ConstantOfShape" else (x, long)
        with pytest.raises(ShapeRuleError):
            infer(OpCall("", op_type, 18, {}, inputs, 1))
    equation = b",".join(chr(0x4E00 + i).encode() for i in range(20_000))
    with pytest.raises(ShapeRuleError):
        infer(OpCall("", "Einsum", 18, {"equation": equation}, (x,), 1))
    assert time.perf_counter() - start < 5


def test_text_from_a_file_stays_on_one_short_line_of_the_message() -> None:
    x = Tensor(FLOAT, (1, 1, 4, 4))
    attributes = {"auto_pad": b"evil\n" * 1000, "kernel_shape": (2, 2)}
    with pytest.raises(ShapeRuleError) as caught:
        infer(OpCall("", "MaxPool", 18, attributes, (x,), 1))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 100
