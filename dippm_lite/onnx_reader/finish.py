"""From the draft to the graph: what no output needs goes, what is left is numbered anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dippm_lite.caveats import (
    AssumedTripCount,
    BoundedShapes,
    BranchChosen,
    Caveat,
    UnresolvedShapes,
)
from dippm_lite.errors import InputError
from dippm_lite.graph import (
    ABSENT,
    MAX_CONSTANT_ELEMENTS,
    DType,
    Graph,
    OpNode,
    TensorSpec,
    Value,
    ValueKind,
)
from dippm_lite.onnx_reader.draft import Draft, DraftNode, DraftValue
from dippm_lite.onnx_reader.kinds import refine_stored_kinds
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.shape_rules import TensorSequence
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["Frame", "finish"]

_MOST_EXAMPLES = 5

_ONE_TYPE = frozenset({"Add", "Conv", "ConvTranspose", "Div", "Gemm", "MatMul", "Mul", "Sub"})
"""Operators whose first two inputs have one type; half-converted float16 models break that."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a draft is to become: the graph's name and opset, and its inputs and outputs as values
    of the draft. ``bound`` says what the free dimensions were bound to, None where there were
    none: with them, a contradiction is most likely the caller's doing."""

    name: str
    opset: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    bound: str | None


def finish(draft: Draft, frame: Frame, notes: Notes) -> tuple[Graph, tuple[Caveat, ...]]:
    """The graph and the caveats about it.

    Raises:
        InputError: a call contradicts its operator under the dimensions that the caller bound.
    """
    live = _live(draft, frame)
    used = set(map(id, live))
    dead = sum(id(n) not in used and _is_launched(n, draft.values) for n in draft.nodes)
    if dead:
        notes.remark(f"{dead} node{'s' if dead > 1 else ''} that no output needs: left out")
    for node in live:
        _report(node, draft.values, frame, notes)
    made = refine_stored_kinds(draft.values, live)
    nodes = _launched(draft.values, live, made, frame.outputs)
    graph, kept = _numbered(draft.values, nodes, made, frame)
    for value in kept:
        dtype = value.tensor.dtype
        if dtype is DType.UNDEFINED and value.tensor.shape is not None:
            notes.count(Topic.UNKNOWN_TYPE, value.name)
    return graph, _caveats(draft, graph, kept)


