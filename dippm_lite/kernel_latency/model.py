"""Times of kernels from a bundle of measured models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
    DeviceRates,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
    device_rates,
)
from dippm_lite.kernel_latency.composition import ComposedLatency, KernelTimes, compose_latency
from dippm_lite.kernel_latency.launch import LAUNCH_US
from dippm_lite.kernel_latency.parts import STREAM, Part
from dippm_lite.kernel_latency.routes import parts_of
from dippm_lite.kernels import Kernel
from dippm_lite.roofline import bound
from dippm_lite.units import us_to_s

__all__ = ["KernelLatencyModel"]

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

_EXTRAPOLATED_SIGMA = 0.35
"""Log-sigma of a single kernel whose class was never measured, where its model has a smaller."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """Time of a part, the standard deviation of its log, and sizes that its model never saw."""

    time_s: float
    sigma: float
    outside: tuple[str, ...]


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
        """Times with where they come from. Equal parts, as of repeated layers, are evaluated once;
        each model is called once for all of its parts."""
        per_kernel = [parts_of(kernel, runtime) for kernel in kernels]
        answers = self._evaluate(chain.from_iterable(per_kernel), device)
        time_s, sigma = np.empty(len(kernels)), np.empty(len(kernels))
        outside: list[tuple[str, ...]] = []
        for index, (kernel, parts) in enumerate(zip(kernels, per_kernel, strict=True)):
            found = [answers[part] for part in parts]
            time_s[index] = max(sum(answer.time_s for answer in found), _least_s(kernel, device))
            sigma[index] = max(answer.sigma for answer in found)
            names = (name for answer in found for name in answer.outside)
            outside.append(tuple(dict.fromkeys(names)))
        measured = np.array([all(p.measured for p in parts) for parts in per_kernel], dtype=bool)
        return KernelTimes(time_s, sigma, measured, tuple(outside))

    def _evaluate(self, parts: Iterable[Part], device: DeviceSpec) -> dict[Part, _Answer]:
        """What the models say of each part."""
        groups: dict[tuple[str, MathMode, float], list[Part]] = {}
        for part in dict.fromkeys(parts):
            groups.setdefault((part.model, part.math, part.itemsize), []).append(part)
        answers: dict[Part, _Answer] = {}
        for (name, mode, itemsize), members in groups.items():
            sizes = np.array([part.sizes for part in members])
            if name == STREAM:
                seconds = LAUNCH_FLOOR_S + sizes[:, 0] / device.bandwidth_bytes_per_s
                spread, outside = 0.0, _inside(len(members))
            else:
                rates = device_rates(device, mode)
                seconds, spread, outside = self._ask(name, rates, itemsize, sizes)
            for part, run_s, names in zip(members, seconds.tolist(), outside, strict=True):
                answers[part] = (
                    _Answer(part.factor * run_s, spread, names)
                    if part.measured
                    else _Answer(part.factor * run_s, max(spread, _EXTRAPOLATED_SIGMA), ())
                )
        return answers

    def _ask(
        self, name: str, rates: DeviceRates, itemsize: float, sizes: Array
    ) -> tuple[Array, float, list[tuple[str, ...]]]:
        """Seconds, log-sigma and columns out of range, for rows of ``sizes`` of model ``name``."""
        entry = self.bundle.entry(name)
        batch = _BATCHES[entry.feature_table](rates, itemsize, *sizes.T)
        rows = TABLES[entry.feature_table].matrix(batch)
        raw = self.bundle.booster(name).predict_raw(rows)
        seconds = entry.target.transform.invert(raw, batch.prior_s)
        if isinstance(batch, ProductBatch):
            seconds = np.maximum(seconds, _FASTEST_TILES * batch.best_tile_s)
        outside = _inside(len(rows))
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
        launch_s = us_to_s(LAUNCH_US[runtime] if launch_us is None else launch_us)
        return compose_latency(kernels, times, device, launch_s)


def _inside(count: int) -> list[tuple[str, ...]]:
    """No column out of range, for ``count`` rows."""
    return [()] * count


def _least_s(kernel: Kernel, device: DeviceSpec) -> float:
    """No kernel is faster than this, whatever a model says."""
    limits = bound(kernel, device)
    resident = kernel.cost.total_bytes <= device.l2_bytes
    memory_s = limits.memory_s / _L2_SPEEDUP if resident else 0.9 * limits.memory_s
    return max(LAUNCH_FLOOR_S / 2, _FEWEST_FLOPS * limits.compute_s, memory_s)
