"""Join published rows to graphs: every row becomes a label of a workload, or gets a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from training.corpus.records import Corpus
from training.datasets.conversions import batch_of, convert
from training.datasets.duplicates import keep_one_figure, set_duplicates_aside
from training.datasets.graph_index import GraphIndex
from training.datasets.graph_macs import count_macs
from training.datasets.left_out import reason_to_leave_out
from training.datasets.measured import MeasuredRow
from training.datasets.outliers import Macs, set_outliers_aside
from training.datasets.provenance import source_of
from training.datasets.published_devices import device_of
from training.datasets.published_flags import flags_of
from training.datasets.published_names import network_of
from training.datasets.published_precisions import precision_of
from training.datasets.published_runtimes import runtime_of
from training.datasets.reasons import Reason
from training.datasets.tables import PublishedRow, read_tables

__all__ = ["match", "match_row", "measured_rows"]


def measured_rows(
    data: Path, corpus: Corpus, macs_file: Path | None = None
) -> tuple[MeasuredRow, ...]:
    """Every published row under ``data``, held against the graphs of ``corpus``.

    Labels are the rows whose ``reason`` is ``None``. ``macs_file`` keeps what was counted.

    Raises:
        InputError: see :func:`read_tables`.
    """
    return match(
        read_tables(data),
        GraphIndex.of(corpus.records),
        lambda names: count_macs(corpus, names, macs_file),
    )


def match(rows: Sequence[PublishedRow], index: GraphIndex, macs: Macs) -> tuple[MeasuredRow, ...]:
    """A measured row for each published one, in order.

    ``macs`` gives the multiply-accumulates of records at batch 1; graphs that it leaves out are
    not held against the roofline.
    """
    found = tuple(match_row(row, index) for row in rows)
    return set_outliers_aside(keep_one_figure(set_duplicates_aside(found)), macs)


def match_row(row: PublishedRow, index: GraphIndex) -> MeasuredRow:
    """The row by itself: what duplicates and outliers are is seen only among others."""
    result = _described(row)
    reason = reason_to_leave_out(row)
    if reason is not None:
        return replace(result, reason=reason)
    if not result.device:
        return replace(result, reason=Reason.NOT_A_TARGET)
    network = network_of(row)
    batch = batch_of(row)
    if batch is None:
        return replace(result, reason=Reason.MISSING_BATCH)
    figure = convert(row, batch)
    if isinstance(figure, Reason):
        return replace(result, reason=figure)
    result = replace(
        result,
        metric=figure.metric,
        value=figure.value,
        rule=figure.rule,
        flags=(*result.flags, *figure.flags),
    )
    if isinstance(network, Reason):
        return replace(result, reason=network)
    record = index.find(network.name)
    result = replace(result, graph=network.name, batch=batch * network.samples)
    if record is None:
        return replace(result, reason=Reason.NOT_EXPORTED)
    return replace(result, graph=record.name)


def _described(row: PublishedRow) -> MeasuredRow:
    device = device_of(row)
    precision, precision_flags = precision_of(row)
    name, device_flags = device or ("", ())
    return MeasuredRow(
        row=row,
        source=source_of(row.source),
        device=name,
        precision=precision,
        runtime=runtime_of(row),
        flags=(*device_flags, *precision_flags, *flags_of(row)),
    )
