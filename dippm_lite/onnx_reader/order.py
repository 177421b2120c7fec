"""The order of calls: producers first, otherwise as the file has them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.proto import GraphDef, NodeDef

__all__ = ["reads", "topological"]


def topological(nodes: Sequence[NodeDef], sees: Callable[[str], bool]) -> Sequence[NodeDef]:
    """``nodes`` with every producer before its readers, stable.

    ``sees`` tells whether a name has a meaning before the first node runs. A file that is in
    order already, duplicates of names included, comes back as it is.

    Raises:
        InputError: the nodes form a cycle; the text names some of them.
    """
    producers = {name: i for i, node in enumerate(nodes) for name in node.outputs if name}
    ready: set[str] = set()
    for node in nodes:
        for name in reads(node):
            if name in producers and name not in ready and not sees(name):
                return _sorted(nodes, producers, sees)
        ready.update(node.outputs)
    return nodes


def _sorted(
    nodes: Sequence[NodeDef], producers: dict[str, int], sees: Callable[[str], bool]
) -> Sequence[NodeDef]:
    """Kahn's algorithm; among the calls that could come next, the first in the file does."""
    readers: dict[int, list[int]] = {}
    waiting = [0] * len(nodes)
    for i, node in enumerate(nodes):
        for name in dict.fromkeys(reads(node)):
            producer = producers.get(name)
            if producer is not None and not sees(name):
                readers.setdefault(producer, []).append(i)
                waiting[i] += 1
    queue = [i for i, count in enumerate(waiting) if not count]
    order: list[NodeDef] = []
    while queue:
        i = heapq.heappop(queue)
        order.append(nodes[i])
        for reader in readers.get(i, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(queue, reader)
    if len(order) < len(nodes):
        raise InputError(_cycle_text(nodes, producers, waiting))
    return order


def _cycle_text(nodes: Sequence[NodeDef], producers: dict[str, int], waiting: list[int]) -> str:
    """Walks back from a stuck node, from one stuck producer to the next, until one repeats."""
    at = next(i for i, count in enumerate(waiting) if count)
    seen: dict[int, None] = {}
    while at not in seen:
        seen[at] = None
        stuck = (producers.get(name) for name in reads(nodes[at]))
        at = next(i for i in stuck if i is not None and waiting[i])
    cycle = [*seen][[*seen].index(at) :][::-1]
    names = [quoted(nodes[i].name or nodes[i].op_type) for i in cycle[:5]]
    more = f" and {len(cycle) - 5} more" if len(cycle) > 5 else ""
    return f"the nodes {', '.join(names)}{more} form a cycle: a graph must be acyclic"


def reads(node: NodeDef) -> Sequence[str]:
    """The names that a call reads, those that its subgraphs take from outside included."""
    inside = _subgraphs(node)
    if not inside:
        return node.inputs
    return [*node.inputs, *(name for graph in inside for name in _captures(graph))]


def _subgraphs(node: NodeDef) -> list[GraphDef]:
    """The graphs in a node's attributes."""
    found: list[GraphDef] = []
    for attribute in node.attributes:
        value = attribute.value
        if isinstance(value, GraphDef):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, GraphDef))
    return found


def _captures(graph: GraphDef) -> set[str]:
    """The names that a graph reads and doesn't define."""
    own = {info.name for info in graph.inputs}
    own.update(tensor.name for tensor in graph.initializers)
    own.update(sparse.values.name for sparse in graph.sparse_initializers)
    own.update(name for node in graph.nodes for name in node.outputs)
    read = {name for node in graph.nodes for name in reads(node)}
    read.update(info.name for info in graph.outputs)
    return read - own - {""}
