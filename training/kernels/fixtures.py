"""A few kernels of every table, whose feature values stand for what the features mean."""

from __future__ import annotations

import hashlib

import numpy as np

from dippm_lite.devices import DEVICES
from dippm_lite.execution import MathMode
from dippm_lite.kernel_features import (
    TABLES,
    ConvBatch,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
    device_rates,
)

__all__ = ["feature_digest", "fixture_batches"]

_SIGNIFICANT = 9


def fixture_batches() -> dict[str, KernelBatch]:
    """One small batch for each feature table, by the table's name."""
    rates = device_rates(DEVICES["a100-pcie-40gb"], MathMode.FP32)

    def columns(*rows: tuple[int, ...]) -> list[np.ndarray]:
        return [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]

    return {
        "product": ProductBatch(
            rates, 4.0,
            *columns((1, 4096, 4096, 1024), (192, 512, 512, 64), (1, 1, 1000, 2048), (3, 7, 5, 3)),
        ),
        "convolution": ConvBatch(
            rates, 4.0,
            *columns(
                (8, 64, 64, 56, 56, 56, 56, 3, 3),
                (1, 3, 64, 224, 224, 112, 112, 7, 7),
                (32, 2048, 512, 7, 7, 7, 7, 1, 1),
            ),
        ),
        "elements": ElementBatch(
            rates, 4.0, *columns((1 << 20, 3 << 20, 1), (12345, 24690, 0), (1, 2, 6))
        ),
        "rows": RowBatch(rates, 4.0, *columns((4096, 1024, 0), (196608, 512, 1), (1, 7, 2))),
    }  # fmt: skip


def feature_digest() -> str:
    """Sha256 of the fixtures' features at nine significant digits: sees a changed meaning behind
    an unchanged name."""
    digest = hashlib.sha256()
    for name, batch in fixture_batches().items():
        for row in TABLES[name].matrix(batch):
            digest.update((" ".join(f"{x:.{_SIGNIFICANT}g}" for x in row) + "\n").encode())
    return digest.hexdigest()
