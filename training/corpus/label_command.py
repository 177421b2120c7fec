"""``python -m training corpus label``: compose latency, memory and energy of the records."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError

__all__ = ["add_label_parser"]


def add_label_parser(commands: Any, records: Path) -> None:
    """Add the command ``label`` to those of the verb ``corpus``; ``records`` is the default."""
    label = commands.add_parser("label", help="compose labels from the kernel models, resumably")
    label.add_argument("--records", type=Path, default=records, metavar="DIR")
    label.add_argument(
        "--output", type=Path, metavar="FILE", help="default: the repository's labels"
    )
    label.add_argument("--workers", type=int, default=1)
    label.add_argument("--sample", type=int, metavar="N", help="label N records, evenly chosen")
    label.add_argument("--fresh", action="store_true", help="compose all again")
    label.set_defaults(handler=_label)


def _label(options: argparse.Namespace) -> int:
    from training.corpus.labelling import label_corpus
    from training.corpus.labels import LABELS
    from training.corpus.records import INDEX, Corpus

    if not (options.records / INDEX).exists():
        raise InputError(f"no records in {options.records}: build them with corpus build --output")
    if options.workers < 1 or (options.sample is not None and options.sample < 1):
        raise InputError("--workers and --sample count from 1")
    corpus = Corpus(options.records)
    chosen = corpus.records
    if options.sample is not None:
        chosen = chosen[:: max(1, len(chosen) // options.sample)][: options.sample]
    output = options.output or LABELS
    started = time.monotonic()
    count, failed = label_corpus(
        corpus, output, records=chosen, workers=options.workers, fresh=options.fresh
    )
    for outcome in failed:
        print(f"{outcome.name}: {outcome.reason}", file=sys.stderr)
    spent = time.monotonic() - started
    print(
        f"{output}: {count} workloads of {len(chosen) - len(failed)} records, "
        f"{len(failed)} without, {output.stat().st_size} bytes, {spent:.0f} s"
    )
    return 0
