"""The table of all operators: shape rule, and evaluator where content is computed."""

from __future__ import annotations

from typing import NamedTuple

from dippm_lite.onnx_reader.shape_rules import (
    attention,
    cached_attention,
    content_elementwise,
    content_layout,
    content_reduction,
    convolution,
    einsum,
    elementwise,
    fourier,
    fused_attention,
    fused_pointwise,
    generators,
    indexing,
    layout,
    matmul,
    ml,
    normalization,
    optimizers,
    pooling,
    quantized,
    recurrent,
    reduction,
    resize,
    selection,
    sequence,
    slicing,
    text,
)
from dippm_lite.onnx_reader.shape_rules.calls import Rule
from dippm_lite.onnx_reader.shape_rules.content import Evaluator

__all__ = ["RULES", "Entry"]


class Entry(NamedTuple):
    """One operator. ``moves`` says that its evaluator takes elements of any type."""

    rule: Rule
    evaluator: Evaluator | None
    moves: bool


_FAMILIES = (
    attention, cached_attention, convolution, einsum, elementwise, fourier, fused_attention,
    fused_pointwise, generators, indexing, layout, matmul, ml, normalization, optimizers, pooling,
    quantized, recurrent, reduction, resize, selection, sequence, slicing, text,
)  # fmt: skip

_MOVING = {**content_elementwise.MOVING, **content_layout.MOVING}
_COMPUTING = {
    **content_elementwise.COMPUTING,
    **content_layout.COMPUTING,
    **content_reduction.COMPUTING,
}

RULES: dict[tuple[str, str], Entry] = {
    key: Entry(rule, _MOVING.get(key) or _COMPUTING.get(key), key in _MOVING)
    for family in _FAMILIES
    for key, rule in family.RULES.items()
}
"""``(domain, op_type)`` to its entry; each operator is in exactly one family."""
