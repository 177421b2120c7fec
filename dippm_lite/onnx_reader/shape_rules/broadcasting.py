"""Broadcasting of shapes, with the leniency that upper bounds need."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.calls import Shape, is_bounded
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError

__all__ = ["broadcast", "broadcast_all", "common_size"]


def broadcast(call: OpCall, a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape that ``a`` and ``b`` broadcast to (numpy's rule), None where one is unknown.

    Where an input of the call is bounded, two sizes that differ bound the same true size, and the
    smaller one is the tighter bound.
    """
    if a is None or b is None:
        return None
    if a == b:
        return a
    if len(a) < len(b):
        a, b = b, a
    sizes = list(a)
    for i, size in enumerate(b, len(a) - len(b)):
        other = sizes[i]
        if other == size or size == 1:
            continue
        if other == 1:
            sizes[i] = size
        elif is_bounded(call):
            sizes[i] = min(other, size)
        else:
            raise ShapeRuleError(f"shapes {a} and {b} do not broadcast")
    return tuple(sizes)


def broadcast_all(call: OpCall, shapes: list[Shape | None]) -> Shape | None:
    """The shape that all of ``shapes`` broadcast to."""
    result: Shape | None = ()
    for shape in shapes:
        result = broadcast(call, result, shape)
    return result


def common_size(call: OpCall, a: int, b: int, what: str) -> int:
    """The size that ``a`` and ``b`` have to agree on; the smaller where they are bounds."""
    if a != b and not is_bounded(call):
        raise ShapeRuleError(f"{what} differ: {a} and {b}")
    return min(a, b)
