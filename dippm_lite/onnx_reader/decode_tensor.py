"""``TensorProto`` and ``SparseTensorProto``: dimensions, type, and where the content lies."""

from __future__ import annotations

from collections.abc import Iterable

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader.decoding import Decoder
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.proto import ExternalDef, SparseTensorDef, TensorDef
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS
from dippm_lite.onnx_reader.wire import (
    Span,
    fields,
    packed_varints,
    signed32,
    signed64,
    unpack_varints,
)

__all__ = ["decode_sparse_tensor", "decode_tensor", "int64_list"]

_EXTERNAL = 1  # TensorProto.DataLocation
_PACKED = {34: 4, 42: 5, 58: 7, 82: 10, 90: 11}  # tag of a packed piece to its field number
_SINGLE_VARINT = {40: 5, 56: 7, 88: 11}
_SINGLE_FIXED = {37: 4, 81: 10}
_NOTHING: dict[int, tuple[Span | bytes, ...]] = {}


def decode_tensor(decoder: Decoder, spans: Iterable[Span]) -> TensorDef:
    """A tensor without its content.

    Raises:
        InputError: a dimension is negative.
    """
    decoder.charge_tensor()
    buffer = decoder.buffer
    name, data_type = "", 0
    dims: list[int] = []
    raw: Span | None = None
    typed: dict[int, list[Span | bytes]] = {}
    external: list[Span] = []
    location = 0
    for tag, a, b in fields(buffer, spans):
        if tag == 8:
            decoder.charge_items(1)
            dims.append(signed64(a))
        elif tag == 10:
            dims += int64_list(decoder, (a, b))
        elif tag == 16:
            data_type = signed32(a)
        elif tag == 66:
            name = decoder.text(a, b)
        elif tag == 74:
            raw = (a, b)
        elif tag == 106:
            decoder.charge_items(1)
            external.append((a, b))
        elif tag == 112:
            location = signed32(a)
        elif tag in _PACKED:
            _keep(decoder, typed, _PACKED[tag], (a, b))
        elif tag in _SINGLE_VARINT:
            _keep(decoder, typed, _SINGLE_VARINT[tag], packed_varints((a,)))
        elif tag in _SINGLE_FIXED:
            _keep(decoder, typed, _SINGLE_FIXED[tag], (a, b))
    if any(dim < 0 for dim in dims):
        raise InputError(f"tensor {quoted(name)} has a negative dimension in {tuple(dims)}")
    return TensorDef(
        name,
        data_type,
        tuple(dims),
        raw,
        {number: tuple(pieces) for number, pieces in typed.items()} if typed else _NOTHING,
        _external(decoder, external) if location == _EXTERNAL else None,
    )


def decode_sparse_tensor(decoder: Decoder, spans: Iterable[Span]) -> SparseTensorDef:
    """A sparse tensor: the name and type of its values, and the dense dimensions."""
    values: list[Span] = []
    dims: list[int] = []
    for tag, a, b in fields(decoder.buffer, spans):
        if tag == 10:
            values.append((a, b))
        elif tag == 24:
            decoder.charge_items(1)
            dims.append(signed64(a))
        elif tag == 26:
            dims += int64_list(decoder, (a, b))
    tensor = decode_tensor(decoder, values)
    if any(dim < 0 for dim in dims):
        raise InputError(f"tensor {quoted(tensor.name)} has a negative dimension in {tuple(dims)}")
    return SparseTensorDef(tensor, tuple(dims))


def int64_list(decoder: Decoder, span: Span) -> list[int]:
    """The values of a packed repeated ``int64`` field, each charged before it is kept."""
    decoder.charge_items(span[1] - span[0])
    return [signed64(value) for value in unpack_varints(decoder.buffer, span)]


def _keep(
    decoder: Decoder, typed: dict[int, list[Span | bytes]], number: int, piece: Span | bytes
) -> None:
    """Pieces beyond the longest content that is ever read are as good as lost."""
    pieces = typed.setdefault(number, [])
    if len(pieces) <= MAX_KNOWN_ELEMENTS:
        decoder.charge_items(1)
        pieces.append(piece)


def _external(decoder: Decoder, entries: Iterable[Span]) -> ExternalDef:
    """The three keys that say where the content is. Others (``checksum``, or names of Python
    attributes planted there, CVE-2026-34445) are not looked at."""
    known = {"location": "", "offset": "", "length": ""}
    for span in entries:
        key, value = decoder.entry(span)
        if key in known:
            known[key] = value
    return ExternalDef(**known)
