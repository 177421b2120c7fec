"""Chosen files of a tar archive, without what an archive can do beyond that.

Members become regular files under one folder, by names that are checked; links, devices, absolute
names and names with ``..`` are refused where they are asked for, and passed over elsewhere. Modes,
owners and times are not restored.
"""

from __future__ import annotations

import fnmatch
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from dippm_lite.errors import InputError

__all__ = ["extract"]

LIMIT_BYTES = 64 << 30
"""Most that a whole archive may unpack to, what is passed over included."""

LIMIT_MEMBER_BYTES = 256 << 20
"""Largest member that is extracted."""

LIMIT_MEMBERS = 2_000_000

CHUNK_BYTES = 1 << 20


def extract(
    archive: Path,
    folder: Path,
    patterns: Sequence[str],
    *,
    strip: int = 0,
    limit_bytes: int = LIMIT_BYTES,
) -> int:
    """Extract the members that match any of ``patterns``; returns how many there are.

    Args:
        archive: tar, maybe compressed.
        folder: replaced as a whole once all members are there.
        patterns: as in :mod:`fnmatch`, against the name without its first ``strip`` parts; ``*``
            matches ``/`` too.
        strip: leading parts to drop, such as the folder that a hosted archive wraps all in.

    Raises:
        InputError: the archive is damaged, unpacks to too much, or a member that is asked for has
            a name that leads elsewhere or is no regular file.
    """
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    count = total = 0
    try:
        with tarfile.open(archive, "r|*") as members:
            for number, member in enumerate(members, 1):
                total += max(0, member.size)
                if total > limit_bytes or number > LIMIT_MEMBERS:
                    raise InputError(f"{archive} unpacks to too much: {total} bytes so far")
                name = _stripped(member.name, strip)
                if member.isdir() or not any(fnmatch.fnmatchcase(name, p) for p in patterns):
                    continue
                _write(archive, members, member, part / _safe(archive, name))
                count += 1
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise InputError(f"{archive} is damaged: {error}") from error
    except InputError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return count


def _stripped(name: str, strip: int) -> str:
    return "/".join(name.removeprefix("./").split("/")[strip:])


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    odd = "\\" in name or "\0" in name or ":" in name
    if path.is_absolute() or ".." in path.parts or odd or not path.parts:
        raise InputError(f"{archive} is refused: the member {name!r} leads out of its folder")
    return path


def _write(archive: Path, members: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = members.extractfile(member) if member.isreg() else None
    if source is None:
        raise InputError(f"{archive} is refused: the member {member.name!r} is no regular file")
    if member.size > LIMIT_MEMBER_BYTES:
        raise InputError(f"{archive} is refused: {member.name!r} has {member.size} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(source, file, CHUNK_BYTES)
