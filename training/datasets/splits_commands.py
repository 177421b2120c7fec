"""``python -m training splits``: freeze, verify and count the splits of the corpus."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from training.data_folder import add_data_option, data_folder
from training.datasets.splits import FOLDS, FROZEN, Side, Splits, freeze, read, verify, write

__all__ = ["add_parser", "counts"]


def add_parser(verbs: Any) -> None:
    """Add the verb ``splits`` to the subparsers of ``python -m training``."""
    splits = verbs.add_parser("splits", help="what is trained on and what is tested on")
    commands = splits.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, run, text in (
        ("freeze", _freeze, "write the splits; what an existing file assigns stays"),
        ("verify", _verify, "prove that nothing crosses the frozen splits"),
        ("show", _show, "count the frozen splits"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--file", type=Path, default=FROZEN, help="the frozen splits")
        if name == "show":
            command.add_argument("--format", choices=("text", "json"), default="text")
        else:
            command.add_argument("--records", type=Path, metavar="DIR", help="folder of records")
            add_data_option(command)
        if name == "freeze":
            command.add_argument("--anew", action="store_true", help="ignore an existing file")
        command.set_defaults(handler=run)


def _records(options: argparse.Namespace) -> Any:
    from training.corpus.commands import RECORDS
    from training.corpus.records import Corpus

    return Corpus(options.records or RECORDS).records


def _rows_by_source(options: argparse.Namespace) -> dict[str, int]:
    from training.datasets.tables import read_tables

    return Counter(row.source for row in read_tables(data_folder(options.data)))


def _freeze(options: argparse.Namespace) -> int:
    previous = read(options.file) if options.file.exists() and not options.anew else None
    splits = freeze(_records(options), _rows_by_source(options), previous=previous)
    write(splits, options.file)
    if previous is not None:
        moved = sum(
            previous.side(fingerprint) is not splits.side(fingerprint)
            for fingerprint in previous.groups.keys() & splits.groups.keys()
        )
        print(f"{moved} records moved since new ones joined their groups", file=sys.stderr)
    print(f"{options.file}: {len(splits.groups)} records, sha256 {splits.digest}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    splits = read(options.file)
    problems = verify(splits, _records(options), _rows_by_source(options))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{options.file}: {len(problems) or 'no'} problems, sha256 {splits.digest}")
    return 1 if problems else 0


def counts(splits: Splits) -> dict[str, Any]:
    """Records and groups by side, families and sources by fold, and the fingerprint."""
    sides = Counter(splits.side(fingerprint).value for fingerprint in splits.groups)
    total = max(1, len(splits.groups))

    def by_fold(folds: dict[str, int]) -> dict[str, list[str]]:
        return {
            str(fold): [name for name, place in sorted(folds.items()) if place == fold]
            for fold in range(FOLDS)
        }

    return {
        "sha256": splits.digest,
        "records": len(splits.groups),
        "groups": len(set(splits.groups.values())),
        "random": {side.value: sides[side.value] for side in Side},
        "random_percent": {s.value: round(100 * sides[s.value] / total, 1) for s in Side},
        "families": by_fold(dict(splits.families)),
        "sources": by_fold(dict(splits.sources)),
    }


def _show(options: argparse.Namespace) -> int:
    found = counts(read(options.file))
    if options.format == "json":
        print(json.dumps(found, indent=2))
        return 0
    for key, value in found.items():
        if isinstance(value, dict):
            print(f"{key}:")
            for name, item in value.items():
                print(f"  {name}: {', '.join(item) if isinstance(item, list) else item}")
        else:
            print(f"{key}: {value}")
    return 0
