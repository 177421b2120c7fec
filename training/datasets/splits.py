"""Splits that nothing crosses, frozen to a file with a fingerprint.

**Random**, 70/15/15 as in the paper, but by group of near-duplicates
(:mod:`training.datasets.groups`) where the paper shuffles rows. The side of a group is a function
of its hash alone: not of a position, a seed or the other records.

**Leave-family-out**, five folds over families with about as many records in each. Families that
share a group stand in one fold: a copy of an architecture under another family's name would give
it away.

**Leave-source-out** for measured rows, five folds over the sources of measurements. Several names
of one body of measurements (revisions of a table, a file that two of our tables quote) are one
source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.datasets.groups import Grouped, connected, group_records, short

__all__ = [
    "FROZEN",
    "Side",
    "Splits",
    "freeze",
    "read",
    "side_of",
    "source_body",
    "verify",
    "write",
]

FROZEN = Path(__file__).parent / "splits" / "corpus.json"
"""The splits that the repository holds."""

SCHEMA = "dippm-lite-splits/1"
FOLDS = 5

_SALT = "dippm-lite random split 1: "
"""Part of what is hashed. Another number would be another split."""


class Side(str, Enum):
    """Of the random split."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


_BOUNDS = ((0.70, Side.TRAIN), (0.85, Side.VALIDATION), (1.0, Side.TEST))

_BODIES = (
    (re.compile(r"trt_demobert_.*"), "trt_demobert"),
    (re.compile(r"mlperf_.*|mlcommons/inference_results_.*"), "mlperf"),
    (re.compile(r"parvagpu.*|MunQ-Lee/ParvaGPU.*"), "parvagpu"),
    (re.compile(r"timm_.*"), "timm"),
)
"""Source ids that name one body of measurements."""


def source_body(source: str) -> str:
    """The body of measurements that a source id belongs to: most are their own."""
    return next((body for pattern, body in _BODIES if pattern.fullmatch(source)), source)


