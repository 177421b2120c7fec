"""Einsum: the shape that an equation gives."""

from __future__ import annotations

from collections import Counter

from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    is_bounded,
    quoted,
    text_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_ELLIPSIS = "..."


def _einsum(call: OpCall) -> Outputs:
    """Any equation of ``numpy.einsum``'s string form, ellipses and implicit output included."""
    operands = [given(call, i) for i in range(len(call.inputs))]
    if not operands:
        raise ShapeRuleError("input 0 is missing")
    equation = text_attribute(call, "equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeRuleError(f"equation {quoted(equation)} has {len(terms)} terms")
    dtype = operands[0].dtype
    sizes: dict[str, int] = {}
    batch: Shape = ()
    for term, operand in zip(terms, operands, strict=True):
        if operand.shape is None:
            return (Tensor(dtype, None),)
        batch = _bind(call, term, operand.shape, sizes, batch)
    if not arrow:
        counts = Counter(left)
        right = "".join(sorted(letter for letter in sizes if counts[letter] == 1))
        right = _ELLIPSIS + right if _ELLIPSIS in left else right
    before, dots, after = right.partition(_ELLIPSIS)
    for letter in before + after:
        if letter not in sizes:
            raise ShapeRuleError(f"equation {quoted(equation)} has no input '{letter}'")
    return (
        Tensor(
            dtype,
            tuple([sizes[letter] for letter in before])
            + (batch if dots else ())
            + tuple([sizes[letter] for letter in after]),
        ),
    )


def _bind(call: OpCall, term: str, shape: Shape, sizes: dict[str, int], batch: Shape) -> Shape:
    """Note the size of each letter of ``term`` and return ``batch`` (what the ellipsis stands
    for) broadcast with this operand's."""
    before, dots, after = term.partition(_ELLIPSIS)
    letters = before + after
    if not letters.isalpha() and letters:
        raise ShapeRuleError(f"term {quoted(term)} is malformed")
    extra = len(shape) - len(letters)
    if extra < 0 or (extra > 0 and not dots):
        raise ShapeRuleError(f"term {quoted(term)} does not fit rank {len(shape)}")
    middle = len(before) + extra
    for letter, size in zip(letters, shape[: len(before)] + shape[middle:], strict=True):
        known = sizes.setdefault(letter, size)
        if known in (size, 1):
            sizes[letter] = size
        elif size != 1:
            if not is_bounded(call):
                raise ShapeRuleError(f"index '{letter}' has sizes {known} and {size}")
            sizes[letter] = min(known, size)
    return broadcast(call, batch, shape[len(before) : middle]) or ()


RULES: dict[tuple[str, str], Rule] = {("", "Einsum"): _einsum}
