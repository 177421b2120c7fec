"""What the runtimes' memory pools take from the driver for a given sequence of requests.

Both pools are best-fit with splitting and merging, never give memory back, and differ in how they
round, split and grow:

* PyTorch's caching allocator (``c10/cuda/CUDACachingAllocator.cpp``): sizes rounded to 512 B; a
  small pool (up to 1 MiB, in 2 MiB segments) and a large one (20 MiB segments below 10 MiB, its own
  segment rounded to 2 MiB from there on); a block of the large pool is split only if more than
  1 MiB remains.
* onnxruntime's BFC arena (``onnxruntime/core/framework/bfc_arena.cc``): sizes rounded to 256 B;
  regions double from 1 MiB up to a cap of 1 GiB, more if one request needs it; a chunk is split if
  it is at least twice the request or 128 MiB would be wasted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Protocol

__all__ = ["BfcArena", "CachingAllocator", "Lifetime", "Pool", "replay"]

_MIB = 1 << 20


class Lifetime(Protocol):
    """What a replay needs to know of a buffer; steps are indices into the kernels."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def held(self) -> bool: ...


class _Block:
    __slots__ = ("address", "after", "before", "free", "kind", "size")

    def __init__(self, address: int, size: int, kind: int) -> None:
        self.address = address
        self.size = size
        self.kind = kind
        self.free = True
        self.before: _Block | None = None
        self.after: _Block | None = None


class Pool:
    """A best-fit pool. Subclasses say how it rounds, splits and grows.

    ``reserved_bytes`` is what it has taken from the driver so far.
    """

    def __init__(self) -> None:
        self.reserved_bytes = 0
        self._blocks: dict[int, _Block] = {}
        self._free: tuple[list[tuple[int, int]], ...] = ([], [])
        self._next_address = 0

    def allocate(self, size_bytes: int) -> int:
        """Take ``size_bytes`` and return the handle that ``release`` wants; -1 for nothing."""
        if size_bytes <= 0:
            return -1
        size = self._rounded(size_bytes)
        free = self._free[self._kind(size)]
        at = bisect_left(free, (size, -1))
        if at == len(free):
            self._extend(size)
            at = bisect_left(free, (size, -1))
        block = self._blocks[free.pop(at)[1]]
        block.free = False
        if self._splits(block.size, size):
            self._split(block, size)
        return block.address

    def release(self, handle: int) -> None:
        """Give an allocation back to the pool, merged with free neighbours of its segment."""
        if handle < 0:
            return
        block = self._blocks[handle]
        free = self._free[block.kind]
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                del free[bisect_left(free, (neighbour.size, neighbour.address))]
                first, second = sorted((block, neighbour), key=lambda b: b.address)
                self._merge(first, second)
                block = first
        block.free = True
        insort(free, (block.size, block.address))

    def _rounded(self, size: int) -> int:
        raise NotImplementedError

    def _splits(self, block_size: int, size: int) -> bool:
        raise NotImplementedError

    def _segment_size(self, size: int) -> int:
        raise NotImplementedError

    def _kind(self, size: int) -> int:
        """Which of the two free lists serves requests of this size."""
        return 0

    def _extend(self, size: int) -> None:
        block = _Block(self._next_address, self._segment_size(size), self._kind(size))
        self._next_address += block.size
        self.reserved_bytes += block.size
        self._blocks[block.address] = block
        insort(self._free[block.kind], (block.size, block.address))

    def _split(self, block: _Block, size: int) -> None:
        rest = _Block(block.address + size, block.size - size, block.kind)
        block.size = size
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        block.after = rest
        self._blocks[rest.address] = rest
        insort(self._free[rest.kind], (rest.size, rest.address))

    def _merge(self, first: _Block, second: _Block) -> None:
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        del self._blocks[second.address]


class CachingAllocator(Pool):
    """PyTorch's, with its default settings (no expandable segments)."""

    def _rounded(self, size: int) -> int:
        return -(-size // 512) * 512

    def _kind(self, size: int) -> int:
        return 0 if size <= _MIB else 1

    def _splits(self, block_size: int, size: int) -> bool:
        rest = block_size - size
        return rest >= 512 if size <= _MIB else rest > _MIB

    def _segment_size(self, size: int) -> int:
        if size <= _MIB:
            return 2 * _MIB
        if size < 10 * _MIB:
            return 20 * _MIB
        return -(-size // (2 * _MIB)) * 2 * _MIB


class BfcArena(Pool):
    """onnxruntime's, with its default settings (regions of the next power of two)."""

    def __init__(self) -> None:
        super().__init__()
        self._region = _MIB

    def _rounded(self, size: int) -> int:
        return -(-size // 256) * 256

    def _splits(self, block_size: int, size: int) -> bool:
        return block_size >= 2 * size or block_size - size >= 128 * _MIB

    def _segment_size(self, size: int) -> int:
        grown = False
        while size > self._region:
            self._region *= 2
            grown = True
        region = self._region
        if not grown:
            self._region = 2 * region if region < 512 * _MIB else 1024 * _MIB
        return region


def replay(
    pool: Pool,
    lifetimes: Sequence[Lifetime],
    scratch_bytes: Sequence[int] = (),
    inferences: int = 2,
) -> int:
    """Run a schedule through a pool and return ``reserved_bytes`` at the end.

    Held buffers are taken once. In each inference and step, buffers that begin there are taken,
    then the kernel's ``scratch_bytes`` for as long as it runs, then buffers that end there are
    released. The second inference finds the holes that the first left.
    """
    for lifetime in lifetimes:
        if lifetime.held:
            pool.allocate(lifetime.size_bytes)
    passing = [lifetime for lifetime in lifetimes if not lifetime.held]
    steps = max((lifetime.last + 1 for lifetime in passing), default=0)
    begins: list[list[int]] = [[] for _ in range(max(steps, len(scratch_bytes)))]
    ends: list[list[int]] = [[] for _ in begins]
    for index, lifetime in enumerate(passing):
        begins[lifetime.first].append(index)
        ends[lifetime.last].append(index)
    for _ in range(inferences):
        handles: dict[int, int] = {}
        for step, (beginning, ending) in enumerate(zip(begins, ends, strict=True)):
            for index in beginning:
                handles[index] = pool.allocate(passing[index].size_bytes)
            if step < len(scratch_bytes):
                pool.release(pool.allocate(scratch_bytes[step]))
            for index in ending:
                pool.release(handles.pop(index))
    return pool.reserved_bytes
