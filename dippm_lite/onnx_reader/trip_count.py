"""How often a loop with a condition runs: by running only what the condition is computed from.

TensorFlow's while loops and scripted PyTorch loops count in a variable and stop at a bound, which
is known once the shapes are. Of a body of hundreds of calls, the counting takes a handful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dippm_lite.onnx_reader.iteration import constant
from dippm_lite.onnx_reader.order import reads
from dippm_lite.onnx_reader.proto import GraphDef
from dippm_lite.onnx_reader.scope import Scope

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["counted_runs"]

_MAX_COUNTED = 10_000


def counted_runs(
    walker: Walker, body: GraphDef, scope: Scope, initial: Sequence[int], limit: int | None
) -> int | None:
    """The trip count of a loop that starts with the loop variables ``initial`` and ends with its
    condition, or after ``limit`` runs; None where the condition depends on more than is known, or
    doesn't end it soon."""
    sliced, kept = _condition_slice(body, len(initial))
    start = walker.draft.mark()
    state = list(initial)
    runs = None
    for run in range(_MAX_COUNTED):
        if run == limit or not walker.may_unroll():
            runs = run if run == limit else None
            break
        arguments = [constant(walker, run), constant(walker, True), *state]
        goes_on, *results = walker.body(sliced, scope, "", arguments, 1)
        condition = walker.truth(goes_on)
        if not condition:
            runs = None if condition is None else run + 1
            break
        for position, index in zip(kept, results, strict=True):
            state[position] = index
    walker.draft.cut(start)
    return runs


def _condition_slice(body: GraphDef, n_variables: int) -> tuple[GraphDef, list[int]]:
    """The part of a body that its condition needs, over any number of runs, and the positions of
    the loop variables in it."""
    needed = {body.outputs[0].name}
    variables = list(zip(body.inputs[2:], body.outputs[1:], strict=False))[:n_variables]
    kept_nodes: set[int] = set()
    before = -1
    while len(needed) > before:
        before = len(needed)
        needed.update(after.name for now, after in variables if now.name in needed)
        for position in range(len(body.nodes) - 1, -1, -1):
            node = body.nodes[position]
            if not needed.isdisjoint(node.outputs):
                kept_nodes.add(position)
                needed.update(reads(node))
        needed.discard("")
    kept = [j for j, (now, _) in enumerate(variables) if now.name in needed]
    outputs = (body.outputs[0], *(variables[j][1] for j in kept))
    nodes = tuple(node for i, node in enumerate(body.nodes) if i in kept_nodes)
    return replace(body, nodes=nodes, outputs=outputs), kept
