"""Peak device memory of a process: context, weights, activations, workspaces, pool rounding."""

from dippm_lite.memory.allocators import BfcArena, CachingAllocator, Lifetime, replay
from dippm_lite.memory.footprints import CUBLAS_WORKSPACE_BYTES, FOOTPRINTS, Footprint
from dippm_lite.memory.process import MemoryBreakdown, process_memory

__all__ = [
    "CUBLAS_WORKSPACE_BYTES",
    "FOOTPRINTS",
    "BfcArena",
    "CachingAllocator",
    "Footprint",
    "Lifetime",
    "MemoryBreakdown",
    "process_memory",
    "replay",
]
