"""``python -m training corpus label`` and ``compare``: figures composed of the kernel models."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from dippm_lite.errors import InputError
from training.corpus.records import INDEX, Corpus
from training.data_folder import add_data_option, data_folder

__all__ = ["add_label_parser"]

_T = TypeVar("_T")


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

    compare = commands.add_parser("compare", help="composed figures beside measured ones")
    add_data_option(compare)
    compare.add_argument("--records", type=Path, default=records, metavar="DIR")
    compare.add_argument("--macs", type=Path, metavar="FILE", help="keep counted MACs in this file")
    compare.add_argument("--sample", type=int, metavar="N", help="N rows, evenly chosen")
    compare.set_defaults(handler=_compare)


def _label(options: argparse.Namespace) -> int:
    from training.corpus.labelling import label_corpus
    from training.corpus.labels import LABELS

    corpus = _corpus(options.records)
    if options.workers < 1:
        raise InputError(f"--workers {options.workers}: at least 1")
    chosen = _sample(corpus.records, options.sample)
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


def _compare(options: argparse.Namespace) -> int:
    from training.corpus.comparison import comparable, compare, render_ratios
    from training.corpus.labelling import Composer
    from training.datasets.match import measured_rows

    corpus = _corpus(options.records)
    rows = measured_rows(data_folder(options.data), corpus, options.macs)
    chosen = _sample(comparable(rows, corpus), options.sample)
    print(render_ratios(tuple(compare(chosen, corpus, Composer()))))
    return 0


def _corpus(folder: Path) -> Corpus:
    if not (folder / INDEX).exists():
        raise InputError(f"no records in {folder}: build them with corpus build --output")
    return Corpus(folder)


def _sample(items: Sequence[_T], count: int | None) -> Sequence[_T]:
    """``count`` of the items, evenly chosen; all of them for None."""
    if count is None:
        return items
    if count < 1:
        raise InputError(f"--sample {count}: at least 1")
    return items[:: max(1, len(items) // count)][:count]
