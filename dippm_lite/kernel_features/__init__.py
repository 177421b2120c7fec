"""Kernel features: the same numpy code for training rows and for the kernels of a model."""

from dippm_lite.kernel_features.batches import (
    LAUNCH_FLOOR_S,
    SPLITS,
    TILES,
    ConvBatch,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
)
from dippm_lite.kernel_features.ops import ELEMENT_OPS, ROW_OPS, element_op_code, row_op_code
from dippm_lite.kernel_features.rates import DeviceRates, device_rates
from dippm_lite.kernel_features.table import Column, FeatureTable
from dippm_lite.kernel_features.tables import CONVOLUTION, ELEMENTS, PRODUCT, ROWS, TABLES

__all__ = [
    "CONVOLUTION",
    "ELEMENTS",
    "ELEMENT_OPS",
    "LAUNCH_FLOOR_S",
    "PRODUCT",
    "ROWS",
    "ROW_OPS",
    "SPLITS",
    "TABLES",
    "TILES",
    "Column",
    "ConvBatch",
    "DeviceRates",
    "ElementBatch",
    "FeatureTable",
    "KernelBatch",
    "ProductBatch",
    "RowBatch",
    "device_rates",
    "element_op_code",
    "row_op_code",
]
