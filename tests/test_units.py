"""Numbers as people read them, against examples written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite import units


@pytest.mark.parametrize(
    ("latency_ms", "text"),
    [
        (0.0, "0 ms"),
        (0.0412, "41.2 us"),
        (0.412, "0.412 ms"),
        (12.4, "12.4 ms"),
        (72_670, "72.7 s"),
    ],
)
def test_latency(latency_ms: float, text: str) -> None:
    assert units.format_latency(latency_ms) == text


@pytest.mark.parametrize(
    ("energy_j", "text"), [(0.0412, "41.2 mJ"), (0.5, "0.500 J"), (1234.0, "1,230 J")]
)
def test_energy(energy_j: float, text: str) -> None:
    assert units.format_energy(energy_j) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (512, "512 B"), (4096, "4.00 KiB"), (3 << 29, "1.50 GiB"), (1 << 45, "32.0 TiB")],
)
def test_bytes(n_bytes: int, text: str) -> None:
    assert units.format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (812, "812"),
        (25_557_032, "25.6 M"),
        (4.089e9, "4.09 G"),
        (999_900, "1.00 M"),
        (5e18, "5,000 P"),
    ],
)
def test_counts(count: float, text: str) -> None:
    assert units.format_count(count) == text


def test_conversions_are_inverse() -> None:
    assert units.bytes_to_mib(3 * units.BYTES_PER_MIB) == 3
    assert units.ms_to_s(units.s_to_ms(0.25)) == 0.25
    assert units.us_to_s(1e6) == 1


@given(st.floats(1e-6, 1e12))
def test_three_significant_digits_are_within_half_a_percent(value: float) -> None:
    assert float(units.format_significant(value).replace(",", "")) == pytest.approx(value, rel=6e-3)
