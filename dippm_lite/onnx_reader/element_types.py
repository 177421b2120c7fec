"""``TensorProto.DataType``: numbers to names, and small contents from their stored bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dippm_lite.graph import DType

__all__ = ["dtype_of", "from_bits"]

_NUMBERED = tuple(DType)
"""``TensorProto.DataType`` numbers its types in the order in which DType lists them."""

_NUMPY = {
    DType.FLOAT: "<f4", DType.UINT8: "u1", DType.INT8: "i1", DType.UINT16: "<u2",
    DType.INT16: "<i2", DType.INT32: "<i4", DType.INT64: "<i8", DType.BOOL: "?",
    DType.FLOAT16: "<f2", DType.DOUBLE: "<f8", DType.UINT32: "<u4", DType.UINT64: "<u8",
}  # fmt: skip

_MINIFLOATS = {
    DType.FLOAT8E4M3FN: (4, 3, 7, "fn"),
    DType.FLOAT8E4M3FNUZ: (4, 3, 8, "fnuz"),
    DType.FLOAT8E5M2: (5, 2, 15, "ieee"),
    DType.FLOAT8E5M2FNUZ: (5, 2, 16, "fnuz"),
    DType.FLOAT4E2M1: (2, 1, 1, "finite"),
}
"""Exponent bits, mantissa bits, bias, and which codes are not numbers:
https://onnx.ai/onnx/technical/float8.html and .../float4.html."""


def dtype_of(number: int) -> DType:
    """The type of a ``data_type`` or ``elem_type``; UNDEFINED for a number that isn't known."""
    return _NUMBERED[number] if 0 <= number < len(_NUMBERED) else DType.UNDEFINED


def from_bits(dtype: DType, raw: bytes, elements: int) -> NDArray[np.generic] | None:
    """``elements`` values from their little-endian, packed bits.

    Types that numpy lacks come back as float32 (bfloat16, float8, float4) or as int8 and uint8
    (4 and 2 bits). None where the bytes are too few, or for strings and complex numbers.
    """
    if dtype.itemsize_bits == 0 or len(raw) * 8 < elements * dtype.itemsize_bits:
        return None
    code = _NUMPY.get(dtype)
    if code is not None:
        values = np.frombuffer(raw, dtype=code, count=elements)
        return values.astype(values.dtype.newbyteorder("="))
    if dtype is DType.BFLOAT16:
        halves = np.frombuffer(raw, dtype="<u2", count=elements).astype(np.uint32)
        return (halves << 16).view(np.float32)
    if dtype.is_quantized:
        return _small_integers(dtype, raw, elements)
    if dtype is DType.FLOAT8E8M0:
        return np.array([_power_of_two(code) for code in raw[:elements]], dtype=np.float32)
    if dtype in _MINIFLOATS:
        codes = (
            raw if dtype.itemsize_bits == 8 else [half for b in raw for half in (b & 15, b >> 4)]
        )
        return np.array([_minifloat(dtype, code) for code in codes[:elements]], dtype=np.float32)
    return None


def _small_integers(dtype: DType, raw: bytes, elements: int) -> NDArray[np.generic]:
    """2- and 4-bit integers, the first element in the lowest bits of a byte."""
    bits = dtype.itemsize_bits
    packed = np.frombuffer(raw, dtype=np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:elements]
    if dtype in (DType.UINT4, DType.UINT2):
        return codes
    signed = codes.astype(np.int8)
    return np.where(signed >> (bits - 1), signed - (1 << bits), signed).astype(np.int8)


def _power_of_two(code: int) -> float:
    return math.nan if code == 0xFF else 2.0 ** (code - 127)


def _minifloat(dtype: DType, code: int) -> float:
    exponent_bits, mantissa_bits, bias, kind = _MINIFLOATS[dtype]
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    magnitude = code & ((1 << (exponent_bits + mantissa_bits)) - 1)
    exponent, mantissa = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    if kind == "fnuz" and sign < 0 and magnitude == 0:
        return math.nan
    if kind == "fn" and magnitude == 0x7F:
        return math.nan
    if kind == "ieee" and exponent == (1 << exponent_bits) - 1:
        return math.nan if mantissa else sign * math.inf
    fraction = mantissa / (1 << mantissa_bits)
    if exponent == 0:
        return sign * float(2.0 ** (1 - bias)) * fraction
    return sign * float(2.0 ** (exponent - bias)) * (1 + fraction)
