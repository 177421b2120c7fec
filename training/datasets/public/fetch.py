"""Fetch a source: download what is missing, check it against the lock file, extract, convert.

A data folder holds ``raw/<source>/`` with the files as they came, the converted tables, and
``sources.lock.json`` with the address, size and sha256 of each file. What is there and matches is
not fetched again; what comes with another sha256 than the locked one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.datasets.public.archives import extract
from training.datasets.public.download import Progress, download, sha256_of
from training.datasets.public.sources import RemoteFile, Source

__all__ = ["LOCK", "Fetched", "fetch", "locked"]

LOCK = "sources.lock.json"
SCHEMA = "dippm-lite-sources/1"

Watch = Callable[[str], Progress | None]
"""From a file's name to what shows its progress, or None."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What fetching a source did."""

    downloaded: int
    kept: int
    written: tuple[Path, ...]


def fetch(
    source: Source,
    data: Path,
    *,
    accept_changed: bool = False,
    watch: Watch = lambda _name: None,
    wait_s: float = 2.0,
) -> Fetched:
    """Get ``source`` into the data folder and convert it.

    Args:
        accept_changed: lock another content than the one locked.
        watch: gives the progress bar of each file.
        wait_s: see :func:`training.datasets.public.download.download`.

    Raises:
        InputError: a download fails or isn't what was locked, or the content has another layout.
    """
    raw = data / "raw" / source.name
    lock = locked(data)
    downloaded = 0
    for file in source.files:
        key = f"{source.name}/{file.name}"
        expected = file.sha256 or (None if accept_changed else _locked_sha256(lock, key))
        path = raw / file.name
        if expected is not None and path.is_file() and sha256_of(path) == expected:
            continue
        got = _download(file, path, expected, watch(key), wait_s)
        lock[key] = {"url": file.url, "sha256": got.sha256, "bytes": got.size}
        _write_lock(data, lock)
        downloaded += 1
    content = raw
    if source.members:
        content = raw / "content"
        (archive,) = source.files
        if not extract(raw / archive.name, content, source.members, strip=source.strip):
            raise InputError(f"{raw / archive.name} has none of {', '.join(source.members)}")
    written = source.convert(content, data)
    return Fetched(downloaded, len(source.files) - downloaded, written)


def _download(
    file: RemoteFile, path: Path, expected: str | None, progress: Progress | None, wait_s: float
) -> Any:
    try:
        return download(
            file.url,
            path,
            sha256=expected,
            limit_bytes=file.limit_bytes,
            progress=progress,
            wait_s=wait_s,
        )
    except InputError as error:
        if expected is not None and file.sha256 is None and "sha256" in str(error):
            raise InputError(f"{error}; to take it, add --accept-changed") from error
        raise


def locked(data: Path) -> dict[str, dict[str, Any]]:
    """The lock file's entries by ``source/file``; {} where there is none.

    Raises:
        InputError: it is damaged.
    """
    path = data / LOCK
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA or not isinstance(content["files"], dict):
            raise ValueError(f"schema {content['schema']!r}, not {SCHEMA!r}")
        files: dict[str, dict[str, Any]] = content["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error}; delete it to lock anew") from error
    return files


def _locked_sha256(lock: Mapping[str, Any], key: str) -> str | None:
    entry = lock.get(key)
    digest = entry.get("sha256") if isinstance(entry, dict) else None
    return digest if isinstance(digest, str) else None


def _write_lock(data: Path, files: Mapping[str, Any]) -> None:
    content = {"schema": SCHEMA, "files": dict(sorted(files.items()))}
    temporary = data / f"{LOCK}.tmp"
    temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    temporary.replace(data / LOCK)
