"""One file over HTTP: resumed where it broke off, bounded, checked, and in place only when whole.

Tried against a server on this machine alone (the tests'), which answers ranges, ignores them,
breaks off and lies; not against the public hosts of :mod:`training.datasets.public.sources`.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError

__all__ = ["Downloaded", "Progress", "download", "sha256_of"]

Progress = Callable[[int, int | None], None]
"""Called with the bytes there are and the bytes there will be (None where the server won't say)."""

CHUNK_BYTES = 256 << 10
TIMEOUT_S = 60
ATTEMPTS = 5
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes after which the same request may succeed."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class Downloaded:
    """What came: ``resumed_at`` is the offset of the last request."""

    sha256: str
    size: int
    resumed_at: int


def download(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    limit_bytes: int = 1 << 30,
    progress: Progress | None = None,
    wait_s: float = 2.0,
    timeout_s: float = TIMEOUT_S,
) -> Downloaded:
    """Fetch ``url`` to ``path``, which is replaced when the whole file is there and is right.

    What has come so far lies in ``<path>.part``, and ``<path>.tag`` says of which version it is;
    a later call goes on from there if the server still has that version.

    Args:
        url: https, or http on this machine.
        sha256: expected, in hex; None accepts any content.
        limit_bytes: a longer file is refused.
        wait_s: before the second attempt; doubled before each further one.

    Raises:
        InputError: the URL is not to be fetched, the server has no such file or breaks off too
            often, the file is too long, or its checksum is another.
    """
    _check(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    part, tag = path.with_name(path.name + ".part"), path.with_name(path.name + ".tag")
    offset = 0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            offset = _offset(part, tag)
            _receive(url, part, tag, offset, limit_bytes, progress, timeout_s)
            break
        except (OSError, http.client.HTTPException) as error:
            passing = not isinstance(error, urllib.error.HTTPError) or error.code in _PASSING
            if not passing or attempt == ATTEMPTS:
                raise InputError(f"{url} can't be fetched: {error}") from error
            time.sleep(wait_s * 2 ** (attempt - 1))
    found, size = sha256_of(part), part.stat().st_size
    if sha256 is not None and found != sha256:
        part.unlink()
        tag.unlink(missing_ok=True)
        raise InputError(f"{url} has sha256 {found}, not {sha256}: it is another file")
    part.replace(path)
    tag.unlink(missing_ok=True)
    return Downloaded(found, size, offset)


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _check(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return
    raise InputError(f"{url} is not fetched: only https is")


def _offset(part: Path, tag: Path) -> int:
    """Where to go on: without a tag nothing says that the part is of the server's version."""
    return part.stat().st_size if part.exists() and tag.exists() else 0


def _receive(
    url: str,
    part: Path,
    tag: Path,
    offset: int,
    limit_bytes: int,
    progress: Progress | None,
    timeout_s: float,
) -> None:
    # Encoded bodies would make offsets and checksums those of the encoding.
    headers = {"User-Agent": "dippm-lite", "Accept-Encoding": "identity"}
    if offset:
        headers |= {"Range": f"bytes={offset}-", "If-Range": tag.read_text(encoding="utf-8")}
    request = urllib.request.Request(url, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # The part is as long as the file, or longer: no byte is left to go on with.
        part.unlink()
        tag.unlink(missing_ok=True)
        raise http.client.HTTPException("the range is beyond the file; starting again") from error
    with response:
        _check(response.url)
        start = _start(response, offset)
        total = _total(response, start)
        _refuse_longer(url, total or 0, limit_bytes)
        if version := _version(response):
            tag.write_text(version, encoding="utf-8")
        else:
            tag.unlink(missing_ok=True)
        size = start
        with part.open("r+b" if start else "wb") as file:
            file.seek(start)
            while chunk := response.read(CHUNK_BYTES):
                size += len(chunk)
                _refuse_longer(url, size, limit_bytes)
                file.write(chunk)
                if progress:
                    progress(size, total)
    if total is None and progress:
        progress(size, size)
    if total is not None and size != total:
        raise http.client.HTTPException(f"{size} of {total} bytes came")


def _start(response: Any, offset: int) -> int:
    """The offset of the body: 0 where the server sends the whole file instead of a part."""
    if response.status != http.client.PARTIAL_CONTENT:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""), re.ASCII)
    if not match or int(match[1]) != offset:
        raise http.client.HTTPException("the server sends another range than the one asked for")
    return offset


def _total(response: Any, start: int) -> int | None:
    length = response.headers.get("Content-Length", "")
    return start + int(length) if length.isascii() and length.isdigit() else None


def _version(response: Any) -> str | None:
    """What ``If-Range`` may carry: a strong ETag, else the date of the last change."""
    etag: str | None = response.headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return etag
    date: str | None = response.headers.get("Last-Modified")
    return date


def _refuse_longer(url: str, size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise InputError(f"{url} has more than {limit_bytes} bytes: it is another file")
