"""``GraphProto``, ``NodeProto`` and ``AttributeProto``, which contain each other."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from itertools import islice

from dippm_lite.graph import TRACED_BIAS
from dippm_lite.onnx_reader.decode_tensor import decode_sparse_tensor, decode_tensor
from dippm_lite.onnx_reader.decode_type import decode_value_info
from dippm_lite.onnx_reader.decoding import Decoder, normal_domain
from dippm_lite.onnx_reader.proto import (
    AttributeContent,
    AttributeDef,
    GraphDef,
    NodeDef,
    SparseTensorDef,
    TensorDef,
    ValueInfoDef,
)
from dippm_lite.onnx_reader.wire import (
    Buffer,
    MalformedError,
    Span,
    fields,
    signed32,
    signed64,
    unpack_varints,
)

__all__ = [
    "MAX_LIST_ATTRIBUTE",
    "MAX_STRING_ATTRIBUTE",
    "decode_attribute",
    "decode_graph",
    "decode_node",
]

MAX_LIST_ATTRIBUTE = 1 << 16
"""Longest list attribute that is kept. No operator that runs on a GPU has a longer one; a tree
ensemble, which doesn't, may hold millions of values in one node."""

MAX_STRING_ATTRIBUTE = 1 << 16
"""Longest string attribute that is kept, in bytes: vocabularies and engine plans are longer."""


def decode_graph(decoder: Decoder, spans: Iterable[Span], depth: int) -> GraphDef:
    """A graph at nesting ``depth`` (0 for the model's own)."""
    decoder.charge_node()
    decoder.check_depth(depth, "subgraphs are")
    name = ""
    nodes: list[NodeDef] = []
    initializers: list[TensorDef] = []
    sparse: list[SparseTensorDef] = []
    inputs: list[ValueInfoDef] = []
    outputs: list[ValueInfoDef] = []
    value_info: list[ValueInfoDef] = []
    for tag, a, b in fields(decoder.buffer, spans):
        if tag == 10:
            nodes.append(decode_node(decoder, (a, b), depth))
        elif tag == 42:
            initializers.append(decode_tensor(decoder, ((a, b),)))
        elif tag == 106:
            value_info.append(decode_value_info(decoder, (a, b)))
        elif tag == 90:
            inputs.append(decode_value_info(decoder, (a, b)))
        elif tag == 98:
            outputs.append(decode_value_info(decoder, (a, b)))
        elif tag == 122:
            sparse.append(decode_sparse_tensor(decoder, ((a, b),)))
        elif tag == 18:
            name = decoder.text(a, b)
    return GraphDef(
        name,
        tuple(nodes),
        tuple(initializers),
        tuple(sparse),
        tuple(inputs),
        tuple(outputs),
        tuple(value_info),
    )


def decode_node(decoder: Decoder, span: Span, depth: int) -> NodeDef:
    """A node of a graph at nesting ``depth``."""
    decoder.charge_node()
    op_type = domain = name = overload = ""
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[AttributeDef] = []
    text = decoder.text
    for tag, a, b in fields(decoder.buffer, (span,)):
        if tag == 10:
            inputs.append(text(a, b))
        elif tag == 18:
            outputs.append(text(a, b))
        elif tag == 34:
            op_type = text(a, b)
        elif tag == 26:
            name = text(a, b)
        elif tag == 42:
            attributes.append(decode_attribute(decoder, (a, b), depth))
        elif tag == 58:
            domain = normal_domain(text(a, b))
        elif tag == 66:
            overload = text(a, b)
        elif tag == 74 and _drops_bias(op_type, inputs) and _traces_bias(decoder, a, b):
            attributes.append(AttributeDef(TRACED_BIAS, _INT, 1))
    return NodeDef(
        op_type, domain, name, overload, tuple(inputs), tuple(outputs), tuple(attributes)
    )


_CALL_WITH_BIAS = re.compile(rb"aten\.conv\w{0,16}\.\w{1,16}\]\(args = \(%\w{1,256}, %\w{1,256}, %")


def _drops_bias(op_type: str, inputs: list[str]) -> bool:
    return op_type in ("Conv", "ConvTranspose") and len(inputs) == 2


def _traces_bias(decoder: Decoder, start: int, end: int) -> bool:
    """True for the metadata of a call of a convolution whose third argument is a tensor."""
    if end - start > MAX_STRING_ATTRIBUTE:
        return False
    entry = bytes(decoder.buffer[start:end])
    return b"pkg.torch.onnx.fx_node" in entry and _CALL_WITH_BIAS.search(entry) is not None


