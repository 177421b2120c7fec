"""Loop: its body once, with the trip count; or run by run where the shapes grow on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dippm_lite.graph import ABSENT, ValueKind
from dippm_lite.onnx_reader.draft import UNKNOWN, DraftValue
from dippm_lite.onnx_reader.functions import bound_attributes
from dippm_lite.onnx_reader.iteration import (
    constant,
    counter,
    multiply,
    same_type,
    stacked,
    varying,
)
from dippm_lite.onnx_reader.notes import Topic
from dippm_lite.onnx_reader.proto import GraphDef, NodeDef
from dippm_lite.onnx_reader.scope import Scope
from dippm_lite.onnx_reader.tensors import Tensor
from dippm_lite.onnx_reader.trip_count import counted_runs

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["follow_loop"]

_MAX_UNROLLED = 64
"""Runs that are followed one by one, where shapes change from run to run."""

_MAX_SETTLING = 3
"""Times that a body is followed to find shapes which stay."""

_MAX_TRIPS = 1 << 31
"""Exporters write the largest integer for "until the condition is false"."""


def follow_loop(walker: Walker, node: NodeDef, scope: Scope, repeat: int) -> None:
    """Put the body in place of the node, as often as it runs."""
    body = next((a.value for a in bound_attributes(node, scope) if a.name == "body"), None)
    if not isinstance(body, GraphDef) or len(body.inputs) < 2 or not body.outputs:
        walker.call(node, scope, repeat)
        return
    loop = _Loop(walker, node, scope, repeat, body)
    walker.bind_outputs(node, scope, loop.results())


class _Loop:
    def __init__(
        self, walker: Walker, node: NodeDef, scope: Scope, repeat: int, body: GraphDef
    ) -> None:
        arguments = [walker.find(scope, name) for name in node.inputs]
        arguments += [ABSENT] * (len(body.inputs) - len(arguments))
        self._walker = walker
        self._scope = scope
        self._repeat = repeat
        self._body = body
        self._label = walker.label(node)
        self._has_limit = arguments[0] != ABSENT
        self._limit = walker.integer(arguments[0])
        self._condition = arguments[1]
        self._starts = True if arguments[1] == ABSENT else walker.truth(arguments[1])
        self._initial = arguments[2 : len(body.inputs)]
        self._carried = len(self._initial)
        self._names = [info.name for info in body.inputs]

    def results(self) -> list[int]:
        """The values of the node's outputs."""
        walker = self._walker
        if self._starts is False or (self._limit is not None and self._limit <= 0):
            return self._never()
        draft = walker.draft
        start = draft.mark()
        results, kept = self._attempt([self._type_of(index) for index in self._initial])
        runs = self._runs(walker.truth(results[0]))
        if runs is None:
            draft.assumed_trips.append(self._label)
            draft.conditions += (self._condition, results[0])
            return self._finish(results, 1)
        if runs == 1 or kept:
            return self._finish(results, runs)
        draft.cut(start)
        return self._run_by_run(runs) or self._settled(runs)

    def _type_of(self, index: int) -> Tensor:
        return UNKNOWN if index == ABSENT else self._walker.draft.values[index].tensor

    def _runs(self, goes_on: bool | None) -> int | None:
        """The trip count; None where it depends on the data."""
        if not self._starts or (self._limit is None and self._has_limit):
            return None
        if goes_on is None:
            return counted_runs(self._walker, self._body, self._scope, self._initial, self._limit)
        if not goes_on:
            return 1
        return self._limit if self._limit is not None and self._limit <= _MAX_TRIPS else None

    def _attempt(self, types: list[Tensor]) -> tuple[list[int], bool]:
        """The body with loop variables of these types: its results, and whether those have the
        same types again."""
        walker, body = self._walker, self._body
        state = []
        for j, (initial, tensor) in enumerate(zip(self._initial, types, strict=True)):
            if j + 1 < len(body.outputs) and body.outputs[j + 1].name == self._names[j + 2]:
                state.append(initial)  # the body hands it on unchanged
            else:
                state.append(varying(walker, self._names[j + 2], initial, tensor, self._repeat))
        condition = constant(walker, True) if self._starts else self._condition
        self._body_start = walker.draft.mark()
        arguments = [counter(walker, self._names[0]), condition, *state]
        results = walker.body(body, self._scope, self._label, arguments, self._repeat)
        kept = all(
            same_type(self._type_of(before), self._type_of(after))
            for before, after in zip(state, results[1 : 1 + self._carried], strict=False)
        )
        return results, kept

    def _finish(self, results: list[int], runs: int) -> list[int]:
        """The node's outputs from those of the body that was followed last."""
        multiply(self._walker, self._body_start, runs)
        final = results[1 : 1 + self._carried]
        scans = [self._stack(index, [index], runs) for index in results[1 + self._carried :]]
        return [*final, *scans]

    def _stack(self, index: int, parts: list[int], count: int) -> int:
        name = self._walker.draft.values[index].name
        return stacked(self._walker, name, parts, count, 0, self._repeat)

    def _settled(self, runs: int) -> list[int]:
        """Shapes that change over many runs: those of the last of a few, as a bound."""
        walker = self._walker
        types = [self._type_of(index) for index in self._initial]
        start = walker.draft.mark()
        for _ in range(_MAX_SETTLING):
            walker.draft.cut(start)
            results, kept = self._attempt(types)
            if kept:
                break
            types = [self._type_of(index) for index in results[1 : 1 + self._carried]]
        else:
            for index in results[1 : 1 + self._carried]:
                value = walker.draft.values[index]
                value.tensor = Tensor(value.tensor.dtype, value.tensor.shape, None, bounded=True)
        return self._finish(results, runs)

    def _run_by_run(self, runs: int) -> list[int] | None:
        """Follow each run with what is known of it; None where they are too many."""
        walker = self._walker
        if runs > _MAX_UNROLLED:
            return None
        start = walker.draft.mark()
        state = self._initial
        collected: list[list[int]] = [[] for _ in self._body.outputs[1 + self._carried :]]
        for run in range(runs):
            arguments = [constant(walker, run), constant(walker, True), *state]
            results = walker.body(self._body, self._scope, self._label, arguments, self._repeat)
            state = results[1 : 1 + self._carried]
            for parts, index in zip(collected, results[1 + self._carried :], strict=True):
                parts.append(index)
            if not walker.may_unroll():
                walker.draft.cut(start)
                return None
        return [*state, *(self._stack(parts[0], parts, runs) for parts in collected)]

    def _never(self) -> list[int]:
        """No run: the variables keep their initial values, the scan outputs are empty."""
        walker = self._walker
        walker.notes.count(Topic.SHORT_LOOP, self._label)
        start = walker.draft.mark()
        results, _ = self._attempt([self._type_of(index) for index in self._initial])
        walker.draft.cut(start)
        empty = []
        for index in results[1 + self._carried :]:
            tensor = self._type_of(index)
            shape = None if tensor.shape is None else (0, *tensor.shape)
            value = DraftValue("", Tensor(tensor.dtype, shape), ValueKind.HOST)
            empty.append(walker.draft.add(value))
        return [*self._initial, *empty]
