"""Which workloads of a record get a composed label: a sample that its fingerprint decides.

Every record gives three batches: 1, one of 2 to 16, one of 32 to 256, each halved until PyTorch
fits the largest A100. Each batch gives at least three workloads: what a user gets who names
nothing (:data:`ANCHOR`), and others dealt from :data:`SETTINGS`, none twice. A record with fewer
batches (its batch is fixed, or memory is short) gets more settings for each, so that there are
:data:`FEWEST` in all. An image network that can be read at another resolution gives two more
workloads there. Each workload gets the first card or instance in an order of its own that has the
memory; :data:`TICKETS` says how often each comes first.

Nothing depends on a seed, on the order of the records or on other records: the order of choices is
that of hashes over the record's fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from dippm_lite.devices import DeviceSpec, find_device
from dippm_lite.execution import Precision, Runtime

__all__ = [
    "ANCHOR",
    "ANCHOR_DEVICE",
    "FEWEST",
    "SETTINGS",
    "SIZES",
    "TICKETS",
    "Setting",
    "batches_of",
    "device_order",
    "ordered",
    "settings_of",
]

_SALT = "dippm-lite composed labels 1"
"""Part of what is hashed. Another text would be another sample."""

Setting = tuple[Runtime, Precision]
_T = TypeVar("_T")

ANCHOR: Setting = (Runtime.PYTORCH, Precision.AUTO)
"""Taken at every batch, on :data:`ANCHOR_DEVICE` where it fits."""

ANCHOR_DEVICE = "a100-sxm4-40gb"

_ALLOWED: Mapping[Runtime, tuple[Precision, ...]] = MappingProxyType(
    {
        Runtime.PYTORCH: (
            Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16, Precision.AMP,
        ),
        Runtime.ONNXRUNTIME: (Precision.AUTO, Precision.FP32, Precision.FP16),
        Runtime.TENSORRT: (Precision.AUTO, Precision.FP32, Precision.FP16, Precision.INT8),
    }
)  # fmt: skip
SETTINGS: tuple[Setting, ...] = tuple(
    (runtime, precision) for runtime, allowed in _ALLOWED.items() for precision in allowed
)
"""Dealt beside the anchor."""

TICKETS: Mapping[str, int] = MappingProxyType(
    {
        "a100-sxm4-40gb": 4,
        "a100-sxm4-80gb": 2,
        "a100-pcie-40gb": 1,
        "a100-pcie-80gb": 1,
        "a100-sxm4-40gb:1g.5gb": 1,
        "a100-sxm4-40gb:2g.10gb": 1,
        "a100-sxm4-40gb:3g.20gb": 1,
    }
)
"""Devices and their weight. The kernel models were fitted on A100s, so other cards have none."""

LARGEST = "a100-sxm4-80gb"

SLOTS = ((1,), (2, 4, 8, 16), (32, 64, 128, 256))
"""One batch of each is taken."""

PER_BATCH = 3
FEWEST = 6
"""Workloads of a record, however few its batches."""

SIZES = (96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512)
"""Other resolutions, tried in an order of the record's own."""

_GROWTH = 1.25
"""Activations with workspaces and the pool's rounding, against activations alone."""

_CONTEXT_MIB = 1024


def ordered(fingerprint: str, what: str, options: Iterable[_T]) -> list[_T]:
    """``options`` in an order that only the fingerprint and ``what`` decide."""

    def place(option: _T) -> bytes:
        return hashlib.sha256(f"{_SALT} {fingerprint} {what} {option}".encode()).digest()

    return sorted(options, key=place)


def batches_of(fingerprint: str, weights_mib: float, activations_mib: float) -> tuple[int, ...]:
    """Batches, from 1 up, that fit the largest A100.

    Args:
        fingerprint: of a record whose batch is free.
        weights_mib, activations_mib: memory of weights, and of the activations of one sample.
    """
    room = find_device(LARGEST).usable_mib - weights_mib - _CONTEXT_MIB
    batches = set()
    for slot in SLOTS:
        batch = ordered(fingerprint, "batch", slot)[0]
        while batch > 1 and batch * activations_mib * _GROWTH > room:
            batch //= 2
        batches.add(batch)
    return tuple(sorted(batches))


def settings_of(
    fingerprint: str, batches: tuple[int, ...]
) -> Mapping[int, tuple[int, tuple[Setting, ...]]]:
    """For each batch how many workloads it gives, and all settings, the preferred first.

    The settings behind the wanted ones step in for those that fit no device.
    """
    dealt = ordered(fingerprint, "settings", [(r.value, p.value) for r, p in SETTINGS])
    others = [(Runtime(runtime), Precision(precision)) for runtime, precision in dealt]
    wanted = max(PER_BATCH, -(-FEWEST // len(batches)))
    starts = {batch: place * (wanted - 1) for place, batch in enumerate(batches)}
    return {
        batch: (wanted, (ANCHOR, *others[start:], *others[:start]))
        for batch, start in starts.items()
    }


def device_order(fingerprint: str, batch: int, setting: Setting) -> tuple[DeviceSpec, ...]:
    """Devices for a workload, the preferred first; those behind it step in where it doesn't fit."""
    if setting == ANCHOR:
        return tuple(find_device(name) for name in (ANCHOR_DEVICE, LARGEST))
    tickets = [f"{name} {n}" for name, weight in TICKETS.items() for n in range(weight)]
    what = f"device {batch} {setting[0].value} {setting[1].value}"
    drawn = ordered(fingerprint, what, tickets)
    return tuple(find_device(name) for name in dict.fromkeys(t.split()[0] for t in drawn))
