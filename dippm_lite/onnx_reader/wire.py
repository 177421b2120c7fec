"""The protobuf wire format, read in place: no message is copied, no payload is touched.

https://protobuf.dev/programming-guides/encoding/ is the specification. A message is a list of
*spans* of the buffer and not one, because a sub-message that occurs several times means the
concatenation of its occurrences.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator

__all__ = [
    "Buffer",
    "MalformedError",
    "Span",
    "fields",
    "packed_varints",
    "signed32",
    "signed64",
    "unpack_varints",
]

Buffer = bytes | mmap.mmap
Span = tuple[int, int]
"""First byte of a message, and the byte after its last."""

_MAX_GROUP_DEPTH = 100  # as in protobuf's own parsers
_MAX_TAG = 0xFFFFFFFF


class MalformedError(ValueError):
    """The bytes are no protobuf message; the text is one clause."""


def fields(buffer: Buffer, spans: Iterable[Span]) -> Iterator[tuple[int, int, int]]:
    """The fields of a message as ``(tag, a, b)``, in file order.

    ``tag`` is ``field_number << 3 | wire_type``, so that a field of an unexpected wire type is an
    unknown field, as protobuf has it. Wire type 0 gives ``a`` = the value (unsigned 64 bits);
    the others give the span ``a:b`` of the content. Groups are skipped.

    Raises:
        MalformedError: a length runs past the end, a varint is too long, a wire type is unknown.
    """
    for pos, end in spans:
        while pos < end:
            tag = buffer[pos]
            pos += 1
            if tag >= 0x80:
                tag, pos = _varint(buffer, pos - 1, end)
                if tag > _MAX_TAG:
                    raise MalformedError(f"impossible field number at byte {pos}")
            if tag < 8:
                raise MalformedError(f"field number 0 at byte {pos - 1}")
            wire_type = tag & 7
            if wire_type == 2:
                if pos >= end:
                    raise _truncated(pos, end)
                size = buffer[pos]
                pos += 1
                if size >= 0x80:
                    size, pos = _varint(buffer, pos - 1, end)
                stop = pos + size
                if stop > end:
                    raise MalformedError(
                        f"the field at byte {pos} is {size} bytes long, but only {end - pos} follow"
                    )
                yield tag, pos, stop
                pos = stop
            elif wire_type == 0:
                if pos >= end:
                    raise _truncated(pos, end)
                value = buffer[pos]
                pos += 1
                if value >= 0x80:
                    value, pos = _varint(buffer, pos - 1, end)
                yield tag, value, pos
            elif wire_type == 3:
                pos = _skip_group(buffer, pos, end, tag >> 3)
            else:
                stop = _fixed_end(pos, end, wire_type)
                yield tag, pos, stop
                pos = stop


def unpack_varints(buffer: Buffer, span: Span) -> Iterator[int]:
    """The values (unsigned 64 bits) of a packed repeated varint field."""
    pos, end = span
    while pos < end:
        value = buffer[pos]
        pos += 1
        if value >= 0x80:
            value, pos = _varint(buffer, pos - 1, end)
        yield value


def packed_varints(values: Iterable[int]) -> bytes:
    """The packed form of unsigned values: the inverse of :func:`unpack_varints`."""
    out = bytearray()
    for value in values:
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)


def signed64(value: int) -> int:
    """An ``int64`` from its varint."""
    return value - (1 << 64) if value >> 63 else value


def signed32(value: int) -> int:
    """An ``int32`` or enum from its varint, which protobuf truncates to 32 bits."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _varint(buffer: Buffer, pos: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if pos >= end:
            raise _truncated(pos, end)
        byte = buffer[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, pos
    raise MalformedError(f"a number longer than 10 bytes at byte {pos - 10}")


def _fixed_end(pos: int, end: int, wire_type: int) -> int:
    if wire_type not in (1, 5):
        raise MalformedError(f"unknown wire type {wire_type} at byte {pos - 1}")
    stop = pos + (8 if wire_type == 1 else 4)
    if stop > end:
        raise _truncated(pos, end)
    return stop


def _skip_group(buffer: Buffer, pos: int, end: int, number: int) -> int:
    """Position after the group ``number`` whose start tag ends at ``pos``."""
    open_groups = [number]
    while open_groups:
        tag, pos = _varint(buffer, pos, end)
        wire_type = tag & 7
        if tag < 8 or tag > _MAX_TAG:
            raise MalformedError(f"impossible field number at byte {pos}")
        if wire_type == 0:
            _, pos = _varint(buffer, pos, end)
        elif wire_type == 2:
            size, pos = _varint(buffer, pos, end)
            pos += size
        elif wire_type == 3:
            open_groups.append(tag >> 3)
            if len(open_groups) > _MAX_GROUP_DEPTH:
                raise MalformedError(f"groups nested too deeply at byte {pos}")
        elif wire_type == 4:
            if open_groups.pop() != tag >> 3:
                raise MalformedError(f"unbalanced group at byte {pos}")
        else:
            pos = _fixed_end(pos, end, wire_type)
        if pos > end:
            raise _truncated(pos, end)
    return pos


def _truncated(pos: int, end: int) -> MalformedError:
    return MalformedError(f"a field breaks off at byte {min(pos, end)}")
