"""What a device and a MIG profile are; the facts themselves are in the tables beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dippm_lite.execution import MathMode

__all__ = ["COMPUTE_SLICES", "MEMORY_SLICES", "DeviceSpec", "MigProfile"]

COMPUTE_SLICES = 7
"""Compute slices of a card in MIG mode."""

MEMORY_SLICES = 8
"""Memory slices of a card in MIG mode; one of them can only be used with its neighbour."""


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

    def __post_init__(self) -> None:
        if min(self.compute_slices, self.memory_slices, self.sm_count, self.memory_mib) <= 0:
            raise ValueError(f"MIG profile {self.name!r} has an impossible figure")
        if any(not 0 <= s <= MEMORY_SLICES - self.memory_slices for s in self.placements):
            raise ValueError(f"MIG profile {self.name!r} is placed outside the card")


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
        reserved_mib: share of ``memory_mib`` that the driver keeps, ECC included: no process can
            allocate it. 0 for an instance, whose ``memory_mib`` is already the usable part.
        card_share: part of the card's standing power that is charged to the workload: 1 for a
            whole card, compute slices out of 7 for an instance.

    Raises:
        ValueError: a size, rate or power that isn't positive.
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
    reserved_mib: int = 0
    card_share: float = 1.0

    def __post_init__(self) -> None:
        positive = (
            self.sm_count, self.clock_mhz, self.usable_mib, self.vector_flops, self.l2_bytes,
            self.bandwidth_bytes_per_s, self.tdp_w, self.idle_w, *self.peak_flops.values(),
        )  # fmt: skip
        if min(positive) <= 0 or self.idle_w >= self.tdp_w:
            raise ValueError(f"device {self.name!r} has an impossible figure")

    @property
    def usable_mib(self) -> int:
        """Memory that processes can share, contexts included."""
        return self.memory_mib - self.reserved_mib

    def instance(self, profile: MigProfile) -> DeviceSpec:
        """The GPU instance ``profile`` as a device of its own.

        Compute scales with SMs; bandwidth and L2 with memory slices out of 8 (NVIDIA MIG user
        guide; deviceQuery on the slices shows the same). Power figures stay the card's.
        """
        compute = profile.sm_count / self.sm_count
        memory = profile.memory_slices / MEMORY_SLICES
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
            reserved_mib=0,
            card_share=profile.compute_slices / COMPUTE_SLICES,
        )
