"""SequenceMap: its body once, with the number of elements as the trip count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dippm_lite.graph import ABSENT, ValueKind
from dippm_lite.onnx_reader.draft import DraftValue
from dippm_lite.onnx_reader.functions import bound_attributes
from dippm_lite.onnx_reader.iteration import emitted, multiply
from dippm_lite.onnx_reader.proto import GraphDef, NodeDef
from dippm_lite.onnx_reader.scope import Scope
from dippm_lite.onnx_reader.shape_rules import TensorSequence
from dippm_lite.onnx_reader.tensors import Tensor

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["follow_sequence_map"]


def follow_sequence_map(walker: Walker, node: NodeDef, scope: Scope, repeat: int) -> None:
    """Put the body in place of the node, once for each element of the first input. Elements of
    different shapes are all taken as large as the largest."""
    body = next((a.value for a in bound_attributes(node, scope) if a.name == "body"), None)
    arguments = [walker.find(scope, name) for name in node.inputs]
    if not isinstance(body, GraphDef) or not arguments or arguments[0] == ABSENT:
        walker.call(node, scope, repeat)
        return
    first = walker.draft.values[arguments[0]].tensor
    elements = first.elements if isinstance(first, TensorSequence) else None
    runs = 1 if elements is None else len(elements)
    if elements is None:
        walker.draft.assumed_trips.append(walker.label(node))
    start = walker.draft.mark()
    state = [
        _element(walker, info.name, index, repeat)
        for info, index in zip(body.inputs, arguments, strict=False)
    ]
    results = walker.body(body, scope, walker.label(node), state, repeat)
    multiply(walker, start, runs)
    sequences = []
    for index in results:
        made = walker.draft.values[index]
        dtype, shape, bounded = made.tensor.dtype, made.tensor.shape, made.tensor.bounded
        whole = TensorSequence(
            dtype, shape, None, bounded, None if elements is None else (made.tensor,) * runs
        )
        value = DraftValue(made.name, whole, ValueKind.ACTIVATION)
        sequences.append(emitted(walker, "SequenceConstruct", (index,), value, repeat))
    walker.bind_outputs(node, scope, sequences)


def _element(walker: Walker, name: str, index: int, repeat: int) -> int:
    """What the body sees of an input: an element of a sequence, a tensor as it is."""
    if index == ABSENT:
        return index
    value = walker.draft.values[index]
    whole = value.tensor
    if not isinstance(whole, TensorSequence):
        return index
    shape, bounded = whole.shape, whole.bounded
    shapes = [element.shape for element in whole.elements or () if element.shape is not None]
    if shape is None and shapes and len(shapes) == len(whole.elements or ()):
        shape, bounded = max(shapes, key=math.prod), True
    element = DraftValue(name, Tensor(whole.dtype, shape, None, bounded), ValueKind.ACTIVATION)
    return emitted(walker, "SequenceAt", (index,), element, repeat)
