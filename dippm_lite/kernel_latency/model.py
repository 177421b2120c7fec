"""Times of kernels from a bundle of measured models, and the latency that they compose to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dippm_lite.bundle import Bundle, FeatureSchema
from dippm_lite.devices import DeviceSpec
from dippm_lite.execution import MathMode, Runtime
from dippm_lite.kernel_features import (
    LAUNCH_FLOOR_S,
    TABLES,
    ConvBatch,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
    device_rates,
)
from dippm_lite.kernel_latency.launch import LAUNCH_US, queue_latency_s
from dippm_lite.kernel_latency.parts import STREAM, Part
from dippm_lite.kernel_latency.routes import parts_of
from dippm_lite.kernels import Kernel
from dippm_lite.roofline import bound
from dippm_lite.units import us_to_s

__all__ = ["ComposedLatency", "KernelLatencyModel", "KernelTimes"]

Array = NDArray[np.float64]

_BATCHES: Mapping[str, type[KernelBatch]] = MappingProxyType(
    {
        "product": ProductBatch,
        "convolution": ConvBatch,
        "elements": ElementBatch,
        "rows": RowBatch,
    }
)
_SIZE_COLUMNS = frozenset(
    {"batch", "m", "n", "k", "in_channels", "out_channels", "height", "elements", "rows", "cols"}
)

# How far below the roofline a time may be. Winograd's F(4x4, 3x3) saves a factor of four; data
# that stays in L2 is read about 2.5 times faster than from DRAM on an A100.
_FEWEST_FLOPS = 0.25
_L2_SPEEDUP = 2.5

# Of 37,000 measured products of 20 us and more, a thousandth takes less than this against the best
# of the tiles that we list.
_FASTEST_TILES = 0.8

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


@dataclass(frozen=True)
class KernelLatencyModel:
    """The models of a bundle, ready for kernels."""

    bundle: Bundle

    @classmethod
    def load(cls, path: str | Path | None = None) -> KernelLatencyModel:
        """Open the bundle in folder ``path``, by default the one that the package ships.

        Raises:
            BundleError: it is missing, damaged or was made for other features.
        """
        schemas = {name: FeatureSchema(table.schema) for name, table in TABLES.items()}
        return cls(Bundle.load(path, schemas))

    @property
    def bundle_id(self) -> str:
        return self.bundle.manifest.bundle_id

    def kernel_times_s(
        self, kernels: Sequence[Kernel], device: DeviceSpec, runtime: Runtime = Runtime.PYTORCH
    ) -> Array:
        """Time of one run of each kernel on ``device`` under ``runtime``, in seconds.

        Shapes:
            result: (len(kernels),).
        """
        return self.kernel_times(kernels, device, runtime).time_s

    def kernel_times(
        self, kernels: Sequence[Kernel], device: DeviceSpec, runtime: Runtime = Runtime.PYTORCH
    ) -> KernelTimes:
        """Times with where they come from; one call of each model for all kernels together."""
        owners: list[int] = []
        parts: list[Part] = []
        for index, kernel in enumerate(kernels):
            for part in parts_of(kernel, runtime):
                owners.append(index)
                parts.append(part)
        part_s = np.zeros(len(parts))
        sigma = np.zeros(len(parts))
        outside: list[tuple[str, ...]] = [()] * len(parts)
        groups: dict[tuple[str, MathMode, float], list[int]] = {}
        for number, part in enumerate(parts):
            groups.setdefault((part.model, part.math, part.itemsize), []).append(number)
        for (name, mode, itemsize), members in groups.items():
            sizes = np.array([parts[i].sizes for i in members])
            seconds, spread, names = self._evaluate(name, mode, itemsize, sizes, device)
            for i, value, missed in zip(members, seconds.tolist(), names, strict=True):
                part_s[i] = value * parts[i].factor
                sigma[i] = spread if parts[i].measured else max(spread, _SHARED_SIGMA_EXTRAPOLATED)
                outside[i] = missed if parts[i].measured else ()
        count = len(kernels)
        time_s = np.zeros(count)
        worst = np.zeros(count)
        measured = np.ones(count, dtype=bool)
        missed_by: list[dict[str, None]] = [{} for _ in range(count)]
        for number, owner in enumerate(owners):
            time_s[owner] += part_s[number]
            worst[owner] = max(worst[owner], sigma[number])
            measured[owner] &= parts[number].measured
            missed_by[owner].update(dict.fromkeys(outside[number]))
        least = np.array([_least_s(kernel, device) for kernel in kernels])
        return KernelTimes(
            np.maximum(time_s, least), worst, measured, tuple(tuple(m) for m in missed_by)
        )

    def _evaluate(
        self, name: str, mode: MathMode, itemsize: float, sizes: Array, device: DeviceSpec
    ) -> tuple[Array, float, list[tuple[str, ...]]]:
        """Seconds, log-sigma and columns out of range, for rows of ``sizes`` of one model."""
        if name == STREAM:
            seconds = LAUNCH_FLOOR_S + sizes[:, 0] / device.bandwidth_bytes_per_s
            return seconds, 0.0, [()] * len(sizes)
        entry = self.bundle.entry(name)
        batch = _BATCHES[entry.feature_table](device_rates(device, mode), itemsize, *sizes.T)
        rows = TABLES[entry.feature_table].matrix(batch)
        raw = self.bundle.booster(name).predict_raw(rows)
        seconds = entry.target.transform.invert(raw, batch.prior_s)
        if isinstance(batch, ProductBatch):
            seconds = np.maximum(seconds, _FASTEST_TILES * batch.best_tile_s)
        outside: list[tuple[str, ...]] = [()] * len(rows)
        for index, column in enumerate(entry.features):
            if column.name not in _SIZE_COLUMNS:
                continue
            beyond = (rows[:, index] < column.train_min) | (rows[:, index] > column.train_max)
            for row in np.flatnonzero(beyond).tolist():
                outside[row] += (f"{name}.{column.name}",)
        return seconds, entry.residual_sigma or 0.0, outside

    def compose(
        self,
        kernels: Sequence[Kernel],
        device: DeviceSpec,
        runtime: Runtime,
        launch_us: float | None = None,
    ) -> ComposedLatency:
        """Latency of ``kernels``, run in order.

        Args:
            kernels: what the runtime launches.
            device: a card or a GPU instance.
            runtime: sets the host time of a launch.
            launch_us: host time of one launch in microseconds, in place of the runtime's.
        """
        times = self.kernel_times(kernels, device, runtime)
        repeats = [kernel.repeat for kernel in kernels]
        launch_s = us_to_s(LAUNCH_US[runtime] if launch_us is None else launch_us)
        latency_s = queue_latency_s(times.time_s, repeats, launch_s)
        kernel_s = times.time_s * np.array(repeats, dtype=np.float64)
        busy_s = float(kernel_s.sum())
        busy_share = min(busy_s / latency_s, 1.0) if latency_s else 0.0
        spread = _Z80 * math.hypot(
            busy_share * _shared_sigma(kernel_s, times, kernels), (1 - busy_share) * _HOST_SIGMA
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


def _least_s(kernel: Kernel, device: DeviceSpec) -> float:
    """No kernel is faster than this, whatever a model says."""
    limits = bound(kernel, device)
    resident = kernel.cost.total_bytes <= device.l2_bytes
    memory_s = limits.memory_s / _L2_SPEEDUP if resident else 0.9 * limits.memory_s
    return max(LAUNCH_FLOOR_S / 2, _FEWEST_FLOPS * limits.compute_s, memory_s)


def _share(kernel_s: Array, chosen: Sequence[int]) -> float:
    total = float(kernel_s.sum())
    return float(kernel_s[list(chosen)].sum()) / total if total else 0.0


def _shared_sigma(kernel_s: Array, times: KernelTimes, kernels: Sequence[Kernel]) -> float:
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
