"""The devices of the published tables by their names in ``dippm_lite.devices``."""

from __future__ import annotations

import re

from training.datasets.reasons import Flag
from training.datasets.tables import PublishedRow

__all__ = ["device_of"]

_SXM40, _SXM80 = "a100-sxm4-40gb", "a100-sxm4-80gb"
_PCIE40, _PCIE80 = "a100-pcie-40gb", "a100-pcie-80gb"

STATED = (
    (r"^A100-SXM4?-80GB( CTS)?$|^A100-80GB \(DGX A100\)$", _SXM80),
    (r"^A100-SXM4?-40GB( \(p4d, 400W\))?$|^A100-40GB \(DGX A100\)$", _SXM40),
    (r"^A100-PC[Ii][Ee]-40GB$", _PCIE40),
    (r"^A100-(PC[Ii][Ee]-80GB|80GB-PCIe)$", _PCIE80),
    (r"^rtx3090$", "rtx3090"),
    (r"^rtx4090$", "rtx4090"),
    (r"^A30$", "a30"),
)
"""Text of the device column, and the card it states."""

# DGX stations, cloud instances with eight cards and most 40 GB cards in the wild are SXM4.
ASSUMED = (
    (r"^A100-80GB \(MIG 7g\)$", f"{_SXM80}:7g.80gb"),
    (r"^A100-40GB \(MIG 7g\)$", f"{_SXM40}:7g.40gb"),
    (r"^A100-80GB\b", _SXM80),
    (r"^A100-40GB\b|^A100-PG509-200$|^A100-SXM4$", _SXM40),
    (r"^A100-unknown \(DGX A100\)$", _SXM80),
)
"""Where a part of the name is missing."""

# Memory clocks: 1215 MHz is the 40 GB card's, 1593 MHz that of the 80 GB SXM4 card.
SOURCES = (
    (r"^ft_bert$|^lightening_transformer_power$", _SXM80),
    (r"^ft_(vit|swin)$|^ultralytics", _SXM40),
)
"""Where the device column says ``A100`` and the source's text says more."""


def device_of(row: PublishedRow) -> tuple[str, tuple[Flag, ...]] | None:
    """Name for :func:`dippm_lite.devices.find_device`, and flags; ``None`` for another device."""
    limited = (Flag.POWER_LIMITED,) if re.search("330W|PG509", row.device) else ()
    for pattern, name in STATED:
        if re.search(pattern, row.device):
            return name, limited
    for pattern, name in ASSUMED:
        if re.search(pattern, row.device):
            return name, (Flag.DEVICE_ASSUMED, *limited)
    if not re.search(r"^A100(-unknown)?$", row.device):
        return None
    for pattern, name in SOURCES:
        if re.search(pattern, row.source):
            return name, (Flag.DEVICE_ASSUMED,)
    return _SXM40, (Flag.DEVICE_ASSUMED,)
