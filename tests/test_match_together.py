"""Rows among each other: copies, several statistics of a run, impossible and contradicted ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from match_rows import INDEX, published

from training.datasets.duplicates import CONTRADICTION
from training.datasets.match import match
from training.datasets.outliers import FAR, REACHED, least_latency_ms
from training.datasets.reasons import Reason

RESNET50_MACS = 4_089_184_256


def together(*rows, macs=None):
    return match(rows, INDEX, lambda names: macs or {})


def reasons(*rows, macs=None):
    return [row.reason for row in together(*rows, macs=macs)]


def throughput(latency_ms, **fields):
    rate = 8e3 / latency_ms
    return published(metric="throughput", unit="samples/s", percentile="", value=rate, **fields)


def test_the_same_figure_in_two_tables_is_kept_once():
    first = published(value=5.0, source="mlperf_v2_0")
    copy = published(table="language.csv", value=5.004, source="mlperf_inf_v2.0")
    other = published(table="language.csv", value=5.2, source="mlperf_inf_v2.0", notes="b")
    assert reasons(first, copy, other) == [None, Reason.DUPLICATE, None]
    assert [row.source for row in together(first, copy)] == ["mlperf_v2.0"] * 2


def test_within_a_table_only_equal_figures_are_copies():
    first, near = published(value=5.0), published(value=5.004, notes="second run")
    assert reasons(first, near, first) == [None, None, Reason.DUPLICATE]


def test_other_sources_and_other_workloads_are_no_copies():
    rows = [
        published(),
        published(source="another_paper"),
        published(batch="4"),
        published(precision="int8"),
        published(framework="onnxruntime"),
        published(device="A100-SXM4-80GB"),
    ]
    assert reasons(*rows) == [None] * len(rows)


def test_the_median_of_a_run_is_preferred_to_its_mean_and_its_throughput():
    rows = [throughput(5.2), published(value=5.1), published(value=5.0, percentile="p50")]
    assert reasons(*rows) == [Reason.OTHER_STATISTIC, Reason.OTHER_STATISTIC, None]
    assert reasons(*rows[:2]) == [Reason.OTHER_STATISTIC, None]
    assert reasons(rows[0]) == [None]


def test_another_note_is_another_run():
    assert reasons(throughput(5.2, notes="torch op"), published(notes="C++")) == [None, None]


def test_notes_on_one_statistic_do_not_make_another_run():
    rows = [throughput(5.2, notes="a"), published(notes="derived as batch over rate; a")]
    assert reasons(*rows) == [Reason.OTHER_STATISTIC, None]
    fast, slow = (published(value=1e3 / r, notes=f"converted from {r} it/s; a") for r in (47, 19))
    assert reasons(fast, slow) == [Reason.OUTLIER] * 2


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "dle_bert_tf1", "hint": "transformers:bert-large-uncased", "tokens": 384},
        {"source": "parvagpu"},
    ],
)
def test_a_source_whose_latencies_are_discredited_is_read_by_its_throughput(fields):
    rows = [throughput(5.4, **fields), published(value=11.0, **fields)]
    assert reasons(*rows) == [None, Reason.OTHER_STATISTIC]


def test_a_run_that_contradicts_itself_is_not_believed():
    low, high = 4.0, 4.0 * CONTRADICTION
    assert reasons(throughput(low), published(value=high * 0.99))[1] is None
    assert reasons(throughput(low), published(value=high * 1.01)) == [Reason.OUTLIER] * 2
    assert reasons(published(value=low), published(value=high * 1.01)) == [Reason.OUTLIER] * 2


def test_faster_than_the_arithmetic_is_impossible():
    """ResNet-50, 8 images in fp16 at 95 % of 312 TFLOP/s: 2 x 8 x 4.09 GMACs take 0.2207 ms."""
    macs = {"torchvision/resnet50": RESNET50_MACS}
    assert reasons(published(value=0.2206), macs=macs) == [Reason.OUTLIER]
    assert reasons(published(value=0.2209), macs=macs) == [None]
    assert reasons(published(value=0.2206)) == [None]  # MACs unknown


@pytest.mark.parametrize(
    ("precision", "tera"),
    [("fp16", 312), ("amp", 312), ("bf16", 312), ("unknown", 312), ("tf32", 156), ("auto", 156),
     ("int8", 624), ("fp32", 19.5 * 2.25)],
)  # fmt: skip
def test_each_precision_is_held_against_its_own_peak(precision, tera):
    (row,) = together(published())
    row = replace(row, precision=precision)
    expected = 2e3 * RESNET50_MACS * 8 / (tera * 1e12 * 0.95)
    assert least_latency_ms(row, RESNET50_MACS) == pytest.approx(expected)


def test_geforce_cards_may_exceed_the_clock_of_their_data_sheet():
    (row,) = together(published(device="rtx4090", precision="amp"))
    expected = 2e3 * RESNET50_MACS * 8 / (165.2e12 * REACHED["rtx"])
    assert least_latency_ms(row, RESNET50_MACS) == pytest.approx(expected)


def test_a_figure_far_from_all_others_of_its_workload_is_set_aside():
    others = [published(source=f"paper {n}", value=5.0 + n / 10) for n in range(3)]
    far = published(source="paper x", value=5.1 * FAR * 1.01)
    assert reasons(*others, far) == [None, None, None, Reason.OUTLIER]
    assert reasons(others[0], far) == [None, None]  # one against one


def test_memory_is_neither_a_statistic_of_a_latency_nor_held_against_the_roofline():
    memory = published(
        metric="memory_mb", unit="MiB", value=0.01, notes="process level", percentile="max"
    )
    macs = {"torchvision/resnet50": RESNET50_MACS}
    assert reasons(published(), memory, macs=macs) == [None, None]
