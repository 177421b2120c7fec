"""One figure for each run: the same figure twice, and several statistics of one run.

Two rows are the same figure where source, workload and statistic agree and the values do, exactly
within a table, to 0.2 % between tables (they round differently). The first is kept.

Of the statistics of one run (same table, source, workload and notes) the median is kept, else the
mean, else the inverse of the throughput. Sources whose own texts discredit their latencies are
read the other way round. Where the figures of a run differ by more than half and no text says
which one to believe, none is; the same holds where one statistic of a run is given twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from training.datasets.measured import MeasuredRow
from training.datasets.reasons import Flag, Reason

__all__ = ["CONTRADICTION", "keep_one_figure", "set_duplicates_aside"]

SAME = 0.002
"""Relative difference up to which figures of two tables are one: third digits are rounded."""

CONTRADICTION = 1.5
"""Ratio between mean, median and inverse throughput of one run from which none is believed. Loops
that read data differ by 1.2 to 1.4 in sound sources; 2 and more is a slip in the source."""

BY_THROUGHPUT = r"^(dle_bert_tf1|parvagpu|parvagpu_bert)$"
"""Sources whose throughput is to be preferred: means above the 99th percentile; whole ms."""


def set_duplicates_aside(rows: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
    """The rows, later copies of a figure marked ``DUPLICATE``."""
    kept: dict[Hashable, list[MeasuredRow]] = defaultdict(list)
    result = []
    for row in rows:
        if row.reason is None:
            figure = (row.source, _statistic(row), *row.workload)
            same = kept[figure]
            if any(_is_copy(row, other) for other in same):
                row = replace(row, reason=Reason.DUPLICATE)
            else:
                same.append(row)
        result.append(row)
    return tuple(result)


def _is_copy(row: MeasuredRow, other: MeasuredRow) -> bool:
    if row.row.table == other.row.table:
        return row.row.source == other.row.source and row.value == other.value
    return abs(row.value - other.value) <= SAME * other.value


def _statistic(row: MeasuredRow) -> str:
    """Which statistic a latency is: ``p50``, ``avg`` or ``throughput``."""
    if Flag.FROM_THROUGHPUT in row.flags:
        return "throughput"
    return "p50" if row.row.percentile == "p50" else "avg"


def keep_one_figure(rows: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
    """The rows, lesser statistics marked ``OTHER_STATISTIC``, contradictions ``OUTLIER``."""
    runs: dict[Hashable, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.reason is None and row.metric == "latency_ms":
            run = (row.row.table, row.row.source, *row.workload, _run(row.row.notes))
            runs[run].append(place)
    result = list(rows)
    for places in runs.values():
        for place, reason in _reasons([rows[place] for place in places], places):
            result[place] = replace(rows[place], reason=reason)
    return tuple(result)


def _run(notes: str) -> str:
    """The notes without what they say of one statistic alone."""
    return re.sub(
        r"(derived as|converted from) [^;]*;? ?|; ?source value[^;]*|;? ?batch/throughput[^;]*"
        r"|;? ?(latency )?rounded to 1 ms in source|;? ?(source gives seconds|seconds in source)",
        "",
        notes,
    )


def _reasons(rows: Sequence[MeasuredRow], places: Sequence[int]) -> list[tuple[int, Reason]]:
    order = ["p50", "avg", "throughput"]
    told = re.search(BY_THROUGHPUT, rows[0].row.source) is not None
    if told:
        order.reverse()
    values: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        values[order.index(_statistic(row))].append(row.value)
    groups = list(values.values()) if told else [[row.value for row in rows]]
    if any(max(group) > CONTRADICTION * min(group) for group in groups):
        return [(place, Reason.OUTLIER) for place in places]
    return [
        (place, Reason.OTHER_STATISTIC)
        for place, row in zip(places, rows, strict=True)
        if order.index(_statistic(row)) > min(values)
    ]
