"""The only unit conversions and number formatting of the package."""

from __future__ import annotations

import math

__all__ = [
    "BYTES_PER_MIB",
    "FLOPS_PER_MAC",
    "bytes_to_mib",
    "format_bytes",
    "format_count",
    "format_energy",
    "format_latency",
    "format_memory",
    "format_significant",
    "ms_to_s",
    "s_to_ms",
    "us_to_s",
]

BYTES_PER_MIB = 1 << 20
FLOPS_PER_MAC = 2  # one multiply and one add


def bytes_to_mib(n_bytes: float) -> float:
    """Bytes to MiB (2**20 bytes)."""
    return n_bytes / BYTES_PER_MIB


def s_to_ms(seconds: float) -> float:
    """Seconds to milliseconds."""
    return seconds * 1e3


def ms_to_s(milliseconds: float) -> float:
    """Milliseconds to seconds."""
    return milliseconds * 1e-3


def us_to_s(microseconds: float) -> float:
    """Microseconds to seconds."""
    return microseconds * 1e-6


def format_significant(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` significant digits and never an exponent: 0.0123, 12.3, 12300."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{digits}g}")  # first, since 0.9999 becomes 1.00
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def format_latency(latency_ms: float) -> str:
    """``41.2 us``, ``0.412 ms``, ``12.4 ms``, ``7.27 s``."""
    if 0 < latency_ms < 0.1:
        return f"{format_significant(latency_ms * 1e3)} us"
    if latency_ms >= 1e4:
        return f"{format_significant(ms_to_s(latency_ms))} s"
    return f"{format_significant(latency_ms)} ms"


def format_energy(energy_j: float) -> str:
    """``41.2 mJ``, ``1.93 J``."""
    if energy_j < 0.1:
        return f"{format_significant(energy_j * 1e3)} mJ"
    return f"{format_significant(energy_j)} J"


def format_memory(memory_mib: float) -> str:
    """``1,234 MiB``."""
    return f"{memory_mib:,.0f} MiB"


def format_bytes(n_bytes: float) -> str:
    """``512 B``, ``4.00 KiB``, ``98.0 MiB``, ``1.50 GiB``."""
    size = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{format_significant(size)} {unit}"
        size /= 1024
    return f"{format_significant(size)} TiB"


def format_count(count: float) -> str:
    """``812``, ``25.6 M``, ``4.09 G``: decimal prefixes, for MACs and parameters."""
    size = float(count)
    for prefix in ("", " k", " M", " G", " T"):
        if size < 999.5:
            return f"{format_significant(size) if prefix else format(size, 'g')}{prefix}"
        size /= 1000
    return f"{format_significant(size)} P"
