"""MLPerf inference logs of single GPUs and MIG slices into ``facts/mig_slowdown.csv``.

Layout of a results repository (mlcommons/inference_results_v<round>)::

    closed/<submitter>/systems/<system>.json
    closed/<submitter>/results/<system>/<model>/<scenario>/performance/run_1/mlperf_log_summary.txt
    closed/<submitter>/measurements/<system>/<model>/<scenario>/<any>.json

Only valid runs on one accelerator, or one slice, of one node count, and only on an A100 or A30.
Offline gives samples/s, SingleStream the mean and the 90th percentile of a query of one sample,
MultiStream from round v2.0 on the mean of a query of eight. Precision is the measurement's
``weight_data_types``, which the rules of the benchmark require; where no such file is there, it is
``unknown``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.datasets.public.outputs import replace_rows, rounded
from training.datasets.public.parvagpu import COLUMNS

__all__ = ["MEMBERS", "ROUNDS", "convert", "converter"]

ROUNDS = ("v0.7", "v1.0", "v1.1", "v2.0", "v2.1", "v3.0")

MEMBERS = (
    "closed/*/systems/*.json",
    "closed/*/results/*/performance/run_1/mlperf_log_summary.txt",
    "closed/*/measurements/*.json",
)
"""What is extracted of the repository's archive."""

_GPUS = re.compile(r"A100|A30\b")
_MIG = re.compile(r"(?<!\d)(\d)x(\dg\.\d+gb)", re.ASCII)
_MULTISTREAM_SAMPLES = 8
_LIMIT_BYTES = 1 << 20


def converter(round_: str) -> Any:
    """:func:`convert` for one round."""
    return partial(convert, round_=round_)


def convert(raw: Path, data: Path, *, round_: str) -> tuple[Path, ...]:
    """Put the rows in place of those that ``facts/mig_slowdown.csv`` has from that round.

    Raises:
        InputError: no result is there, or a file isn't as described above.
    """
    repository = f"mlcommons/inference_results_{round_}"
    logs = sorted(raw.glob("closed/*/results/*/*/*/performance/run_1/mlperf_log_summary.txt"))
    if not logs:
        raise InputError(f"{raw} has no mlperf_log_summary.txt: another layout")
    rows = [row for log in logs for row in _rows(raw, log, repository)]
    target = data / "facts" / "mig_slowdown.csv"
    replace_rows(target, COLUMNS, rows, lambda row: row["source"].startswith(f"{repository}:"))
    return (target,)


def _rows(raw: Path, log: Path, repository: str) -> Iterator[Sequence[str]]:
    folder = log.parents[2]
    _, submitter, _, system, model, scenario = folder.relative_to(raw).parts
    root = raw / "closed" / submitter
    facts = _json(root / "systems" / f"{system}.json")
    if facts is None or any(
        str(facts.get(key)) != "1" for key in ("accelerators_per_node", "number_of_nodes")
    ):
        return
    name = str(facts.get("accelerator_model_name", ""))
    device = re.sub(r"\s*\(.*|^NVIDIA\s+", "", name)
    if not _GPUS.search(device):
        return
    summary = _summary(log)
    if summary.get("Result is") != "VALID":
        return
    common = (
        f"{repository}:{folder.relative_to(raw).as_posix()}", device, model,
        _precision(root / "measurements" / system / model / scenario), "TensorRT",
    )  # fmt: skip
    profile = _profile(f"{name} {system}")
    if profile is None:
        return
    for batch, metric, value, unit, text in _figures(log, summary, scenario, repository):
        yield *common, batch, profile, metric, value, unit, f"{text}; system {system}"


def _figures(
    log: Path, summary: dict[str, str], scenario: str, repository: str
) -> Iterator[tuple[str, str, str, str, str]]:
    """Batch, metric, value, unit and scenario in words."""

    def milliseconds(key: str) -> str:
        return rounded(_number(log, summary, key) * 1e-6, 4)

    if scenario == "Offline":
        rate = _number(log, summary, "Samples per second")
        yield "max", "throughput", rounded(rate, 6), "samples/s", scenario
    elif scenario == "SingleStream":
        yield "1", "latency_mean", milliseconds("Mean latency (ns)"), "ms", scenario
        yield "1", "latency_p90", milliseconds("90.00 percentile latency (ns)"), "ms", scenario
    elif scenario == "MultiStream" and not repository.endswith(("v0.7", "v1.0", "v1.1")):
        samples = int(_number(log, summary, "samples_per_query"))
        if samples == _MULTISTREAM_SAMPLES:
            text = f"MultiStream({samples} samples/query, v2.0+)"
            yield str(samples), "latency_mean", milliseconds("Mean latency (ns)"), "ms", text


def _profile(text: str) -> str | None:
    """``full``, the MIG profile in the accelerator's or the system's name, None for several."""
    match = _MIG.search(text)
    if not match:
        return "full"
    if match[1] != "1":
        return None
    busy = "(6 other slices busy)" if "HeteroMultiUse" in text else ""
    return match[2] + busy


def _summary(log: Path) -> dict[str, str]:
    """``key : value`` lines; the first of a key counts."""
    found: dict[str, str] = {}
    for line in _text(log).splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _number(log: Path, summary: dict[str, str], key: str) -> float:
    try:
        value = float(summary[key])
    except (KeyError, ValueError):
        value = 0.0
    if not 0 < value < float("inf"):
        raise InputError(f"{log} has no {key!r} above 0: another layout")
    return value


def _precision(folder: Path) -> str:
    for path in sorted(folder.glob("*.json")):
        found = _json(path)
        if found and isinstance(found.get("weight_data_types"), str):
            return str(found["weight_data_types"]).lower()
    return "unknown"


def _json(path: Path) -> dict[str, Any] | None:
    """An object, or None where the file is missing or holds something else."""
    if not path.is_file():
        return None
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(path: Path) -> str:
    if path.stat().st_size > _LIMIT_BYTES:
        raise InputError(f"{path} is longer than {_LIMIT_BYTES} bytes: another layout")
    return path.read_text(encoding="utf-8", errors="replace")
