"""Operators that make tensors out of attributes, sizes or chance."""

from __future__ import annotations

import math

import numpy as np

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    dtype_attribute,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    length_attribute,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.shape_rules.storage import STORAGE
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_VALUE_DTYPES = {
    "value_float": DType.FLOAT,
    "value_floats": DType.FLOAT,
    "value_int": DType.INT64,
    "value_ints": DType.INT64,
    "value_string": DType.STRING,
    "value_strings": DType.STRING,
}


def _constant(call: OpCall) -> Outputs:
    """Tensors and sparse tensors as decoded; numbers and lists of them since opset 12."""
    for name in ("value", "sparse_value"):
        if name in call.tensors:
            return (call.tensors[name],)
    for name, dtype in _VALUE_DTYPES.items():
        value = call.attributes.get(name)
        if value is not None:
            return (_literal(name, dtype, value),)
    return (None,)


def _literal(name: str, dtype: DType, value: object) -> Tensor:
    listed = name.endswith("s")
    if isinstance(value, tuple) != listed:
        raise ShapeRuleError(f"attribute '{name}' has the wrong type")
    shape = (len(value),) if isinstance(value, tuple) else ()
    kind = {DType.FLOAT: (float, int), DType.INT64: (int,)}.get(dtype)
    if kind is None or math.prod(shape) > MAX_KNOWN_ELEMENTS:
        return Tensor(dtype, shape)
    entries = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(entry, kind) and abs(entry) < 2.0**63 for entry in entries):
        if not all(isinstance(entry, kind) for entry in entries):
            raise ShapeRuleError(f"attribute '{name}' has the wrong type")
        return Tensor(dtype, shape)
    return Tensor(dtype, shape, np.array(entries, dtype=STORAGE[dtype]).reshape(shape))


def _constant_of_shape(call: OpCall) -> Outputs:
    """Filled with the one element of ``value``, FLOAT 0 by default."""
    wanted = given(call, 0)
    value = call.tensors.get("value")
    if value is not None and value.shape is not None and math.prod(value.shape) != 1:
        raise ShapeRuleError("attribute 'value' doesn't hold one element")
    dtype = DType.FLOAT if value is None else value.dtype
    shape = int_content(wanted)
    if shape is None:
        return (Tensor(dtype, () if wanted.shape == (0,) else None),)
    if shape and min(shape) < 0:
        raise ShapeRuleError(f"shape {shape[:16]} has a negative size")
    return (Tensor(dtype, shape),)


def _range(call: OpCall) -> Outputs:
    """``max(ceil((limit - start) / delta), 0)`` numbers; com.microsoft's delta is 1 by default."""
    start, limit = given(call, 0), given(call, 1)
    delta = optional(call, 2) if call.domain else given(call, 2)
    ends = _number(start), _number(limit)
    step = 1 if delta is None else _number(delta)
    if ends[0] is None or ends[1] is None or step is None:
        return (Tensor(start.dtype, None),)
    return (Tensor(start.dtype, (_count(ends[0], ends[1], step),)),)


def _number(tensor: Tensor) -> int | float | None:
    data = tensor.data
    if data is None:
        return None
    if data.size != 1 or data.dtype.kind not in "iuf":
        raise ShapeRuleError("a range's ends are one number each")
    value: int | float = data.ravel().tolist()[0]
    return value


def _count(start: float, limit: float, delta: float) -> int:
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        if delta == 0:
            raise ShapeRuleError("a range's delta is 0")
        return max(-((start - limit) // delta), 0)
    span = limit - start
    if delta == 0 or not math.isfinite(span) or not math.isfinite(delta):
        raise ShapeRuleError(f"a range from {start} to {limit} by {delta} has no length")
    steps = span / delta
    if not steps < 2**63:
        raise ShapeRuleError(f"a range from {start} to {limit} by {delta} is too long")
    return max(math.ceil(steps), 0)


def _eye_like(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is not None:
        rank_is(x.shape, 2, "the input")
    return (Tensor(dtype_attribute(call, "dtype", x.dtype), x.shape),)


def _random(call: OpCall) -> Outputs:
    shape = ints_attribute(call, "shape")
    if shape is None:
        raise ShapeRuleError("attribute 'shape' is missing")
    return (Tensor(dtype_attribute(call, "dtype", DType.FLOAT), shape),)


def _given_fill(call: OpCall) -> Outputs:
    """The retired GivenTensorFill: ``shape``, or ``extra_shape`` behind an input's own."""
    x = optional(call, 0)
    shape = ints_attribute(call, "shape")
    if shape is None and x is not None and x.shape is not None:
        shape = x.shape + (ints_attribute(call, "extra_shape") or ())
    return (Tensor(DType.FLOAT, shape),)


def _multinomial(call: OpCall) -> Outputs:
    """(batch, classes) to (batch, samples)."""
    x = given(call, 0)
    dtype = dtype_attribute(call, "dtype", DType.INT32)
    samples = length_attribute(call, "sample_size", 1)
    if x.shape is None:
        return (Tensor(dtype, None),)
    rank_is(x.shape, 2, "the input")
    return (Tensor(dtype, (x.shape[0], samples)),)


def _image_decoder(call: OpCall) -> Outputs:
    """(height, width, channels), known only once the stream is decoded."""
    given(call, 0)
    return (Tensor(DType.UINT8, None),)


def _murmur_hash(call: OpCall) -> Outputs:
    """MurmurHash3: 32 bits for each element."""
    dtype = DType.UINT32 if int_attribute(call, "positive", 1) else DType.INT32
    return (Tensor(dtype, given(call, 0).shape),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Constant"): _constant,
    ("", "ConstantOfShape"): _constant_of_shape,
    ("", "EyeLike"): _eye_like,
    ("", "GivenTensorFill"): _given_fill,
    ("", "ImageDecoder"): _image_decoder,
    ("", "Multinomial"): _multinomial,
    ("", "RandomNormal"): _random,
    ("", "RandomUniform"): _random,
    ("", "Range"): _range,
    ("com.microsoft", "MurmurHash3"): _murmur_hash,
    ("com.microsoft", "Range"): _range,
}
