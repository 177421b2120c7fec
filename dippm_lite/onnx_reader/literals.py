"""Constant nodes that hold numbers or strings in attributes instead of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.proto import AttributeContent, AttributeDef
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["is_plain_list", "literal_tensor"]

_FORMS: Mapping[str, tuple[DType, type | None]] = {
    "value_int": (DType.INT64, np.int64),
    "value_ints": (DType.INT64, np.int64),
    "value_float": (DType.FLOAT, np.float32),
    "value_floats": (DType.FLOAT, np.float32),
    "value_string": (DType.STRING, None),
    "value_strings": (DType.STRING, None),
}
"""Attribute to element type, in onnx and in numpy."""


def literal_tensor(attribute: AttributeDef) -> Tensor | None:
    """The tensor that such an attribute means; None for another attribute, or a broken one."""
    form, value = _FORMS.get(attribute.name), attribute.value
    if form is None or isinstance(value, tuple) != attribute.name.endswith("s"):
        return None
    dtype, scalar = form
    shape = (len(value),) if isinstance(value, tuple) else ()
    if scalar is None:
        return Tensor(dtype, shape)
    items = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(item, int | float) for item in items):
        return None
    return Tensor(dtype, shape, np.array(items, dtype=scalar).reshape(shape))


def is_plain_list(value: AttributeContent) -> TypeGuard[tuple[int, ...]]:
    """True for a list of numbers or strings, as against one of tensors or graphs."""
    return isinstance(value, tuple) and (
        not value or isinstance(value[0], int | float | str | bytes)
    )
