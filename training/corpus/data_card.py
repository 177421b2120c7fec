"""The data card: what the corpus holds and where it comes from, rendered and never written by hand.

The same counts always give the same text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from training.corpus.label_plan import FEWEST, PER_BATCH, TICKETS
from training.corpus.labels import Label
from training.datasets.provenance import Source

__all__ = ["CardFacts", "render_card"]

CardFacts = Mapping[str, Any]
"""What ``corpus stats --format json`` prints: counts of records, ``composed`` and ``measured``."""

MISSING_SHOWN = 12

LICENCES = (
    ("Graph records, composed labels", "made by this project, Apache-2.0 like its code"),
    ("NeuSight (kernels, networks)", "MIT"),
    ("vidur (kernels)", "MIT"),
    ("TraPPM", "MIT"),
    (
        "all other sources of measurements",
        "see the repository or paper in the table of sources; figures are facts, "
        "which are read where they lie and of which this repository holds no copy",
    ),
    (
        "NNIRP (T4)",
        "CC BY-NC-SA: for comparison only, nothing that ships is trained on it; "
        "no row of it is counted here",
    ),
    (
        "timm, torchvision, transformers",
        "Apache-2.0, BSD-3-Clause, Apache-2.0: the records hold the operators and shapes of "
        "networks that these libraries build, neither their code nor any weights",
    ),
)
"""What, and under which terms."""

TIMM = "timm_"
TIMM_SOURCE = ("timm's benchmark tables", "github:huggingface/pytorch-image-models, results/")
"""Title and place of sources that begin so: the tables of sources don't list them."""

WHAT_FOLLOWS_FROM_THE_METHOD = (
    "Composed labels carry the errors of the kernel models, of the memory schedule and of the "
    "power model. They are for learning shapes of curves, and no accuracy is stated on them.",
    "Composed labels are for A100 cards and instances only: the kernel models were fitted on "
    "A100s. GeForce and other cards have measured labels alone.",
    "Kernels in TF32 or fp16 were measured for linear layers and a few others: convolutions, "
    "attention, int8 and bf16 are carried over from measured classes by stated factors.",
    "An instance's energy is that of the whole card while the instance runs: its standing power "
    "is not shared out.",
    "Sequence lengths are those that the records were exported at; other resolutions are composed "
    "only for image networks that hold no size in them.",
    "Inputs, weights and activations hold no numbers: sparsity, early exits and routing by data "
    "are not seen.",
)
"""Gaps that no count shows."""


def render_card(
    facts: CardFacts,
    labels: Sequence[Label],
    sources: Mapping[str, Source],
    failures: Sequence[Mapping[str, str]],
    plots: Mapping[str, str],
) -> str:
    """The card as Markdown.

    Args:
        facts: the counts; ``measured`` may be None where the measurements aren't at hand.
        labels: composed ones, for what the counts don't say.
        sources: publications by id.
        failures: ``name`` and ``reason`` of networks that could not be exported.
        plots: title to the path of a picture, relative to the card.
    """
    composed, measured = facts["composed"], facts["measured"]
    parts = [
        "# Data card\n\nWhat the graph models are trained and tested on. Rendered by "
        "`python -m training corpus card`; `python -m training corpus stats` prints the same "
        "counts. Every label is **measured** (published by others or by us) or **composed** "
        "(summed from models of measured kernels); the two are counted apart and never share a "
        "figure.",
        f"## Size\n\n{_size(facts)}",
        *(f"## {title}\n\n![{title}]({path})" for title, path in plots.items()),
        f"## Graphs\n\n{_records(facts)}",
        f"## Composed labels\n\n{_composed(composed, labels)}",
        f"## Measured labels\n\n{_measured(measured, sources)}",
        f"## Families\n\n{_families(facts)}",
        f"## Licences\n\n{_table(('What', 'Licence'), LICENCES)}",
        f"## Known gaps\n\n{_gaps(facts, labels, failures)}",
    ]
    return "\n\n".join(parts) + "\n"


def _size(facts: CardFacts) -> str:
    composed, measured = facts["composed"], facts["measured"] or {}
    rows = [
        ("distinct graphs", facts["graphs"]),
        ("names of networks, merged ones included", facts["names"]),
        ("architectures (graphs without their sizes)", facts["architectures"]),
        ("families", facts["families"]),
        ("operators in all graphs", facts["nodes"]),
        ("composed workloads", composed["workloads"]),
        ("graphs with composed labels", composed["graphs"]),
        ("fewest composed workloads of such a graph", composed["fewest_per_graph"]),
        ("measured labels", measured.get("labels", "not joined")),
        ("measured workloads", measured.get("workloads", "not joined")),
        ("graphs with measured labels", measured.get("graphs", "not joined")),
    ]
    return _table(("", "Count"), rows)


def _records(facts: CardFacts) -> str:
    return (
        "Each record is an ONNX graph without weights, its batch left open where the network "
        "allows, with builder, arguments, exporter, opset and fingerprint.\n\n"
        + _counted("Builder", facts["by_source"])
        + "\n\n"
        + _counted("Exporter", facts["by_exporter"])
    )


