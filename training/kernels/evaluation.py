"""How well a plan does: five-fold on its own rows, and on rows from outside their range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from dippm_lite.bundle import MetricRow, Provenance
from training.kernels.learning import Fitted, cross_validate
from training.kernels.plans import Overhead, Plan
from training.kernels.sources import Measured, read

__all__ = ["CrossValidation", "cross_validation", "find", "metric_row", "out_of_distribution"]

Array = NDArray[np.float64]

_LEAST_S = 1e-6


@dataclass(frozen=True)
class CrossValidation:
    """Five-fold figures of one plan.

    Attributes:
        metrics: on the measured column (host time added back), and on the kernels' own times.
        residual_sigma: standard deviation of the log-error of own times, outliers included, among
            rows of which own time is at least half.
    """

    metrics: tuple[MetricRow, ...]
    residual_sigma: float


def metric_row(subject: str, split: str, predicted: Array, measured: Array) -> MetricRow:
    """Errors of ``predicted`` against ``measured``, both (n,) in one unit."""
    errors = 100 * np.abs(predicted / measured - 1)
    return MetricRow(
        subject=subject,
        split=split,
        provenance=Provenance.MEASURED,
        mape_percent=float(errors.mean()),
        median_ape_percent=float(np.median(errors)),
        within_10_percent=float(100 * (errors <= 10).mean()),
        spearman=float(spearmanr(predicted, measured).statistic),
        n=len(measured),
    )


def cross_validation(plan: Plan, rows: Measured, threads: int = 1) -> CrossValidation:
    """Five-fold errors of ``plan``. Where host time drifts, the same without knowing a row's
    position is a further line: what a model of the sizes alone can reach on that column."""
    held_out = cross_validate(plan, rows, threads=threads)
    total_s = held_out.kernel_s + held_out.overhead_s
    metrics = [metric_row(plan.name, "five-fold", total_s, rows.time_s)]
    own_s = np.maximum(rows.time_s - held_out.overhead_s, _LEAST_S)
    if plan.overhead is not Overhead.NONE:
        metrics.append(metric_row(plan.name, "five-fold, own time", held_out.kernel_s, own_s))
    if plan.overhead is Overhead.DRIFT:
        blind = cross_validate(replace(plan, overhead=Overhead.PER_OP), rows, threads=threads)
        blind_s = blind.kernel_s + blind.overhead_s
        metrics.append(metric_row(plan.name, "five-fold, position unknown", blind_s, rows.time_s))
    telling = own_s >= rows.time_s / 2
    log_error = np.log(held_out.kernel_s[telling] / own_s[telling])
    return CrossValidation(tuple(metrics), float(np.sqrt(np.mean(log_error**2))))


def out_of_distribution(plan: Plan, fitted: Fitted, folder: Path) -> tuple[MetricRow, ...]:
    """Errors of ``fitted`` on the plan's test files: all of their rows, then device by device."""
    if plan.test_file is None:
        return ()
    parts = [
        _test_rows(plan, folder / plan.test_file, device, fitted) for device in plan.test_devices
    ]
    lines = [
        metric_row(plan.name, f"out of distribution, {device}", predicted, measured)
        for device, (predicted, measured) in zip(plan.test_devices, parts, strict=True)
    ]
    predicted, measured = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return (metric_row(plan.name, "out of distribution", predicted, measured), *lines)


def _test_rows(plan: Plan, path: Path, device: str, fitted: Fitted) -> tuple[Array, Array]:
    rows = read(path, device, plan.math, plan.ops)
    return fitted.kernel_s(rows) + fitted.overhead_s(rows), rows.time_s


def find(metrics: Sequence[MetricRow], subject: str, split: str) -> MetricRow | None:
    """The line of ``subject`` on ``split``, or None."""
    return next((m for m in metrics if (m.subject, m.split) == (subject, split)), None)
