"""``python -m training corpus match``: join the published tables to the corpus."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.data_folder import add_data_option, data_folder
from training.datasets.measured import MeasuredRow

__all__ = ["add_match_parser", "as_json"]


def add_match_parser(commands: Any, records: Path) -> None:
    """Add the command ``match`` to those of the verb ``corpus``; ``records`` is the default."""
    match = commands.add_parser("match", help="join published measurements to the records")
    add_data_option(match)
    match.add_argument("--records", type=Path, default=records, metavar="DIR")
    match.add_argument("--macs", type=Path, metavar="FILE", help="keep counted MACs in this file")
    match.add_argument("--format", choices=("text", "json"), default="text")
    match.add_argument("--output", type=Path, metavar="FILE", help="write each row as a JSON line")
    match.add_argument(
        "--networks", type=Path, metavar="FILE", help="write the names that the records lack"
    )
    match.set_defaults(handler=_match)


def _match(options: argparse.Namespace) -> int:
    from training.corpus.records import INDEX, Corpus
    from training.datasets.match import measured_rows
    from training.datasets.match_report import render_text, summarise
    from training.datasets.reasons import Reason

    if not (options.records / INDEX).exists():
        raise InputError(f"no records in {options.records}: build them with corpus build --output")
    corpus = Corpus(options.records)
    rows = measured_rows(data_folder(options.data), corpus, options.macs)
    if options.output is not None:
        lines = (json.dumps(as_json(row), sort_keys=True) for row in rows)
        options.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if options.networks is not None:
        names = sorted({row.graph for row in rows if row.reason is Reason.NOT_EXPORTED})
        options.networks.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    report = summarise(rows)
    print(json.dumps(report, indent=2) if options.format == "json" else render_text(report))
    return 0


def as_json(row: MeasuredRow) -> dict[str, Any]:
    """A measured row as JSON values, the published row's fields under ``row``."""
    fields = asdict(row)
    fields["reason"] = row.reason.value if row.reason else None
    fields["flags"] = [flag.value for flag in row.flags]
    return fields
