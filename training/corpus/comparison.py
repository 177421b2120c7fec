"""Composed figures beside measured ones of the same workload: for information, never for a fit.

Rows whose graph stands on the test side of the random split are left out, so that nobody who reads
the ratios tunes on them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from dippm_lite.devices import find_device
from dippm_lite.errors import InputError
from dippm_lite.execution import Precision, Runtime
from dippm_lite.onnx_reader import read_graph
from dippm_lite.prediction import Prediction
from training.corpus.labelling import Composer
from training.corpus.records import Corpus
from training.datasets.measured import MeasuredRow
from training.datasets.splits import Side, freeze

__all__ = ["Pair", "comparable", "compare", "render_ratios"]

METRICS = ("latency_ms", "memory_mib", "energy_j")


@dataclass(frozen=True, slots=True)
class Pair:
    """A measured row and what the models compose for its workload, in the row's unit."""

    row: MeasuredRow
    composed: float

    @property
    def ratio(self) -> float:
        """Composed over measured."""
        return self.composed / self.row.value


def comparable(rows: Iterable[MeasuredRow], corpus: Corpus) -> list[MeasuredRow]:
    """Labels of a target, a runtime and a precision that have models, off the test side."""
    splits = freeze(corpus.records)
    tested = {r.name for r in corpus.records if splits.side(r.fingerprint) is Side.TEST}
    runtimes = {runtime.value for runtime in Runtime}
    precisions = {precision.value for precision in Precision}
    return [
        row
        for row in rows
        if row.reason is None
        and row.metric in METRICS
        and row.runtime in runtimes
        and row.precision in precisions
        and row.graph not in tested
    ]


def compare(rows: Sequence[MeasuredRow], corpus: Corpus, composer: Composer) -> Iterator[Pair]:
    """A pair for each row whose model can be read at its batch."""
    by_graph: dict[str, dict[int, list[MeasuredRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_graph[row.graph][row.batch].append(row)
    wanted = [record for record in corpus.records if record.name in by_graph]
    for record, model in corpus.models(wanted):
        for batch, members in by_graph[record.name].items():
            try:
                read = read_graph(model, batch_size=batch if record.batch else None)
            except InputError:
                continue
            found: dict[tuple[str, str, str], Prediction | None] = {}
            for row in members:
                key = (row.device, row.runtime, row.precision)
                if key not in found:
                    setting = (Runtime(row.runtime), Precision(row.precision))
                    found[key] = composer.predict(
                        read, record.name, setting, [find_device(row.device)]
                    )
                prediction = found[key]
                if prediction is not None:
                    yield Pair(row, getattr(prediction, row.metric).value)


def render_ratios(pairs: Sequence[Pair]) -> str:
    """Composed over measured: count, median and the 10th to 90th percentile, by metric and by
    source, by runtime and precision, and by device."""
    lines = ["composed / measured: rows, median, 10th to 90th percentile; for information only"]
    keys: Mapping[str, Callable[[MeasuredRow], str]] = {
        "source": lambda row: row.source,
        "runtime and precision": lambda row: f"{row.runtime} {row.precision}",
        "device": lambda row: row.device,
    }
    for title, key in keys.items():
        groups: dict[tuple[str, str], list[float]] = defaultdict(list)
        for pair in pairs:
            groups[pair.row.metric, key(pair.row)].append(pair.ratio)
        lines.append(f"by {title}:")
        for (metric, name), ratios in sorted(groups.items(), key=lambda g: (g[0][0], -len(g[1]))):
            low, high = ratios[0], ratios[0]
            if len(ratios) > 1:
                low, *_, high = quantiles(ratios, n=10, method="inclusive")
            lines.append(
                f"  {metric:11} {len(ratios):5} {median(ratios):6.2f} "
                f"({low:.2f} to {high:.2f}) {name}"
            )
    return "\n".join(lines)
