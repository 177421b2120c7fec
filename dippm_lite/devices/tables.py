"""The devices that a prediction can be for, and the names they are found by."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from dippm_lite.devices.mig_tables import A100_40GB_PROFILES, A100_80GB_PROFILES
from dippm_lite.devices.other_tables import OTHER_CARDS
from dippm_lite.devices.spec import DeviceSpec, MigProfile
from dippm_lite.errors import InputError
from dippm_lite.execution import MathMode

__all__ = ["ALIASES", "DEVICES", "find_device"]

_DATA_SHEET = "NVIDIA A100 Tensor Core GPU data sheet (dense rates, bandwidth, TDP)"
_WHITE_PAPER = "NVIDIA A100 Tensor Core GPU Architecture white paper (108 SMs, 1410 MHz, L2 40 MB)"
_SMI = "nvidia-smi listings (total memory with drivers from R510 on; idle power in P0, median)"
_OOM = "PyTorch out-of-memory messages ({}: what a process sees of the card)"

# FP64 is the tensor-core rate, which is what DGEMM runs at; the FMA units give half of it.
_A100_PEAK: Mapping[MathMode, float] = {
    MathMode.FP64: 19.5e12,
    MathMode.FP32: 19.5e12,
    MathMode.TF32: 156e12,
    MathMode.FP16: 312e12,
    MathMode.BF16: 312e12,
    MathMode.INT8: 624e12,
}


def _a100(
    name: str,
    title: str,
    bandwidth_bytes_per_s: float,
    tdp_w: float,
    idle_w: float,
    profiles: tuple[MigProfile, ...],
) -> DeviceSpec:
    """One A100 board: all share the chip; memory, power limit and profiles differ."""
    large = profiles is A100_80GB_PROFILES
    # What the driver keeps: 40,960 MiB less 39.39 GiB, 81,920 MiB less 79.15 GiB.
    return DeviceSpec(
        name=name,
        title=title,
        sm_count=108,
        clock_mhz=1410,
        memory_mib=81920 if large else 40960,
        peak_flops=_A100_PEAK,
        vector_flops=19.5e12,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        l2_bytes=40 << 20,
        tdp_w=tdp_w,
        idle_w=idle_w,
        mig_profiles=profiles,
        sources=(
            _DATA_SHEET,
            _WHITE_PAPER,
            _SMI,
            _OOM.format("79.15 GiB" if large else "39.39 GiB"),
        ),
        reserved_mib=870 if large else 625,
    )


# name, title, bytes/s, TDP, idle (readings: 46-54, 54-65, 30-36 and 49-67 W), profiles
_A100S = (
    _a100("a100-sxm4-40gb", "A100 SXM4 40 GB", 1555e9, 400, 50, A100_40GB_PROFILES),
    _a100("a100-sxm4-80gb", "A100 SXM4 80 GB", 2039e9, 400, 59, A100_80GB_PROFILES),
    _a100("a100-pcie-40gb", "A100 PCIe 40 GB", 1555e9, 250, 33, A100_40GB_PROFILES),
    _a100("a100-pcie-80gb", "A100 PCIe 80 GB", 1935e9, 300, 54, A100_80GB_PROFILES),
)

DEVICES: Mapping[str, DeviceSpec] = MappingProxyType(
    {device.name: device for device in (*_A100S, *OTHER_CARDS)}
)
"""Whole cards by canonical name: the A100s, then those whose measurements help to train."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {"a100": "a100-sxm4-40gb", "a100-40gb": "a100-sxm4-40gb", "a100-80gb": "a100-sxm4-80gb"}
)
"""Short names for the SXM4 cards."""


def find_device(name: str) -> DeviceSpec:
    """The device called ``name``: a card, an alias, or ``card:profile`` for a GPU instance.

    Case doesn't matter: ``A100-40GB:3g.20gb`` is the 3g.20gb instance of ``a100-sxm4-40gb``.

    Raises:
        InputError: no such card, or the card has no such profile; the message names the closest.
    """
    card, colon, profile_name = name.strip().lower().partition(":")
    device = DEVICES.get(ALIASES.get(card, card))
    if device is None:
        raise InputError(_unknown("device", card, (*DEVICES, *ALIASES)))
    if not colon:
        return device
    for profile in device.mig_profiles:
        if profile.name == profile_name:
            return device.instance(profile)
    names = tuple(profile.name for profile in device.mig_profiles)
    raise InputError(_unknown(f"MIG profile of {device.name}", profile_name, names))


def _unknown(what: str, given: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(given[:64], known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {what} {given[:64]!r}: {hint}choose from {', '.join(known)}"
