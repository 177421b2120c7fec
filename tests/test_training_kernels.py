"""Training of kernel models, in miniature: rows made by formulas, so that the truth is known."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest

from dippm_lite.bundle import Bundle
from dippm_lite.devices import DEVICES
from dippm_lite.execution import MathMode
from dippm_lite.kernel_features import (
    LAUNCH_FLOOR_S,
    TABLES,
    ConvBatch,
    ProductBatch,
    device_rates,
)
from training.__main__ import main
from training.kernels.bundling import fit_bundle
from training.kernels.evaluation import cross_validation, out_of_distribution
from training.kernels.learning import fit, folds
from training.kernels.overhead import fit_drift, smallest_kernel_overhead_s
from training.kernels.plans import PLANS, Overhead, Plan
from training.kernels.sources import Measured, read

A100 = "NVIDIA A100-PCIE-40GB"
A100_80 = "NVIDIA A100 80GB PCIe"
HOST_S = 50e-6
RATES = device_rates(DEVICES["a100-pcie-80gb"], MathMode.FP32)


def small(name: str, **changes) -> Plan:
    plan = next(plan for plan in PLANS if plan.name == name)
    return replace(plan, rounds=40, leaves=8, learning_rate=0.2, **changes)


def gemm_frame(rows: int, seed: int, device: str = A100) -> pd.DataFrame:
    """Linear layers of a machine at 70% of peak, whose host takes 50 us and whose launch 2 us."""
    rng = np.random.default_rng(seed)
    m, n, k = (
        (2 ** rng.uniform(0, 12, rows)).astype(int) + 1,
        *((2 ** rng.uniform(0, 12, rows)).astype(int) + 1 for _ in range(2)),
    )
    busy_s = np.maximum(2.0 * m * n * k / (0.7 * 19.5e12), 4 * (m * k + k * n + m * n) / 1.3e12)
    return pd.DataFrame(
        {
            "op": "linear", "device": device, "precision": "fp32",
            "latency_ms": 1e3 * (HOST_S + LAUNCH_FLOOR_S + busy_s),
            "B": 1, "M": m, "N": k, "K": n,  # NeuSight's N is the inner dimension
        }
    )  # fmt: skip


def write(path: Path, frame: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        frame.to_csv(file, index=False)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "kernels" / "neusight_gemm.csv.gz", gemm_frame(400, seed=1))
    tests = pd.concat([gemm_frame(40, seed=2), gemm_frame(40, seed=3, device=A100_80)])
    write(folder / "kernels" / "neusight_gemm_test.csv.gz", tests)
    return folder


@pytest.fixture(scope="module")
def rows(data) -> Measured:
    plan = small("linear_fp32")
    return read(data / "kernels" / plan.file, plan.device, plan.math, plan.ops)


def test_neusight_inner_dimension_is_its_column_n(tmp_path):
    frame = gemm_frame(3, seed=0)
    frame.loc[0, ["M", "N", "K"]] = [10, 20, 30]  # Linear(in_features=20, out_features=30)
    write(tmp_path / "g.csv.gz", frame)
    batch = read(tmp_path / "g.csv.gz", "a100-pcie-40gb", MathMode.FP32, ("linear",)).batch
    assert isinstance(batch, ProductBatch)
    assert (batch.m[0], batch.k[0], batch.n[0]) == (10, 20, 30)


def test_profiled_fp16_rows_keep_their_columns(tmp_path):
    frame = pd.DataFrame(
        [["linear", "a100", "fp16", "llm", 1, 0.5, 10, 30, 20]],
        columns=["op", "device", "precision", "model", "tp", "latency_ms", "M", "N", "K"],
    )
    write(tmp_path / "v.csv.gz", frame)
    rows = read(tmp_path / "v.csv.gz", "a100-sxm4-80gb", MathMode.FP16, ("linear",))
    assert isinstance(rows.batch, ProductBatch)
    assert (rows.batch.m[0], rows.batch.n[0], rows.batch.k[0]) == (10, 30, 20)
    assert rows.batch.total_bytes[0] == 2 * (10 * 20 + 20 * 30 + 10 * 30)
    assert rows.time_s[0] == pytest.approx(5e-4)


def test_a_file_without_the_device_is_an_error(data):
    with pytest.raises(ValueError, match=r"has no rows of \['bmm'\] on a100-pcie-40gb"):
        read(data / "kernels" / "neusight_gemm.csv.gz", "a100-pcie-40gb", MathMode.FP32, ("bmm",))


def test_host_time_is_read_off_the_smallest_kernels(rows):
    assert smallest_kernel_overhead_s(rows)["linear"] == pytest.approx(HOST_S, rel=0.05)


def test_drift_is_recovered_under_noise_and_outliers():
    rng = np.random.default_rng(0)
    order = np.arange(2000)
    true_s = 40e-6 + 300e-6 * (order / 2000) ** 2
    kernel_s = 10 ** rng.uniform(-6, -3, 2000)
    time_s = true_s + kernel_s * rng.lognormal(0, 0.1, 2000)
    time_s[::50] += 1e-3
    drift = fit_drift(order, time_s, kernel_s, 1999)
    np.testing.assert_allclose(drift.at(order), true_s, atol=6e-6)


def test_the_trees_learn_the_machine(rows):
    plan = small("linear_fp32")
    checked = cross_validation(plan, rows)
    five_fold, own_time = checked.metrics
    assert (five_fold.split, own_time.split) == ("five-fold", "five-fold, own time")
    assert five_fold.mape_percent < 5
    untrained = cross_validation(replace(plan, rounds=1), rows)
    assert five_fold.mape_percent < untrained.metrics[0].mape_percent / 2
    assert 0 < checked.residual_sigma < untrained.residual_sigma


def test_drifting_rows_are_learnt_only_with_their_position():
    rng = np.random.default_rng(1)
    count = 600
    sizes = [rng.integers(1, 64, count), *(rng.integers(3, 512, count) for _ in range(2))]
    edge = rng.integers(5, 60, count)
    batch = ConvBatch(
        RATES, 4.0, *(np.array(x, dtype=float) for x in (*sizes, edge, edge, edge, edge)),
        np.full(count, 3.0), np.full(count, 3.0),
    )  # fmt: skip
    order = np.arange(count)
    time_s = 1.5 * batch.prior_s + 50e-6 + 300e-6 * order / count
    rows = Measured(batch, time_s, np.array(["conv"] * count), order)
    plan = small("conv_fp32")
    assert plan.overhead is Overhead.DRIFT
    figures = {m.split: m.mape_percent for m in cross_validation(plan, rows).metrics}
    assert figures["five-fold"] < 6
    assert figures["five-fold, position unknown"] > 2 * figures["five-fold"]


def test_folds_are_balanced_and_stay_the_same():
    first = folds(103)
    assert sorted(np.bincount(first)) == [20, 20, 21, 21, 21]
    np.testing.assert_array_equal(first, folds(103))


@pytest.fixture(scope="module")
def bundles(data, tmp_path_factory) -> tuple[Bundle, Bundle]:
    """The same training, twice."""
    plans = [small("linear_fp32")]
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        for _ in range(2):
            parent = tmp_path_factory.mktemp("bundles")
            made.append(fit_bundle(data, parent, "miniature-1", plans))
    return made[0], made[1]


def test_training_twice_gives_identical_files(bundles):
    first, second = (
        {path.name: path.read_bytes() for path in bundle.folder.iterdir()} for bundle in bundles
    )
    assert first == second
    assert first.keys() == {"manifest.json", "MODEL_CARD.md", "linear_fp32.txt"}


def test_the_exported_model_predicts_what_lightgbm_does(bundles, rows):
    bundle = bundles[0]
    features = TABLES["product"].matrix(rows.batch)
    path = bundle.folder / "linear_fp32.txt"
    expected = lightgbm.Booster(model_file=str(path)).predict(features)
    np.testing.assert_allclose(
        bundle.booster("linear_fp32").predict_raw(features), expected, rtol=0, atol=1e-12
    )
    unshortened = fit(small("linear_fp32"), rows).booster.predict(features)
    np.testing.assert_allclose(expected, unshortened, rtol=0, atol=1e-5)


def test_the_manifest_says_what_was_done(bundles):
    manifest = bundles[0].manifest
    (entry,) = manifest.models
    assert entry.constants["host_time_us_linear"] == pytest.approx(50, rel=0.05)
    assert [(s.name, s.rows, s.used_for.value) for s in manifest.data] == [
        ("neusight_gemm", 400, "fit"),
        ("neusight_gemm_test", 80, "test"),
    ]
    splits = [metric.split for metric in manifest.metrics]
    assert splits == [
        "five-fold", "five-fold, own time", "out of distribution",
        "out of distribution, a100-pcie-40gb", "out of distribution, a100-pcie-80gb",
    ]  # fmt: skip
    assert entry.features[1].name == "m" and entry.features[1].train_min >= 1


def test_test_rows_never_reach_the_fit(data, rows, tmp_path):
    plan = small("linear_fp32")
    fitted = fit(plan, rows)
    wrong = gemm_frame(40, seed=2)
    wrong["latency_ms"] *= 10
    write(tmp_path / "neusight_gemm_test.csv.gz", pd.concat([wrong, wrong.assign(device=A100_80)]))
    assert out_of_distribution(plan, fitted, tmp_path)[0].mape_percent > 80
    assert out_of_distribution(plan, fitted, data / "kernels")[0].mape_percent < 10


def test_evaluate_prints_and_writes_the_figures(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("training.kernels.command.PLANS", (small("linear_fp32"),))
    arguments = ["kernels", "evaluate", "--data", str(data), "--artifacts", str(tmp_path)]
    assert main([*arguments, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "kernels.json").read_text(encoding="utf-8"))
    assert {row["subject"] for row in printed["metrics"]} == {"linear_fp32"}
    text = (tmp_path / "kernels.md").read_text(encoding="utf-8")
    assert "| linear_fp32 | 400" in text and "<= 5" in text
