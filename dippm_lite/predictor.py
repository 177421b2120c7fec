"""From a model file to a prediction: the engine's parts in order, and the public API."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from dippm_lite import mig
from dippm_lite.analysis import Analysis, analyse
from dippm_lite.caveats import (
    Caveat,
    DoesNotFit,
    ExtrapolatedKernels,
    OutOfRange,
    UncalibratedInterval,
    UnmeasuredDevice,
)
from dippm_lite.devices import DeviceSpec, find_device
from dippm_lite.errors import InputError
from dippm_lite.execution import Precision, Runtime
from dippm_lite.kernel_latency import ComposedLatency, KernelLatencyModel
from dippm_lite.memory import process_memory
from dippm_lite.power import energy, work_of
from dippm_lite.prediction import Estimate, KernelRow, MigAdvice, MigRow, Prediction
from dippm_lite.units import s_to_ms

__all__ = ["Predictor", "predict"]

_E = TypeVar("_E", Precision, Runtime)


@dataclass(frozen=True)
class Predictor:
    """A device, a runtime and a precision, with the models that predict for them loaded once.

    Attributes:
        device: a card or a GPU instance.
        runtime: what executes the model.
        precision: the requested one; ``auto`` is resolved for each model.
        engine: latencies of kernels.
        launch_us: host time of one launch in microseconds; None takes the runtime's default.
    """

    device: DeviceSpec
    runtime: Runtime
    precision: Precision
    engine: KernelLatencyModel
    launch_us: float | None = None

    @classmethod
    def load(
        cls,
        device: str = "a100-40gb",
        runtime: Runtime | str = Runtime.PYTORCH,
        precision: Precision | str = Precision.AUTO,
        bundle: str | Path | None = None,
        launch_us: float | None = None,
    ) -> Predictor:
        """Find the device and open the bundle.

        Args:
            device: a name or alias of ``dippm-lite devices``, or ``card:profile``.
            runtime: ``pytorch``, ``onnxruntime`` or ``tensorrt``.
            precision: ``auto``, ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``amp`` or ``int8``.
            bundle: folder of another bundle than the one shipped.
            launch_us: host time of one kernel launch in microseconds.

        Raises:
            InputError: an unknown device, runtime or precision.
            BundleError: the bundle is missing, damaged or made for other features.
        """
        if launch_us is not None and not (launch_us >= 0 and math.isfinite(launch_us)):
            raise InputError(f"launch_us {launch_us} is not a time: give microseconds, 0 or more")
        return cls(
            find_device(device),
            _member(Runtime, runtime),
            _member(Precision, precision),
            KernelLatencyModel.load(bundle),
            launch_us,
        )

    def predict(
        self,
        source: str | os.PathLike[str] | bytes | BinaryIO,
        *,
        batch_size: int | None = None,
        dims: Mapping[str, int] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Prediction:
        """Predict one model.

        Args:
            source: a path, the bytes of an ONNX file, or a binary file object.
            batch_size: the leading dimension of the inputs, where it is free.
            dims: sizes of named free dimensions.
            shapes: whole shapes of inputs by name.

        Raises:
            InputError: the file or a binding can't be used; the text says what to do.
        """
        analysis = analyse(
            source,
            batch_size=batch_size,
            dims=dims,
            shapes=shapes,
            runtime=self.runtime,
            precision=self.precision,
        )
        return self.predict_analysis(analysis)

    def predict_analysis(self, analysis: Analysis) -> Prediction:
        """Predict a model that was analysed for this predictor's runtime and precision."""
        composed = self._latency(analysis, self.device)
        energy_j, memory_mib, advice = _NOTHING, _NOTHING, MigAdvice(None, None, ())
        if analysis.kernels:
            energy_j = self._energy(analysis, composed)
            memory_mib = self._memory(analysis)
            advice = self._mig(analysis, memory_mib)
        return Prediction(
            model=analysis.model,
            inputs=analysis.inputs,
            device=self.device.name,
            runtime=self.runtime,
            precision=self.precision,
            arithmetic=analysis.arithmetic,
            batch_size=analysis.batch_size,
            latency_ms=Estimate(
                s_to_ms(composed.latency_s),
                s_to_ms(composed.low_s) / self._device_spread,
                s_to_ms(composed.high_s) * self._device_spread,
            ),
            energy_j=energy_j,
            memory_mib=memory_mib,
            mig=advice,
            caveats=analysis.caveats + self._caveats(composed, memory_mib),
            bundle_id=self.engine.bundle_id,
            static=analysis.static,
            breakdown=_breakdown(analysis, composed),
            launch_bound_share=1 - min(composed.busy_s / composed.latency_s, 1.0)
            if composed.latency_s
            else 0.0,
        )

    @property
    def _measured_devices(self) -> tuple[str, ...]:
        return self.engine.bundle.manifest.devices

    @property
    def _device_spread(self) -> float:
        """By what factor the interval grows on a GPU of a kind that was never measured."""
        kinds = {_kind(name) for name in self._measured_devices}
        return 1.0 if _kind(self.device.name) in kinds else _UNMEASURED_SPREAD

    def _energy(self, analysis: Analysis, composed: ComposedLatency) -> Estimate:
        power = energy(
            work_of(analysis.kernels),
            composed.latency_s,
            composed.busy_s,
            self.device,
            self.device.card_share,
        )
        spread = self._device_spread
        return _product(
            power.energy_j,
            (power.power_w, power.power_low_w, power.power_high_w),
            (composed.latency_s, composed.low_s / spread, composed.high_s * spread),
        )

    def _memory(self, analysis: Analysis) -> Estimate:
        memory = process_memory(
            analysis.kernels,
            analysis.liveness.buffers,
            analysis.weight_sizes,
            self.runtime,
            analysis.liveness.calls_known,
        )
        return Estimate(memory.total_mib, memory.low_mib, memory.high_mib)

    def _latency(self, analysis: Analysis, device: DeviceSpec) -> ComposedLatency:
        return self.engine.compose(analysis.kernels, device, self.runtime, self.launch_us)

    def _mig(self, analysis: Analysis, memory_mib: Estimate) -> MigAdvice:
        profiles = self.device.mig_profiles
        latency_ms = {
            profile.name: s_to_ms(self._latency(analysis, self.device.instance(profile)).latency_s)
            for profile in profiles
        }
        rows = mig.options(profiles, memory_mib.high, latency_ms, analysis.batch_size)
        return MigAdvice(
            profile=mig.smallest_fit(rows),
            paper_profile=mig.paper_profile(memory_mib.value),
            alternatives=tuple(
                MigRow(
                    profile=row.profile.name,
                    fits=row.fits,
                    memory_mib=row.profile.memory_mib,
                    latency_ms=row.latency_ms or 0.0,
                    throughput_per_s=row.throughput_per_s or 0.0,
                    instances=row.instances,
                )
                for row in rows
            ),
        )

    def _caveats(self, composed: ComposedLatency, memory_mib: Estimate) -> tuple[Caveat, ...]:
        caveats: list[Caveat] = []
        if self._device_spread > 1:
            caveats.append(UnmeasuredDevice(self.device.name, self._measured_devices))
        if composed.extrapolated_share > 0:
            caveats.append(
                ExtrapolatedKernels(composed.extrapolated_classes, composed.extrapolated_share)
            )
        if composed.out_of_range_share > 0:
            caveats.append(OutOfRange(composed.out_of_range_share, composed.out_of_range_features))
        if memory_mib.high > self.device.usable_mib:
            caveats.append(DoesNotFit(memory_mib.high, float(self.device.usable_mib)))
        if memory_mib.value:
            caveats.append(UncalibratedInterval(("latency_ms", "energy_j", "memory_mib")))
        return tuple(caveats)


