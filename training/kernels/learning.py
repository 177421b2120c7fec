"""Fitting one plan's trees, and what they do on rows that they haven't seen."""

from __future__ import annotations

from dataclasses import dataclass

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from dippm_lite.kernel_features import TABLES
from training.kernels.overhead import Drift, fit_drift, smallest_kernel_overhead_s
from training.kernels.plans import Overhead, Plan
from training.kernels.sources import Measured

__all__ = ["Fitted", "HeldOut", "cross_validate", "fit", "folds"]

Array = NDArray[np.float64]

SEED = 20260
_LEAST_S = 1e-6
_DRIFT_ROUNDS = 3
_DRIFT_TREES = 150


@dataclass(frozen=True)
class Fitted:
    """Trees of one plan with the host times that its rows carried.

    ``op_overhead_s`` is the host time by operator; ``drift`` replaces it where it moves.
    """

    plan: Plan
    booster: lgb.Booster
    op_overhead_s: dict[str, float]
    drift: Drift | None

    def kernel_s(self, rows: Measured) -> Array:
        """The kernels' own times."""
        features = TABLES[self.plan.table].matrix(rows.batch)
        return np.exp(np.asarray(self.booster.predict(features))) * rows.batch.prior_s

    def overhead_s(self, rows: Measured) -> Array:
        """Host time inside each measured row."""
        if self.drift is not None:
            return self.drift.at(rows.order)
        return np.array([self.op_overhead_s[op] for op in rows.op.tolist()])


@dataclass(frozen=True)
class HeldOut:
    """Predictions of rows by trees that were fitted without them: own time, host time."""

    kernel_s: Array
    overhead_s: Array
    fold: NDArray[np.int64]


def folds(n: int, count: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """A fold for each of ``n`` rows, balanced and reproducible."""
    return np.random.default_rng(seed).permutation(n) % count


def fit(plan: Plan, rows: Measured, threads: int = 1) -> Fitted:
    """Fit ``plan`` on ``rows``. The same rows and threads give the same trees, bit for bit."""
    if plan.overhead is Overhead.DRIFT:
        return _fit_with_drift(plan, rows, threads)
    overhead = (
        smallest_kernel_overhead_s(rows)
        if plan.overhead is Overhead.PER_OP
        else dict.fromkeys(rows.op.tolist(), 0.0)
    )
    host_s = np.array([overhead[op] for op in rows.op.tolist()])
    return Fitted(plan, _grow(plan, rows, host_s, plan.rounds, threads), overhead, None)


def cross_validate(plan: Plan, rows: Measured, count: int = 5, threads: int = 1) -> HeldOut:
    """Predict each row by trees, and host times, fitted on the other folds."""
    fold = folds(len(rows), count)
    kernel_s, overhead_s = np.empty(len(rows)), np.empty(len(rows))
    for held_out in range(count):
        chosen = fold == held_out
        fitted = fit(plan, select(rows, ~chosen), threads)
        part = select(rows, chosen)
        kernel_s[chosen] = fitted.kernel_s(part)
        overhead_s[chosen] = fitted.overhead_s(part)
    return HeldOut(kernel_s, overhead_s, fold)


def select(rows: Measured, chosen: NDArray[np.bool_]) -> Measured:
    """The chosen rows; ``order`` keeps their positions in the file."""
    arrays = {
        name: value[chosen] if isinstance(value, np.ndarray) else value
        for name, value in rows.batch.__dict__.items()
        if name in type(rows.batch).__dataclass_fields__
    }
    batch = type(rows.batch)(**arrays)
    return Measured(batch, rows.time_s[chosen], rows.op[chosen], rows.order[chosen])


def _fit_with_drift(plan: Plan, rows: Measured, threads: int) -> Fitted:
    """Trees and drift explain each other: a few rounds of fitting one given the other."""
    last = int(rows.order.max())
    kernel_s = 2 * rows.batch.prior_s  # a start: about half of peak
    drift = fit_drift(rows.order, rows.time_s, kernel_s, last)
    for _ in range(_DRIFT_ROUNDS):
        booster = _grow(plan, rows, drift.at(rows.order), _DRIFT_TREES, threads)
        kernel_s = Fitted(plan, booster, {}, drift).kernel_s(rows)
        drift = fit_drift(rows.order, rows.time_s, kernel_s, last)
    booster = _grow(plan, rows, drift.at(rows.order), plan.rounds, threads)
    return Fitted(plan, booster, {}, drift)


def _grow(plan: Plan, rows: Measured, host_s: Array, rounds: int, threads: int) -> lgb.Booster:
    """Trees for ``log(own time / prior)``. A row counts by the share of its measured time that is
    the kernel's own, squared: the error of the rest can't be told from that of the host time."""
    table = TABLES[plan.table]
    own_s = np.maximum(rows.time_s - host_s, _LEAST_S)
    data = lgb.Dataset(
        table.matrix(rows.batch),
        np.log(own_s / rows.batch.prior_s),
        weight=np.maximum(own_s / rows.time_s, 0.05) ** 2,
        feature_name=[column.name for column in table.columns],
        categorical_feature=list(plan.categorical),
    )
    parameters = {
        "objective": "regression",
        "learning_rate": plan.learning_rate,
        "num_leaves": plan.leaves,
        "min_data_in_leaf": plan.min_leaf_rows,
        "feature_fraction": plan.feature_fraction,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "seed": SEED,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": threads,
        "verbose": -1,
    }
    return lgb.train(parameters, data, rounds)
