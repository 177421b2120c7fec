"""MIG profiles of each card: one row a profile.

Memory, SM counts, instance limits and placements as NVIDIA's go-nvml carries them for the A100
(``pkg/nvml/mock/gpus/a100.go``), in agreement with ``nvidia-smi mig -lgip``. Drivers round the
memory differently (4.75 to 4.95 GiB for 1g.5gb): take it as true to 1 %. NVIDIA's user guide lists
1g.10gb of the 40 GB card as one eighth of the memory; the driver gives it two slices.
"""

from __future__ import annotations

from dippm_lite.devices.spec import MigProfile

__all__ = ["A100_40GB_PROFILES", "A100_80GB_PROFILES"]

_ANY = (0, 1, 2, 3, 4, 5, 6)
_PAIRS = (0, 2, 4, 6)
_FIRST_PAIRS = (0, 2, 4)
_HALVES = (0, 4)
_START = (0,)

# name, compute slices, memory slices, SMs, MiB, most instances, first memory slices
A100_40GB_PROFILES: tuple[MigProfile, ...] = (
    MigProfile("1g.5gb", 1, 1, 14, 4864, 7, _ANY),
    MigProfile("1g.5gb+me", 1, 1, 14, 4864, 1, _ANY, media_extensions=True),
    MigProfile("1g.10gb", 1, 2, 14, 9856, 4, _PAIRS),
    MigProfile("2g.10gb", 2, 2, 28, 9856, 3, _FIRST_PAIRS),
    MigProfile("3g.20gb", 3, 4, 42, 19968, 2, _HALVES),
    MigProfile("4g.20gb", 4, 4, 56, 19968, 1, _START),
    MigProfile("7g.40gb", 7, 8, 98, 40192, 1, _START),
)

A100_80GB_PROFILES: tuple[MigProfile, ...] = (
    MigProfile("1g.10gb", 1, 1, 14, 9856, 7, _ANY),
    MigProfile("1g.10gb+me", 1, 1, 14, 9856, 1, _ANY, media_extensions=True),
    MigProfile("1g.20gb", 1, 2, 14, 19968, 4, _PAIRS),
    MigProfile("2g.20gb", 2, 2, 28, 19968, 3, _FIRST_PAIRS),
    MigProfile("3g.40gb", 3, 4, 42, 40192, 2, _HALVES),
    MigProfile("4g.40gb", 4, 4, 56, 40192, 1, _START),
    MigProfile("7g.80gb", 7, 8, 98, 80384, 1, _START),
)