def _composed(composed: CardFacts, labels: Sequence[Label]) -> str:
    extrapolated = sorted(label.extrapolated_share for label in labels)
    carried = sum(share > 0.5 for share in extrapolated)
    launch_bound = sum(label.launch_bound_share > 0.5 for label in labels)
    text = (
        f"`python -m training corpus label` composes them. Each graph gives up to three batches "
        f"(1, one of 2 to 16, one of 32 to 256, as memory allows), {PER_BATCH} workloads each and "
        f"at least {FEWEST} together: the default (eager PyTorch, precision `auto`, "
        f"A100 SXM4 40 GB) and others dealt by the graph's fingerprint from all runtimes, "
        f"precisions and {len(TICKETS)} devices. Image networks without a built-in size give two "
        f"more at another resolution."
    )
    if labels:
        text += (
            f" Of {len(labels)} workloads {_percent(launch_bound, len(labels))} wait for the "
            f"host's launches for more than half of the time; "
            f"{_percent(carried, len(labels))} spend more than half of the kernels' time in "
            f"classes that were never measured at that precision (median share "
            f"{100 * median(extrapolated):.0f} %)."
        )
    keys = ("device", "runtime", "precision", "batch", "resolution", "caveat", "engine")
    return "\n\n".join([text, *_tables(composed, keys)])


def _measured(measured: CardFacts | None, sources: Mapping[str, Source]) -> str:
    if measured is None:
        return "Not joined: the measurements were not at hand when this card was rendered."
    rows = [(f"`{name}`", *_named(name, sources), count) for name, count in
            measured["by_source"].items()]  # fmt: skip
    text = (
        f"{measured['labels']} labels of {measured['workloads']} workloads: one forward pass of a "
        f"graph of the corpus, published by others, joined by `python -m training corpus match`."
    )
    keys = ("device", "runtime", "precision", "metric", "flag")
    left_out = sum(measured["left_out"].values())
    return "\n\n".join(
        [
            text,
            _table(("Source", "Title", "Where", "Labels"), rows),
            *_tables(measured, keys),
            f"{left_out} published rows are left out, each for one reason:",
            _counted("Reason", measured["left_out"]),
        ]
    )


def _named(name: str, sources: Mapping[str, Source]) -> tuple[str, str]:
    """Title and place of a source."""
    source = sources.get(name)
    if source is not None:
        return source.title, source.repository
    return TIMM_SOURCE if name.startswith(TIMM) else ("", "")


def _families(facts: CardFacts) -> str:
    composed = facts["composed"]["by_family"]
    measured = (facts["measured"] or {}).get("by_family", {})
    return _table(
        ("Family", "Graphs", "Composed workloads", "Measured labels"),
        (
            (family, count, composed.get(family, 0), measured.get(family, 0))
            for family, count in facts["by_family"].items()
        ),
    )


def _gaps(facts: CardFacts, labels: Sequence[Label], failures: Sequence[Mapping[str, str]]) -> str:
    composed, measured = facts["composed"], facts["measured"]
    gaps = []
    if composed["graphs"] < facts["graphs"]:
        gaps.append(
            f"{facts['graphs'] - composed['graphs']} graphs have no composed label: the reader "
            f"refuses them, no A100 has the memory, or they were added since the last run."
        )
    incomplete = sum(bool(label.caveats) for label in labels)
    if incomplete:
        gaps.append(
            f"{incomplete} composed workloads carry a caveat (see the counts): their figures are "
            f"of graphs that hold something unknown or worked around."
        )
    if measured is not None:
        gaps += _measured_gaps(facts, measured)
    if failures:
        kinds = Counter(failure["reason"].split(": ")[1] for failure in failures)
        text = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        gaps.append(
            f"Networks of the plan that could not be exported: {len(failures)} ({text}); see "
            f"`failures.jsonl` beside the records."
        )
    return "\n".join(f"- {gap}" for gap in (*gaps, *WHAT_FOLLOWS_FROM_THE_METHOD))


def _measured_gaps(facts: CardFacts, measured: CardFacts) -> Iterable[str]:
    unmeasured = set(facts["by_family"]) - set(measured["by_family"])
    yield f"{len(unmeasured)} of {facts['families']} families have no measured label."
    for what, metrics in (
        ("memory", ("memory_mib", "memory_allocated_mib", "memory_reserved_mib")),
        ("energy or power", ("energy_j", "power_w")),
    ):
        count = sum(measured["by_metric"].get(metric, 0) for metric in metrics)
        yield f"{count} of {measured['labels']} measured labels are of {what}."
    if measured["missing_networks"]:
        names = [f"`{name}` ({count})" for name, count in measured["most_missing"].items()]
        yield (
            f"{measured['left_out']['not_exported']} published rows are of "
            f"{measured['missing_networks']} networks that the records lack; most rows: "
            f"{', '.join(names[:MISSING_SHOWN])}."
        )


def _tables(counts: CardFacts, keys: Iterable[str]) -> list[str]:
    return [_counted(key.capitalize(), counts[f"by_{key}"]) for key in keys if counts[f"by_{key}"]]


def _counted(title: str, counts: Mapping[str, int]) -> str:
    return _table((title, "Count"), counts.items())


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        cells = (str(cell).replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"
