"""Which GPU instance a workload needs: arithmetic on MIG profiles, without any prediction in it.

Latencies come from the caller, who predicts them on ``device.instance(profile)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dippm_lite.devices import COMPUTE_SLICES, MigProfile

__all__ = [
    "DEFAULT_MARGIN",
    "PAPER_BOUNDS_MB",
    "MigOption",
    "fits",
    "legal_placements",
    "options",
    "paper_profile",
    "smallest_fit",
]

DEFAULT_MARGIN = 0.02
"""Share of an instance's memory that is left free: drivers disagree by 1 % on what a profile holds,
and the process may grow a little."""

PAPER_BOUNDS_MB: tuple[tuple[float, str], ...] = (
    (5_000, "1g.5gb"),
    (10_000, "2g.10gb"),
    (20_000, "3g.20gb"),
    (40_000, "7g.40gb"),
)
"""DIPPM's rule (arXiv 2303.11733): the most memory, in MB of 10**6 bytes, for which it names each
profile of the A100 40 GB."""

_MB_PER_MIB = 1.048576


@dataclass(frozen=True, slots=True)
class MigOption:
    """One profile as a home for the workload.

    Attributes:
        profile: the profile.
        memory_available_mib: what it holds, the margin taken off.
        fits: whether the pessimistic memory estimate is within that.
        meets_latency: whether the latency bound is kept; True where there is no bound.
        instances: how many such instances one card takes.
        latency_ms: predicted on this instance; None where the caller has none.
        throughput_per_s: samples per second of one instance; None without a latency.
        card_throughput_per_s: the same of a card full of such instances, each with its own copy.
    """

    profile: MigProfile
    memory_available_mib: float
    fits: bool
    meets_latency: bool
    instances: int
    latency_ms: float | None
    throughput_per_s: float | None
    card_throughput_per_s: float | None


def fits(profile: MigProfile, memory_high_mib: float, margin: float = DEFAULT_MARGIN) -> bool:
    """Whether ``memory_high_mib`` is within the profile's memory less ``margin`` of it; an exact
    fit counts."""
    return memory_high_mib <= _available_mib(profile, margin)


def options(
    profiles: Sequence[MigProfile],
    memory_high_mib: float,
    latency_ms: Mapping[str, float] | None = None,
    batch_size: int = 1,
    max_latency_ms: float | None = None,
    margin: float = DEFAULT_MARGIN,
) -> tuple[MigOption, ...]:
    """Every profile, smallest first (compute slices, then memory; media extensions last).

    ``latency_ms`` maps profile names to the latency of one batch. A profile without an entry can't
    be said to keep ``max_latency_ms``.

    Raises:
        ValueError: a latency that isn't positive.
    """
    rows = []
    for profile in sorted(profiles, key=_size):
        latency = None if latency_ms is None else latency_ms.get(profile.name)
        if latency is not None and not latency > 0:
            raise ValueError(f"latency of {latency} ms on {profile.name}")
        throughput = None if latency is None else 1e3 * batch_size / latency
        rows.append(
            MigOption(
                profile=profile,
                memory_available_mib=_available_mib(profile, margin),
                fits=fits(profile, memory_high_mib, margin),
                meets_latency=max_latency_ms is None
                or (latency is not None and latency <= max_latency_ms),
                instances=profile.max_instances,
                latency_ms=latency,
                throughput_per_s=throughput,
                card_throughput_per_s=None
                if throughput is None
                else throughput * profile.max_instances,
            )
        )
    return tuple(rows)


def smallest_fit(rows: Sequence[MigOption]) -> MigProfile | None:
    """The first of :func:`options` that fits and keeps the latency bound, or None."""
    return next((row.profile for row in rows if row.fits and row.meets_latency), None)


def paper_profile(memory_mib: float) -> str | None:
    """The profile that DIPPM's rule names for a predicted memory, or None above 40 GB.

    The paper's inequalities are strict on both sides, so that exactly 5, 10 or 20 GB get no
    profile. Here each bound belongs to the smaller profile: 5 GB fit in 5 GB.

    Raises:
        ValueError: a negative memory.
    """
    if memory_mib < 0:
        raise ValueError(f"memory of {memory_mib} MiB")
    megabytes = memory_mib * _MB_PER_MIB
    return next((name for most_mb, name in PAPER_BOUNDS_MB if megabytes <= most_mb), None)


def legal_placements(profiles: Sequence[MigProfile]) -> tuple[tuple[int, ...], ...]:
    """All ways to put these instances on one card: for each the first memory slice of every
    profile, in the given order.

    Instances don't overlap on the card's 8 memory slices, take at most 7 compute slices together,
    and no profile is used more often than it may be. Two instances of one profile are placed in
    ascending order only, since they are the same.
    """
    if sum(profile.compute_slices for profile in profiles) > COMPUTE_SLICES:
        return ()
    names = [profile.name for profile in profiles]
    if any(names.count(profile.name) > profile.max_instances for profile in profiles):
        return ()
    found: list[tuple[int, ...]] = []
    pending: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while pending:
        starts, taken = pending.pop()
        if len(starts) == len(profiles):
            found.append(starts)
            continue
        profile = profiles[len(starts)]
        earlier = [s for s, name in zip(starts, names, strict=False) if name == profile.name]
        for start in profile.placements:
            mask = ((1 << profile.memory_slices) - 1) << start
            if not taken & mask and (not earlier or start > earlier[-1]):
                pending.append(((*starts, start), taken | mask))
    return tuple(sorted(found))


def _available_mib(profile: MigProfile, margin: float) -> float:
    return profile.memory_mib * (1 - margin)


def _size(profile: MigProfile) -> tuple[int, int, bool]:
    return (profile.compute_slices, profile.memory_slices, profile.media_extensions)