_NOTHING = Estimate(0.0, 0.0, 0.0)
"""What a model takes of a GPU that it never uses."""

_UNMEASURED_SPREAD = 2.0
"""A judgement: composed latencies of timm's models on GeForce cards are 1.6 to 1.75 times the
published ones."""


def predict(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    batch_size: int | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    device: str = "a100-40gb",
    runtime: Runtime | str = Runtime.PYTORCH,
    precision: Precision | str = Precision.AUTO,
    launch_us: float | None = None,
) -> Prediction:
    """Predict one model in one call; see :class:`Predictor` for many.

    Raises:
        InputError: the file, a binding or a name can't be used.
        BundleError: the shipped bundle is damaged.
    """
    predictor = Predictor.load(device, runtime, precision, launch_us=launch_us)
    return predictor.predict(source, batch_size=batch_size, dims=dims, shapes=shapes)


def _member(kind: type[_E], name: _E | str) -> _E:
    try:
        return kind(name)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise InputError(
            f"unknown {kind.__name__.lower()} {str(name)[:64]!r}: choose from {known}"
        ) from None


def _kind(device: str) -> str:
    """``a100`` of ``a100-sxm4-40gb:3g.20gb``."""
    return device.partition(":")[0].partition("-")[0]


def _product(value: float, *factors: tuple[float, float, float]) -> Estimate:
    """The interval of a product of ``(value, low, high)`` factors that err independently: their
    logarithmic half-widths add in quadrature."""
    below = math.hypot(*(math.log(v / low) for v, low, _ in factors if low > 0))
    above = math.hypot(*(math.log(high / v) for v, _, high in factors if v > 0))
    return Estimate(value, value * math.exp(-below), value * math.exp(above))


def _breakdown(analysis: Analysis, composed: ComposedLatency) -> tuple[KernelRow, ...]:
    nodes = analysis.graph.nodes
    total_s = sum(composed.kernel_s) or 1.0
    return tuple(
        KernelRow(
            name=nodes[kernel.nodes[-1]].name if kernel.nodes else "",
            op=kernel.op,
            kind=kernel.kind.value,
            time_ms=s_to_ms(time_s),
            share=time_s / total_s,
            macs=kernel.cost.macs * kernel.repeat,
            total_bytes=kernel.cost.total_bytes * kernel.repeat,
            repeat=kernel.repeat,
            bound=side,
            basis=basis,
        )
        for kernel, time_s, side, basis in zip(
            analysis.kernels, composed.kernel_s, composed.sides, composed.bases, strict=True
        )
    )
