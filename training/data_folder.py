"""Where the measurement files lie: the one place that resolves ``--data``.

The repository holds no copy of them. They are read from the folder that ``--data DIR`` names, else
from ``../shared/data`` beside the checkout where that exists, else from a cache folder, which
``python -m training data fetch`` fills.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from dippm_lite.errors import InputError

__all__ = ["add_data_option", "cache_folder", "data_file", "data_folder"]

CHECKOUT = Path(__file__).resolve().parents[1]


def cache_folder(
    platform: str = sys.platform,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
) -> Path:
    """``dippm-lite/data`` in the user's cache folder, by the rules of the platform.

    Linux and others: ``$XDG_CACHE_HOME`` where it is absolute (the XDG specification ignores any
    other), else ``~/.cache``. macOS: ``~/Library/Caches``. Windows: ``%LOCALAPPDATA%``.
    """
    home = home or Path.home()
    if platform == "darwin":
        base = home / "Library" / "Caches"
    elif platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        given = Path(environ.get("XDG_CACHE_HOME") or "")
        base = given if given.is_absolute() else home / ".cache"
    return base / "dippm-lite" / "data"


def data_folder(given: Path | None = None, *, checkout: Path = CHECKOUT) -> Path:
    """The folder of the measurement files: ``given``, else the default.

    Raises:
        InputError: ``given`` is not a folder. The default may be missing: :func:`data_file` says
            what to do then.
    """
    if given is not None:
        if not given.is_dir():
            raise InputError(f"--data {given} is not a folder")
        return given
    beside = checkout.parent / "shared" / "data"
    return beside if beside.is_dir() else cache_folder()


def data_file(folder: Path, name: str) -> Path:
    """The file ``name`` (such as ``"kernels/vidur_fp16.csv.gz"``) in ``folder``.

    Raises:
        InputError: it isn't there.
    """
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"{path} is missing: name the folder that holds it with --data DIR, "
            "or get the public sources with python -m training data fetch"
        )
    return path


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--data DIR``; resolve ``options.data`` with :func:`data_folder`."""
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of the measurement files (default: ../shared/data, else a cache folder)",
    )
