"""Following the calls of a model one by one, into subgraphs and functions, onto one flat draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dippm_lite.errors import InputError
from dippm_lite.graph import ABSENT, AttributeValue, ValueKind
from dippm_lite.onnx_reader.binding import Binding
from dippm_lite.onnx_reader.branches import follow_if
from dippm_lite.onnx_reader.draft import UNKNOWN, Draft, DraftNode, DraftValue
from dippm_lite.onnx_reader.functions import (
    FunctionKey,
    bound_attributes,
    inline,
)
from dippm_lite.onnx_reader.kinds import origin_of
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.literals import is_plain_list, literal_tensor
from dippm_lite.onnx_reader.loops import follow_loop
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.order import topological
from dippm_lite.onnx_reader.proto import FunctionDef, GraphDef, NodeDef, SparseTensorDef, TensorDef
from dippm_lite.onnx_reader.scans import follow_scan
from dippm_lite.onnx_reader.scope import Scope
from dippm_lite.onnx_reader.sequence_maps import follow_sequence_map
from dippm_lite.onnx_reader.shapes import ShapeFinder, typed
from dippm_lite.onnx_reader.source import Source
from dippm_lite.onnx_reader.stored import StoredValues, stored_value
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["Walker"]

_MAX_UNROLLED_CALLS = 50_000  # of all loops that are followed run by run, together

_NO_ATTRIBUTES: Mapping[str, AttributeValue] = {}
_NO_TENSORS: Mapping[str, Tensor] = {}


class Walker:
    """Grows a draft. Recursion is as deep as subgraphs and function calls are nested, which the
    limits bound; within a graph the calls are a plain loop."""

    def __init__(
        self,
        source: Source,
        functions: Mapping[FunctionKey, FunctionDef],
        binding: Binding,
        limits: Limits,
        notes: Notes,
    ) -> None:
        self.draft = Draft()
        self.limits = limits
        self.notes = notes
        self._functions = functions
        self._binding = binding
        self._shapes = ShapeFinder(binding, limits, notes)
        self._calls_left = limits.max_nodes
        self._unrolled_until = limits.max_nodes - _MAX_UNROLLED_CALLS
        self._stored = StoredValues(source, self.draft, notes)

    def follow(self, nodes: Sequence[NodeDef], scope: Scope, repeat: int) -> None:
        """Add the calls of one graph or function body, each running ``repeat`` times.

        Raises:
            InputError: the calls form a cycle, are too many once inlined, or nest too deeply.
        """
        if scope.depth > 2 * self.limits.max_depth:
            raise InputError(f"subgraphs and functions nest more than {scope.depth - 1} deep")
        functions = self._functions
        for node in topological(nodes, scope.sees):
            self._calls_left -= 1
            if self._calls_left < 0:
                raise InputError(
                    f"more than {self.limits.max_nodes:,} calls once functions are inlined"
                )
            if functions:
                key = (node.domain, node.op_type, node.overload)
                function = functions.get(key)
                if function is not None:
                    inline(self, key, function, node, scope, repeat)
                    continue
            special = _SPECIAL.get(node.op_type) if not node.domain else None
            if special is None:
                self.call(node, scope, repeat)
            else:
                special(self, node, scope, repeat)

    def call(self, node: NodeDef, scope: Scope, repeat: int) -> None:
        """Add one operator call as it stands."""
        values = self.draft.values
        inputs = tuple([self.find(scope, name) for name in node.inputs])
        given = [values[index] for index in inputs if index >= 0]
        attributes, tensors = _NO_ATTRIBUTES, _NO_TENSORS
        if node.attributes:
            attributes, tensors = self._attributes(node, scope)
        call = OpCall(
            node.domain,
            node.op_type,
            self.opset(node, scope),
            attributes,
            tuple([values[index].tensor if index >= 0 else None for index in inputs]),
            len(node.outputs),
            tensors,
        )
        found, problem, guessed = self._shapes.outputs(call, node.outputs, scope)
        origin = origin_of(node.domain, node.op_type, given)
        outputs = []
        for name, tensor in zip(node.outputs, found, strict=True):
            if not name:
                outputs.append(ABSENT)
                continue
            kind = origin.kind(tensor)
            value = DraftValue(name, tensor, kind, origin.constant_only, origin.rooted)
            value.guessed = guessed or origin.guessed
            outputs.append(len(values))
            self._bind(scope, name, len(values))
            values.append(value)
        self.draft.nodes.append(
            DraftNode(
                f"{scope.prefix}{node.name}" if node.name else "",
                node.domain,
                node.op_type,
                inputs,
                tuple(outputs),
                attributes,
                repeat,
                problem,
                guessed,
                origin.guessed,
            )
        )

    def constant(self, node: NodeDef, scope: Scope, repeat: int) -> None:
        """A Constant node: a stored tensor under its output's name."""
        name = node.outputs[0] if node.outputs else ""
        for attribute in bound_attributes(node, scope) if name else ():
            content = attribute.value
            if isinstance(content, TensorDef | SparseTensorDef):
                self._bind(scope, name, self._stored.index(name, content))
                return
            tensor = literal_tensor(attribute)
            if tensor is not None:
                self._bind(scope, name, self.draft.add(stored_value(name, tensor)))
                return
        self.call(node, scope, repeat)

    def body(
        self, graph: GraphDef, scope: Scope, label: str, arguments: Sequence[int], repeat: int
    ) -> list[int]:
        """Follow a subgraph whose inputs are ``arguments``; the values of its outputs."""
        inner = scope.subgraph(graph, label)
        for info, index in zip(graph.inputs, arguments, strict=False):
            inner.values[info.name] = index
        self.follow(graph.nodes, inner, repeat)
        found = [self.find(inner, info.name) for info in graph.outputs]
        return [self._unknown(inner, "") if index == ABSENT else index for index in found]

    def find(self, scope: Scope, name: str) -> int:
        """The value that ``name`` means in ``scope``; ABSENT for the empty name."""
        if not name:
            return ABSENT
        at: Scope | None = scope
        while at is not None:
            index = at.values.get(name)
            if index is not None:
                return index
            if name in at.stored:
                index = self._stored.index(name, at.stored[name])
                at.values[name] = index
                return index
            at = at.parent
        self.notes.count(Topic.DANGLING, name)
        index = scope.values[name] = self._unknown(scope, name)
        return index

    def bind_outputs(self, node: NodeDef, scope: Scope, results: Sequence[int]) -> None:
        """Give a node's output names to values that its body made."""
        for position, name in enumerate(node.outputs):
            if not name:
                continue
            index = results[position] if position < len(results) else ABSENT
            self._bind(scope, name, self._unknown(scope, name) if index == ABSENT else index)

    def opset(self, node: NodeDef, scope: Scope) -> int:
        """The version of a node's domain; 1 where the file imports none."""
        version = scope.opsets.get(node.domain)
        if version is None:
            if not node.domain:
                self.notes.remark("no version of the default operators is imported: 1 is assumed")
            return 1
        return version

    def label(self, node: NodeDef) -> str:
        """How messages and inner names call a node with a body: often it has no name."""
        return node.name or next(filter(None, node.outputs), node.op_type)

    def truth(self, index: int) -> bool | None:
        """The content of a boolean scalar; None where it isn't known."""
        data = None if index == ABSENT else self.draft.values[index].tensor.data
        return None if data is None or data.size != 1 else bool(data.reshape(-1)[0])

    def integer(self, index: int) -> int | None:
        """The content of an integer scalar; None where it isn't known."""
        data = None if index == ABSENT else self.draft.values[index].tensor.data
        if data is None or data.size != 1 or data.dtype.kind not in "iu":
            return None
        return int(data.reshape(-1)[0])

    def may_unroll(self) -> bool:
        """False once following loops run by run has taken its share of all calls."""
        return self._calls_left > self._unrolled_until

    def _unknown(self, scope: Scope, name: str) -> int:
        """A value that nothing produces, taken as computed; its type is what the file declares."""
        tensor = typed(scope.declared.get(name), self._binding) or UNKNOWN
        return self.draft.add(DraftValue(name, tensor, ValueKind.ACTIVATION))

    def _bind(self, scope: Scope, name: str, index: int) -> None:
        if name in scope.values:
            self.notes.count(Topic.DUPLICATE_VALUE, name)
        scope.values[name] = index

    def _attributes(
        self, node: NodeDef, scope: Scope
    ) -> tuple[Mapping[str, AttributeValue], Mapping[str, Tensor]]:
        """A node's attributes: plain values, and tensors apart. Subgraphs are in neither."""
        plain: dict[str, AttributeValue] = {}
        tensors: dict[str, Tensor] = {}
        for attribute in bound_attributes(node, scope):
            value = attribute.value
            if isinstance(value, TensorDef):
                tensors[attribute.name] = self._stored.tensor(value)
            elif isinstance(value, int | float | str | bytes) or is_plain_list(value):
                plain[attribute.name] = value
        return plain, tensors


_SPECIAL: Mapping[str, Callable[[Walker, NodeDef, Scope, int], None]] = {
    "Constant": Walker.constant,
    "If": follow_if,
    "Loop": follow_loop,
    "Scan": follow_scan,
    "SequenceMap": follow_sequence_map,
}
