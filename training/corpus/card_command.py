"""``python -m training corpus stats`` and ``card``: the counts, and the data card made of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.corpus.counts import (
    composed_counts,
    corpus_digest,
    measured_counts,
    record_counts,
    render_counts,
)
from training.corpus.labels import LABELS, Label, read_labels
from training.corpus.records import INDEX, Corpus
from training.data_folder import add_data_option, data_folder
from training.datasets.measured import MeasuredRow

__all__ = ["CARD", "add_card_parsers"]

CARD = Path(__file__).parents[1] / "DATA.md"
"""The data card of the repository; its plots and counts are in ``data_card`` beside it."""

PLOTS = "data_card"
COUNTS = "counts.json"


def add_card_parsers(commands: Any, records: Path) -> None:
    """Add ``stats`` and ``card`` to the commands of ``corpus``; ``records`` is the default."""
    stats = commands.add_parser("stats", help="count records, composed and measured labels")
    stats.add_argument("--format", choices=("text", "json"), default="text")
    stats.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="join the measurements in this folder (default: the counts of the data card)",
    )
    stats.set_defaults(handler=_stats)
    card = commands.add_parser("card", help="render the data card, its counts and plots")
    add_data_option(card)
    card.add_argument("--output", type=Path, default=CARD, metavar="FILE")
    card.set_defaults(handler=_card)
    for command in (stats, card):
        command.add_argument("--records", type=Path, default=records, metavar="DIR")
        command.add_argument("--labels", type=Path, default=LABELS, metavar="FILE")
        command.add_argument("--macs", type=Path, metavar="FILE", help="keep counted MACs here")


def _stats(options: argparse.Namespace) -> int:
    corpus, labels = _read(options)
    if options.data is None:
        measured = _counts_of_card(corpus)
    else:
        measured = measured_counts(_rows(options, corpus), corpus)
    facts = _facts(corpus, labels, measured)
    print(json.dumps(facts, indent=2) if options.format == "json" else render_counts(facts))
    return 0


def _card(options: argparse.Namespace) -> int:
    from training.corpus.card_plots import plot_coverage, plot_latency
    from training.corpus.data_card import render_card
    from training.datasets.provenance import read_sources

    corpus, labels = _read(options)
    rows = _rows(options, corpus)
    facts = _facts(corpus, labels, measured_counts(rows, corpus))
    folder = options.output.parent / PLOTS
    plot_latency(folder / "macs_latency.png", labels, rows, corpus)
    shown = plot_coverage(folder / "coverage.png", labels, corpus)
    failures = corpus.folder / "failures.jsonl"
    lines = failures.read_text(encoding="utf-8").splitlines() if failures.exists() else ()
    text = render_card(
        facts,
        labels,
        read_sources(data_folder(options.data)),
        [json.loads(line) for line in lines],
        {
            "MACs against latency": f"{PLOTS}/macs_latency.png",
            "Coverage: MACs and parameters by family": f"{PLOTS}/coverage.png",
        },
    )
    options.output.write_text(text, encoding="utf-8", newline="\n")
    counts = json.dumps(facts, indent=1) + "\n"
    (folder / COUNTS).write_text(counts, encoding="utf-8", newline="\n")
    print(f"{options.output}: {facts['graphs']} graphs, of which {shown} are plotted")
    return 0


def _read(options: argparse.Namespace) -> tuple[Corpus, tuple[Label, ...]]:
    """The corpus, and the composed labels of its records; without a file there are none."""
    if not (options.records / INDEX).exists():
        raise InputError(f"no records in {options.records}: build them with corpus build --output")
    corpus = Corpus(options.records)
    missing = options.labels == LABELS and not LABELS.exists()
    return corpus, () if missing else read_labels(options.labels)


def _rows(options: argparse.Namespace, corpus: Corpus) -> tuple[MeasuredRow, ...]:
    from training.datasets.match import measured_rows

    return measured_rows(data_folder(options.data), corpus, options.macs)


def _facts(
    corpus: Corpus, labels: tuple[Label, ...], measured: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        **record_counts(corpus),
        "corpus": corpus_digest(corpus),
        "composed": composed_counts(labels, corpus),
        "measured": measured,
    }


def _counts_of_card(corpus: Corpus) -> dict[str, Any] | None:
    """The measured counts that the card was rendered with, where it is of these records."""
    path = CARD.parent / PLOTS / COUNTS
    if not path.exists():
        return None
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts["measured"] if facts["corpus"] == corpus_digest(corpus) else None