def decode_attribute(decoder: Decoder, span: Span, depth: int) -> AttributeDef:
    """An attribute of a node of a graph at nesting ``depth``.

    Fields are collected under the number of the ``AttributeType`` that declares them in use; a
    file from before that enum existed has no type, so there the filled field decides. A list that
    is too long to be of use ends the reading: a forest of trees has tens of millions of entries,
    and only its name matters, which writers put first.
    """
    decoder.charge_items(4)
    buffer = decoder.buffer
    name = ref = ""
    kind = 0
    numbers: dict[int, int | float] = {}
    ints: list[int] = []
    floats: list[float] = []
    spans: dict[int, list[Span]] = {}
    for tag, a, b in fields(buffer, (span,)):
        if tag == 10:
            name = decoder.text(a, b)
        elif tag == 160:
            kind = signed32(a)
        elif tag == 24:
            numbers[_INT] = signed64(a)
        elif tag == 21:
            numbers[_FLOAT] = struct.unpack("<f", buffer[a:b])[0]
        elif tag in (64, 66):
            values = (a,) if tag == 64 else unpack_varints(buffer, (a, b))
            ints.extend(map(signed64, islice(values, MAX_LIST_ATTRIBUTE + 1)))
            if len(ints) > MAX_LIST_ATTRIBUTE:
                return AttributeDef(name, _INTS, None)
        elif tag in (58, 61):
            floats.extend(_floats(buffer, (a, b)))
            if len(floats) > MAX_LIST_ATTRIBUTE:
                return AttributeDef(name, _FLOATS, None)
        elif tag in _SPANS:
            found = spans.setdefault(_SPANS[tag], [])
            found.append((a, b))
            if len(found) > MAX_LIST_ATTRIBUTE:
                return AttributeDef(name, _SPANS[tag], None)
        elif tag == 170:
            ref = decoder.text(a, b)
    if ref:
        return AttributeDef(name, kind, None, ref)
    if kind == 0:
        filled = [*spans, *([_INTS] if ints else ()), *([_FLOATS] if floats else ()), *numbers]
        kind = filled[0] if filled else 0
    if kind in (_INTS, _FLOATS):
        numbered = ints if kind == _INTS else floats
        decoder.charge_items(len(numbered))
        return AttributeDef(name, kind, tuple(numbered))
    if kind in (_INT, _FLOAT):
        return AttributeDef(name, kind, numbers.get(kind, 0 if kind == _INT else 0.0))
    return AttributeDef(name, kind, _content(decoder, kind, spans.get(kind, []), depth))


_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS = 1, 2, 3, 4, 5, 6, 7
_STRINGS, _TENSORS, _GRAPHS, _SPARSE, _SPARSES = 8, 9, 10, 11, 12
_SPANS = {
    34: _STRING,
    42: _TENSOR,
    50: _GRAPH,
    74: _STRINGS,
    82: _TENSORS,
    90: _GRAPHS,
    178: _SPARSE,
    186: _SPARSES,
}
"""Tag of a string or message field to the ``AttributeType`` that declares it in use."""


def _content(decoder: Decoder, kind: int, found: list[Span], depth: int) -> AttributeContent:
    if kind == _STRING:
        return _string(decoder, found[-1]) if found else ""
    if kind == _STRINGS:
        return _strings(decoder, found)
    if kind == _TENSOR:
        return decode_tensor(decoder, found)
    if kind == _TENSORS:
        return tuple(decode_tensor(decoder, (span,)) for span in found)
    if kind == _SPARSE:
        return decode_sparse_tensor(decoder, found)
    if kind == _SPARSES:
        return tuple(decode_sparse_tensor(decoder, (span,)) for span in found)
    if kind == _GRAPH:
        return decode_graph(decoder, found, depth + 1)
    if kind == _GRAPHS:
        return tuple(decode_graph(decoder, (span,), depth + 1) for span in found)
    return None


def _floats(buffer: Buffer, span: Span) -> tuple[float, ...]:
    """Packed floats, at most one more than are kept."""
    start, end = span
    if (end - start) % 4:
        raise MalformedError(f"a list of floats of {end - start} bytes at byte {start}")
    count = min((end - start) // 4, MAX_LIST_ATTRIBUTE + 1)
    return struct.unpack(f"<{count}f", buffer[start : start + 4 * count])


def _string(decoder: Decoder, span: Span) -> str | bytes | None:
    """Text where it is UTF-8; None where it is too long to be of use."""
    start, end = span
    if end - start > MAX_STRING_ATTRIBUTE:
        return None
    raw = decoder.raw_text(start, end)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _strings(decoder: Decoder, spans: list[Span]) -> tuple[str, ...] | tuple[bytes, ...] | None:
    if len(spans) > MAX_LIST_ATTRIBUTE or sum(b - a for a, b in spans) > MAX_STRING_ATTRIBUTE:
        return None
    raw = [decoder.raw_text(a, b) for a, b in spans]
    try:
        return tuple(text.decode("utf-8") for text in raw)
    except UnicodeDecodeError:
        return tuple(raw)
