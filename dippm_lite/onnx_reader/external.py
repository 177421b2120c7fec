"""Contents outside the file, read only where a shape depends on them and only from beside it.

A model file says where its data lies, so it could name any file of the machine (CVE-2024-27318,
CVE-2025-51480). Weights are never read at all; the few integers that shapes need are read only
from a regular file inside the model's own folder, reached without ``..`` and without a link.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from dippm_lite.onnx_reader.proto import ExternalDef

__all__ = ["read_external"]


def read_external(folder: Path | None, where: ExternalDef, n_bytes: int) -> bytes | None:
    """The first ``n_bytes`` of an external content; None where it can't be had safely."""
    offset, length = _count(where.offset or "0"), _count(where.length or str(n_bytes))
    if folder is None or offset is None or length is None or length < n_bytes:
        return None
    path = _inside(folder, where.location)
    if path is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | _NO_WAIT)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or offset + n_bytes > status.st_size:
            return None
        os.lseek(handle, offset, os.SEEK_SET)
        content = os.read(handle, n_bytes)
        return content if len(content) == n_bytes else None
    except OSError:
        return None
    finally:
        os.close(handle)


_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not hang


def _inside(folder: Path, location: str) -> Path | None:
    """The file that ``location`` names below ``folder``, if no link lies on the way to it."""
    windows = PureWindowsPath(location)
    parts = PurePosixPath(location).parts
    if not location or "\0" in location or windows.anchor or ".." in (*parts, *windows.parts):
        return None
    try:
        real_folder = folder.resolve()
        path = real_folder.joinpath(*parts)
        return path if path.resolve() == path else None
    except (OSError, ValueError, RuntimeError):
        return None


def _count(text: str) -> int | None:
    """A byte count, from at most 20 decimal digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
