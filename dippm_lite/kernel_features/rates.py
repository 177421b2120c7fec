"""What of a device the features see."""

from __future__ import annotations

from dataclasses import dataclass

from dippm_lite.devices import DeviceSpec
from dippm_lite.execution import MathMode

__all__ = ["DeviceRates", "device_rates"]


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """What of a device the features see, for one kind of arithmetic: streaming multiprocessors,
    FLOP/s of matrix products, bytes/s of DRAM, bytes of L2."""

    sm_count: float
    peak_flops: float
    bandwidth: float
    l2_bytes: float


def device_rates(device: DeviceSpec, math: MathMode) -> DeviceRates:
    """The rates of ``device`` for arithmetic ``math``.

    Raises:
        KeyError: the device has no rate for it.
    """
    return DeviceRates(
        float(device.sm_count),
        device.peak_flops[math],
        device.bandwidth_bytes_per_s,
        float(device.l2_bytes),
    )
