"""DIPPM's release file to ``dippm/data_<i>.pt``, as :mod:`training.datasets.dippm` reads them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from dippm_lite.errors import InputError

__all__ = ["MEMBERS", "convert"]

MEMBERS = ("data_*.pt", "*/data_*.pt")
"""What is extracted of the release; its public code looks for them in ``PT``."""

_NAME = re.compile(r"data_\d{1,9}\.pt", re.ASCII)


def convert(raw: Path, data: Path) -> tuple[Path, ...]:
    """Link, or copy, the graphs to one folder; returns the folder.

    Raises:
        InputError: there are none.
    """
    graphs = sorted(path for path in raw.rglob("data_*.pt") if _NAME.fullmatch(path.name))
    if not graphs:
        raise InputError(f"{raw} has no data_<i>.pt: another layout")
    target = data / "dippm"
    part = data / "dippm.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for graph in graphs:
        try:
            (part / graph.name).hardlink_to(graph)
        except OSError:  # another file system, or one without links
            shutil.copyfile(graph, part / graph.name)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
    return (target,)
