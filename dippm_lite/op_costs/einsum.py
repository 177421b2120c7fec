"""Einsum: its terms, and the multiply-accumulates of contracting them from left to right."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dippm_lite.graph import Graph, OpNode
from dippm_lite.op_costs.rules import Slots, shape_of

__all__ = ["Contraction", "einsum_macs", "parse_einsum"]

_MAX_TERMS = 64
_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Contraction:
    """Labels of each operand and of the result, and the size of each label.

    An ellipsis is spelled out as the labels ``.0``, ``.1``, ... counted from the right.
    """

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    sizes: dict[str, int]


def parse_einsum(graph: Graph, node: OpNode) -> Contraction | None:
    """The contraction of an Einsum node; None where equation and shapes don't agree.

    Raises:
        UnknownShapeError: an operand's shape is unknown.
    """
    raw = node.attributes.get("equation", "")
    equation = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(node.inputs) or len(terms) > _MAX_TERMS:
        return None
    sizes: dict[str, int] = {}
    operands = []
    for slot, term in enumerate(terms):
        shape = shape_of(graph, node, slot)
        labels = _labels(term, len(shape))
        if labels is None:
            return None
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
        operands.append(labels)
    seen = [label for labels in operands for label in labels]
    dots = sorted({label for label in seen if label[0] == "."}, reverse=True)
    if arrow:
        result = _labels(right, len(right.replace(_ELLIPSIS, "")) + len(dots) * ("." in right))
    else:
        result = (*dots, *sorted(x for x in set(seen) if x[0] != "." and seen.count(x) == 1))
    if result is None or any(label not in sizes for label in result):
        return None
    return Contraction(tuple(operands), result, sizes)


def _labels(term: str, rank: int) -> tuple[str, ...] | None:
    """One label an axis; None where the term doesn't fit the rank."""
    head, dots, tail = term.partition(_ELLIPSIS)
    covered = rank - len(head) - len(tail)
    if covered < 0 or (covered and not dots) or "." in head + tail:
        return None
    return (*head, *(f".{i}" for i in range(covered - 1, -1, -1)), *tail)


def einsum_macs(graph: Graph, node: OpNode, slots: Slots) -> int:
    """Product of the sizes of all distinct labels for a contraction of two operands; with more,
    the sum over pairs from left to right, dropping labels that nothing needs later. A single
    operand is only summed or permuted: no MACs."""
    del slots
    contraction = parse_einsum(graph, node)
    if contraction is None:
        return 0
    left: set[str] = set(contraction.operands[0])
    total = 0
    for i, operand in enumerate(contraction.operands[1:], start=1):
        both = left | set(operand)
        total += prod(contraction.sizes[label] for label in both)
        later = set(contraction.result).union(*contraction.operands[i + 1 :])
        left = both & later
    return total
