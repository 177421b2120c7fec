"""One spelling and two fingerprints for a weightless ONNX model, whatever names it came with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import onnx

__all__ = ["canonicalise", "fingerprint", "shape_free_fingerprint"]


def canonicalise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rename tensors by their place in the file, in place; returns ``model``.

    Initializers become ``w0``, ``w1``, ..., values of nodes ``v0``, ``v1``, ...; inputs keep their
    names, since people bind them; node names go. Names inside subgraphs follow the same scheme.
    Order and content of everything else stay.
    """
    taken = {item.name for item in model.graph.input}
    _rename(model.graph, {name: name for name in taken}, _Counter(taken))
    return model


class _Counter:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.counts = {"w": 0, "v": 0}

    def next(self, prefix: str) -> str:
        while True:
            name = f"{prefix}{self.counts[prefix]}"
            self.counts[prefix] += 1
            if name not in self.taken:
                return name


def _rename(graph: onnx.GraphProto, names: dict[str, str], counter: _Counter) -> None:
    for item in graph.input:
        if item.name not in names:
            names[item.name] = counter.next("v")
        item.name = names[item.name]
    for tensor in graph.initializer:
        if tensor.name not in names:
            names[tensor.name] = counter.next("w")
        tensor.name = names[tensor.name]
    for node in graph.node:
        node.ClearField("name")
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.ClearField("name")
            if attribute.HasField("g"):
                _rename(attribute.g, dict(names), counter)
        renamed = []
        for name in node.output:
            if name and name not in names:
                names[name] = counter.next("v")
            renamed.append(names.get(name, name))
        node.output[:] = renamed
    for item in graph.output:
        item.name = names.get(item.name, item.name)


def fingerprint(model: onnx.ModelProto) -> str:
    """Hex digest of operators, attributes, dataflow, shapes, types and small constants.

    Names of tensors and nodes and the order of nodes don't count: two files with the same
    fingerprint are the same computation. Weights count by dimensions and type.
    """
    return _digest(model, _tensor_key, _attribute_key, _input_key)


def shape_free_fingerprint(model: onnx.ModelProto) -> str:
    """Hex digest of operators and dataflow alone: one architecture at any width or resolution."""
    return _digest(model, lambda _: b"w", lambda _: b"", lambda _: b"i")


def _digest(
    model: onnx.ModelProto,
    tensor_key: Callable[[onnx.TensorProto], bytes],
    attribute_key: Callable[[onnx.AttributeProto], bytes],
    input_key: Callable[[onnx.ValueInfoProto], bytes],
) -> str:
    domains = sorted((entry.domain, entry.version) for entry in model.opset_import)

    def of_graph(graph: onnx.GraphProto, outer: dict[str, bytes]) -> bytes:
        keys = dict(outer)
        for position, item in enumerate(graph.input):
            keys[item.name] = _hash(b"input", str(position).encode(), input_key(item))
        for tensor in graph.initializer:
            keys[tensor.name] = _hash(b"weight", tensor_key(tensor))
        nodes = []
        for node in graph.node:
            parts = [node.domain.encode(), node.op_type.encode()]
            for attribute in sorted(node.attribute, key=lambda attribute: attribute.name):
                parts.append(attribute_key(attribute))
                if attribute.HasField("g"):
                    parts.append(of_graph(attribute.g, keys))
            parts += [keys.get(name, b"absent") for name in node.input]
            key = _hash(*parts)
            nodes.append(key)
            for position, name in enumerate(node.output):
                keys[name] = _hash(key, str(position).encode())
        results = [keys.get(item.name, b"absent") for item in graph.output]
        return _hash(*sorted(nodes), b"outputs", *results)

    return _hash(repr(domains).encode(), of_graph(model.graph, {})).hex()


def _hash(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()[:16]


def _tensor_key(tensor: onnx.TensorProto) -> bytes:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("name")
    return copy.SerializeToString(deterministic=True)


def _attribute_key(attribute: onnx.AttributeProto) -> bytes:
    copy = onnx.AttributeProto()
    copy.CopyFrom(attribute)
    copy.ClearField("g")
    if copy.HasField("t"):
        copy.t.ClearField("name")
    return copy.SerializeToString(deterministic=True)


def _input_key(item: onnx.ValueInfoProto) -> bytes:
    return item.type.SerializeToString(deterministic=True)
