"""Devices and their MIG profiles: tables of data-sheet facts, each with its source."""

from dippm_lite.devices.spec import COMPUTE_SLICES, MEMORY_SLICES, DeviceSpec, MigProfile
from dippm_lite.devices.tables import ALIASES, DEVICES, find_device

__all__ = [
    "ALIASES",
    "COMPUTE_SLICES",
    "DEVICES",
    "MEMORY_SLICES",
    "DeviceSpec",
    "MigProfile",
    "find_device",
]
