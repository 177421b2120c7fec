"""Peak device memory of a process that runs one model, as nvidia-smi shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dippm_lite.execution import Runtime
from dippm_lite.kernels import Kernel
from dippm_lite.memory.allocators import BfcArena, CachingAllocator, Lifetime, replay
from dippm_lite.memory.footprints import (
    CUBLAS_WORKSPACE_BYTES,
    FOOTPRINTS,
    conv_scratch_bytes,
    uses_cublas,
)
from dippm_lite.units import BYTES_PER_MIB, bytes_to_mib

__all__ = ["MemoryBreakdown", "process_memory"]

_PAGE_BYTES = 2 * BYTES_PER_MIB  # granularity of cudaMalloc


@dataclass(frozen=True, slots=True)
class MemoryBreakdown:
    """Where a process's device memory goes, in MiB.

    Attributes:
        context_mib: CUDA context, loaded kernels, library handles.
        weights_mib: weights in the run-time precision.
        activations_mib: most bytes in live activations at once, inputs and outputs included.
        workspace_mib: what cuBLAS keeps, and by how much scratch space raises the peak.
        rounding_mib: what the runtime's pool holds beyond all that.
        low_mib, high_mib: bounds on the total.
        basis: what the bounds rest on.
    """

    context_mib: float
    weights_mib: float
    activations_mib: float
    workspace_mib: float
    rounding_mib: float
    low_mib: float
    high_mib: float
    basis: str

    @property
    def total_mib(self) -> float:
        """The estimate: the sum of the parts."""
        return (
            self.context_mib
            + self.weights_mib
            + self.activations_mib
            + self.workspace_mib
            + self.rounding_mib
        )


@dataclass(frozen=True, slots=True)
class _Weight:
    """A weight as the allocator sees it: taken before anything runs, and kept."""

    size_bytes: int
    first: int = 0
    last: int = 0
    held: bool = True


def process_memory(
    kernels: Sequence[Kernel],
    lifetimes: Sequence[Lifetime],
    weight_sizes: Sequence[int],
    runtime: Runtime,
    calls_known: bool = True,
) -> MemoryBreakdown:
    """Memory of a process that has run the model a few times.

    Args:
        kernels: the schedule.
        lifetimes: its buffers in the run-time precision, as ``liveness.peak`` gives them.
        weight_sizes: bytes of each weight in the run-time precision. Under autocast these are the
            stored weights and, once more, the half-precision copies that it caches.
        runtime: whose context, pool and workspaces to count.
        calls_known: as ``liveness.peak`` gives it; the upper bound is wider without.
    """
    footprint = FOOTPRINTS[runtime]
    scratch = [conv_scratch_bytes(kernel) for kernel in kernels]
    worst_scratch = [conv_scratch_bytes(kernel, pessimistic=True) for kernel in kernels]
    live = _live_bytes(lifetimes, len(kernels))
    activations = max(live)
    weights = sum(weight_sizes)
    kept = 0
    if runtime is Runtime.PYTORCH and any(uses_cublas(kernel) for kernel in kernels):
        kept = CUBLAS_WORKSPACE_BYTES
    workspace = kept + _peak_with(live, scratch) - activations
    held = weights + activations + workspace

    reserved = _reserved(lifetimes, weight_sizes, scratch, kept, runtime)
    worst = _reserved(lifetimes, weight_sizes, worst_scratch, kept, runtime)
    slack = footprint.activation_slack if calls_known else footprint.activation_slack_blind
    return MemoryBreakdown(
        context_mib=footprint.context_mib,
        weights_mib=bytes_to_mib(weights),
        activations_mib=bytes_to_mib(activations),
        workspace_mib=bytes_to_mib(workspace),
        rounding_mib=bytes_to_mib(max(reserved - held, 0)),
        low_mib=footprint.context_low_mib + bytes_to_mib(weights + activations),
        high_mib=footprint.context_high_mib
        + bytes_to_mib(max(worst, reserved, held) + slack * activations),
        basis=footprint.source,
    )


def _live_bytes(lifetimes: Sequence[Lifetime], steps: int) -> list[int]:
    """Bytes in buffers during each step; one step at least, for what is held without any."""
    change = [0] * (max(steps, 1) + 1)
    for lifetime in lifetimes:
        change[lifetime.first] += lifetime.size_bytes
        change[lifetime.last + 1] -= lifetime.size_bytes
    total = 0
    live = []
    for step in change[:-1]:
        total += step
        live.append(total)
    return live


def _peak_with(live: Sequence[int], scratch: Sequence[int]) -> int:
    return max([*live, *(a + b for a, b in zip(live, scratch, strict=False))])


def _reserved(
    lifetimes: Sequence[Lifetime],
    weight_sizes: Sequence[int],
    scratch: Sequence[int],
    kept: int,
    runtime: Runtime,
) -> int:
    """Bytes that the runtime has taken from the driver, context aside."""
    if runtime is Runtime.PYTORCH:
        held = [_Weight(size) for size in (*weight_sizes, kept)]
        return replay(CachingAllocator(), [*held, *lifetimes], scratch)
    weights = _pages(sum(weight_sizes))
    inputs = sum(_pages(lifetime.size_bytes) for lifetime in lifetimes if lifetime.held)
    passing = [lifetime for lifetime in lifetimes if not lifetime.held]
    planned = max(_live_bytes(passing, max((p.last + 1 for p in passing), default=1)))
    if runtime is Runtime.TENSORRT:
        # Weights are one block, and so are all activations: planned when the engine is built.
        return weights + inputs + _pages(planned + max(scratch, default=0))
    # onnxruntime reserves the weights apart from its arena. The first inference asks the arena for
    # each buffer; from the pattern it saw, later ones ask for a single block.
    arena = BfcArena()
    replay(arena, passing, scratch, inferences=1)
    arena.release(arena.allocate(planned))
    return weights + inputs + arena.reserved_bytes


def _pages(size: int) -> int:
    return -(-size // _PAGE_BYTES) * _PAGE_BYTES
