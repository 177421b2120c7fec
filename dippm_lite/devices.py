"""Devices and their MIG profiles: tables of data-sheet facts, each row with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dippm_lite.errors import InputError
from dippm_lite.execution import MathMode

__all__ = ["DEVICES", "DeviceSpec", "MigProfile", "find_device"]


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A GPU instance that the card can be cut into.

    ``memory_mib`` is what a process can use, not the number in the name. ``placements`` are the
    legal first memory slices; an instance occupies ``memory_slices`` of 8 from there.
    """

    name: str
    compute_slices: int
    memory_slices: int
    sm_count: int
    memory_mib: int
    max_instances: int
    placements: tuple[int, ...]
    media_extensions: bool = False


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One GPU, or one GPU instance of it.

    Attributes:
        name: what ``--device`` takes.
        title: what a person calls it.
        sm_count: streaming multiprocessors.
        clock_mhz: boost clock behind the peak rates.
        memory_mib: device memory in MiB as nvidia-smi shows it.
        peak_flops: dense peak of matrix products in FLOP/s by arithmetic.
        vector_flops: peak of non-matrix arithmetic in FLOP/s (fp32 FMA).
        bandwidth_bytes_per_s: DRAM bandwidth.
        l2_bytes: last-level cache.
        tdp_w, idle_w: board power limit, and power when idle in P0.
        mig_profiles: what it can be cut into; empty for a card without MIG and for an instance.
        sources: where the numbers come from.
    """

    name: str
    title: str
    sm_count: int
    clock_mhz: int
    memory_mib: int
    peak_flops: Mapping[MathMode, float]
    vector_flops: float
    bandwidth_bytes_per_s: float
    l2_bytes: int
    tdp_w: float
    idle_w: float
    mig_profiles: tuple[MigProfile, ...]
    sources: tuple[str, ...]

    def instance(self, profile: MigProfile) -> DeviceSpec:
        """The GPU instance ``profile`` as a device of its own.

        Compute scales with SMs; bandwidth and L2 with memory slices out of 8 (NVIDIA MIG user
        guide; deviceQuery on the slices shows the same). Power figures stay the card's.
        """
        compute = profile.sm_count / self.sm_count
        memory = profile.memory_slices / 8
        return replace(
            self,
            name=f"{self.name}:{profile.name}",
            title=f"{profile.name} of {self.title}",
            sm_count=profile.sm_count,
            memory_mib=profile.memory_mib,
            peak_flops={mode: peak * compute for mode, peak in self.peak_flops.items()},
            vector_flops=self.vector_flops * compute,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s * memory,
            l2_bytes=int(self.l2_bytes * memory),
            mig_profiles=(),
        )
