"""Device tables against the published figures they claim to hold."""

from __future__ import annotations

from itertools import combinations

import pytest

from dippm_lite.devices import ALIASES, DEVICES, MEMORY_SLICES, MigProfile, find_device
from dippm_lite.errors import InputError
from dippm_lite.execution import MathMode

A100S = tuple(device for device in DEVICES.values() if device.name.startswith("a100-"))


@pytest.mark.parametrize("device", A100S, ids=lambda d: d.name)
def test_peak_rates_follow_from_the_chip(device):
    """NVIDIA A100 white paper, table 1: per SM and clock 64 fp32 FMAs on CUDA cores, and on tensor
    cores 512 TF32, 1024 fp16/bf16, 2048 int8 and 64 fp64 FMAs; 108 SMs at 1410 MHz."""
    fma_per_sm = {
        MathMode.FP64: 64,
        MathMode.FP32: 64,
        MathMode.TF32: 512,
        MathMode.FP16: 1024,
        MathMode.BF16: 1024,
        MathMode.INT8: 2048,
    }
    for math, fma in fma_per_sm.items():
        assert device.peak_flops[math] == pytest.approx(2 * fma * 108 * 1410e6, rel=2e-3)
    assert set(device.peak_flops) == set(MathMode)


@pytest.mark.parametrize(
    ("name", "memory_clock_mhz", "tdp_w", "memory_mib"),
    [
        ("a100-sxm4-40gb", 1215, 400, 40960),
        ("a100-sxm4-80gb", 1593, 400, 81920),
        ("a100-pcie-40gb", 1215, 250, 40960),
        ("a100-pcie-80gb", 1512, 300, 81920),
    ],
)
def test_boards_match_their_data_sheets(name, memory_clock_mhz, tdp_w, memory_mib):
    """Bandwidth from the memory clock that nvidia-smi shows: 5120 bits wide, two transfers a
    clock. Limits and memory as in NVIDIA's data sheet and nvidia-smi."""
    device = find_device(name)
    assert device.bandwidth_bytes_per_s == pytest.approx(
        5120 / 8 * 2 * memory_clock_mhz * 1e6, rel=1e-3
    )
    assert device.tdp_w == tdp_w
    assert device.memory_mib == memory_mib
    assert device.l2_bytes == 40 * 2**20


def test_usable_memory_is_what_pytorch_reports_as_total_capacity():
    assert find_device("a100-40gb").usable_mib == round(39.39 * 1024)
    assert find_device("a100-80gb").usable_mib == round(79.15 * 1024)


@pytest.mark.parametrize("device", A100S, ids=lambda d: d.name)
def test_idle_power_is_within_published_readings(device):
    readings = {  # nvidia-smi, P0, nothing running
        "a100-sxm4-40gb": (42, 54),
        "a100-sxm4-80gb": (54, 65),
        "a100-pcie-40gb": (30, 36),
        "a100-pcie-80gb": (49, 67),
    }
    low, high = readings[device.name]
    assert low <= device.idle_w <= high


# NVIDIA MIG user guide and nvidia-smi mig -lgip: name, compute slices, memory slices, GiB as
# printed by some driver, SMs, instances.
LISTED_40GB = [
    ("1g.5gb", 1, 1, 4.75, 14, 7),
    ("1g.5gb+me", 1, 1, 4.75, 14, 1),
    ("1g.10gb", 1, 2, 9.62, 14, 4),
    ("2g.10gb", 2, 2, 9.62, 28, 3),
    ("3g.20gb", 3, 4, 19.5, 42, 2),
    ("4g.20gb", 4, 4, 19.5, 56, 1),
    ("7g.40gb", 7, 8, 39.25, 98, 1),
]
LISTED_80GB = [
    ("1g.10gb", 1, 1, 9.62, 14, 7),
    ("1g.10gb+me", 1, 1, 9.62, 14, 1),
    ("1g.20gb", 1, 2, 19.5, 14, 4),
    ("2g.20gb", 2, 2, 19.5, 28, 3),
    ("3g.40gb", 3, 4, 39.25, 42, 2),
    ("4g.40gb", 4, 4, 39.25, 56, 1),
    ("7g.80gb", 7, 8, 78.5, 98, 1),
]


