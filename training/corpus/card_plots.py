"""Plots of the data card: work against latency, and the sizes that the families cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dippm_lite.devices import find_device
from dippm_lite.errors import InputError
from dippm_lite.execution import MathMode
from dippm_lite.units import FLOPS_PER_MAC
from training.corpus.label_plan import ANCHOR_DEVICE
from training.corpus.labels import Label
from training.corpus.records import Corpus
from training.datasets.groups import short
from training.datasets.measured import MeasuredRow

__all__ = ["macs_of_one", "plot_coverage", "plot_latency"]

SHOWN_FAMILIES = 12
"""Families with a colour of their own: the largest."""

_STYLES = {"pytorch": "tab:orange", "onnxruntime": "tab:green", "tensorrt": "tab:blue"}
_OTHERS = "other engines"
_PEAKS = (
    (MathMode.FP32, "fp32"),
    (MathMode.TF32, "tf32"),
    (MathMode.FP16, "fp16"),
    (MathMode.INT8, "int8"),
)


def macs_of_one(labels: Sequence[Label]) -> Mapping[str, int]:
    """Multiply-accumulates of one sample at the record's own size, by short fingerprint."""
    return {
        label.fingerprint: label.macs for label in labels if label.batch == 1 and not label.size
    }


def plot_latency(
    path: Path, labels: Sequence[Label], rows: Sequence[MeasuredRow], corpus: Corpus
) -> None:
    """Work of a pass against its latency on whole A100s: composed left, measured right."""
    macs = macs_of_one(labels)
    fingerprints = {record.name: short(record.fingerprint) for record in corpus.records}
    composed = [
        (label.macs, label.latency_ms, label.runtime)
        for label in labels
        if label.device.startswith("a100") and ":" not in label.device and label.macs
    ]
    measured = [
        (macs[fingerprints[row.graph]] * row.batch, row.value, row.runtime)
        for row in rows
        if row.reason is None
        and row.metric == "latency_ms"
        and row.device.startswith("a100")
        and macs.get(fingerprints[row.graph])
    ]
    figure, axes = _pyplot().subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True)
    for axis, points, title in zip(
        axes, (composed, measured), ("composed", "measured"), strict=True
    ):
        _scatter_by_runtime(axis, points)
        _peaks(axis, [work for work, _, _ in (*composed, *measured)])
        axis.set(
            xscale="log", yscale="log", title=f"{title}: {len(points)} on whole A100s",
            xlabel="MACs of one pass",
        )  # fmt: skip
        axis.grid(alpha=0.25)
        if points:
            axis.legend(fontsize=8, loc="upper left", markerscale=2.5)
    axes[0].set_ylabel("latency [ms]")
    _save(figure, path)


def _scatter_by_runtime(axis: Any, points: Sequence[tuple[int, float, str]]) -> None:
    groups: dict[str, list[tuple[int, float]]] = {name: [] for name in (*_STYLES, _OTHERS)}
    for work, latency, runtime in points:
        groups[runtime if runtime in _STYLES else _OTHERS].append((work, latency))
    for name, chosen in groups.items():
        if chosen:
            axis.scatter(
                *zip(*chosen, strict=True), s=4, alpha=0.35, linewidths=0,
                color=_STYLES.get(name, "0.5"), label=f"{name} ({len(chosen)})",
            )  # fmt: skip


def _peaks(axis: Any, work: Sequence[int]) -> None:
    """Lines of the device's peak rates: no latency can lie below that of its arithmetic."""
    positive = [value for value in work if value > 0]
    if not positive:
        return
    ends = (min(positive), max(positive))
    device = find_device(ANCHOR_DEVICE)
    for (mode, name), dashes in zip(_PEAKS, ("-", "--", "-.", ":"), strict=True):
        latency = [1e3 * FLOPS_PER_MAC * value / device.peak_flops[mode] for value in ends]
        axis.plot(ends, latency, dashes, color="0.3", linewidth=0.9, label=f"{name} peak")


def plot_coverage(path: Path, labels: Sequence[Label], corpus: Corpus) -> int:
    """Parameters against MACs of one sample by family; returns the number of graphs shown."""
    macs = macs_of_one(labels)
    known = [record for record in corpus.records if macs.get(short(record.fingerprint))]
    largest = Counter(record.family for record in known).most_common(SHOWN_FAMILIES)
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(8, 5))
    colours = plt.get_cmap("tab20")
    groups = [(None, "other families", "0.75")]
    groups += [
        (family, f"{family} ({count})", colours(place / 20))
        for place, (family, count) in enumerate(largest)
    ]
    named = {family for family, _ in largest}
    for family, text, colour in groups:
        chosen = [r for r in known if r.family == family or (not family and r.family not in named)]
        axis.scatter(
            [max(record.parameters, 1) for record in chosen],
            [macs[short(record.fingerprint)] for record in chosen],
            s=9, alpha=0.7, linewidths=0, color=colour, label=text,
        )  # fmt: skip
    axis.set(
        xscale="log", yscale="log", xlabel="parameters", ylabel="MACs of one sample",
        title=f"{len(known)} graphs of {len({r.family for r in known})} families",
    )  # fmt: skip
    axis.grid(alpha=0.25)
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.8)
    _save(figure, path)
    return len(known)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without the version of matplotlib, so that equal plots are equal files.
    figure.savefig(path, dpi=100, bbox_inches="tight", metadata={"Software": None})
    _pyplot().close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'dippm-lite[train]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
