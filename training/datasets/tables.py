"""The published tables as one kind of row: figures, units and words as their sources give them.

``DATA/published_a100`` holds ``vision.csv``, ``language.csv``, ``inductor_dashboard.csv`` and
timm's own tables for two GeForce cards; ``DATA/facts/mig_slowdown.csv`` has whole-card rows among
those of MIG slices, and only those are read here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dippm_lite.errors import InputError

__all__ = ["PublishedRow", "read_tables"]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One figure as published.

    Attributes:
        table, line: file name and line number in it (the header is line 1).
        source: id of the source.
        model, hint: the source's name of the model, and ``library:builder`` where that is certain.
        task, device, precision, framework, unit, percentile, notes: words of the table.
        batch: as written: ``""`` where the source doesn't say, a fraction where it is a mean.
        height, width: pixels of the input image.
        tokens, generated: tokens read in, and written one by one after that.
        metric: ``latency_ms``, ``throughput``, ``memory_mb``, ``energy_j``, ``power_w`` or a name
            that no target has.
        value: in ``unit``.
    """

    table: str
    line: int
    source: str
    model: str
    metric: str
    value: float
    hint: str = ""
    task: str = ""
    device: str = ""
    precision: str = "unknown"
    framework: str = "unknown"
    batch: str = ""
    height: int | None = None
    width: int | None = None
    tokens: int | None = None
    generated: int | None = None
    unit: str = ""
    percentile: str = ""
    notes: str = ""


def read_tables(data: Path) -> tuple[PublishedRow, ...]:
    """Every row of the tables under ``data``, in the order in which duplicates are preferred.

    Raises:
        InputError: ``data`` has none of the tables, or one lacks a column or has a value that is
            no number.
    """
    published = data / "published_a100"
    rows: list[PublishedRow] = []
    for path, read in (
        (published / "vision.csv", _main),
        (published / "inductor_dashboard.csv", _dashboard),
        (published / "language.csv", _main),
        (data / "facts" / "mig_slowdown.csv", _whole_card),
        *((path, _timm) for path in sorted(published.glob("timm_*.csv"))),
    ):
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as lines:
            for line, fields in enumerate(csv.DictReader(lines), 2):
                try:
                    rows += read(path, line, fields)
                except (KeyError, ValueError) as error:
                    raise InputError(f"{path}, line {line}: {error!r}") from error
    if not rows:
        raise InputError(
            f"no published measurements in {data}: name the folder that holds published_a100 "
            "with --data DIR, or get public ones with python -m training data fetch"
        )
    return tuple(rows)


_Fields = Mapping[str, str]


def _main(path: Path, line: int, fields: _Fields) -> Iterator[PublishedRow]:
    yield PublishedRow(
        table=path.name,
        line=line,
        source=fields["source_id"],
        model=fields["model"],
        metric=fields["metric"],
        value=float(fields["value"]),
        hint=fields["library_hint"],
        task=fields["task"],
        device=fields["device"],
        precision=fields["precision"],
        framework=fields["framework"],
        batch=fields["batch"],
        height=_whole(fields.get("height")),
        width=_whole(fields.get("width")),
        tokens=_whole(fields.get("seq_len")),
        generated=_whole(fields.get("gen_len")),
        unit=fields["unit"],
        percentile=fields["percentile"],
        notes=fields["notes"],
    )


def _dashboard(path: Path, line: int, fields: _Fields) -> Iterator[PublishedRow]:
    yield PublishedRow(
        table=path.name,
        line=line,
        source="torchbench_v3_yaml",
        model=fields["model"],
        metric="latency_ms",
        value=float(fields["abs_latency"]),
        hint=f"{fields['suite']}:{fields['model']}",
        task=fields["mode"],
        device=fields["device"],
        precision=fields["precision"],
        framework="pytorch-eager",
        batch=fields["batch"],
        unit="ms",
        percentile="p50",
    )


def _timm(path: Path, line: int, fields: _Fields) -> Iterator[PublishedRow]:
    # timm_rtx4090_infer-amp-nchw-pt291-cu128-4090-dynamo.csv; what ran out of memory has no time.
    if not fields["infer_step_time"]:
        return
    size = _whole(fields["infer_img_size"])
    yield PublishedRow(
        table=path.name,
        line=line,
        source=path.stem,
        model=fields["model"],
        metric="latency_ms",
        value=float(fields["infer_step_time"]),
        hint=f"timm:{fields['model']}",
        task="classification",
        device=path.stem.split("_")[1],
        precision="amp",
        framework="pytorch-compile" if path.stem.endswith("-dynamo") else "pytorch-eager",
        batch=fields["infer_batch_size"],
        height=size,
        width=size,
        unit="ms",
        percentile="avg",
        notes="channels-last" if "-nhwc-" in path.stem else "",
    )


_WHOLE_CARD = {"full": "", "7g.40gb": " (MIG 7g)", "7g.80gb": " (MIG 7g)"}
_SIZED = re.compile(r"(?P<model>.+?) (?:(?P<size>\d+)x(?P=size)|seq(?P<tokens>\d+))")
_STATISTICS = {
    "latency": ("latency_ms", "avg"),
    "latency_mean": ("latency_ms", "avg"),
    "latency_p90": ("latency_ms", "p90"),
    "throughput": ("throughput", ""),
    "throughput_per_process": ("throughput", ""),
}


def _whole_card(path: Path, line: int, fields: _Fields) -> Iterator[PublishedRow]:
    processes = re.search(r"procs=(\d+)", fields["notes"])
    if fields["profile"] not in _WHOLE_CARD or (processes and processes.group(1) != "1"):
        return
    sized = _SIZED.fullmatch(fields["model"])
    size = _whole(sized["size"]) if sized else None
    metric, percentile = _STATISTICS.get(fields["metric"], (fields["metric"], ""))
    repository, _, _ = fields["source"].partition(":")
    yield PublishedRow(
        table=path.name,
        line=line,
        source=repository,
        model=sized["model"] if sized else fields["model"],
        metric=metric,
        value=float(fields["value"]),
        device=fields["device"] + _WHOLE_CARD[fields["profile"]],
        precision=fields["precision"],
        framework=fields["framework"],
        batch=fields["batch"],
        height=size,
        width=size,
        tokens=_whole(sized["tokens"]) if sized else None,
        unit=fields["unit"],
        percentile=percentile,
        notes=fields["notes"],
    )


def _whole(text: str | None) -> int | None:
    """The number in ``text`` if it is nothing but a whole number, maybe as ``224.0``."""
    if text is None or not re.fullmatch(r"\d+(\.0*)?", text):
        return None
    return int(float(text))
