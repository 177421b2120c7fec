"""Struct-of-arrays forms of kernels, with the work and the prior that follow from their sizes.

A batch holds ``n`` kernels of one kind on one device: each size is a float64 array of length
``n``. The prior of a kernel is its roofline time plus what launching any kernel costs the GPU; a
model predicts ``log(time / prior)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dippm_lite.kernel_features.rates import DeviceRates
from dippm_lite.units import FLOPS_PER_MAC

__all__ = [
    "LAUNCH_FLOOR_S",
    "SPLITS",
    "TILES",
    "ConvBatch",
    "ElementBatch",
    "KernelBatch",
    "ProductBatch",
    "RowBatch",
]

Array = NDArray[np.float64]

LAUNCH_FLOOR_S = 2e-6
"""Time of a kernel that does next to nothing. The smallest fp16 kernels that vidur profiled on an
A100 take 1 us (add), 2 us (activation, rotary embedding), 3 us (embedding) and 4 us (layer norm),
at a resolution of 1 us."""

TILES = (
    (32, 32), (32, 64), (64, 32), (32, 128), (128, 32), (64, 64), (64, 128), (128, 64),
    (128, 128), (64, 256), (256, 64), (128, 256), (256, 128),
)  # fmt: skip
"""Rows and columns of the result that one thread block computes: those of cuBLAS's and CUTLASS's
kernels on Ampere, in both orientations."""

SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of blocks that may share the inner dimension of one tile."""