def _live(draft: Draft, frame: Frame) -> list[DraftNode]:
    """The calls that an output or a condition depends on; all of them, where the graph has no
    outputs."""
    if not frame.outputs:
        return draft.nodes
    needed = {*frame.outputs, *draft.conditions} - {ABSENT}
    live = []
    for node in reversed(draft.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            needed.discard(ABSENT)
            live.append(node)
    return live[::-1]


def _is_launched(node: DraftNode, values: Sequence[DraftValue]) -> bool:
    return any(i >= 0 and values[i].kind is not ValueKind.HOST for i in node.outputs)


def _report(node: DraftNode, values: Sequence[DraftValue], frame: Frame, notes: Notes) -> None:
    name = node.name or node.op_type
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    if node.problem is not None:
        if frame.bound is not None and not node.on_guess:
            raise InputError(
                f"node {quoted(name)}: {node.problem}, with {frame.bound}: "
                "give a --batch, --dim or --shape that fits the model"
            )
        notes.count(Topic.CONTRADICTION, name, node.problem)
    if node.guessed:
        notes.count(Topic.GUESSED, name, operator)
    if node.attributes.get("training_mode") == 1 and not node.domain:
        notes.count(Topic.TRAINING_MODE, name, operator)
    if node.op_type in _ONE_TYPE and not node.domain:
        types = {values[i].tensor.dtype for i in node.inputs[:2] if i >= 0}
        if len(types) > 1 and all(dtype.is_floating for dtype in types):
            notes.count(Topic.MIXED_TYPES, name, operator)


def _launched(
    values: Sequence[DraftValue], nodes: Sequence[DraftNode], made: set[int], outputs: Sequence[int]
) -> list[DraftNode]:
    """The calls without those that only the host makes, and without those whose only use is to
    fill a weight."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        written = [index for index in node.outputs if index >= 0]
        if written and all(values[i].kind is ValueKind.HOST or i in made for i in written):
            continue
        if all(values[i].constant_only for i in written) and needed.isdisjoint(written):
            continue
        needed.update(node.inputs)
        kept.append(node)
    return kept[::-1]


def _numbered(
    values: Sequence[DraftValue], nodes: Sequence[DraftNode], made: set[int], frame: Frame
) -> tuple[Graph, list[DraftValue]]:
    """The graph of ``nodes`` and the values it mentions, in the order of first mention."""
    numbers: dict[int, int] = {-1: -1}
    for group in (frame.inputs, *(n.inputs + n.outputs for n in nodes), frame.outputs):
        for index in group:
            if index not in numbers:
                numbers[index] = len(numbers) - 1
    kept = [values[index] for index in numbers if index >= 0]
    final_nodes = tuple(
        OpNode(
            node.name or f"{node.op_type}_{position}",
            node.domain,
            node.op_type,
            tuple([numbers[index] for index in node.inputs]),
            tuple([numbers[index] for index in node.outputs]),
            node.attributes,
            node.repeat,
        )
        for position, node in enumerate(nodes)
    )
    graph = Graph(
        frame.name,
        tuple(_value(values[i], i in made) for i in numbers if i >= 0),
        final_nodes,
        tuple(numbers[index] for index in frame.inputs),
        tuple(numbers[index] for index in frame.outputs),
        frame.opset,
    )
    return graph, kept


def _value(value: DraftValue, made: bool) -> Value:
    tensor = value.tensor
    shape = _shape(tensor)
    stored = value.kind is ValueKind.WEIGHT and (value.in_file or made)
    return Value(
        value.name,
        None if shape is None else TensorSpec(shape, tensor.dtype),
        value.kind,
        _constant(tensor),
        tensor.bounded,
        stored,
    )


def _shape(tensor: Tensor) -> tuple[int, ...] | None:
    """A sequence takes the room of its elements: like a stack of them, or in a row where their
    shapes differ."""
    if not isinstance(tensor, TensorSequence):
        return tensor.shape
    if tensor.elements is None or any(e.shape is None for e in tensor.elements):
        return None
    if tensor.shape is not None:
        return (len(tensor.elements), *tensor.shape)
    return (sum(math.prod(e.shape or ()) for e in tensor.elements),)


def _constant(tensor: Tensor) -> tuple[int, ...] | tuple[float, ...] | None:
    data = tensor.data
    if data is None or data.size > MAX_CONSTANT_ELEMENTS or data.dtype.kind not in "biuf":
        return None
    if data.dtype.kind == "f":
        return tuple([float(x) for x in data.ravel().tolist()])
    return tuple([int(x) for x in data.ravel().tolist()])


def _caveats(draft: Draft, graph: Graph, kept: Sequence[DraftValue]) -> tuple[Caveat, ...]:
    used = {i for node in graph.nodes for i in node.inputs + node.outputs}.union(graph.outputs)
    unresolved = [
        value.name
        for i, (value, final) in enumerate(zip(kept, graph.values, strict=True))
        if final.spec is None and value.is_tensor and i in used
    ]
    bounded = [value.name for value in graph.values if value.bounded]
    found: list[Caveat] = []
    for kind, names in (
        (BranchChosen, draft.chosen_branches),
        (AssumedTripCount, draft.assumed_trips),
        (BoundedShapes, bounded),
        (UnresolvedShapes, unresolved),
    ):
        if names:
            found.append(kind(len(names), tuple(names[:_MOST_EXAMPLES])))
    return tuple(found)
