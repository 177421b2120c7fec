"""Cards besides the A100 against rates that follow from their chips."""

from __future__ import annotations

import pytest

from dippm_lite.devices import DEVICES, find_device
from dippm_lite.execution import MathMode

# Fused multiply-adds of an SM in a clock: on fp32 units, and on tensor cores with fp32
# accumulation, from NVIDIA's white papers; then the memory's pins, and its rate in Gbit/s a pin.
CHIPS = {
    "rtx3090": (128, 128, 256, 1024, 384, 19.5),
    "rtx4090": (128, 128, 256, 1024, 384, 21.0),
    "a30": (64, 512, 1024, 2048, 3072, 2.43),
    "a40": (128, 256, 512, 1024, 384, 14.5),
    "t4": (64, 64, 512, 1024, 256, 10.0),
    "v100-pcie-32gb": (64, 64, 512, 256, 4096, 1.756),
    "h100-sxm5-80gb": (128, 1024, 2048, 4096, 5120, 5.238),
}


@pytest.mark.parametrize("name", CHIPS)
def test_rates_follow_from_the_chip(name):
    device = find_device(name)
    fp32, tf32, fp16, int8, pins, gigabit = CHIPS[name]
    a_clock = 2 * device.sm_count * device.clock_mhz * 1e6
    # Hopper's data sheet gives its fp32 rate at 1,980 MHz, its tensor cores' at 1,830.
    boost = 1980 / 1830 if name.startswith("h100") else 1
    assert device.vector_flops == pytest.approx(fp32 * a_clock * boost, rel=6e-3)
    assert device.peak_flops[MathMode.TF32] == pytest.approx(tf32 * a_clock, rel=6e-3)
    assert device.peak_flops[MathMode.FP16] == pytest.approx(fp16 * a_clock, rel=6e-3)
    assert device.peak_flops[MathMode.INT8] == pytest.approx(int8 * a_clock, rel=6e-3)
    assert device.bandwidth_bytes_per_s == pytest.approx(pins * gigabit / 8 * 1e9, rel=6e-3)


@pytest.mark.parametrize("name", CHIPS)
def test_every_arithmetic_has_a_rate_and_none_is_slower_than_its_fallback(name):
    peak = find_device(name).peak_flops
    assert set(peak) == set(MathMode)
    assert peak[MathMode.TF32] >= peak[MathMode.FP32]
    assert peak[MathMode.FP16] >= peak[MathMode.BF16] >= peak[MathMode.FP32]


def test_all_cards_but_the_a100_are_held_here():
    assert {name for name in DEVICES if not name.startswith("a100-")} == set(CHIPS)
    for name in CHIPS:
        assert find_device(name).mig_profiles == ()
        assert len(find_device(name).sources) == 2