@dataclass(frozen=True)
class KernelBatch:
    """What all batches share: a device's rates and the bytes of one element."""

    rates: DeviceRates
    itemsize: float

    @property
    def flops(self) -> Array:
        """FLOPs that run at the peak rate."""
        raise NotImplementedError

    @property
    def total_bytes(self) -> Array:
        """Bytes if every operand crosses DRAM once."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.total_bytes)

    @cached_property
    def compute_s(self) -> Array:
        return self.flops / self.rates.peak_flops

    @cached_property
    def memory_s(self) -> Array:
        return self.total_bytes / self.rates.bandwidth

    @cached_property
    def prior_s(self) -> Array:
        """Roofline time plus :data:`LAUNCH_FLOOR_S`."""
        return np.maximum(self.compute_s, self.memory_s) + LAUNCH_FLOOR_S


@dataclass(frozen=True)
class ProductBatch(KernelBatch):
    """``batch`` products of an (m, k) by a (k, n) matrix."""

    batch: Array
    m: Array
    n: Array
    k: Array

    @cached_property
    def flops(self) -> Array:
        return FLOPS_PER_MAC * self.batch * self.m * self.n * self.k

    @cached_property
    def left_bytes(self) -> Array:
        return self.itemsize * self.batch * self.m * self.k

    @cached_property
    def right_bytes(self) -> Array:
        return self.itemsize * self.batch * self.k * self.n

    @cached_property
    def result_bytes(self) -> Array:
        return self.itemsize * self.batch * self.m * self.n

    @cached_property
    def total_bytes(self) -> Array:
        return self.left_bytes + self.right_bytes + self.result_bytes

    def waves(self, tile_m: int, tile_n: int) -> Array:
        """Thread blocks for each SM if one block computes a (tile_m, tile_n) part of a result."""
        tiles = self.batch * np.ceil(self.m / tile_m) * np.ceil(self.n / tile_n)
        return tiles / self.rates.sm_count

    def tile_s(self, tile_m: int, tile_n: int) -> Array:
        """Time at peak rate if every SM works on whole tiles: padding and the last, partial wave
        are paid for."""
        tile_flops = FLOPS_PER_MAC * tile_m * tile_n * self.k
        return np.ceil(self.waves(tile_m, tile_n)) * tile_flops / self._sm_flops

    def split_k_s(self, tile_m: int, tile_n: int, splits: tuple[int, ...]) -> Array:
        """The least of :meth:`tile_s` over ways to divide ``k`` among several blocks, which write
        partial results that are read again."""
        tile_flops = FLOPS_PER_MAC * tile_m * tile_n * self.k
        waves = self.waves(tile_m, tile_n)
        times = [
            np.ceil(waves * s) * tile_flops / s / self._sm_flops
            + (2 * s * self.result_bytes / self.rates.bandwidth if s > 1 else 0.0)
            for s in splits
        ]
        least: Array = np.minimum.reduce(times)
        return least

    @cached_property
    def best_tile_s(self) -> Array:
        """The least time of any tile and split, all SMs at peak rate."""
        best: Array = np.minimum.reduce([self.split_k_s(m, n, SPLITS) for m, n in TILES])
        return best

    @property
    def _sm_flops(self) -> float:
        return self.rates.peak_flops / self.rates.sm_count


@dataclass(frozen=True)
class ConvBatch(KernelBatch):
    """Dense two-dimensional convolutions; ``in_h`` to ``kernel_w`` are sizes in elements."""

    batch: Array
    in_channels: Array
    out_channels: Array
    in_h: Array
    in_w: Array
    out_h: Array
    out_w: Array
    kernel_h: Array
    kernel_w: Array

    @cached_property
    def pixels(self) -> Array:
        """Output positions of the whole batch."""
        return self.batch * self.out_h * self.out_w

    @cached_property
    def implicit_gemm(self) -> ProductBatch:
        """The matrix product that the convolution is: output channels by pixels."""
        return ProductBatch(
            self.rates,
            self.itemsize,
            np.ones_like(self.batch),
            self.out_channels,
            self.pixels,
            self.in_channels * self.kernel_h * self.kernel_w,
        )

    def winograd(self, size: int) -> ProductBatch:
        """The batched product of Winograd's F(size x size, 3 x 3): one for each of the (size+2)^2
        transformed positions (Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks",
        2016)."""
        tiles = self.batch * np.ceil(self.out_h / size) * np.ceil(self.out_w / size)
        positions = np.full_like(self.batch, (size + 2) ** 2)
        return ProductBatch(
            self.rates, self.itemsize, positions, self.out_channels, tiles, self.in_channels
        )

    def fourier(self, size: int) -> ProductBatch:
        """The product of convolving by FFT on (size x size) tiles, in real numbers: a complex
        product is four real ones, and half of the spectrum is redundant."""
        step_h = np.maximum(size - self.kernel_h + 1, 1)
        step_w = np.maximum(size - self.kernel_w + 1, 1)
        tiles = self.batch * np.ceil(self.out_h / step_h) * np.ceil(self.out_w / step_w)
        positions = np.full_like(self.batch, 4 * size * (size // 2 + 1))
        return ProductBatch(
            self.rates, self.itemsize, positions, self.out_channels, tiles, self.in_channels
        )

    @cached_property
    def flops(self) -> Array:
        return self.implicit_gemm.flops

    @cached_property
    def input_bytes(self) -> Array:
        return self.itemsize * self.batch * self.in_channels * self.in_h * self.in_w

    @cached_property
    def output_bytes(self) -> Array:
        return self.itemsize * self.out_channels * self.pixels

    @cached_property
    def weight_bytes(self) -> Array:
        kernel = self.kernel_h * self.kernel_w
        return self.itemsize * self.in_channels * self.out_channels * kernel

    @cached_property
    def total_bytes(self) -> Array:
        return self.input_bytes + self.output_bytes + self.weight_bytes


@dataclass(frozen=True)
class ElementBatch(KernelBatch):
    """Elementwise kernels: ``moved`` elements are read and written together, ``elements`` of them
    written; ``op`` is a position in ``ELEMENT_OPS``."""

    elements: Array
    moved: Array
    op: Array

    @cached_property
    def flops(self) -> Array:
        return np.zeros_like(self.elements)

    @cached_property
    def total_bytes(self) -> Array:
        return self.itemsize * self.moved


@dataclass(frozen=True)
class RowBatch(KernelBatch):
    """Row-wise kernels: each of ``rows`` rows of ``cols`` elements is read once and written once;
    ``op`` is a position in ``ROW_OPS``."""

    rows: Array
    cols: Array
    op: Array

    @cached_property
    def flops(self) -> Array:
        return np.zeros_like(self.rows)

    @cached_property
    def total_bytes(self) -> Array:
        return 2 * self.itemsize * self.rows * self.cols
