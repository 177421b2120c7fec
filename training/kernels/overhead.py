"""What a measured time holds besides the kernel: the host's work between two CUDA events.

NeuSight records an event, calls the operator on an idle GPU and records another, so a row is the
host's time to dispatch the operator plus the kernel's own time. The first is the same for every
row of an operator and is read off its smallest kernels, whose own time is known to be about
``LAUNCH_FLOOR_S``.

Convolutions were measured with ``cudnn.benchmark`` on, and their host time grows along the file
from 40 us to 340 us, on all five GPUs alike: what a plain model takes for noise in cuDNN's choice
of algorithm is mostly this drift. It is fitted as a piecewise linear function of the row's
position, and is no part of the kernel's time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dippm_lite.kernel_features import LAUNCH_FLOOR_S
from training.kernels.sources import Measured

__all__ = ["Drift", "fit_drift", "smallest_kernel_overhead_s"]

Array = NDArray[np.float64]

_SMALL_S = 1e-6
_KNOTS = 13
_ROUNDS = 30


def smallest_kernel_overhead_s(rows: Measured, quantile: float = 0.1) -> dict[str, float]:
    """Host time of each operator: a low quantile of the times of its smallest kernels (roofline
    below 1 us, or the smallest hundredth), less the time that the smallest kernel takes itself.
    """
    roofline = rows.batch.prior_s - LAUNCH_FLOOR_S
    result = {}
    for op in dict.fromkeys(rows.op.tolist()):
        chosen = rows.op == op
        limit = max(_SMALL_S, float(np.quantile(roofline[chosen], 0.01)))
        smallest = rows.time_s[chosen & (roofline <= limit)]
        result[op] = max(float(np.quantile(smallest, quantile)) - LAUNCH_FLOOR_S, 0.0)
    return result


@dataclass(frozen=True)
class Drift:
    """Host time along a file: ``overhead_s`` at the row positions ``knots``, linear between."""

    knots: Array
    overhead_s: Array

    def at(self, order: NDArray[np.int64]) -> Array:
        """Host time in seconds of the rows at positions ``order``."""
        return np.interp(order, self.knots, self.overhead_s)


def fit_drift(order: NDArray[np.int64], time_s: Array, kernel_s: Array, last: int) -> Drift:
    """The drift that best explains ``time_s - kernel_s``: least absolute deviations, weighted by
    how little a kernel's own time can hide it.

    Args:
        order: positions of the rows.
        time_s: their measured times.
        kernel_s: what a model says of the kernels' own times.
        last: the last position of the file.
    """
    knots = np.linspace(0, last, _KNOTS)
    basis = np.stack([np.interp(order, knots, unit) for unit in np.eye(_KNOTS)], axis=1)
    excess = time_s - kernel_s
    trust = 1 / (20e-6 + kernel_s)
    weight = trust
    values = np.zeros(_KNOTS)
    for _ in range(_ROUNDS):
        normal = basis.T @ (basis * weight[:, None]) + 1e-9 * np.eye(_KNOTS)
        values = np.linalg.solve(normal, basis.T @ (weight * excess))
        weight = trust / np.maximum(np.abs(excess - basis @ values), 2e-6)
    return Drift(knots, np.maximum(values, 0.0))