@pytest.mark.parametrize("device", A100S, ids=lambda d: d.name)
def test_mig_profiles_match_nvidia_listings(device):
    listed = LISTED_40GB if device.memory_mib == 40960 else LISTED_80GB
    assert len(device.mig_profiles) == len(listed)
    for profile, (name, compute, memory, gib, sms, instances) in zip(
        device.mig_profiles, listed, strict=True
    ):
        assert profile.name == name
        assert (profile.compute_slices, profile.memory_slices) == (compute, memory)
        assert profile.sm_count == sms
        assert profile.max_instances == instances
        assert profile.memory_mib == pytest.approx(gib * 1024, rel=0.01)
        assert profile.media_extensions == name.endswith("+me")


def _most_instances(profile: MigProfile) -> int:
    """By brute force: the largest set of placements that don't overlap, within 7 compute slices."""
    spans = [set(range(s, s + profile.memory_slices)) for s in profile.placements]
    return max(
        size
        for size in range(len(spans) + 1)
        if size * profile.compute_slices <= 7
        and any(
            all(not a & b for a, b in combinations(chosen, 2))
            for chosen in combinations(spans, size)
        )
    )


@pytest.mark.parametrize("device", A100S, ids=lambda d: d.name)
def test_placements_allow_exactly_the_stated_number_of_instances(device):
    for profile in device.mig_profiles:
        assert all(0 <= s <= MEMORY_SLICES - profile.memory_slices for s in profile.placements)
        stated = profile.max_instances
        assert stated == (1 if profile.media_extensions else _most_instances(profile))


@pytest.mark.parametrize("device", A100S, ids=lambda d: d.name)
def test_an_instance_is_a_smaller_device(device):
    for profile in device.mig_profiles:
        part = device.instance(profile)
        assert part.name == f"{device.name}:{profile.name}"
        assert part.sm_count < device.sm_count
        assert part.usable_mib == part.memory_mib == profile.memory_mib < device.usable_mib
        assert (
            part.bandwidth_bytes_per_s == device.bandwidth_bytes_per_s * profile.memory_slices / 8
        )
        for math, peak in device.peak_flops.items():
            assert part.peak_flops[math] == pytest.approx(peak * profile.sm_count / 108)
        assert part.mig_profiles == ()


def test_gemm_peak_of_a_slice_agrees_with_measurement():
    """NJIT's MIG comparison: fp16 GEMM at 38.7, 79.3 and 118.9 TFLOP/s on 1g, 2g and 3g, which its
    authors put at 96-98 % of what the clock allows."""
    for name, measured in [("1g.10gb", 38.7e12), ("2g.20gb", 79.3e12), ("3g.40gb", 118.9e12)]:
        peak = find_device(f"a100-80gb:{name}").peak_flops[MathMode.FP16]
        assert 0.95 <= measured / peak <= 0.99


@pytest.mark.parametrize("alias", ALIASES)
def test_short_names_mean_the_sxm4_cards(alias):
    assert find_device(alias).name.startswith("a100-sxm4-")


def test_names_are_found_whatever_their_case():
    assert find_device(" A100-80GB ") is DEVICES["a100-sxm4-80gb"]
    assert find_device("A100-40GB:3G.20GB").name == "a100-sxm4-40gb:3g.20gb"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a100-40g", "'a100-40gb'"),
        ("a100-sxm-80gb", "'a100-sxm4-80gb'"),
        ("a100-40gb:3g.20g", "'3g.20gb'"),
        ("a100-40gb:", "choose from 1g.5gb"),
        ("", "choose from a100-sxm4-40gb"),
        ("a100-40gb:3g.20gb:1g.5gb", "choose from 1g.5gb"),
    ],
)
def test_unknown_names_are_refused_with_the_closest_one(name, hint):
    with pytest.raises(InputError) as error:
        find_device(name)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_hostile_name_is_not_echoed_in_full():
    with pytest.raises(InputError) as error:
        find_device("x" * 100_000)
    assert len(str(error.value)) < 400


def test_impossible_profiles_and_devices_are_refused():
    with pytest.raises(ValueError, match="outside the card"):
        MigProfile("9g", 1, 4, 14, 4864, 1, (5,))
    profile = DEVICES["a100-sxm4-40gb"].mig_profiles[0]
    broken = MigProfile("0g", 1, 1, 14, 1, 1, (0,))
    assert DEVICES["a100-sxm4-40gb"].instance(broken).memory_mib == 1
    with pytest.raises(ValueError, match="impossible"):
        MigProfile("0g", 1, 1, 0, profile.memory_mib, 1, (0,))
