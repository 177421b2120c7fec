"""Take the weights and the words out of an ONNX model; what shapes depend on stays."""

from __future__ import annotations

from typing import Any

import onnx

__all__ = [
    "KEPT_INTEGERS",
    "WEIGHTS_FILE",
    "drop_data",
    "strip_metadata",
    "strip_weights",
]

WEIGHTS_FILE = "weights.bin"
"""Where a stripped initializer says that its data is; no such file exists."""

KEPT_INTEGERS = 1024
"""Longest integer tensor whose content is kept: shapes, axes, pads, positions of a token."""

KEPT_NUMBERS = 8
"""Longest other tensor whose content is kept: scalars of patterns, scales of a Resize."""

_INTEGERS = frozenset({onnx.TensorProto.INT64, onnx.TensorProto.INT32})
_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
    "string_data",
)  # fmt: skip


def strip_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the data of large tensors in place, keeping dimensions and types; returns ``model``.

    Small integer tensors and scalars stay, since shapes and patterns depend on them. A large
    Constant node becomes an initializer. What is dropped points to :data:`WEIGHTS_FILE`.
    """
    _strip_graph(model.graph)
    return model


def _strip_graph(graph: onnx.GraphProto) -> None:
    constants = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _strip_graph(attribute.g)
            for subgraph in attribute.graphs:
                _strip_graph(subgraph)
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = node.attribute[0].t
            if not _is_kept(tensor):
                tensor.name = node.output[0]
                graph.initializer.append(tensor)
                constants.append(node)
    for node in constants:
        graph.node.remove(node)
    for tensor in graph.initializer:
        if not _is_kept(tensor):
            drop_data(tensor)


def _is_kept(tensor: onnx.TensorProto) -> bool:
    elements = 1
    for size in tensor.dims:
        elements *= size
    if elements == 0 or tensor.data_type == onnx.TensorProto.STRING:
        return True
    return elements <= (KEPT_INTEGERS if tensor.data_type in _INTEGERS else KEPT_NUMBERS)


def drop_data(tensor: onnx.TensorProto) -> None:
    """Drop a tensor's data in place; it then points to :data:`WEIGHTS_FILE`."""
    for name in (*_DATA_FIELDS, "external_data", "doc_string"):
        tensor.ClearField(name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=WEIGHTS_FILE)


def strip_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop doc strings, metadata and intermediate shapes in place; returns ``model``.

    Producer, opsets, names of inputs and outputs stay.
    """
    model.ClearField("doc_string")
    model.ClearField("metadata_props")
    for function in model.functions:
        function.ClearField("doc_string")
        function.ClearField("metadata_props")
        _strip_nodes(function.node)
    _strip_graph_metadata(model.graph)
    return model


def _strip_graph_metadata(graph: onnx.GraphProto) -> None:
    for name in (
        "doc_string",
        "metadata_props",
        "value_info",
        "quantization_annotation",
    ):
        graph.ClearField(name)
    for item in (*graph.input, *graph.output, *graph.initializer):
        item.ClearField("doc_string")
        item.ClearField("metadata_props")
    _strip_nodes(graph.node)


def _strip_nodes(nodes: Any) -> None:
    for node in nodes:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            if attribute.HasField("g"):
                _strip_graph_metadata(attribute.g)
            for subgraph in attribute.graphs:
                _strip_graph_metadata(subgraph)
