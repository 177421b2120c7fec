"""Which network of the corpus a published name means: rules first, exceptions in a table.

Rules: a hint ``timm:x``, ``torchvision:x`` or ``ultralytics:x`` is the builder ``x`` of that
library at the row's image size, at the builder's own where the row has none. Everything else, and
what departs from the rules, is a line of ``published_names.csv``, which is tried first.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from training.datasets.reasons import Reason
from training.datasets.tables import PublishedRow

__all__ = ["NamedNetwork", "network_of"]

TABLE = Path(__file__).with_name("published_names.csv")

RULES: Mapping[str, str] = {"timm": "timm", "torchvision": "torchvision"}
"""Library of the hint, and source in the corpus."""


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network's name in the corpus, and its samples in one sample of the row.

    Classifier-free guidance runs a denoiser on two samples for each image.
    """

    name: str
    samples: int = 1


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    network: str
    samples: int

    def fits(self, row: PublishedRow) -> bool:
        names = (row.hint, row.model, f"{row.model}/{row.task}")
        return any(name and fnmatchcase(name, self.name) for name in names)


@cache
def _lines(source: str) -> tuple[_Line, ...]:
    """The table's lines for one source."""
    text = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return tuple(
        _Line(fields["name"], fields["network"], int(fields["samples"] or 1))
        for fields in csv.DictReader(text)
        if fnmatchcase(source, fields["source"])
    )


def network_of(row: PublishedRow) -> NamedNetwork | Reason:
    """The network that a row is about, or why none can be named."""
    for line in _lines(row.source):
        if line.fits(row):
            if line.network.startswith("!"):
                return Reason(line.network[1:])
            return _filled(row, line.network, line.samples)
    library, _, builder = row.hint.partition(":")
    if library not in RULES:
        return Reason.NO_BUILDER
    if row.height is None:
        return NamedNetwork(f"{RULES[library]}/{builder}")
    return _filled(row, f"{RULES[library]}/{builder}@{{size}}", 1)


def _filled(row: PublishedRow, template: str, samples: int) -> NamedNetwork | Reason:
    """The template with the row's own sizes in it."""
    values = {
        "size": row.height if row.height == row.width else None,
        "tokens": row.tokens,
        "cache": None if row.tokens is None else row.tokens + (row.generated or 0) // 2,
        "frames": _frames(row),
        "builder": row.hint.partition(":")[2],
        "model": row.model,
    }
    wanted = re.findall(r"\{(\w+)\}", template)
    if any(values[key] is None for key in wanted):
        return Reason.MISSING_SIZE
    return NamedNetwork(template.format(**values), samples)


def _frames(row: PublishedRow) -> int | None:
    """Frames of 10 ms in the stated seconds of sound, and one more for the window's end."""
    seconds = re.search(r"audio ([\d.]+) s per item", row.notes)
    return round(100 * float(seconds[1])) + 1 if seconds else None
