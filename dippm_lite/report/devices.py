"""The device table as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dippm_lite.devices import DeviceSpec
from dippm_lite.units import format_memory

__all__ = ["render_devices_json", "render_devices_text"]


def render_devices_text(devices: Sequence[DeviceSpec], aliases: Mapping[str, str]) -> str:
    """One block a device: its data-sheet figures, then the MIG profiles it can be cut into."""
    blocks = []
    for device in devices:
        also = [alias for alias, name in aliases.items() if name == device.name]
        lines = [
            device.name + (f" (also {', '.join(also)})" if also else ""),
            f"  {device.title}: {device.sm_count} SMs, {format_memory(device.memory_mib)}, "
            f"{device.bandwidth_bytes_per_s / 1e9:,.0f} GB/s, {device.tdp_w:.0f} W",
        ]
        if device.mig_profiles:
            lines.append(f"  {'MIG profile':<14}{'SMs':>4}{'usable':>12}  at most")
        lines += [
            f"  {p.name:<14}{p.sm_count:>4}{format_memory(p.memory_mib):>12}  {p.max_instances}"
            for p in device.mig_profiles
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def render_devices_json(devices: Sequence[DeviceSpec], aliases: Mapping[str, str]) -> str:
    """An array with one object a device; keys are the fields of ``DeviceSpec``."""
    rows: list[dict[str, Any]] = []
    for device in devices:
        row = {f.name: getattr(device, f.name) for f in fields(device)}
        row["peak_flops"] = {mode.value: rate for mode, rate in device.peak_flops.items()}
        row["aliases"] = [alias for alias, name in aliases.items() if name == device.name]
        row["mig_profiles"] = [
            {f.name: getattr(profile, f.name) for f in fields(profile)}
            for profile in device.mig_profiles
        ]
        rows.append(row)
    return json.dumps(rows, indent=2)
