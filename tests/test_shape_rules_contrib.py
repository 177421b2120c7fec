"""Contrib operators: shapes and types beside those that onnxruntime computes on a CPU."""

from __future__ import annotations

import numpy as np
import onnx_calls
import pytest
from contrib_cases import ATTENTION, CLASSICAL, FUSED, OTHERS, QUANTISED
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxruntime_calls import Case, as_tensor, computed, f32, i64, inferred


@pytest.mark.parametrize(
    "case",
    [
        *ATTENTION,
        *FUSED,
        *QUANTISED,
        *OTHERS,
        *[
            case._replace(domain="ai.onnx.ml", opset=2 if case.op_type == "LabelEncoder" else 1)
            for case in CLASSICAL
        ],
    ],
    ids=lambda case: case.op_type,
)
def test_shapes_and_types_are_those_that_onnxruntime_computes(case: Case) -> None:
    for array, tensor in zip(computed(case), inferred(case, known_up_to=8), strict=True):
        assert tensor is not None
        assert tensor.dtype is as_tensor(array).dtype
        assert onnx_calls.fits(tensor, array.shape), (tensor.shape, array.shape)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_transposed_convolutions_pad_as_onnxruntime_does(
    auto_pad: str, kernel: int, stride: int
) -> None:
    for extra in range(min(stride, 2)):
        case = Case(
            "ConvTranspose",
            [f32(1, 2, 4), f32(2, 3, kernel)],
            {"auto_pad": auto_pad, "strides": [stride], "output_padding": [extra]},
            domain="",
            opset=11,
        )
        (tensor,) = inferred(case, 0)
        assert tensor is not None and tensor.shape == computed(case)[0].shape


@pytest.mark.parametrize("opset", [8, 10, 12, 22])
def test_pooling_drops_windows_in_the_padding_in_every_opset_as_onnxruntime_does(
    opset: int,
) -> None:
    for size, kernel, stride, pads in ((4, 1, 2, [0, 0]), (3, 2, 2, [1, 1]), (5, 2, 3, [0, 1])):
        attributes = {"kernel_shape": [kernel], "strides": [stride], "pads": pads}
        if opset >= 10:
            attributes["ceil_mode"] = 1  # type: ignore[assignment]
        case = Case("MaxPool", [f32(1, 1, size)], attributes, domain="", opset=opset)
        (tensor,) = inferred(case, 0)
        assert tensor is not None and tensor.shape == computed(case)[0].shape


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_resized_sizes_round_as_onnxruntime_rounds_them(
    height: int, width: int, numerator: int, denominator: int
) -> None:
    image = f32(1, 1, height, width)
    scale = np.float32(numerator) / np.float32(denominator)
    if min(height, width) * scale >= 1 and scale < 4:
        scales = np.array([1, 1, scale, scale], dtype=np.float32)
        scaled = Case("Resize", [image, None, scales], {"mode": "nearest"}, domain="", opset=13)
        (tensor,) = inferred(scaled, 8)
        assert tensor is not None and tensor.shape == computed(scaled)[0].shape
    wanted = i64(numerator, denominator)
    for policy in ("not_larger", "not_smaller"):
        attributes = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
        sized = Case("Resize", [image, None, None, wanted], attributes, domain="", opset=18)
        largest = max(numerator / height, denominator / width)
        if largest < 4 and min(numerator / height, denominator / width) * min(height, width) >= 1:
            (tensor,) = inferred(sized, 8)
            assert tensor is not None and tensor.shape == computed(sized)[0].shape
