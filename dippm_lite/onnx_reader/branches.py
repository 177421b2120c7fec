"""If: the branch that is taken where the condition is known, else the costlier one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dippm_lite.graph import ABSENT, ValueKind
from dippm_lite.onnx_reader.draft import DraftNode, DraftValue
from dippm_lite.onnx_reader.functions import bound_attributes
from dippm_lite.onnx_reader.proto import GraphDef, NodeDef
from dippm_lite.onnx_reader.scope import Scope

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["follow_if"]


def follow_if(walker: Walker, node: NodeDef, scope: Scope, repeat: int) -> None:
    """Put the body of one branch in place of the node."""
    attributes = {a.name: a.value for a in bound_attributes(node, scope)}
    then_branch, else_branch = attributes.get("then_branch"), attributes.get("else_branch")
    if not isinstance(then_branch, GraphDef) or not isinstance(else_branch, GraphDef):
        walker.call(node, scope, repeat)
        return
    label = walker.label(node)
    condition = walker.truth(walker.find(scope, node.inputs[0]) if node.inputs else ABSENT)
    if condition is not None:
        taken = then_branch if condition else else_branch
        walker.bind_outputs(node, scope, walker.body(taken, scope, label, (), repeat))
        return
    draft = walker.draft
    start = draft.mark()
    results = walker.body(then_branch, scope, label, (), repeat)
    middle = draft.mark()
    others = walker.body(else_branch, scope, label, (), repeat)
    if _rank(draft.nodes[start.nodes : middle.nodes], draft.values) >= _rank(
        draft.nodes[middle.nodes :], draft.values
    ):
        draft.cut(middle)
    else:
        draft.cut(start, middle)
        results = others
    draft.chosen_branches.append(label)
    draft.conditions.append(walker.find(scope, node.inputs[0]) if node.inputs else ABSENT)
    walker.bind_outputs(node, scope, results)


def _rank(nodes: Sequence[DraftNode], values: Sequence[DraftValue]) -> tuple[bool, float]:
    """A branch that contradicts its operators can't be the one that runs with these shapes: it
    comes after any other, whatever it costs."""
    return all(node.problem is None for node in nodes), _work(nodes, values)


def _work(nodes: Iterable[DraftNode], values: Sequence[DraftValue]) -> float:
    """A rank of branches by cost: multiply-accumulates of convolutions and matrix products, plus
    the elements that every call writes. Full costs need the finished graph."""
    total = 0.0
    for node in nodes:
        written = sum(
            _elements(values[i])
            for i in node.outputs
            if i >= 0 and values[i].kind is ValueKind.ACTIVATION
        )
        total += node.repeat * (written + written * _depth(node, values))
    return total


def _depth(node: DraftNode, values: Sequence[DraftValue]) -> float:
    """Multiply-accumulates per output element."""
    shapes = [values[i].tensor.shape or () if i >= 0 else () for i in node.inputs]
    if len(shapes) < 2:
        return 0
    if "Conv" in node.op_type:
        weight = shapes[3] if node.op_type.startswith("QLinear") and len(shapes) > 3 else shapes[1]
        return math.prod(weight[1:]) if weight else 0
    if "MatMul" in node.op_type or "Gemm" in node.op_type:
        transposed = node.attributes.get("transA") == 1
        return shapes[0][0 if transposed else -1] if shapes[0] else 0
    return 0


def _elements(value: DraftValue) -> int:
    return math.prod(value.tensor.shape) if value.tensor.shape is not None else 1
