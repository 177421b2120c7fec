"""``TypeProto`` and ``ValueInfoProto``: tensors, sequences, optionals, maps, sparse tensors."""

from __future__ import annotations

from collections.abc import Iterable

from dippm_lite.onnx_reader.decoding import Decoder
from dippm_lite.onnx_reader.proto import Dim, TypeDef, ValueInfoDef
from dippm_lite.onnx_reader.wire import Span, fields, signed32, signed64

__all__ = ["decode_type", "decode_value_info"]

_MEMBERS = {10: "tensor", 34: "sequence", 42: "map", 74: "optional", 66: "sparse", 58: "opaque"}
_UNSET = TypeDef("unset")


def decode_value_info(decoder: Decoder, span: Span) -> ValueInfoDef:
    """A value's name and type."""
    decoder.charge_items(2)
    name = ""
    types: list[Span] = []
    for tag, a, b in fields(decoder.buffer, (span,)):
        if tag == 10:
            name = decoder.text(a, b)
        elif tag == 18:
            types.append((a, b))
    return ValueInfoDef(name, decode_type(decoder, types, 0) if types else _UNSET)


def decode_type(decoder: Decoder, spans: Iterable[Span], depth: int) -> TypeDef:
    """A type, at nesting ``depth``."""
    decoder.check_depth(depth, "types are")
    kind = ""
    member: list[Span] = []
    for tag, a, b in fields(decoder.buffer, spans):
        named = _MEMBERS.get(tag)
        if named is None:
            continue
        if named != kind:  # another member of a oneof clears the one before
            kind, member = named, []
        member.append((a, b))
    if kind in ("tensor", "sparse"):
        return _tensor_type(decoder, kind, member)
    if not kind or kind == "opaque":
        return TypeDef(kind) if kind else _UNSET
    inner_tag = 18 if kind == "map" else 10
    inner: list[Span] = [(a, b) for tag, a, b in fields(decoder.buffer, member) if tag == inner_tag]
    return TypeDef(kind, element=decode_type(decoder, inner, depth + 1) if inner else None)


def _tensor_type(decoder: Decoder, kind: str, spans: Iterable[Span]) -> TypeDef:
    elem_type = 0
    shape: list[Span] | None = None
    for tag, a, b in fields(decoder.buffer, spans):
        if tag == 8:
            elem_type = signed32(a)
        elif tag == 18:
            shape = [*(shape or ()), (a, b)]
    if shape is None:
        return TypeDef(kind, elem_type)
    dims = [_dim(decoder, (a, b)) for tag, a, b in fields(decoder.buffer, shape) if tag == 10]
    return TypeDef(kind, elem_type, tuple(dims))


def _dim(decoder: Decoder, span: Span) -> Dim:
    decoder.charge_items(1)
    dim: Dim = None
    for tag, a, b in fields(decoder.buffer, (span,)):
        if tag == 8:
            dim = signed64(a)
        elif tag == 18:
            dim = decoder.text(a, b)
    return dim
