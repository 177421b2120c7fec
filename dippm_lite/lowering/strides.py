"""Tensors as PyTorch lays them out: sizes and strides, and when a view needs no copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

__all__ = ["Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes and strides (in elements) of one tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def dense(shape: Sequence[int], order: Sequence[int] | None = None) -> Layout:
        """Without gaps; ``order`` lists the axes from slowest to fastest (row-major by default)."""
        strides = [0] * len(shape)
        step = 1
        for axis in reversed(range(len(shape)) if order is None else list(order)):
            strides[axis] = step
            step *= max(shape[axis], 1)
        return Layout(tuple(shape), tuple(strides))

    @property
    def is_contiguous(self) -> bool:
        """Row-major without gaps; axes of size 1 don't matter."""
        return _matches(self, range(len(self.shape)))

    @property
    def is_channels_last(self) -> bool:
        """(N, C, *spatial) stored as (N, *spatial, C), and not also row-major."""
        rank = len(self.shape)
        return rank in (4, 5) and not self.is_contiguous and _matches(self, (0, *range(2, rank), 1))

    @property
    def is_broadcast(self) -> bool:
        """Some axis repeats its elements."""
        return any(n > 1 and s == 0 for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def order(self) -> tuple[int, ...]:
        """Axes from slowest to fastest; the order of equals is kept."""
        return tuple(sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]))

    def permute(self, perm: Sequence[int]) -> Layout:
        return Layout(
            tuple(self.shape[axis] for axis in perm), tuple(self.strides[axis] for axis in perm)
        )

    def expand(self, shape: Sequence[int]) -> Layout:
        """Broadcast to ``shape``: repeated axes get stride 0."""
        missing = len(shape) - len(self.shape)
        old = ((1, 0),) * missing + tuple(zip(self.shape, self.strides, strict=True))
        strides = tuple(
            0 if size == 1 and new != 1 else step
            for (size, step), new in zip(old, shape, strict=True)
        )
        return Layout(tuple(shape), strides)

    def cut(self, shape: Sequence[int], steps: Sequence[int] | None = None) -> Layout:
        """A slice of size ``shape`` taken with ``steps``."""
        if steps is None:
            return Layout(tuple(shape), self.strides)
        return Layout(tuple(shape), tuple(s * n for s, n in zip(self.strides, steps, strict=True)))

    def drop(self, axis: int) -> Layout:
        """Without one axis, as after taking one index of it."""
        return Layout(
            self.shape[:axis] + self.shape[axis + 1 :],
            self.strides[:axis] + self.strides[axis + 1 :],
        )

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """The same elements in row-major order under other sizes, or None if only a copy can do
        that. ATen's ``computeStride``: axes that follow each other in memory form chunks, and a
        new axis may not cross the border of a chunk."""
        if prod(self.shape) == 0 or not self.shape:
            return Layout.dense(shape)
        strides = [0] * len(shape)
        new = len(shape) - 1
        base = self.strides[-1]
        chunk = done = 1
        for axis in reversed(range(len(self.shape))):
            chunk *= self.shape[axis]
            following = self.strides[axis - 1] if axis else 0
            if axis and (self.shape[axis - 1] == 1 or following == chunk * base):
                continue
            while new >= 0 and (done < chunk or shape[new] == 1):
                strides[new] = done * base
                done *= shape[new]
                new -= 1
            if done != chunk:
                return None
            base, chunk, done = following, 1, 1
        return Layout(tuple(shape), tuple(strides)) if new == -1 else None

    def is_blas_matrix(self) -> bool:
        """The last two axes as BLAS takes them, transposed or not: one has stride 1, the other
        doesn't overlap."""
        if len(self.shape) < 2:
            return True
        (rows, cols), (row, col) = self.shape[-2:], self.strides[-2:]
        return (_unit(cols, col) and (rows == 1 or row >= max(cols, 1))) or (
            _unit(rows, row) and (cols == 1 or col >= max(rows, 1))
        )

    def is_batch_of_matrices(self) -> bool:
        """True if ``torch.matmul`` can hand it to ``bmm`` without a copy: the leading axes merge
        into one, and each matrix suits BLAS."""
        rank = len(self.shape)
        if rank > 3:
            merged = self.reshape((prod(self.shape[:-2]), *self.shape[-2:]))
            return merged is not None and merged.is_blas_matrix()
        return self.is_blas_matrix()


def _unit(size: int, stride: int) -> bool:
    return size == 1 or stride == 1


def _matches(layout: Layout, order: Sequence[int]) -> bool:
    expected = 1
    for axis in reversed(list(order)):
        size = layout.shape[axis]
        if size == 1:
            continue
        if layout.strides[axis] != expected:
            return size == 0
        expected *= size
    return True
