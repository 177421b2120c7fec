"""The roofline: no kernel runs faster than its arithmetic or its traffic allows.

Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. All figures are for one run of a
kernel (``Kernel.repeat`` isn't applied) and leave out what a launch costs: that is measured, so it
belongs to the latency model and is passed in where a function needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dippm_lite.devices import DeviceSpec
from dippm_lite.execution import MathMode
from dippm_lite.kernels import Kernel
from dippm_lite.units import FLOPS_PER_MAC

__all__ = [
    "Bound",
    "Side",
    "arithmetic_intensity",
    "bound",
    "kernel_bounds",
    "ridge_point",
    "roofline_time_s",
]

Side = Literal["compute", "memory", "launch"]

# FMA rate against fp32. Half-precision elementwise kernels convert to fp32 and back.
_VECTOR_RATE: Mapping[MathMode, float] = MappingProxyType({MathMode.FP64: 0.5})


@dataclass(frozen=True, slots=True)
class Bound:
    """Least time of one run by arithmetic and by DRAM traffic, in seconds."""

    compute_s: float
    memory_s: float

    @property
    def time_s(self) -> float:
        """The roofline itself: the larger of the two."""
        return max(self.compute_s, self.memory_s)

    def side(self, floor_s: float = 0.0) -> Side:
        """What binds, given that no run is shorter than ``floor_s``; ties go to memory."""
        if floor_s > self.time_s:
            return "launch"
        return "compute" if self.compute_s > self.memory_s else "memory"


def bound(kernel: Kernel, device: DeviceSpec) -> Bound:
    """The roofline of one run of ``kernel`` on ``device`` (a card or a GPU instance).

    Raises:
        KeyError: the device has no rate for the kernel's arithmetic.
    """
    cost = kernel.cost
    vector_flops = device.vector_flops * _VECTOR_RATE.get(kernel.math, 1.0)
    mac_flops = device.peak_flops[kernel.math] if kernel.kind.is_matrix else vector_flops
    compute_s = FLOPS_PER_MAC * cost.macs / mac_flops + cost.flops_other / vector_flops
    return Bound(compute_s, cost.total_bytes / device.bandwidth_bytes_per_s)


def kernel_bounds(
    kernels: Sequence[Kernel], device: DeviceSpec
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(compute_s, memory_s)`` of many kernels, one float64 entry each, in order."""
    bounds = np.empty((len(kernels), 2), dtype=np.float64)
    for row, kernel in enumerate(kernels):
        one = bound(kernel, device)
        bounds[row] = one.compute_s, one.memory_s
    return bounds[:, 0], bounds[:, 1]


def roofline_time_s(kernel: Kernel, device: DeviceSpec, floor_s: float = 0.0) -> float:
    """Least time of one run in seconds, never below ``floor_s``."""
    return max(bound(kernel, device).time_s, floor_s)


def arithmetic_intensity(kernel: Kernel) -> float:
    """FLOP per byte of DRAM traffic; infinite for arithmetic without traffic, 0 without either."""
    cost = kernel.cost
    if cost.total_bytes == 0:
        return float("inf") if cost.flops else 0.0
    return cost.flops / cost.total_bytes


def ridge_point(device: DeviceSpec, math: MathMode) -> float:
    """FLOP per byte above which a matrix kernel of arithmetic ``math`` is compute-bound."""
    return device.peak_flops[math] / device.bandwidth_bytes_per_s
