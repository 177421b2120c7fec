"""Operators that change how a tensor is looked at, as changes of its layout."""

from __future__ import annotations

from collections.abc import Callable

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT
from dippm_lite.lowering.index import GraphIndex, constant_of
from dippm_lite.lowering.strides import Layout

__all__ = ["RESHAPES", "is_view", "view_layout"]

RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze", "ExpandDims"})
"""Same elements in the same order under other sizes."""

_ANYWHERE = frozenset({"Transpose", "Expand"})
_CUTS = frozenset({"Slice", "Split", "Gather"})

_STRIDED = {
    Runtime.PYTORCH: _ANYWHERE | _CUTS,
    Runtime.ONNXRUNTIME: _ANYWHERE,
    Runtime.TENSORRT: _ANYWHERE | _CUTS,
}
"""What needs no kernel as long as its reader takes any strides. In onnxruntime a Transpose is a
kernel, but its transpose optimizer merges and moves them: it is launched where somebody needs the
result; Slice, Split and Gather are always launched."""


def is_view(index: GraphIndex, i: int, runtime: Runtime) -> bool:
    """True where ``runtime`` can do node ``i`` by sizes and strides alone."""
    node = index.node(i)
    if not node.inputs or node.inputs[0] == ABSENT:
        return False
    if node.op_type in RESHAPES and node.domain in ("", "com.microsoft"):
        return True
    if node.domain or node.op_type not in _STRIDED[runtime]:
        return False
    if node.op_type == "Slice":
        steps = slice_steps(index, i)
        return steps is not None and all(step > 0 for step in steps)
    if node.op_type == "Gather":
        spec = index.spec(index.inputs[i][1])
        known = index.scalar(index.inputs[i][1]) is not None
        return known and spec is not None and spec.rank == 0
    return True


def slice_steps(index: GraphIndex, i: int) -> tuple[int, ...] | None:
    """One step an axis of a Slice, 1 where nothing is said; None where they aren't known."""
    node = index.node(i)
    rank = len(index.shape(index.inputs[i][0]) or ())
    steps = [1] * rank
    if len(node.inputs) < 5 or node.inputs[4] == ABSENT:
        return tuple(steps)
    given = constant_of(index.graph, node.inputs[4])
    axes = constant_of(index.graph, node.inputs[3]) if node.inputs[3] != ABSENT else None
    if given is None or (axes is None and node.inputs[3] != ABSENT):
        return None
    for axis, step in zip(range(len(given)) if axes is None else axes, given, strict=False):
        if -rank <= axis < rank:
            steps[int(axis)] = int(step)
    return tuple(steps)


def view_layout(index: GraphIndex, i: int, source: Layout, slot: int) -> Layout | None:
    """Layout of output ``slot`` of view node ``i``; None where only a copy gives it."""
    result = index.shape(index.node(i).outputs[slot])
    if result is None:
        return None
    op_type = index.node(i).op_type
    if op_type in RESHAPES or op_type not in _LAYOUTS:
        return source if source.shape == result else source.reshape(result)
    return _LAYOUTS[op_type](index, i, source, result)


def _transpose(index: GraphIndex, i: int, source: Layout, result: tuple[int, ...]) -> Layout | None:
    rank = len(source.shape)
    perm = index.node(i).attributes.get("perm", tuple(reversed(range(rank))))
    if not isinstance(perm, tuple) or sorted(perm) != list(range(rank)):
        return None
    return source.permute([int(axis) for axis in perm])


def _expand(index: GraphIndex, i: int, source: Layout, result: tuple[int, ...]) -> Layout | None:
    return source.expand(result) if len(result) >= len(source.shape) else None


def _slice(index: GraphIndex, i: int, source: Layout, result: tuple[int, ...]) -> Layout | None:
    steps = slice_steps(index, i)
    return source.cut(result, steps) if len(result) == len(source.shape) else None


def _split(index: GraphIndex, i: int, source: Layout, result: tuple[int, ...]) -> Layout | None:
    return source.cut(result) if len(result) == len(source.shape) else None


def _gather(index: GraphIndex, i: int, source: Layout, result: tuple[int, ...]) -> Layout | None:
    axis = index.node(i).attributes.get("axis", 0)
    rank = len(source.shape)
    if not isinstance(axis, int) or not -rank <= axis < rank or len(result) != rank - 1:
        return None
    return source.drop(axis % rank)


_LAYOUTS: dict[str, Callable[[GraphIndex, int, Layout, tuple[int, ...]], Layout | None]] = {
    "Transpose": _transpose,
    "Expand": _expand,
    "Slice": _slice,
    "Split": _split,
    "Gather": _gather,
}
