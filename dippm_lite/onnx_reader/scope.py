"""Which value a name means: subgraphs see the graph around them, functions see nothing."""

from __future__ import annotations

from collections.abc import Mapping

from dippm_lite.onnx_reader.proto import (
    AttributeDef,
    GraphDef,
    SparseTensorDef,
    TensorDef,
    TypeDef,
    ValueInfoDef,
)

__all__ = ["Scope", "StoredDef"]

StoredDef = TensorDef | SparseTensorDef


class Scope:
    """Names of one graph, subgraph or function body.

    Attributes:
        values: name to index of the value, ``ABSENT`` for a function input that the call leaves
            out.
        stored: initializers that nobody has read so far.
        declared: types from value_info and outputs.
        attributes: of the enclosing function call, for references from its body.
        opsets: domain to version.
        path: keys of the function calls that led here, outermost first.
        prefix: what names of calls start with, ``""`` in the main graph.
        depth: of nesting, subgraphs and function calls together.
    """

    __slots__ = (
        "attributes",
        "declared",
        "depth",
        "opsets",
        "parent",
        "path",
        "prefix",
        "stored",
        "values",
    )

    def __init__(self, opsets: Mapping[str, int], prefix: str = "") -> None:
        self.values: dict[str, int] = {}
        self.stored: dict[str, StoredDef] = {}
        self.declared: dict[str, TypeDef] = {}
        self.parent: Scope | None = None
        self.attributes: Mapping[str, AttributeDef] = {}
        self.opsets = opsets
        self.path: tuple[tuple[str, str, str], ...] = ()
        self.prefix = prefix
        self.depth = 0

    def subgraph(self, graph: GraphDef, label: str) -> Scope:
        """The scope of a subgraph of a node named ``label`` in this scope."""
        child = Scope(self.opsets, f"{self.prefix}{label}/")
        child.parent = self
        child.attributes = self.attributes
        child.path = self.path
        child.depth = self.depth + 1
        child.declare_graph(graph)
        return child

    def declare_graph(self, graph: GraphDef) -> None:
        """Take in a graph's initializers and declared types. Of two initializers of one name the
        last counts."""
        for tensor in graph.initializers:
            self.stored[tensor.name] = tensor
        for sparse in graph.sparse_initializers:
            self.stored[sparse.values.name] = sparse
        self.declare(graph.value_info)
        self.declare(graph.outputs)

    def declare(self, infos: tuple[ValueInfoDef, ...]) -> None:
        """Take in declared types."""
        for info in infos:
            self.declared[info.name] = info.type

    def sees(self, name: str) -> bool:
        """True where ``name`` means something here or in a graph around."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values or name in scope.stored:
                return True
            scope = scope.parent
        return False
