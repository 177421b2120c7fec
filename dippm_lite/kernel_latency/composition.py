"""Times of single kernels to the latency of their sequence, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dippm_lite.devices import DeviceSpec
from dippm_lite.kernel_features import LAUNCH_FLOOR_S
from dippm_lite.kernel_latency.launch import queue_latency_s
from dippm_lite.kernels import Kernel
from dippm_lite.roofline import bound

__all__ = ["ComposedLatency", "KernelTimes", "compose_latency"]

Array = NDArray[np.float64]

_Z80 = 1.2816  # of a normal distribution: 80% lie within
_SHARED_SIGMA_MEASURED = 0.08
_SHARED_SIGMA_EXTRAPOLATED = 0.35
_HOST_SIGMA = 0.3  # of the sources of LAUNCH_US


@dataclass(frozen=True)
class KernelTimes:
    """One run of each kernel.

    Shapes:
        time_s, sigma: (n,); measured: (n,) of bool. ``sigma`` is the standard deviation of the
        log of a time. ``outside`` names the sizes of each kernel that its model never saw.
    """

    time_s: Array
    sigma: Array
    measured: NDArray[np.bool_]
    outside: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ComposedLatency:
    """The latency of a sequence of kernels, with its 80% interval.

    Attributes:
        latency_s, low_s, high_s: from the first launch to the end of the last kernel.
        busy_s: time in which the GPU runs kernels.
        kernel_s: of each kernel, over all its runs.
        sides: what bounds each: ``compute``, ``memory`` or ``launch``.
        bases: ``measured`` or ``extrapolated``.
        extrapolated_share, extrapolated_classes: of ``busy_s``, in kernels without measured ones.
        out_of_range_share, out_of_range_features: the same for measured classes outside the sizes
            that were measured.
    """

    latency_s: float
    low_s: float
    high_s: float
    busy_s: float
    kernel_s: tuple[float, ...]
    sides: tuple[str, ...]
    bases: tuple[str, ...]
    extrapolated_share: float
    extrapolated_classes: tuple[str, ...]
    out_of_range_share: float
    out_of_range_features: tuple[str, ...]


def compose_latency(
    kernels: Sequence[Kernel], times: KernelTimes, device: DeviceSpec, launch_s: float
) -> ComposedLatency:
    """Latency of ``kernels``, run in order, of which one run each takes ``times``; the host needs
    ``launch_s`` for each launch."""
    repeats = [kernel.repeat for kernel in kernels]
    latency_s = queue_latency_s(times.time_s, repeats, launch_s)
    kernel_s = times.time_s * np.array(repeats, dtype=np.float64)
    busy_s = float(kernel_s.sum())
    busy_share = min(busy_s / latency_s, 1.0) if latency_s else 0.0
    spread = _Z80 * math.hypot(
        busy_share * _sum_sigma(kernel_s, times, kernels), (1 - busy_share) * _HOST_SIGMA
    )
    carried = [i for i in range(len(kernels)) if not times.measured[i]]
    outside = [i for i in range(len(kernels)) if times.outside[i]]
    return ComposedLatency(
        latency_s=latency_s,
        low_s=latency_s * math.exp(-spread),
        high_s=latency_s * math.exp(spread),
        busy_s=busy_s,
        kernel_s=tuple(kernel_s.tolist()),
        sides=tuple(bound(kernel, device).side(LAUNCH_FLOOR_S) for kernel in kernels),
        bases=tuple("measured" if known else "extrapolated" for known in times.measured),
        extrapolated_share=_share(kernel_s, carried),
        extrapolated_classes=tuple(
            dict.fromkeys(f"{kernels[i].kind.value} {kernels[i].math.value}" for i in carried)
        ),
        out_of_range_share=_share(kernel_s, outside),
        out_of_range_features=tuple(
            dict.fromkeys(name for i in outside for name in times.outside[i])
        ),
    )


def _share(kernel_s: Array, chosen: Sequence[int]) -> float:
    total = float(kernel_s.sum())
    return float(kernel_s[list(chosen)].sum()) / total if total else 0.0


def _sum_sigma(kernel_s: Array, times: KernelTimes, kernels: Sequence[Kernel]) -> float:
    """Log-sigma of the sum: errors of single kernels are independent and average out, those that
    a class has in common don't."""
    total = float(kernel_s.sum())
    if not total:
        return _SHARED_SIGMA_EXTRAPOLATED
    weight = kernel_s / total
    shared: dict[tuple[str, bool], float] = {}
    for share, kernel, known in zip(weight.tolist(), kernels, times.measured, strict=True):
        key = (kernel.kind.value, bool(known))
        shared[key] = shared.get(key, 0.0) + share
    common = sum(
        (share * (_SHARED_SIGMA_MEASURED if known else _SHARED_SIGMA_EXTRAPOLATED)) ** 2
        for (_, known), share in shared.items()
    )
    return math.sqrt(common + float(np.sum((weight * times.sigma) ** 2)))
