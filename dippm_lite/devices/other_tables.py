"""Cards that measurements used in training were made on, besides the A100.

Peaks are dense tensor-core rates with fp32 accumulation, which is what deep-learning libraries
ask for; half of the fp16 rate that GeForce data sheets print. Arithmetic that a card's tensor
cores lack is done by its fp32 units, so it has their rate.
"""

from __future__ import annotations

from dippm_lite.devices.spec import DeviceSpec
from dippm_lite.execution import MathMode

__all__ = ["OTHER_CARDS"]

_IDLE = "nvidia-smi listings (idle power in P0, median)"
_VOLTA = "NVIDIA V100 data sheet and Tesla V100 white paper (6 MB L2, 1380 MHz as PCIe card)"
_TURING = "NVIDIA T4 data sheet and Turing architecture white paper (TU104, 4 MB L2)"
_GA102 = "NVIDIA Ampere GA102 white paper, tables 2 and 3 (82 SMs, 1695 MHz, 6 MB L2, dense rates)"
_A40 = "NVIDIA A40 data sheet (84 SMs, 1740 MHz, dense rates, 696 GB/s, 300 W)"
_A30 = "NVIDIA A30 data sheet (56 SMs, 1440 MHz, dense rates, 933 GB/s, 165 W), 24 MB L2"
_AD102 = "NVIDIA Ada GPU architecture white paper, appendix A (128 SMs, 2520 MHz, 72 MB L2)"
_HOPPER = "NVIDIA H100 data sheet and Hopper white paper (132 SMs, dense rates, 50 MB L2)"


def _card(
    name: str,
    title: str,
    sm_count: int,
    clock_mhz: int,
    memory_mib: int,
    tera: tuple[float, float, float, float, float, float],
    vector_tera: float,
    gigabytes_per_s: float,
    l2_mib: int,
    watts: tuple[float, float],
    source: str,
) -> DeviceSpec:
    """``tera``: TFLOP/s in the order of :class:`MathMode`; ``watts``: power limit and idle."""
    return DeviceSpec(
        name=name,
        title=title,
        sm_count=sm_count,
        clock_mhz=clock_mhz,
        memory_mib=memory_mib,
        peak_flops={mode: rate * 1e12 for mode, rate in zip(MathMode, tera, strict=True)},
        vector_flops=vector_tera * 1e12,
        bandwidth_bytes_per_s=gigabytes_per_s * 1e9,
        l2_bytes=l2_mib << 20,
        tdp_w=watts[0],
        idle_w=watts[1],
        mig_profiles=(),
        sources=(source, _IDLE),
    )


# name, title, SMs, MHz, MiB, (fp64, fp32, tf32, fp16, bf16, int8), vector, GB/s, L2, W, source
OTHER_CARDS = (
    _card(
        "rtx3090", "GeForce RTX 3090", 82, 1695, 24576,
        (0.556, 35.6, 35.6, 71.2, 71.2, 284.7), 35.6, 936, 6, (350, 88), _GA102,
    ),
    _card(
        "rtx4090", "GeForce RTX 4090", 128, 2520, 24564,
        (1.29, 82.6, 82.6, 165.2, 165.2, 660.6), 82.6, 1008, 72, (450, 62), _AD102,
    ),
    _card(
        "a30", "A30", 56, 1440, 24576,
        (10.3, 10.3, 82.6, 165.2, 165.2, 330.3), 10.3, 933, 24, (165, 32), _A30,
    ),
    _card(
        "a40", "A40", 84, 1740, 46068,
        (0.584, 37.4, 74.8, 149.7, 149.7, 299.3), 37.4, 696, 6, (300, 72), _A40,
    ),
    _card(
        "t4", "T4", 40, 1590, 15360,
        (0.254, 8.1, 8.1, 65.1, 8.1, 130.3), 8.1, 320, 4, (70, 26), _TURING,
    ),
    _card(
        "v100-pcie-32gb", "V100 PCIe 32 GB", 80, 1380, 32768,
        (7.07, 14.1, 14.1, 113.0, 14.1, 56.5), 14.1, 900, 6, (250, 36), _VOLTA,
    ),
    _card(
        "h100-sxm5-80gb", "H100 SXM5 80 GB", 132, 1830, 81559,
        (66.9, 66.9, 494.7, 989.4, 989.4, 1978.9), 66.9, 3352, 50, (700, 70), _HOPPER,
    ),
)  # fmt: skip
