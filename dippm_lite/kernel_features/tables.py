"""The feature tables: one row a feature, with its unit.

Sizes enter as logarithms, times as log-ratios to the kernel's prior, so that nothing depends on
the scale of a device; the device itself enters through waves of thread blocks, times at its rates,
and bytes against its L2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dippm_lite.kernel_features.batches import (
    SPLITS,
    TILES,
    ConvBatch,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
)
from dippm_lite.kernel_features.table import Column, FeatureTable

__all__ = ["CONVOLUTION", "ELEMENTS", "PRODUCT", "ROWS", "TABLES"]

Array = NDArray[np.float64]

_MAX_ALIGNMENT = 128


def _alignment(size: Array) -> Array:
    """log2 of the largest power of two, up to 128, that divides ``size``."""
    whole = size.astype(np.int64)
    factor: Array = np.minimum(whole & -whole, _MAX_ALIGNMENT).astype(np.float64)
    return np.log2(factor)


def _per_l2(n_bytes: Callable[[Any], Array]) -> Callable[[Any], Array]:
    return lambda batch: np.log2(n_bytes(batch) / batch.rates.l2_bytes)


def _size(size: Callable[[Any], Array]) -> Callable[[Any], Array]:
    return lambda batch: np.log2(size(batch))


def _to_prior(time_s: Callable[[Any], Array]) -> Callable[[Any], Array]:
    return lambda batch: np.log(time_s(batch) / batch.prior_s)


def _waves(tile_m: int, tile_n: int) -> Column[ProductBatch]:
    return Column(
        f"waves_{tile_m}x{tile_n}", "log2 waves", lambda b: np.log2(b.waves(tile_m, tile_n))
    )


def _tile(tile_m: int, tile_n: int) -> Column[ProductBatch]:
    return Column(
        f"tile_{tile_m}x{tile_n}", "ln ratio", _to_prior(lambda b: b.tile_s(tile_m, tile_n))
    )


def _split(tile_m: int, tile_n: int) -> Column[ProductBatch]:
    return Column(
        f"split_{tile_m}x{tile_n}",
        "ln ratio",
        _to_prior(lambda b: b.split_k_s(tile_m, tile_n, SPLITS)),
    )


def _prior(batch: KernelBatch) -> Array:
    return np.log(batch.prior_s)


PRODUCT: FeatureTable[ProductBatch] = FeatureTable(
    "product",
    (
        Column("batch", "log2", _size(lambda b: b.batch)),
        Column("m", "log2", _size(lambda b: b.m)),
        Column("n", "log2", _size(lambda b: b.n)),
        Column("k", "log2", _size(lambda b: b.k)),
        Column("prior", "ln s", _prior),
        Column("intensity", "ln ratio", lambda b: np.log(b.compute_s / b.memory_s)),
        Column("aspect", "log2", lambda b: np.log2(b.m / b.n)),
        Column("align_m", "log2", lambda b: _alignment(b.m)),
        Column("align_n", "log2", lambda b: _alignment(b.n)),
        Column("align_k", "log2", lambda b: _alignment(b.k)),
        Column("left_l2", "log2 of L2", _per_l2(lambda b: b.left_bytes)),
        Column("right_l2", "log2 of L2", _per_l2(lambda b: b.right_bytes)),
        Column("result_l2", "log2 of L2", _per_l2(lambda b: b.result_bytes)),
        Column("total_l2", "log2 of L2", _per_l2(lambda b: b.total_bytes)),
        *(_waves(*tile) for tile in TILES),
        *(_tile(*tile) for tile in TILES),
        _split(64, 64),
        _split(128, 64),
        _split(64, 128),
        _split(128, 128),
    ),
)
"""Linear layers and batched matrix products."""


def _transform_s(batch: ConvBatch, product: ProductBatch) -> Array:
    """Time to write and read the operands of a product in a transformed space."""
    return (batch.input_bytes + batch.output_bytes + 2 * product.total_bytes) / (
        batch.rates.bandwidth
    )


def _transformed(name: str, product: Callable[[ConvBatch], ProductBatch]) -> tuple[Any, ...]:
    """Columns of an algorithm that multiplies in a transformed space."""
    return (
        Column(f"{name}_flops", "ln ratio", _to_prior(lambda b: product(b).compute_s)),
        Column(f"{name}_tile", "ln ratio", _to_prior(lambda b: product(b).tile_s(128, 128))),
        Column(f"{name}_waves", "log2 waves", lambda b: np.log2(product(b).waves(128, 128))),
        Column(f"{name}_move", "ln ratio", _to_prior(lambda b: _transform_s(b, product(b)))),
        Column(f"{name}_l2", "log2 of L2", lambda b: _per_l2(lambda p: p.total_bytes)(product(b))),
    )


def _implicit(tile_m: int, tile_n: int) -> tuple[Column[ConvBatch], Column[ConvBatch]]:
    return (
        Column(
            f"implicit_waves_{tile_m}x{tile_n}",
            "log2 waves",
            lambda b: np.log2(b.implicit_gemm.waves(tile_m, tile_n)),
        ),
        Column(
            f"implicit_tile_{tile_m}x{tile_n}",
            "ln ratio",
            _to_prior(lambda b: b.implicit_gemm.tile_s(tile_m, tile_n)),
        ),
    )


CONVOLUTION: FeatureTable[ConvBatch] = FeatureTable(
    "convolution",
    (
        Column("batch", "log2", _size(lambda b: b.batch)),
        Column("in_channels", "log2", _size(lambda b: b.in_channels)),
        Column("out_channels", "log2", _size(lambda b: b.out_channels)),
        Column("height", "log2", _size(lambda b: b.out_h)),
        Column("width", "log2", _size(lambda b: b.out_w)),
        Column("kernel", "log2 of area", lambda b: np.log2(b.kernel_h * b.kernel_w)),
        Column("prior", "ln s", _prior),
        Column("intensity", "ln ratio", lambda b: np.log(b.compute_s / b.memory_s)),
        Column("channel_ratio", "log2", lambda b: np.log2(b.in_channels / b.out_channels)),
        Column("pixels", "log2", _size(lambda b: b.pixels)),
        Column("align_in", "log2", lambda b: _alignment(b.in_channels)),
        Column("align_out", "log2", lambda b: _alignment(b.out_channels)),
        Column("align_width", "log2", lambda b: _alignment(b.out_w)),
        Column("align_pixels", "log2", lambda b: _alignment(b.pixels)),
        Column("input_l2", "log2 of L2", _per_l2(lambda b: b.input_bytes)),
        Column("output_l2", "log2 of L2", _per_l2(lambda b: b.output_bytes)),
        Column("weight_l2", "log2 of L2", _per_l2(lambda b: b.weight_bytes)),
        *_implicit(128, 128),
        *_implicit(64, 128),
        *_implicit(128, 64),
        *_implicit(32, 128),
        *_implicit(32, 32),
        *_transformed("winograd2", lambda b: b.winograd(2)),
        *_transformed("winograd4", lambda b: b.winograd(4)),
        *_transformed("fourier16", lambda b: b.fourier(16)),
        *_transformed("fourier32", lambda b: b.fourier(32)),
    ),
)
"""Dense convolutions."""

_BLOCK_ELEMENTS = 512  # ATen's vectorized_elementwise_kernel: 128 threads, four elements each

ELEMENTS: FeatureTable[ElementBatch] = FeatureTable(
    "elements",
    (
        Column("op", "category", lambda b: b.op),
        Column("elements", "log2", _size(lambda b: b.elements)),
        Column("moved", "elements", lambda b: b.moved / b.elements),
        Column("prior", "ln s", _prior),
        Column("total_l2", "log2 of L2", _per_l2(lambda b: b.total_bytes)),
        Column(
            "waves",
            "log2 waves",
            lambda b: np.log2(np.ceil(b.elements / _BLOCK_ELEMENTS) / b.rates.sm_count),
        ),
        Column("align", "log2", lambda b: _alignment(b.elements)),
    ),
)
"""Elementwise kernels, and others that move data once."""

_VECTOR = 4  # elements that a thread loads at once


def _block_padding(cols: Array) -> Array:
    """How much of its last round a block leaves idle that strides over a row: ATen's block is the
    largest power of two up to half of the row's vectors, between a warp and 1024 threads."""
    half = np.clip(cols / _VECTOR, 1, 1024) / 2
    block = np.maximum(2.0 ** np.ceil(np.log2(np.maximum(half, 1))), 32)
    span = _VECTOR * block
    padding: Array = np.ceil(cols / span) * span / cols
    return np.log2(padding)


ROWS: FeatureTable[RowBatch] = FeatureTable(
    "rows",
    (
        Column("op", "category", lambda b: b.op),
        Column("rows", "log2", _size(lambda b: b.rows)),
        Column("cols", "log2", _size(lambda b: b.cols)),
        Column("elements", "log2", lambda b: np.log2(b.rows * b.cols)),
        Column("prior", "ln s", _prior),
        Column("total_l2", "log2 of L2", _per_l2(lambda b: b.total_bytes)),
        Column("row_waves", "log2 waves", lambda b: np.log2(b.rows / b.rates.sm_count)),
        Column("align_cols", "log2", lambda b: _alignment(b.cols)),
        Column("pad_power", "log2 ratio", lambda b: np.ceil(np.log2(b.cols)) - np.log2(b.cols)),
        Column("pad_block", "log2 ratio", lambda b: _block_padding(b.cols)),
    ),
)
"""Normalisations, softmaxes and reductions."""

TABLES: Mapping[str, FeatureTable[Any]] = MappingProxyType(
    {table.name: table for table in (PRODUCT, CONVOLUTION, ELEMENTS, ROWS)}
)
"""By the name that a bundle's models refer to."""
