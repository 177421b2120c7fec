"""How known content is stored: the numpy type for each element type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dippm_lite.graph import DType

__all__ = ["COMPUTABLE", "NATIVE", "STORAGE", "stored"]

NATIVE: dict[DType, np.dtype[np.generic]] = {
    DType.FLOAT: np.dtype(np.float32),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT8: np.dtype(np.int8),
    DType.UINT16: np.dtype(np.uint16),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.BOOL: np.dtype(np.bool_),
    DType.FLOAT16: np.dtype(np.float16),
    DType.DOUBLE: np.dtype(np.float64),
    DType.UINT32: np.dtype(np.uint32),
    DType.UINT64: np.dtype(np.uint64),
}
"""Types that numpy computes in itself. Shapes, masks and positions are never complex."""

COMPUTABLE = frozenset({*NATIVE, DType.BFLOAT16})
"""Types whose arithmetic is modelled: bfloat16 is float32, rounded."""

STORAGE: dict[DType, np.dtype[np.generic]] = {
    **NATIVE,
    **{
        dtype: np.dtype(np.float32)
        for dtype in (
            DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2,
            DType.FLOAT8E5M2FNUZ, DType.FLOAT4E2M1, DType.FLOAT8E8M0,
        )
    },
    DType.INT4: np.dtype(np.int8),
    DType.INT2: np.dtype(np.int8),
    DType.UINT4: np.dtype(np.uint8),
    DType.UINT2: np.dtype(np.uint8),
}  # fmt: skip
"""Small floats are stored as the float32 of the same value, small integers as bytes."""


def stored(dtype: DType, values: NDArray[np.generic]) -> NDArray[np.generic] | None:
    """Computed ``values`` in the storage of ``dtype``; None where its rounding isn't modelled."""
    native = NATIVE.get(dtype)
    if native is not None:
        return values if values.dtype == native else values.astype(native)
    if dtype is not DType.BFLOAT16:
        return None
    # The upper half of a float32 is a bfloat16; adding half a unit, less one where the kept part
    # is even, rounds to nearest even.
    single = np.array(values, dtype=np.float32, ndmin=1)
    bits = single.view(np.uint32)
    kept = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + kept) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(single), single, rounded).reshape(values.shape)
