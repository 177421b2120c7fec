"""Reports of a prediction made by hand: every exporter against goldens and its own totals."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from dippm_lite import caveats
from dippm_lite.devices import find_device
from dippm_lite.execution import MathMode, Precision, Runtime
from dippm_lite.prediction import (
    Arithmetic,
    Estimate,
    InputTensor,
    KernelRow,
    MigAdvice,
    MigRow,
    Prediction,
    StaticAnalysis,
)
from dippm_lite.report import FORMATS
from dippm_lite.report.wording import caveat_text

PROFILES = {p.name: p for p in find_device("a100-40gb").mig_profiles}


def _row(name: str, op: str, time_ms: float, share: float, bound: str) -> KernelRow:
    return KernelRow(name, op, "conv", time_ms, share, 118_013_952, 9_000_000, 1, bound, "measured")


PREDICTION = Prediction(
    model="resnet50.onnx",
    inputs=(InputTensor("input", (8, 3, 224, 224), "FLOAT"),),
    device="a100-sxm4-40gb",
    runtime=Runtime.PYTORCH,
    precision=Precision.AUTO,
    arithmetic=Arithmetic(MathMode.TF32, MathMode.FP32),
    batch_size=8,
    latency_ms=Estimate(12.4, 10.9, 14.6),
    energy_j=Estimate(2.9, 2.4, 3.6),
    memory_mib=Estimate(1310.0, 1180.0, 1500.5),
    mig=MigAdvice(
        PROFILES["1g.5gb"],
        "1g.5gb",
        (
            MigRow("1g.5gb", True, 4864, 61.0, 131.0, 7),
            MigRow("7g.40gb", True, 40192, 13.0, 615.0, 1),
        ),
    ),
    caveats=(caveats.AssumedBatch("N", 8), caveats.UnknownOps((("com.acme::Plugin", 2),))),
    bundle_id="test-bundle",
    static=StaticAnalysis(
        32_713_000_000, 25_557_032, 102_228_128, 51_380_224, 122, 175, {"Conv": 53}
    ),
    breakdown=(
        _row("/layer1/conv1", "conv", 0.5, 0.25, "compute"),
        _row("/layer|2/`odd`", "conv+relu", 1.0, 0.5, "memory"),
        _row("/fc", "linear", 0.5, 0.25, "launch"),
    ),
    launch_bound_share=0.31,
)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_each_format_matches_its_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"prediction.{name}", FORMATS[name]([PREDICTION], 2) + "\n")


def test_json_of_one_is_an_object_and_of_two_an_array() -> None:
    one = json.loads(FORMATS["json"]([PREDICTION], 5))
    two = json.loads(FORMATS["json"]([PREDICTION, PREDICTION], 5))
    assert two == [one, one]
    assert one["schema"] == "dippm-lite/1"
    assert one["latency_ms"] == {"value": 12.4, "low": 10.9, "high": 14.6}
    assert one["mig"]["profile"] == "1g.5gb"
    assert one["caveats"][0] == {"code": "AssumedBatch", "dimension": "N", "batch_size": 8}


def test_kernels_come_slowest_first_and_top_limits_them() -> None:
    rows = json.loads(FORMATS["json"]([PREDICTION], 1))["breakdown"]
    assert [row["time_ms"] for row in rows] == [1.0]


def test_text_totals_follow_from_the_rows() -> None:
    text = FORMATS["text"]([PREDICTION], 1)
    assert "645 samples/s" in text  # 8 / 12.4 ms
    assert "0.362 J a sample" in text  # 2.9 J / 8
    assert "and 2 more" in text and "50.0%" in text


def test_text_fits_a_terminal_of_100_columns() -> None:
    long = replace(
        PREDICTION,
        breakdown=(_row("/a/very/long/module/path" * 20, "conv" * 20, 1.0, 1.0, "memory"),),
    )
    assert max(map(len, FORMATS["text"]([long], 5).splitlines())) <= 100


def test_names_from_the_file_cannot_break_a_markdown_table() -> None:
    evil = replace(PREDICTION, model="a|b`c\n| d <script>")
    text = FORMATS["markdown"]([evil], 5)
    answers = [line for line in text.splitlines() if line.startswith("| a")]
    assert answers and "<script>" not in text
    assert answers[0].replace("\\|", "").count("|") == 9


def test_csv_quotes_names_and_keeps_its_columns() -> None:
    evil = replace(PREDICTION, model='x,"y\nz')
    rows = list(csv.reader(io.StringIO(FORMATS["csv"]([evil], 5))))
    assert rows[1][0] == 'x,"y\nz'
    assert {len(row) for row in rows} == {len(rows[0])}


def test_nothing_fits_is_said_and_not_dressed_up() -> None:
    none = replace(PREDICTION, mig=replace(PREDICTION.mig, profile=None, paper_profile=None))
    assert "none fits" in FORMATS["text"]([none], 0)
    assert json.loads(FORMATS["json"]([none], 0))["mig"]["profile"] is None


@pytest.mark.parametrize(
    "caveat",
    [
        caveats.AssumedBatch("N", 1),
        caveats.AssumedTripCount(1, ("loop",)),
        caveats.BoundedShapes(3, ("a", "b")),
        caveats.BranchChosen(1, ("if",)),
        caveats.DoesNotFit(50_000.0, 40_335.0),
        caveats.ExtrapolatedKernels(("conv tf32",), 0.5),
        caveats.FileNote("odd"),
        caveats.NothingOnGpu(("ai.onnx.ml::Scaler",)),
        caveats.OutOfRange(0.25, ("m",)),
        caveats.UncalibratedInterval(("latency_ms",)),
        caveats.UnknownOps((("X", 1),)),
        caveats.UnmeasuredDevice("t4", ("a100-pcie-40gb",)),
        caveats.UnresolvedShapes(2, ("t",)),
    ],
    ids=lambda caveat: caveat.code,
)
def test_every_caveat_has_words(caveat: caveats.Caveat) -> None:
    assert caveat_text(caveat)


def test_no_caveat_is_without_words() -> None:
    from dippm_lite.report.wording import _TEXT

    assert {cls.__name__ for cls in _TEXT} == set(caveats.__all__) - {"Caveat"}


def test_an_interval_must_hold_its_value() -> None:
    with pytest.raises(ValueError, match="not an interval"):
        Estimate(1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="not an interval"):
        Estimate(1.0, 0.5, float("inf"))
