"""Figures that can't be right: faster than the device, or far from all others of the workload.

The roofline rule needs a graph's multiply-accumulates. A pass takes at least
``2 x MACs x batch / peak`` of the stated arithmetic; ``unknown`` counts as the fastest that the
row may have used.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dippm_lite.devices import find_device
from dippm_lite.execution import MathMode
from dippm_lite.units import FLOPS_PER_MAC
from training.datasets.measured import MeasuredRow, Workload
from training.datasets.reasons import Reason

__all__ = ["Macs", "least_latency_ms", "set_outliers_aside"]

Macs = Callable[[frozenset[str]], Mapping[str, int]]
"""From names of records to their multiply-accumulates at batch 1; what it leaves out is unknown."""

REACHED = {"rtx": 1.15, "": 0.95}
"""Most of the published peak that a network can reach, by the first letters of the device. On an
A100 the best single matrix product reaches 92 % (power limit); GeForce cards run above the clock
of their data sheet, 2.8 GHz for 2.52, and reach 94 % with whole networks."""

WINOGRAD = 2.25
"""Multiplications that F(2x2, 3x3) saves in convolutions (Lavin and Gray, CVPR 2016): cuDNN uses
it for fp32, not on tensor cores."""

MATH = {
    "fp32": MathMode.FP32,
    "tf32": MathMode.TF32,
    "auto": MathMode.TF32,
    "fp16": MathMode.FP16,
    "bf16": MathMode.BF16,
    "amp": MathMode.FP16,
    "int8": MathMode.INT8,
    "unknown": MathMode.FP16,
}
"""The fastest arithmetic that each precision may use; no source leaves int8 unsaid."""

FAR = 4.0
"""Ratio to the median of a workload's other figures from which a figure is set aside; engines of
different years differ by up to 2.5."""

ENOUGH = 3
"""Figures that a workload must have for its median to judge one of them."""


def least_latency_ms(row: MeasuredRow, macs: int) -> float:
    """What the arithmetic alone takes at the most that the device can reach."""
    device = find_device(row.device)
    reached = next(share for start, share in REACHED.items() if row.device.startswith(start))
    peak = device.peak_flops[MATH[row.precision]] * reached
    if row.precision == "fp32":
        peak *= WINOGRAD
    return 1e3 * FLOPS_PER_MAC * macs * row.batch / peak


def set_outliers_aside(rows: Sequence[MeasuredRow], macs: Macs) -> tuple[MeasuredRow, ...]:
    """The rows, impossible and contradicted ones marked ``OUTLIER``."""
    latencies = [row for row in rows if row.reason is None and row.metric == "latency_ms"]
    known = macs(frozenset(row.graph for row in latencies))
    impossible = {
        id(row)
        for row in latencies
        if row.graph in known and row.value < least_latency_ms(row, known[row.graph])
    }
    return _without_contradictions(
        [replace(row, reason=Reason.OUTLIER) if id(row) in impossible else row for row in rows]
    )


def _without_contradictions(rows: Sequence[MeasuredRow]) -> tuple[MeasuredRow, ...]:
    figures: dict[Workload, list[float]] = defaultdict(list)
    for row in rows:
        if row.reason is None:
            figures[row.workload].append(row.value)
    result = []
    for row in rows:
        values = figures[row.workload] if row.reason is None else []
        if len(values) >= ENOUGH:
            middle = statistics.median(values)
            if max(row.value / middle, middle / row.value) > FAR:
                row = replace(row, reason=Reason.OUTLIER)
        result.append(row)
    return tuple(result)
