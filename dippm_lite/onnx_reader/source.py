"""Opening what the caller gives: a path, the bytes of a file, or an open binary file."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.wire import Buffer

__all__ = ["ModelSource", "Source", "open_source"]

ModelSource = str | os.PathLike[str] | bytes | BinaryIO

_LONGEST_PATH = 300  # characters of a path that a message shows in full

_READ_WHOLE_BYTES = 1 << 20
"""Below this a file is read at once: indexing bytes is faster than indexing a memory map, and a
file this small has no payload worth leaving untouched."""


@dataclass(frozen=True, slots=True)
class Source:
    """``label`` names the file in messages; ``stem`` is its name without folder and suffix;
    ``folder`` is where external data may lie, None for bytes and streams."""

    label: str
    stem: str
    folder: Path | None
    buffer: Buffer


@contextlib.contextmanager
def open_source(source: ModelSource, limits: Limits) -> Iterator[Source]:
    """The content of ``source``; files are mapped, so that only the pages that are read load.

    Raises:
        InputError: there is no such file, it is a folder, empty or can't be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        yield Source("the given bytes", "model", None, _not_empty(bytes(source), "the given bytes"))
    elif isinstance(source, str | os.PathLike):
        with _open_path(os.fspath(source)) as opened:
            yield opened
    else:
        name = getattr(source, "name", None)
        label = quoted(name) if isinstance(name, str) else "the given file"
        content = source.read(limits.max_stream_bytes + 1)
        if not isinstance(content, bytes):
            raise InputError(f"{label} is open in text mode: open it with mode 'rb'")
        if len(content) > limits.max_stream_bytes:
            raise InputError(f"{label} is too long for a stream: give the path of the file")
        yield Source(label, "model", None, _not_empty(content, label))


@contextlib.contextmanager
def _open_path(name: str) -> Iterator[Source]:
    label, path = quoted(name, _LONGEST_PATH), Path(name)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise InputError(_unreadable(label, path, error)) from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{label} is a folder{_models_inside(path)}")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{label} is not a regular file: give the path of an ONNX file")
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            buffer: Buffer = b""
            if status.st_size > _READ_WHOLE_BYTES:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                buffer = stack.enter_context(mapped)
            else:
                buffer = _not_empty(file.read(), label)
        except OSError as error:
            raise InputError(_unreadable(label, path, error)) from None
        yield Source(label, path.stem, path.parent, buffer)


def _not_empty(content: bytes, label: str) -> bytes:
    if not content:
        raise InputError(f"{label} is empty (0 bytes): download or export the model again")
    return content


def _unreadable(label: str, path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{label} does not exist: check the path{_models_inside(path.parent)}"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{label} can't be read: {reason}"


def _models_inside(folder: Path) -> str:
    """What the caller may have meant."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(e.name for e in entries if e.name.lower().endswith(".onnx"))
    except (OSError, ValueError):
        return ""
    return f"; ONNX files in it: {', '.join(map(quoted, found[:3]))}" if found else ""
