"""A graph as patterns see it: no-ops seen through, shapes and weights at load left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dippm_lite.graph import ABSENT, DType, Graph, OpNode, TensorSpec, ValueKind
from dippm_lite.op_costs import Work, find_rule, nodes_at_load, runs_on_gpu

__all__ = ["GraphIndex", "constant_of", "is_plain"]

_SAME_SHAPE_IS_NOOP = frozenset({"Expand", "Flatten", "Reshape", "Squeeze", "Tile", "Unsqueeze"})
_ONE_OPERAND_IS_NOOP = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})


def constant_of(graph: Graph, value: int) -> tuple[int, ...] | tuple[float, ...] | None:
    """Content of a small value that is known before the first inference."""
    return None if value == ABSENT else graph.values[value].constant


def is_plain(node: OpNode, *op_types: str) -> bool:
    """True for an operator of the default domain with one of these names."""
    return not node.domain and node.op_type in op_types


class GraphIndex:
    """Who makes and who reads what, among nodes that do something at inference.

    Attributes:
        graph: the graph itself.
        inputs: for each node its inputs, each no-op's output replaced by what goes into it.
        live: node indices that remain, ascending.
        at_load, host_only, noops: the others, by why they cost nothing on the device.
        held: values that the caller gets back.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.at_load: list[int] = []
        self.host_only: list[int] = []
        self.noops: list[int] = []
        self.live: list[int] = []
        self.inputs: list[tuple[int, ...]] = []
        self._alias: dict[int, int] = {}
        self._producer: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}
        at_load = nodes_at_load(graph)
        self._fixed: set[int] = set()
        for i, node in enumerate(graph.nodes):
            inputs = tuple([self._alias.get(v, v) for v in node.inputs])
            self.inputs.append(inputs)
            if i in at_load:
                self.at_load.append(i)
                self._fixed.update(node.outputs)
            elif not runs_on_gpu(node):
                self.host_only.append(i)
            elif (source := _noop_source(graph, node)) is not None:
                self.noops.append(i)
                if source >= 0:
                    self._alias[node.outputs[0]] = inputs[source]
            else:
                self._add(i, node, inputs)
        self.held = frozenset(self.same(v) for v in graph.outputs)

    def _add(self, i: int, node: OpNode, inputs: tuple[int, ...]) -> None:
        self.live.append(i)
        for value in node.outputs:
            if value != ABSENT:
                self._producer[value] = i
        for value in dict.fromkeys(inputs):
            if value != ABSENT:
                self._readers.setdefault(value, []).append(i)

    @cached_property
    def has_named_weights(self) -> bool:
        """True if some stored weight has a name other than a bare number."""
        return any(not self.graph.values[v].name.isdigit() for v in self.graph.stored_weights)

    def same(self, value: int) -> int:
        """The value that this one is the same as."""
        return self._alias.get(value, value)

    def node(self, i: int) -> OpNode:
        return self.graph.nodes[i]

    def spec(self, value: int) -> TensorSpec | None:
        return self.graph.spec(value)

    def shape(self, value: int) -> tuple[int, ...] | None:
        spec = self.graph.spec(value)
        return None if spec is None else spec.shape

    def producer(self, value: int) -> int | None:
        """The node that computes a value at inference."""
        return self._producer.get(value)

    def made_by(self, value: int, *op_types: str) -> int | None:
        """The producer, if it is one of these operators of the default domain."""
        i = self._producer.get(value)
        return i if i is not None and is_plain(self.graph.nodes[i], *op_types) else None

    def readers(self, value: int) -> Sequence[int]:
        """Nodes that read a value at inference."""
        return self._readers.get(value, ())

    def only_reader(self, value: int, *op_types: str) -> int | None:
        """The one node that reads a value that nothing else needs, if it is one of ``op_types``
        (any, where none are given)."""
        readers = self._readers.get(value, ())
        if len(readers) != 1 or value in self.held:
            return None
        node = self.graph.nodes[readers[0]]
        return readers[0] if not op_types or is_plain(node, *op_types) else None

    def scalar(self, value: int) -> float | None:
        """A single number that is known before the first inference."""
        content = constant_of(self.graph, value)
        return float(content[0]) if content is not None and len(content) == 1 else None

    def is_weight(self, value: int) -> bool:
        """True for values that don't change between inferences."""
        if value == ABSENT:
            return False
        kind = self.graph.values[value].kind
        return kind in (ValueKind.WEIGHT, ValueKind.HOST) or value in self._fixed

    def is_argument(self, value: int) -> bool:
        """True for a small content known in advance, which is passed to a kernel and not read."""
        known = self.graph.values[value]
        if known.constant is None:
            return False
        return known.kind is ValueKind.HOST or len(known.constant) == 1

    def operand_and_scalar(self, i: int) -> tuple[int, float] | None:
        """``(operand, number)`` of a two-operand node one of whose sides is a known number."""
        inputs = self.inputs[i]
        if len(inputs) != 2:
            return None
        for operand, number in (inputs, inputs[::-1]):
            content = self.scalar(number)
            if content is not None and not self.is_weight(operand):
                return operand, content
        return None


def _noop_source(graph: Graph, node: OpNode) -> int | None:
    """Input slot whose value a no-op hands on; -1 for a free operator without such an input; None
    for an operator that does something (views included)."""
    if node.domain:
        return None
    op_type = node.op_type
    rule = find_rule(node)
    if op_type in ("Identity", "Dropout"):
        return 0
    source, result = (graph.spec(v[0]) if v else None for v in (node.inputs, node.outputs))
    same = source is not None and result is not None and source.shape == result.shape
    if op_type in _SAME_SHAPE_IS_NOOP:
        return 0 if same else None
    if op_type in ("Cast", "CastLike"):
        return 0 if source and result and _same_type(source.dtype, result.dtype) else None
    if op_type == "Transpose" and source is not None:
        perm = node.attributes.get("perm")
        return 0 if perm == tuple(range(source.rank)) else None
    if op_type == "Slice":
        steps = constant_of(graph, node.inputs[4]) if len(node.inputs) > 4 else ()
        return 0 if same and steps is not None and all(s > 0 for s in steps) else None
    if op_type in _ONE_OPERAND_IS_NOOP:
        return 0 if len(node.inputs) == 1 else None
    if op_type == "Split" and len(node.outputs) == 1:
        return 0
    return -1 if rule is not None and rule.work is Work.FREE else None


def _same_type(a: DType, b: DType) -> bool:
    return a is b and a is not DType.UNDEFINED
