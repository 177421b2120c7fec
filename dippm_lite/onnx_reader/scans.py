"""Scan: its body once, with the length of the scanned axis as the trip count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dippm_lite.graph import ABSENT
from dippm_lite.onnx_reader.draft import UNKNOWN
from dippm_lite.onnx_reader.functions import bound_attributes
from dippm_lite.onnx_reader.iteration import multiply, sliced, stacked, varying
from dippm_lite.onnx_reader.proto import GraphDef, NodeDef
from dippm_lite.onnx_reader.scope import Scope

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["follow_scan"]

_FIRST_WITHOUT_BATCH = 9
"""Scan-8 has a batch axis of its own and is not followed: a call without a known cost."""


def follow_scan(walker: Walker, node: NodeDef, scope: Scope, repeat: int) -> None:
    """Put the body in place of the node, once for each slice."""
    attributes = {a.name: a.value for a in bound_attributes(node, scope)}
    body, n_scanned = attributes.get("body"), attributes.get("num_scan_inputs")
    arguments = [walker.find(scope, name) for name in node.inputs]
    if (
        not isinstance(body, GraphDef)
        or not isinstance(n_scanned, int)
        or not 1 <= n_scanned <= len(arguments) == len(body.inputs)
        or walker.opset(node, scope) < _FIRST_WITHOUT_BATCH
    ):
        walker.call(node, scope, repeat)
        return
    n_states = len(arguments) - n_scanned
    in_axes = _axes(attributes.get("scan_input_axes"), n_scanned)
    out_axes = _axes(attributes.get("scan_output_axes"), max(len(body.outputs) - n_states, 0))
    names = [info.name for info in body.inputs]
    values = walker.draft.values
    runs = None
    for index, axis in zip(arguments[n_states:], in_axes, strict=True):
        shape = None if index == ABSENT else values[index].tensor.shape
        if shape and -len(shape) <= axis < len(shape):
            runs = shape[axis]
            break
    if runs is None:
        runs = 1
        walker.draft.assumed_trips.append(walker.label(node))
    state = [
        varying(walker, name, i, values[i].tensor if i != ABSENT else UNKNOWN, repeat)
        for name, i in zip(names, arguments[:n_states], strict=False)
    ]
    start = walker.draft.mark()
    slices = [
        sliced(walker, name, index, axis, repeat)
        for name, index, axis in zip(names[n_states:], arguments[n_states:], in_axes, strict=True)
    ]
    results = walker.body(body, scope, walker.label(node), [*state, *slices], repeat)
    multiply(walker, start, runs)
    scans = [
        stacked(walker, values[index].name, [index], runs, axis, repeat)
        for index, axis in zip(results[n_states:], out_axes, strict=True)
    ]
    walker.bind_outputs(node, scope, [*results[:n_states], *scans])


def _axes(value: object, count: int) -> list[int]:
    """``count`` axes, 0 where the attribute doesn't say."""
    given = [axis for axis in value if isinstance(axis, int)] if isinstance(value, tuple) else []
    return (given + [0] * count)[:count]
