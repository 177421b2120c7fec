"""``ModelProto`` and ``FunctionProto``: the file as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from dippm_lite.onnx_reader.decode_graph import decode_attribute, decode_graph, decode_node
from dippm_lite.onnx_reader.decode_type import decode_value_info
from dippm_lite.onnx_reader.decoding import Decoder, normal_domain
from dippm_lite.onnx_reader.proto import (
    AttributeDef,
    FunctionDef,
    ModelDef,
    NodeDef,
    ValueInfoDef,
)
from dippm_lite.onnx_reader.wire import Span, fields, signed64

__all__ = ["decode_model"]


def decode_model(decoder: Decoder, spans: Iterable[Span]) -> ModelDef:
    """The whole file.

    Raises:
        MalformedError: the bytes are no protobuf message.
        InputError: a limit is exceeded, or a tensor has a negative dimension.
    """
    ir_version = 0
    producer = version = ""
    opsets: dict[str, int] = {}
    graph: list[Span] | None = None
    functions: list[FunctionDef] = []
    has_training = False
    for tag, a, b in fields(decoder.buffer, spans):
        if tag == 8:
            ir_version = signed64(a)
        elif tag == 18:
            producer = decoder.text(a, b)
        elif tag == 26:
            version = decoder.text(a, b)
        elif tag == 58:
            graph = [*(graph or ()), (a, b)]
        elif tag == 66:
            decoder.charge_items(1)
            domain, number = decoder.opset((a, b))
            opsets[domain] = signed64(number)
        elif tag == 162:
            has_training = True
        elif tag == 202:
            functions.append(_function(decoder, (a, b)))
    return ModelDef(
        ir_version,
        opsets,
        f"{producer} {version}".strip(),
        None if graph is None else decode_graph(decoder, graph, 0),
        tuple(functions),
        has_training,
    )


def _function(decoder: Decoder, span: Span) -> FunctionDef:
    decoder.charge_node()
    name = domain = overload = ""
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[str] = []
    defaults: list[AttributeDef] = []
    nodes: list[NodeDef] = []
    opsets: dict[str, int] = {}
    value_info: list[ValueInfoDef] = []
    for tag, a, b in fields(decoder.buffer, (span,)):
        if tag == 58:
            nodes.append(decode_node(decoder, (a, b), 0))
        elif tag == 34:
            inputs.append(decoder.text(a, b))
        elif tag == 42:
            outputs.append(decoder.text(a, b))
        elif tag == 50:
            attributes.append(decoder.text(a, b))
        elif tag == 90:
            defaults.append(decode_attribute(decoder, (a, b), 0))
        elif tag == 74:
            decoder.charge_items(1)
            imported, number = decoder.opset((a, b))
            opsets[imported] = signed64(number)
        elif tag == 98:
            value_info.append(decode_value_info(decoder, (a, b)))
        elif tag == 10:
            name = decoder.text(a, b)
        elif tag == 82:
            domain = normal_domain(decoder.text(a, b))
        elif tag == 106:
            overload = decoder.text(a, b)
    return FunctionDef(
        name,
        domain,
        overload,
        tuple(inputs),
        tuple(outputs),
        tuple(attributes),
        tuple(defaults),
        tuple(nodes),
        opsets,
        tuple(value_info),
    )
