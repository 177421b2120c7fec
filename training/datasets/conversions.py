"""Published figures in our units: milliseconds, MiB, joules and watts of one batch.

Throughput of runs that wait for each batch is its inverse: ``latency_ms = 1000 batch / rate``.
Memory given in MB is decimal unless the table multiplied a source's GB by 1024.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from training.datasets.reasons import Flag, Reason
from training.datasets.tables import PublishedRow

__all__ = ["Conversion", "batch_of", "convert"]

MIB_PER_MB = 1e6 / 2**20

RATES = {
    "samples/s": 1.0,
    "images/s": 1.0,
    "sequences/s": 1.0,
    "users/s": 1.0,
    "million samples/s": 1e6,
}
"""Samples a second in one of the unit; other units count something else than samples."""

MEMORY = (
    (r"torch allocated|peak allocated", "memory_allocated_mib"),
    (r"torch reserved", "memory_reserved_mib"),
    (r"device-wide used|nvidia-smi|process level", "memory_mib"),
)
"""What kind of peak the notes say: of the allocator, of its pool, or of the whole process."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A figure in our units, the metric's name with the unit in it, and the rule that gave it."""

    metric: str
    value: float
    rule: str
    flags: tuple[Flag, ...] = ()


def batch_of(row: PublishedRow) -> int | None:
    """The batch, ``None`` where it isn't stated or is a mean over a run."""
    if not re.fullmatch(r"\d+(\.0*)?", row.batch):
        return None
    return int(float(row.batch)) or None


def convert(row: PublishedRow, batch: int) -> Conversion | Reason:
    """The figure of one pass over ``batch`` samples, or why there is none."""
    if not row.value > 0:
        return Reason.NOT_A_TARGET
    if row.metric == "latency_ms":
        return _latency(row)
    if row.metric == "throughput":
        return _throughput(row, batch)
    if row.metric == "memory_mb":
        return _memory(row)
    return Conversion(row.metric, row.value, "as published")


def _latency(row: PublishedRow) -> Conversion:
    if "decode total" in row.notes and row.generated:
        # The first of the new tokens comes out of the prompt's pass.
        steps = row.generated - 1
        rule = f"mean of {steps} steps with a growing cache"
        return Conversion("latency_ms", row.value / steps, rule, (Flag.MEAN_OF_STEPS,))
    if "decode" in row.task and (row.generated or 0) > 1:
        return Conversion(
            "latency_ms", row.value, "mean over a growing cache", (Flag.MEAN_OF_STEPS,)
        )
    return Conversion("latency_ms", row.value, "as published")


def _throughput(row: PublishedRow, batch: int) -> Conversion | Reason:
    if row.unit not in RATES:
        return Reason.OTHER_STATISTIC if "steps" in row.unit else Reason.NOT_A_TARGET
    rate = row.value * RATES[row.unit]
    flags = (Flag.FROM_THROUGHPUT,)
    return Conversion("latency_ms", 1e3 * batch / rate, f"1000 x batch / ({row.unit})", flags)


def _memory(row: PublishedRow) -> Conversion | Reason:
    metric = next((metric for pattern, metric in MEMORY if re.search(pattern, row.notes)), None)
    if metric is None:
        return Reason.MEMORY_METHOD
    if row.unit == "MiB" or "1024" in row.notes:
        return Conversion(metric, row.value, "MiB as published")
    return Conversion(metric, row.value * MIB_PER_MB, "MB x 1e6 / 2**20")
