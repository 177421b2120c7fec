"""The content of the small tensors that shapes and patterns depend on; weights stay in the file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dippm_lite.graph import MAX_CONSTANT_ELEMENTS, DType
from dippm_lite.onnx_reader.element_types import dtype_of, from_bits
from dippm_lite.onnx_reader.external import read_external
from dippm_lite.onnx_reader.proto import TensorDef
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, Tensor
from dippm_lite.onnx_reader.wire import Buffer, MalformedError, unpack_varints

__all__ = ["is_wanted", "stored_tensor"]

_MAX_RANK = 32  # numpy's limit before 2.0, where it became 64
_INT32_DATA = 5
_TYPED_FIELD = {
    DType.FLOAT: (4, "<f4"),
    DType.DOUBLE: (10, "<f8"),
    DType.INT64: (7, "<i8"),
    DType.UINT32: (11, "<u4"),
    DType.UINT64: (11, "<u8"),
}
"""Field number of the typed data, and its element in memory; all other types use int32_data."""


def is_wanted(dtype: DType, dims: tuple[int, ...]) -> bool:
    """True where shape arithmetic or a pattern may look into a tensor of this type and size.

    Integers and booleans up to ``MAX_KNOWN_ELEMENTS``; numbers of any type up to
    ``MAX_CONSTANT_ELEMENTS``. Quantised weights are integers that nobody computes shapes with.
    """
    elements = math.prod(dims)
    if len(dims) > _MAX_RANK or dtype.itemsize_bits == 0:
        return False
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return False
    if elements <= MAX_CONSTANT_ELEMENTS:
        return True
    return elements <= MAX_KNOWN_ELEMENTS and not (dtype.is_floating or dtype.is_quantized)


def stored_tensor(buffer: Buffer, folder: Path | None, stored: TensorDef) -> tuple[Tensor, bool]:
    """A stored tensor with its content where that is wanted, and whether it was wanted in vain."""
    dtype = dtype_of(stored.data_type)
    if not is_wanted(dtype, stored.dims):
        return Tensor(dtype, stored.dims), False
    content = _content(buffer, folder, stored, dtype, math.prod(stored.dims))
    if content is None:
        return Tensor(dtype, stored.dims), True
    content = content.reshape(stored.dims)
    content.flags.writeable = False
    return Tensor(dtype, stored.dims, content), False


def _content(
    buffer: Buffer, folder: Path | None, stored: TensorDef, dtype: DType, elements: int
) -> NDArray[np.generic] | None:
    n_bytes = (elements * dtype.itemsize_bits + 7) // 8
    if elements == 0:
        return from_bits(dtype, b"", 0)
    if stored.external is not None:
        if dtype.is_floating:  # a pattern can do without; no shape depends on it
            return None
        outside = read_external(folder, stored.external, n_bytes)
        return None if outside is None else from_bits(dtype, outside, elements)
    if stored.raw is not None:
        start, end = stored.raw
        return from_bits(dtype, buffer[start : min(end, start + n_bytes)], elements)
    return _typed_content(buffer, stored, dtype, elements)


def _typed_content(
    buffer: Buffer, stored: TensorDef, dtype: DType, elements: int
) -> NDArray[np.generic] | None:
    number, element = _TYPED_FIELD.get(dtype, (_INT32_DATA, "<i4"))
    pieces = [
        piece if isinstance(piece, bytes) else buffer[piece[0] : piece[1]]
        for piece in stored.typed.get(number, ())
    ]
    if number in (4, 10):
        return from_bits(dtype, b"".join(pieces), elements)
    packed = b"".join(pieces)
    if len(packed) > 10 * MAX_KNOWN_ELEMENTS:
        return None
    try:
        values = list(unpack_varints(packed, (0, len(packed))))
    except MalformedError:
        return None
    mask = (1 << 8 * int(element[-1])) - 1
    words = np.array([value & mask for value in values], dtype=f"<u{element[-1]}")
    if number != _INT32_DATA:
        return from_bits(dtype, words.view(element).tobytes(), elements)
    return from_bits(dtype, _narrowed(words, dtype), elements)


def _narrowed(words: NDArray[np.unsignedinteger], dtype: DType) -> bytes:
    """int32_data holds one element per entry, or one byte of packed sub-byte elements."""
    n_bytes = max(1, dtype.itemsize_bits // 8)
    return words.astype(f"<u{n_bytes}").tobytes()
