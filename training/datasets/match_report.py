"""What became of the published rows: counts, and how many of the usable ones are matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from training.datasets.measured import MeasuredRow
from training.datasets.reasons import Reason

__all__ = ["is_usable", "render_text", "summarise"]


def is_usable(row: MeasuredRow) -> bool:
    """True where nothing but a network of ours can be missing: the row is a label, or would be.

    Rows left out for what they are (see :class:`Reason`) aren't usable; neither are duplicates,
    other statistics of a run that is kept, and outliers, whose graphs are known.
    """
    return row.reason is None or not (row.reason.is_of_the_row or row.reason.is_set_aside)


def summarise(rows: Sequence[MeasuredRow]) -> dict[str, Any]:
    """Counts for people and machines; mappings are sorted by falling count."""
    labels = [row for row in rows if row.reason is None]
    timm = [row for row in rows if row.row.source.startswith("timm_")]
    others = [row for row in rows if not row.row.source.startswith("timm_")]
    return {
        "rows": len(rows),
        "matched": len(labels),
        "graphs": len({row.graph for row in labels}),
        "workloads": len({row.workload[:5] for row in labels}),
        "left_out": _by(rows, lambda row: row.reason.value if row.reason else None),
        "usable_with_hint": {
            "all": _share(rows),
            "timm_tables": _share(timm),
            "other_tables": _share(others),
        },
        "missing_networks": _by(
            (row for row in rows if row.reason in (Reason.NO_BUILDER, Reason.NOT_EXPORTED)),
            lambda row: row.graph or f"{row.source}: {row.row.model}",
        ),
        "matched_by_source": _by(labels, lambda row: row.source),
        "matched_by_device": _by(labels, lambda row: row.device),
        "matched_by_metric": _by(labels, lambda row: row.metric),
        "matched_by_runtime": _by(labels, lambda row: row.runtime),
        "matched_by_precision": _by(labels, lambda row: row.precision),
        "matched_by_flag": _by(
            ((row, flag) for row in labels for flag in row.flags), lambda pair: pair[1].value
        ),
        "outliers": [
            f"{row.row.table} line {row.row.line} ({row.source}): {row.graph} batch {row.batch} "
            f"{row.precision} {row.runtime} {row.value:.4g}"
            for row in rows
            if row.reason is Reason.OUTLIER
        ],
    }


def _share(rows: Sequence[MeasuredRow]) -> dict[str, float]:
    usable = [row for row in rows if row.row.hint and is_usable(row)]
    matched = sum(row.reason is None for row in usable)
    return {
        "usable": len(usable),
        "matched": matched,
        "share": round(matched / len(usable), 4) if usable else 1.0,
    }


def _by(rows: Iterable[Any], key: Callable[[Any], str | None]) -> dict[str, int]:
    counts = Counter(name for name in map(key, rows) if name is not None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


SHOWN = 25
"""Lines of the longest lists in the text; JSON has them whole."""


def render_text(report: Mapping[str, Any]) -> str:
    """The report as lines for a terminal."""
    lines = [f"{key}: {report[key]}" for key in ("rows", "matched", "graphs", "workloads")]
    lines.append("usable rows with a library hint:")
    lines += [
        f"  {name}: {share['matched']} of {share['usable']} matched ({share['share']:.1%})"
        for name, share in report["usable_with_hint"].items()
    ]
    for key, value in report.items():
        if key == "usable_with_hint":
            continue
        if isinstance(value, Mapping):
            lines.append(f"{key}:")
            lines += [f"  {count:6} {name}" for name, count in list(value.items())[:SHOWN]]
            if len(value) > SHOWN:
                lines.append(
                    f"  {sum(list(value.values())[SHOWN:]):6} in {len(value) - SHOWN} more"
                )
        elif isinstance(value, list):
            lines.append(f"{key}: {len(value)}")
            lines += [f"  {line}" for line in value[:SHOWN]]
            if len(value) > SHOWN:
                lines.append(f"  and {len(value) - SHOWN} more")
    return "\n".join(lines)
