"""Shortened LightGBM text: LightGBM itself must still read it and say the same."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from dippm_lite.booster import Booster
from training.shorten import shorten_model_text


def kernel_like_rows(n: int = 3000) -> NDArray[np.float64]:
    """Sizes as models of kernels see them: powers of two, logarithms, a code, missing values."""
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(0, 16, size=(n, 2)) * rng.integers(1, 4, size=(n, 2))
    rows = np.hstack([sizes, np.log(sizes), rng.integers(0, 30, size=(n, 1)), sizes[:, :1] % 7])
    rows[rng.random(n) < 0.2, 5] = np.nan
    return rows


def train(rows: NDArray[np.float64], **params: Any) -> lightgbm.Booster:
    rng = np.random.default_rng(1)
    target = np.sin(rows[:, 2]) * rows[:, 3] + rows[:, 4] % 5 + rng.normal(size=len(rows)) / 10
    if params.get("objective") == "multiclass":
        target = np.digitize(target, [0.0, 3.0])
    data = lightgbm.Dataset(rows, target, categorical_feature=[4])
    return lightgbm.train({"verbose": -1, "num_threads": 1} | params, data, 60)


@pytest.mark.parametrize("params", [{}, {"objective": "multiclass", "num_class": 3}], ids=str)
def test_answers_stay_within_a_millionth(params: dict[str, Any]) -> None:
    rows = kernel_like_rows()
    oracle = train(rows, **params)
    text = oracle.model_to_string()
    short = shorten_model_text(text)
    assert len(short) < 0.5 * len(text)
    reread = lightgbm.Booster(model_str=short)
    assert reread.num_trees() == oracle.num_trees()
    scores = reread.predict(rows, raw_score=True)
    np.testing.assert_allclose(scores, oracle.predict(rows, raw_score=True), rtol=1e-6, atol=1e-6)
    booster = Booster.from_text(short)
    assert np.array_equal(booster.predict_raw(rows), scores)
    assert booster.feature_names == tuple(oracle.feature_name())
    assert "num_cat=1" in short or "num_cat=2" in short  # else no category set was tested


def test_seventeen_digits_lose_nothing() -> None:
    rows = kernel_like_rows()
    oracle = train(rows)
    short = shorten_model_text(oracle.model_to_string(), digits=17)
    assert np.array_equal(lightgbm.Booster(model_str=short).predict(rows), oracle.predict(rows))


def test_too_few_digits_are_seen_by_the_comparison() -> None:
    rows = kernel_like_rows()
    oracle = train(rows)
    coarse = Booster.from_text(shorten_model_text(oracle.model_to_string(), digits=2))
    assert np.abs(coarse.predict_raw(rows) - oracle.predict(rows)).max() > 1e-3


def test_single_leaf_trees_survive() -> None:
    rows = kernel_like_rows(200)
    data = lightgbm.Dataset(rows, np.full(200, 2.5))
    text = lightgbm.train({"verbose": -1}, data, 2).model_to_string()
    short = shorten_model_text(text)
    assert set(lightgbm.Booster(model_str=short).predict(rows)) == {2.5}
    assert set(Booster.from_text(short).predict_raw(rows)) == {2.5}


def test_shortening_twice_changes_nothing() -> None:
    short = shorten_model_text(train(kernel_like_rows(300)).model_to_string())
    assert shorten_model_text(short) == short


def test_what_would_be_lost_is_refused() -> None:
    rows = np.random.default_rng(2).normal(size=(200, 2))
    data = lightgbm.Dataset(rows, rows[:, 0])
    linear = lightgbm.train({"verbose": -1, "linear_tree": True}, data, 2).model_to_string()
    with pytest.raises(ValueError, match="linear leaves"):
        shorten_model_text(linear)
    with pytest.raises(ValueError, match="complete"):
        shorten_model_text(linear.partition("end of trees")[0])
    with pytest.raises(ValueError, match="0 significant"):
        shorten_model_text(linear, digits=0)
