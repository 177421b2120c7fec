"""What is known of tensors and calls while a file is being read: the reader's inner currency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dippm_lite.graph import AttributeValue, DType

__all__ = ["MAX_KNOWN_ELEMENTS", "OpCall", "ShapeRuleError", "Tensor"]

MAX_KNOWN_ELEMENTS = 1 << 16
"""Largest content that constant propagation keeps: shapes, axes, masks of positions; a file of a
few bytes must not make the reader allocate more."""


class ShapeRuleError(ValueError):
    """A call contradicts its operator (ranks, sizes, attributes); the text is one clause."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value as far as it is known.

    ``shape`` is None when even the rank is unknown. ``data`` is the content where it is known and
    no longer than ``MAX_KNOWN_ELEMENTS``; its shape equals ``shape``. ``bounded`` marks a shape
    that is an upper bound of one that depends on the data.
    """

    dtype: DType
    shape: tuple[int, ...] | None
    data: NDArray[np.generic] | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class OpCall:
    """One operator call with everything that a shape rule may look at.

    ``opset`` is the version of the operator's own domain. ``inputs`` are in ONNX order, None where
    absent. ``n_outputs`` counts the output slots, absent ones included. Tensor attributes (the
    ``value`` of ConstantOfShape, say) are in ``tensors``.
    """

    domain: str
    op_type: str
    opset: int
    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Tensor | None, ...]
    n_outputs: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
