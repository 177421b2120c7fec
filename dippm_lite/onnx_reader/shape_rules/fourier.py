"""Fourier transforms, windows and mel filter banks."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    axis_within,
    dtype_attribute,
    given,
    int_attribute,
    int_scalar,
    length_attribute,
    optional,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]


def _dft(call: OpCall) -> Outputs:
    """(signal..., 1 or 2) along one axis, an attribute (1) up to opset 19 and an input (-2) later.
    One-sided transforms give length // 2 + 1 complex bins; their inverse gives real samples."""
    x, length_input, axis_input = given(call, 0), optional(call, 1), optional(call, 2)
    shape = x.shape
    axis: int | None
    if axis_input is not None:
        axis = int_scalar(axis_input)
    else:
        axis = int_attribute(call, "axis", 1 if 0 < call.opset < 20 else -2)
    if shape is None or axis is None:
        return (Tensor(x.dtype, None),)
    axis = axis_within(axis, len(shape))
    if axis == len(shape) - 1:
        raise ShapeRuleError("the axis is that of the complex numbers' parts")
    onesided = int_attribute(call, "onesided", 0) != 0
    inverse = int_attribute(call, "inverse", 0) != 0
    if length_input is not None:
        length = int_scalar(length_input)
        if length is None:
            return (Tensor(x.dtype, None),)
        if length < 1:
            raise ShapeRuleError(f"dft_length {length} is not positive")
    else:
        length = 2 * (shape[axis] - 1) if onesided and inverse else shape[axis]
    parts = 1 if onesided and inverse else 2
    if onesided and not inverse:
        length = length // 2 + 1
    return (Tensor(x.dtype, (*shape[:axis], length, *shape[axis + 1 : -1], parts)),)


def _stft(call: OpCall) -> Outputs:
    """(batch, samples, 1 or 2) to (batch, frames, bins, 2)."""
    x, step, window = given(call, 0), int_scalar(given(call, 1)), optional(call, 2)
    if x.shape is None or step is None:
        return (Tensor(x.dtype, None),)
    if len(x.shape) not in (2, 3):
        raise ShapeRuleError(f"signal {x.shape} has neither 2 nor 3 dimensions")
    length_input = optional(call, 3)
    length: int | None
    if length_input is not None:
        length = int_scalar(length_input)
    elif window is not None:
        length = window.shape[0] if window.shape else None
    else:
        length = x.shape[1]
    if length is None:
        return (Tensor(x.dtype, None),)
    if step < 1 or not 0 < length <= x.shape[1]:
        raise ShapeRuleError(f"frames of {length} every {step} don't fit {x.shape[1]} samples")
    bins = length // 2 + 1 if int_attribute(call, "onesided", 1) else length
    frames = (x.shape[1] - length) // step + 1
    return (Tensor(x.dtype, (x.shape[0], frames, bins, 2)),)


def _window(call: OpCall) -> Outputs:
    size = int_scalar(given(call, 0))
    dtype = dtype_attribute(call, "output_datatype", DType.FLOAT)
    return (Tensor(dtype, None if size is None else (size,)),)


def _mel_weights(call: OpCall) -> Outputs:
    bands, length = int_scalar(given(call, 0)), int_scalar(given(call, 1))
    dtype = dtype_attribute(call, "output_datatype", DType.FLOAT)
    if bands is None or length is None:
        return (Tensor(dtype, None),)
    return (Tensor(dtype, (length // 2 + 1, bands)),)


def _rfft(call: OpCall) -> Outputs:
    """com.microsoft's Rfft over the last ``signal_ndim`` axes: (..., n) to (..., n // 2 + 1, 2)."""
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    if not x.shape:
        raise ShapeRuleError("a scalar has no signal")
    length_attribute(call, "signal_ndim", 1)
    return (Tensor(x.dtype, (*x.shape[:-1], x.shape[-1] // 2 + 1, 2)),)


def _irfft(call: OpCall) -> Outputs:
    """com.microsoft's Irfft: (..., n // 2 + 1, 2) to (..., n)."""
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    if len(x.shape) < 2 or x.shape[-1] != 2:
        raise ShapeRuleError(f"shape {x.shape} holds no complex signal")
    return (Tensor(x.dtype, (*x.shape[:-2], 2 * (x.shape[-2] - 1))),)


RULES: dict[tuple[str, str], Rule] = {
    **{("", name + "Window"): _window for name in ("Blackman", "Hamming", "Hann")},
    ("", "DFT"): _dft,
    ("", "MelWeightMatrix"): _mel_weights,
    ("", "STFT"): _stft,
    ("com.microsoft", "Irfft"): _irfft,
    ("com.microsoft", "Rfft"): _rfft,
}
