"""Average board power and energy of an inference.

The power is what the card draws anyway, plus a price for every operation and every byte::

    P = idle + clocked + busy * busy_s / latency_s + sum(e_math * FLOP) / latency_s
        + e_byte * bytes / latency_s,    and never more than the governor allows

The prices are derived from published measurements, one anchor each, in this order (a calibration
on many rows at once is to replace them):

* ``clocked``: an A100 that idles at its boost clock draws 56 to 79 W (GPU_Power_Benchmark) against
  50 W in P0: 15 W.
* ``busy``: vLLM decoding at batch 32 and 64 (ML.ENERGY leaderboard v2, 25 rows on one SXM4-40GB);
  a straight line through power against traffic and FLOPs leaves 82 W where both are 0.
* ``e_byte``: 328 W on an SXM4-40GB bound by DRAM (ethash at 174 MH/s, 64 reads of 128 B a hash:
  1.43 TB/s).
* ``fp16``: the decoding rows, and Stable Diffusion 1.x, whose power grows by 3 W per TFLOP/s from
  batch 1 to 2, half of it for the bytes that come along.
* ``tf32`` and ``int8``: in proportion to the operand's width.
* ``fp32``: BERT-large answering questions at batch 1, 172 to 178 W in 18.4 ms on an SXM4-80GB.
* ``fp64``: DGEMM at its peak reaches the limit of the card.
* the governor: saturated diffusion holds 380 to 391 W of 400, saturated training 239 to 247 of 250.

What the tensors hold changes the power of a matrix product by up to 40 % (arXiv 2409.18324), which
no model without the data can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dippm_lite.devices import DeviceSpec
from dippm_lite.execution import MathMode
from dippm_lite.kernels import Kernel
from dippm_lite.units import FLOPS_PER_MAC

__all__ = ["COEFFICIENTS", "Coefficients", "PowerEstimate", "Work", "energy", "work_of"]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Prices of the model; see the module's text for where each comes from.

    Attributes:
        clocked_w: power above idle of a card that waits at its boost clock.
        busy_w: power above that while any kernel runs.
        joule_per_byte: of DRAM traffic.
        joule_per_flop: by arithmetic; non-matrix arithmetic counts as fp32.
        governed_share: share of the power limit that a saturated card settles at.
        spread: relative half-width of the interval around the estimate.
    """

    clocked_w: float
    busy_w: float
    joule_per_byte: float
    joule_per_flop: Mapping[MathMode, float]
    governed_share: float
    spread: float


COEFFICIENTS = Coefficients(
    clocked_w=15.0,
    busy_w=20.0,
    joule_per_byte=170e-12,
    joule_per_flop=MappingProxyType(
        {
            MathMode.FP64: 17e-12,
            MathMode.FP32: 10e-12,
            MathMode.TF32: 3e-12,
            MathMode.FP16: 1.5e-12,
            MathMode.BF16: 1.5e-12,
            MathMode.INT8: 0.75e-12,
        }
    ),
    governed_share=0.965,
    spread=0.25,
)
"""For the A100, all memory sizes and both form factors."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one inference asks of the device: FLOPs by arithmetic, and bytes of DRAM traffic."""

    flops: Mapping[MathMode, float]
    total_bytes: float


@dataclass(frozen=True, slots=True)
class PowerEstimate:
    """Average power over one inference, and its energy.

    ``low`` and ``high`` bound both; ``governed`` says that the card would draw more if it could,
    so that it runs below its boost clock.
    """

    power_w: float
    power_low_w: float
    power_high_w: float
    energy_j: float
    energy_low_j: float
    energy_high_j: float
    governed: bool


def work_of(kernels: Sequence[Kernel]) -> Work:
    """Sum over kernels and their repeats; arithmetic outside matrix products counts as fp32."""
    flops: dict[MathMode, float] = {}
    total_bytes = 0.0
    for kernel in kernels:
        cost = kernel.cost
        macs_mode = kernel.math if kernel.kind.is_matrix else MathMode.FP32
        matrix = float(kernel.repeat * FLOPS_PER_MAC * cost.macs)
        flops[macs_mode] = flops.get(macs_mode, 0.0) + matrix
        other = float(kernel.repeat * cost.flops_other)
        flops[MathMode.FP32] = flops.get(MathMode.FP32, 0.0) + other
        total_bytes += float(kernel.repeat * cost.total_bytes)
    return Work(flops, total_bytes)


def energy(
    work: Work,
    latency_s: float,
    busy_s: float,
    device: DeviceSpec,
    card_share: float = 1.0,
    coefficients: Coefficients = COEFFICIENTS,
) -> PowerEstimate:
    """Power and energy of an inference of ``latency_s``, during ``busy_s`` of which a kernel runs.

    ``card_share`` is the part of the card's standing power that is charged to the workload: 1 for
    one that has the card to itself, an instance's compute slices out of 7 for one that shares it.
    Traffic beyond what the memory can move in that time never left the L2 cache and is free.

    Raises:
        ValueError: a latency that isn't positive, or a negative amount.
    """
    if not latency_s > 0:
        raise ValueError(f"latency of {latency_s} s")
    if min(busy_s, card_share, work.total_bytes, *work.flops.values()) < 0:
        raise ValueError("negative work, busy time or share")
    c = coefficients
    busy = min(busy_s / latency_s, 1.0)
    standing_w = device.idle_w + c.clocked_w + c.busy_w * busy
    bytes_per_s = min(work.total_bytes / latency_s, device.bandwidth_bytes_per_s)
    compute_w = sum(c.joule_per_flop[math] * n for math, n in work.flops.items()) / latency_s
    wanted_w = standing_w * card_share + compute_w + c.joule_per_byte * bytes_per_s
    limit_w = device.tdp_w * c.governed_share
    power_w = min(wanted_w, limit_w)
    low_w = min(max(power_w * (1 - c.spread), device.idle_w * card_share), power_w)
    high_w = min(power_w * (1 + c.spread), device.tdp_w)
    return PowerEstimate(
        power_w=power_w,
        power_low_w=low_w,
        power_high_w=high_w,
        energy_j=power_w * latency_s,
        energy_low_j=low_w * latency_s,
        energy_high_j=high_w * latency_s,
        governed=wanted_w > limit_w,
    )