def side_of(group: str) -> Side:
    """The side of a group: its hash as a number in [0, 1) against 0.70 and 0.85."""
    digest = hashlib.sha256((_SALT + group).encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    return next(side for bound, side in _BOUNDS if place < bound)


@dataclass(frozen=True)
class Splits:
    """The three splits.

    Attributes:
        groups: short fingerprint of a record to the hash of its group.
        families: family to the fold (0 to 4) that leaves it out.
        sources: body of measurements to the fold that leaves it out.
    """

    groups: Mapping[str, str]
    families: Mapping[str, int]
    sources: Mapping[str, int] = field(default_factory=dict)

    def side(self, fingerprint: str) -> Side:
        """Of a record, by its fingerprint.

        Raises:
            KeyError: the record was not there when the splits were frozen.
        """
        return side_of(self.groups[short(fingerprint)])

    def family_fold(self, family: str) -> int:
        """The fold whose test set holds the family; KeyError for one that is not frozen."""
        return self.families[family]

    def source_fold(self, source: str) -> int:
        """The fold whose test set holds the source's rows; KeyError for one not frozen."""
        return self.sources[source_body(source)]

    @property
    def digest(self) -> str:
        """Sha256 of all assignments."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        sides: dict[str, dict[str, list[str]]] = {side.value: {} for side in Side}
        for fingerprint, group in sorted(self.groups.items()):
            sides[side_of(group).value].setdefault(group, []).append(fingerprint)
        return {
            "schema": SCHEMA,
            "random": sides,
            "families": dict(self.families),
            "sources": dict(self.sources),
        }

    def to_json(self) -> str:
        """A group of records on each line, so that a difference shows what moved."""
        content = self._content() | {"sha256": self.digest}
        return _by_line(content, 3) + "\n"


def _by_line(value: Any, depth: int) -> str:
    """JSON with sorted keys, the outer ``depth`` levels of objects having a line for each key."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    lines = (f"{json.dumps(key)}:{_by_line(value[key], depth - 1)}" for key in sorted(value))
    return "{\n" + ",\n".join(lines) + "\n}"


def freeze(
    records: Iterable[Grouped],
    rows_by_source: Mapping[str, int] | None = None,
    *,
    previous: Splits | None = None,
) -> Splits:
    """Splits of the records and of the sources of measured rows.

    Args:
        records: of the corpus.
        rows_by_source: measured rows by source id.
        previous: splits frozen earlier. What they assign stays; see
            :func:`training.datasets.groups.group_records` for groups that grow together. Families
            that a new record joins go to the fold of the first of them.

    Raises:
        ValueError: two records share a short fingerprint.
    """
    records = tuple(records)
    shorts = Counter(short(record.fingerprint) for record in records)
    if len(shorts) != len(records):
        twice = [key for key, count in shorts.items() if count > 1]
        raise ValueError(f"records share the fingerprint {twice[0]}: it must be distinct")
    groups = group_records(records, previous.groups if previous else None)
    units = _family_units(records, groups)
    counts = Counter(units[record.family] for record in records)
    kept = {units[f]: fold for f, fold in _sorted_items(previous, "families") if f in units}
    unit_folds = _balanced(counts, kept)
    bodies: Counter[str] = Counter()
    for source, rows in (rows_by_source or {}).items():
        bodies[source_body(source)] += rows
    kept_sources = {s: f for s, f in _sorted_items(previous, "sources") if s in bodies}
    return Splits(
        groups=groups,
        families={family: unit_folds[unit] for family, unit in sorted(units.items())},
        sources=_balanced(bodies, kept_sources),
    )


def _sorted_items(splits: Splits | None, name: str) -> list[tuple[str, int]]:
    # Reversed, so that of several the first by name is the last to be written.
    return sorted(getattr(splits, name).items(), reverse=True) if splits else []


def _family_units(records: Iterable[Grouped], groups: Mapping[str, str]) -> dict[str, str]:
    """Family to the smallest family that shares groups with it, directly or through others."""
    members: dict[str, set[str]] = defaultdict(set)
    for record in records:
        members[groups[short(record.fingerprint)]].add(record.family)
    return connected(sorted(families) for families in members.values())


def _balanced(counts: Mapping[str, int], kept: Mapping[str, int]) -> dict[str, int]:
    """Folds of about equal size: what is kept first, then the largest to the smallest fold."""
    sizes = [0] * FOLDS
    folds = dict(kept)
    for unit, fold in kept.items():
        sizes[fold] += counts[unit]
    for unit in sorted(counts, key=lambda unit: (-counts[unit], unit)):
        if unit not in folds:
            folds[unit] = min(range(FOLDS), key=lambda fold: (sizes[fold], fold))
            sizes[folds[unit]] += counts[unit]
    return dict(sorted(folds.items()))


def write(splits: Splits, path: Path) -> None:
    """Write the file of frozen splits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(splits.to_json().encode())
    temporary.replace(path)


def read(path: Path = FROZEN) -> Splits:
    """Frozen splits.

    Raises:
        InputError: the file is missing or no such file, a group stands on another side than its
            hash says, or the content is not that of its fingerprint.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r}, not {SCHEMA!r}")
        pairs = [
            (fingerprint, group)
            for groups in content["random"].values()
            for group, fingerprints in groups.items()
            for fingerprint in fingerprints
        ]
        splits = Splits(dict(pairs), content["families"], content["sources"])
        same = splits._content() | {"sha256": splits.digest} == content
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no file of frozen splits: {error}") from error
    if not same:
        raise InputError(f"{path} doesn't match its fingerprint: freeze the splits again")
    return splits


def verify(
    splits: Splits, records: Iterable[Grouped], sources: Iterable[str] = ()
) -> tuple[str, ...]:
    """What is wrong with the splits for these records and sources of measured rows; () is right.

    Checks from the records themselves, not from the groups that freezing made: no record is
    missing, no architecture hash and no name stands on two sides or in two folds, and no body of
    measurements is missing.
    """
    problems: list[str] = []
    sides: dict[str, set[str]] = defaultdict(set)
    folds: dict[str, set[str]] = defaultdict(set)
    for record in records:
        if short(record.fingerprint) not in splits.groups:
            problems.append(f"{record.name} is not in the frozen splits")
            continue
        if record.family not in splits.families:
            problems.append(f"family {record.family} of {record.name} is in no fold")
            continue
        names = {name.partition("@")[0] for name in (record.name, *record.aliases)}
        for key in (f"architecture {record.architecture}", *(f"name {name}" for name in names)):
            sides[key].add(splits.side(record.fingerprint).value)
            folds[key].add(str(splits.families[record.family]))
    for what, places in (("on the sides", sides), ("in the folds", folds)):
        for key, found in sorted(places.items()):
            if len(found) > 1:
                problems.append(f"{key} stands {what} {' and '.join(sorted(found))}")
    missing = {source_body(source) for source in sources} - set(splits.sources)
    problems += [f"source {source} is in no fold" for source in sorted(missing)]
    return tuple(problems)
