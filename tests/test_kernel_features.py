"""Kernel features: values counted by hand, and what must not change them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.bundle import Bundle, FeatureSchema
from dippm_lite.devices import DEVICES
from dippm_lite.execution import MathMode
from dippm_lite.kernel_features import (
    CONVOLUTION,
    ELEMENT_OPS,
    ELEMENTS,
    LAUNCH_FLOOR_S,
    PRODUCT,
    ROWS,
    TABLES,
    ConvBatch,
    ElementBatch,
    FeatureTable,
    ProductBatch,
    RowBatch,
    device_rates,
    element_op_code,
    row_op_code,
)
from training.kernels.fixtures import feature_digest, fixture_batches

A100 = device_rates(DEVICES["a100-pcie-40gb"], MathMode.FP32)


def product(*sizes: tuple[int, int, int, int]) -> ProductBatch:
    return ProductBatch(A100, 4.0, *np.array(sizes, dtype=float).T)


def conv(*sizes: tuple[int, ...]) -> ConvBatch:
    return ConvBatch(A100, 4.0, *np.array(sizes, dtype=float).T)


def value(table: FeatureTable, batch, name: str) -> float:
    names = [column.name for column in table.columns]
    return float(table.matrix(batch)[0, names.index(name)])


def test_product_work_is_counted_by_hand():
    batch = product((3, 100, 200, 50))
    assert batch.flops[0] == 2 * 3 * 100 * 200 * 50
    assert batch.total_bytes[0] == 4 * 3 * (100 * 50 + 50 * 200 + 100 * 200)
    assert batch.compute_s[0] == pytest.approx(6_000_000 / 19.5e12)
    assert batch.memory_s[0] == pytest.approx(420_000 / 1555e9)
    assert batch.prior_s[0] == pytest.approx(max(batch.compute_s[0], batch.memory_s[0]) + 2e-6)


def test_waves_and_tiles_are_counted_by_hand():
    # 2 x 3 tiles of (128, 64) cover a (200, 150) result; five products make 30 blocks on 108 SMs.
    batch = product((5, 200, 150, 1000))
    assert batch.waves(128, 64)[0] == pytest.approx(30 / 108)
    # One wave, and each SM runs at a 108th of 19.5 TFLOP/s.
    assert batch.tile_s(128, 64)[0] == pytest.approx(2 * 128 * 64 * 1000 / (19.5e12 / 108))
    assert value(PRODUCT, batch, "waves_128x64") == pytest.approx(np.log2(30 / 108))
    # 109 blocks need two waves.
    assert product((109, 64, 64, 8)).tile_s(64, 64)[0] == pytest.approx(
        2 * product((108, 64, 64, 8)).tile_s(64, 64)[0]
    )


def test_splitting_the_inner_dimension_helps_only_where_sms_idle():
    one_tile = product((1, 128, 128, 100_000))
    assert one_tile.split_k_s(128, 128, (1, 16))[0] < one_tile.tile_s(128, 128)[0] / 10
    full = product((1, 4096, 4096, 4096))
    assert full.split_k_s(128, 128, (1, 2))[0] >= 0.9 * full.tile_s(128, 128)[0]


@pytest.mark.parametrize(("size", "power"), [(1, 0), (6, 1), (12, 2), (96, 5), (128, 7), (4096, 7)])
def test_alignment_is_the_power_of_two_in_a_size(size, power):
    assert value(PRODUCT, product((1, 8, 8, size)), "align_k") == power


def test_convolution_is_its_implicit_product():
    # ResNet-50's 3x3 layer of stage one: 64 channels, 56x56, batch 8: 0.925 GMAC.
    batch = conv((8, 64, 64, 56, 56, 56, 56, 3, 3))
    assert batch.flops[0] == 2 * 8 * 64 * 64 * 56 * 56 * 9
    assert batch.total_bytes[0] == 4 * (2 * 8 * 64 * 56 * 56 + 64 * 64 * 9)


def test_winograd_saves_what_lavin_and_gray_say():
    # F(2x2, 3x3) needs 16 multiplications for 36, F(4x4, 3x3) 36 for 144.
    batch = conv((1, 32, 32, 64, 64, 64, 64, 3, 3))
    assert batch.winograd(2).flops[0] / batch.flops[0] == pytest.approx(16 / 36)
    assert batch.winograd(4).flops[0] / batch.flops[0] == pytest.approx(36 / 144)


def test_row_padding_is_counted_by_hand():
    # A row of 1536: 384 loads of four; a block of 256 threads makes two rounds, 2048 elements.
    rows = RowBatch(A100, 4.0, np.array([64.0]), np.array([1536.0]), np.array([1.0]))
    assert value(ROWS, rows, "pad_block") == pytest.approx(np.log2(2048 / 1536))
    assert value(ROWS, rows, "pad_power") == pytest.approx(np.log2(2048 / 1536))


def test_prior_of_nothing_is_the_launch_floor():
    batch = ElementBatch(A100, 4.0, np.array([1.0]), np.array([2.0]), np.array([0.0]))
    assert batch.prior_s[0] == pytest.approx(LAUNCH_FLOOR_S, rel=1e-3)


def test_schema_hash_is_that_of_the_lines():
    lines = "\n".join(f"{name} [{unit}]" for name, unit in ELEMENTS.schema)
    assert ELEMENTS.schema_hash() == hashlib.sha256(lines.encode()).hexdigest()
    assert ELEMENTS.schema_hash() == FeatureSchema(ELEMENTS.schema).digest
    shorter = FeatureTable("elements", ELEMENTS.columns[:-1])
    assert shorter.schema_hash() != ELEMENTS.schema_hash()


def test_column_names_are_unique():
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)


def test_features_mean_what_they_meant_when_the_bundle_was_fitted():
    assert Bundle.load().manifest.feature_digest == feature_digest()


def test_feature_digest_sees_a_changed_meaning(monkeypatch):
    before = feature_digest()
    monkeypatch.setattr("dippm_lite.kernel_features.batches.LAUNCH_FLOOR_S", 3e-6)
    assert feature_digest() != before


sizes = st.integers(1, 100_000)


@given(st.lists(st.tuples(sizes, sizes, sizes, sizes), min_size=1, max_size=5))
def test_product_features_are_finite_and_row_by_row(rows):
    together = PRODUCT.matrix(product(*rows))
    assert together.shape == (len(rows), len(PRODUCT.columns))
    assert np.isfinite(together).all()
    alone = np.concatenate([PRODUCT.matrix(product(row)) for row in rows])
    np.testing.assert_array_equal(together, alone)


@given(
    st.tuples(*[st.integers(1, 2000)] * 3, *[st.integers(1, 300)] * 4, *[st.integers(1, 40)] * 2)
)
def test_convolution_features_are_finite(row):
    assert np.isfinite(CONVOLUTION.matrix(conv(row))).all()


def test_every_table_has_a_fixture():
    assert fixture_batches().keys() == TABLES.keys()


@pytest.mark.parametrize(
    ("op", "operands", "code"),
    [
        ("add", 2, "add"),
        ("add", 1, "add_scalar"),
        ("sub", 2, "add"),
        ("gelu", 1, "gelu"),
        ("add+relu", 2, "add"),
        ("never_heard_of", 1, "relu"),
        ("never_heard_of", 3, "add"),
    ],
)
def test_unmeasured_elementwise_operators_have_a_stand_in(op, operands, code):
    assert ELEMENT_OPS[element_op_code(op, operands)] == code


def test_unmeasured_row_operators_have_a_stand_in():
    assert row_op_code("log_softmax") == row_op_code("softmax")
    assert row_op_code("group_norm") == row_op_code("layer_norm")
