"""The numpy evaluator against LightGBM itself, which is the oracle throughout."""

from __future__ import annotations

import re
from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dippm_lite.booster import Booster
from dippm_lite.errors import BundleError

ROUNDS = 12
AWKWARD = np.array(
    [0.0, -0.0, 1e-36, -1e-36, 1e-35, 2e-35, np.nan, np.inf, -np.inf, 1e308, -0.5, -1.0, 3e9, 5.999]
)


def make_rows(seed: int, n: int = 400, features: int = 4) -> NDArray[np.float64]:
    """Rows whose last column is a category code, with zeros and missing values strewn in."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, features))
    rows[:, -1] = rng.integers(0, 90, size=n)
    rows[rng.random(rows.shape) < 0.15] = np.nan
    rows[rng.random(rows.shape) < 0.15] = 0.0
    return rows


def make_target(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    filled = np.nan_to_num(rows, nan=0.7)
    return filled[:, 0] * filled[:, 1] + (filled[:, -1] % 7) + 2.0 * np.isnan(rows[:, 1])


def train(
    rows: NDArray[np.float64], target: NDArray[np.float64], rounds: int = ROUNDS, **params: Any
) -> lightgbm.Booster:
    defaults = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 3}
    defaults |= {"max_cat_to_onehot": 2, "min_data_per_group": 5, "cat_smooth": 1}
    categorical = params.pop("categorical", "auto")
    data = lightgbm.Dataset(rows, target, categorical_feature=categorical)
    return lightgbm.train(defaults | params, data, rounds)


def with_awkward_values(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rows`` below rows in which each feature takes each awkward value."""
    extra = [
        np.where(np.arange(rows.shape[1]) == j, value, rows[i])
        for i, value in enumerate(AWKWARD)
        for j in range(rows.shape[1])
    ]
    return np.vstack([rows, *extra, np.tile(AWKWARD[:, None], rows.shape[1])])


def assert_agrees(oracle: lightgbm.Booster, rows: NDArray[np.float64]) -> Booster:
    booster = Booster.from_text(oracle.model_to_string())
    assert booster.num_trees == oracle.num_trees()
    assert booster.feature_names == tuple(oracle.feature_name())
    expected = oracle.predict(rows, raw_score=True, num_threads=1)
    if booster.average_output:
        expected = expected / (booster.num_trees / booster.num_tree_per_iteration)
    actual = booster.predict_raw(rows)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=0)
    return booster


@pytest.mark.parametrize(
    "params",
    [
        {"objective": "regression"},
        {"objective": "regression_l1"},
        {"objective": "quantile", "alpha": 0.9},
        {"objective": "huber", "boosting": "dart", "drop_rate": 0.5},
        {"objective": "regression", "zero_as_missing": True},
        {"objective": "regression", "use_missing": False},
        {"objective": "regression", "categorical": [3]},
        {"objective": "regression", "categorical": [3], "zero_as_missing": True},
        {"objective": "regression", "categorical": [3], "use_missing": False},
        {"objective": "regression", "categorical": [3], "max_cat_to_onehot": 100},
        {"objective": "regression", "num_leaves": 200, "min_data_in_leaf": 1},
        {"objective": "regression", "extra_trees": True, "max_bin": 7},
    ],
    ids=lambda params: "-".join(f"{key}={value}" for key, value in params.items()),
)
def test_scores_equal_lightgbms(params: dict[str, Any]) -> None:
    rows = make_rows(seed=1)
    oracle = train(rows, make_target(rows), **params)
    booster = assert_agrees(oracle, with_awkward_values(rows))
    assert booster.objective.split()[0] == params["objective"]
    assert bool(len(booster.forest.set_start)) == ("categorical" in params)


def test_multiclass_scores_have_a_column_for_each_class() -> None:
    rows = make_rows(seed=2)
    classes = np.digitize(make_target(rows), [1.0, 3.0, 5.0])
    oracle = train(rows, classes, objective="multiclass", num_class=4, categorical=[3])
    booster = assert_agrees(oracle, with_awkward_values(rows))
    assert booster.num_tree_per_iteration == 4
    assert booster.predict_raw(rows[:1]).shape == (1, 4)


@pytest.mark.parametrize("params", [{}, {"objective": "multiclass", "num_class": 3}], ids=str)
def test_random_forest_is_averaged(params: dict[str, Any]) -> None:
    rows = make_rows(seed=3)
    target = np.digitize(make_target(rows), [1.0, 4.0]) if params else make_target(rows) + 50
    oracle = train(rows, target, boosting="rf", bagging_freq=1, bagging_fraction=0.5, **params)
    booster = assert_agrees(oracle, with_awkward_values(rows))
    assert booster.average_output
    if not params:
        np.testing.assert_allclose(booster.predict_raw(rows), oracle.predict(rows), rtol=1e-12)


def test_constant_target_gives_a_single_leaf() -> None:
    rows = make_rows(seed=4)
    oracle = train(rows, np.full(len(rows), 3.25))
    assert "num_leaves=1\n" in oracle.model_to_string()
    booster = assert_agrees(oracle, rows)
    assert set(booster.predict_raw(rows)) == {3.25}


def test_single_leaf_and_split_trees_mix() -> None:
    rows = make_rows(seed=5)
    classes = np.where(rows[:, 0] > 0, 1, 0)  # class 2 never occurs: its trees don't split
    oracle = train(rows, classes, objective="multiclass", num_class=3)
    sizes = set(re.findall(r"num_leaves=(\d+)\n", oracle.model_to_string()))
    assert "1" in sizes and len(sizes) > 1
    assert_agrees(oracle, rows)


def test_a_row_scores_the_same_in_any_batch() -> None:
    rows = make_rows(seed=6, n=3000)
    booster = assert_agrees(train(rows, make_target(rows), rounds=60), rows)
    assert len(rows) > booster.forest.rows_per_chunk  # else only one chunk is tested
    together = booster.predict_raw(rows)
    for stop in (1, 2, 3, 17):
        assert np.array_equal(booster.predict_raw(rows[:stop]), together[:stop])
    assert booster.predict_raw(rows[:0]).shape == (0,)


def test_pandas_categories_after_the_trees_are_ignored() -> None:
    pandas = pytest.importorskip("pandas")
    rows = make_rows(seed=7)
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    frame["d"] = pandas.Categorical(np.nan_to_num(rows[:, 3]).astype(int) % 5)
    data = lightgbm.Dataset(frame, make_target(rows))
    oracle = lightgbm.train({"verbose": -1, "num_threads": 1}, data, ROUNDS)
    text = oracle.model_to_string()
    assert "pandas_categorical:[[0" in text
    codes = frame.assign(d=frame["d"].cat.codes).to_numpy(dtype=float)
    expected = oracle.predict(frame, raw_score=True)
    np.testing.assert_allclose(Booster.from_text(text).predict_raw(codes), expected, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(30, 300),
    features=st.integers(1, 6),
    num_leaves=st.integers(2, 80),
    rounds=st.integers(1, 15),
    learning_rate=st.floats(0.01, 1.0),
    min_data_in_leaf=st.integers(1, 20),
    zero_as_missing=st.booleans(),
    use_missing=st.booleans(),
    categorical=st.booleans(),
    scale=st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e30]),
)
def test_any_model_agrees(
    seed: int, n: int, features: int, scale: float, categorical: bool, **params: Any
) -> None:
    rows = make_rows(seed, n, features)
    target = make_target(rows if features > 1 else np.hstack([rows, rows])) * scale
    oracle = train(rows, target, categorical=[features - 1] if categorical else "auto", **params)
    assert_agrees(oracle, with_awkward_values(rows))


def small_model_text() -> str:
    rows = make_rows(seed=8)
    return train(rows, make_target(rows), rounds=3, num_leaves=6, categorical=[3]).model_to_string()


TEXT = small_model_text()


def tree_line(key: str) -> re.Match[str]:
    found = re.search(rf"^{key}=(.*)$", TEXT.partition("Tree=0")[2], re.MULTILINE)
    assert found is not None
    return found


def with_line(key: str, value: str) -> str:
    """The text with the first tree's line ``key`` replaced."""
    return TEXT.replace(tree_line(key)[0], f"{key}={value}", 1)


def edited(key: str, position: int, value: str) -> str:
    """The text with one number of the first tree's line ``key`` replaced."""
    numbers = tree_line(key)[1].split()
    numbers[position] = value
    return with_line(key, " ".join(numbers))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "end of trees"),
        ("not a model", "end of trees"),
        (TEXT[: len(TEXT) // 4], "end of trees"),
        (TEXT.replace("version=v4", "version=v9"), "version v9"),
        (TEXT.replace("max_feature_idx=3", "max_feature_idx=4"), "4 feature names for 5"),
        (TEXT.replace("num_tree_per_iteration=1", "num_tree_per_iteration=2"), "3 trees at 2"),
        (TEXT.replace("num_tree_per_iteration=1", "num_tree_per_iteration=0"), "3 trees at 0 an"),
        (TEXT.replace("num_tree_per_iteration=1", "num_tree_per_iteration=x"), "not a number"),
        (re.sub(r"\nTree=1.*?(?=\nTree=2)", "", TEXT, flags=re.DOTALL), "2 trees where"),
        (re.sub(r"tree_sizes=.*", "tree_sizes=", TEXT), "3 trees where"),
        (re.sub(r"\nTree=.*(?=\nend of trees)", "", TEXT, flags=re.DOTALL), "0 trees where"),
        (TEXT.replace("Tree=1", "Tree=7"), "tree 7 follows tree 0"),
        (TEXT.replace("is_linear=0", "is_linear=1", 1), "linear_tree=false"),
        (with_line("num_leaves", "99999999"), "not 99999999"),
        (with_line("num_leaves", "9" * 4000), "not a number"),
        (with_line("num_leaves", "0"), "num_leaves is 0"),
        (with_line("num_leaves", "-3"), "num_leaves is -3"),
        (with_line("num_leaves", "5"), "leaf_value holds 6 numbers, not 5"),
        (with_line("threshold", "1 2 3"), "threshold holds 3 numbers, not 5"),
        (with_line("num_cat", "-1"), "num_cat is -1"),
        (with_line("num_cat", "40000"), "cat_boundaries"),
        (with_line("num_cat", "0"), "category set that doesn't exist"),
        (edited("cat_boundaries", 0, "1"), "cat_boundaries don't divide"),
        (edited("cat_boundaries", 1, "999"), "cat_boundaries don't divide"),
        (edited("cat_threshold", 0, "-1"), "32-bit word"),
        (edited("cat_threshold", 0, "4294967296"), "32-bit word"),
        (edited("split_feature", 0, "4"), "feature that doesn't exist"),
        (edited("split_feature", 0, "-1"), "feature that doesn't exist"),
        (edited("split_feature", 0, "9" * 30), "split_feature"),
        (edited("threshold", 0, "nan"), "threshold holds a NaN"),
        (edited("leaf_value", 0, "inf"), "leaf_value holds a number that isn't finite"),
        (edited("leaf_value", 0, "1.5x"), "leaf_value"),
        (edited("decision_type", 0, "16"), "decision_type"),
        (edited("decision_type", 0, "12"), "unknown kind of missing"),
        (edited("left_child", 0, "5"), "child that doesn't exist"),
        (edited("left_child", 0, "-7"), "child that doesn't exist"),
        (edited("left_child", 0, "0"), "no parent or several"),
        (edited("left_child", 1, tree_line("right_child")[1].split()[1]), "no parent or several"),
    ],
    ids=lambda value: value[:30] if len(value) < 80 else "text",
)
def test_damage_is_named(text: str, message: str) -> None:
    with pytest.raises(BundleError, match=re.escape(message)) as caught:
        Booster.from_text(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def chain(left: list[int], right: list[int]) -> str:
    """A model of one tree with the given children."""
    splits = len(left)
    lines = {
        "num_leaves": [splits + 1],
        "num_cat": [0],
        "split_feature": [0] * splits,
        "threshold": [-i for i in range(splits)],
        "decision_type": [2] * splits,
        "left_child": left,
        "right_child": right,
        "leaf_value": list(range(splits + 1)),
    }
    body = "\n".join(f"{key}={' '.join(map(str, values))}" for key, values in lines.items())
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
    return f"{head}feature_names=x\ntree_sizes=1\n\nTree=0\n{body}\n\nend of trees\n"


def test_a_cycle_apart_from_the_root_is_refused() -> None:
    # the root holds leaves 0 and 1; splits 1 and 2 point at each other
    with pytest.raises(BundleError, match="circle"):
        Booster.from_text(chain(left=[-1, 2, 1], right=[-2, -3, -4]))


@pytest.mark.parametrize("depth", [1024, 1025, 200_000])
def test_depth_is_limited(depth: int) -> None:
    left = [*range(1, depth), -1]
    right = [-(i + 2) for i in range(depth)]
    text = chain(left, right)
    if depth > 1024:
        with pytest.raises(BundleError, match="deeper than 1024"):
            Booster.from_text(text)
        return
    scores = Booster.from_text(text).predict_raw(np.array([[1.0], [-0.5], [-1022.5], [-5000.0]]))
    # split i sends x <= -i on to split i + 1 and the others to leaf i + 1; the last one's left
    # child is leaf 0
    assert scores.tolist() == [1.0, 2.0, 1024.0, 0.0]


def test_a_huge_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(BundleError, match="exceed the limit"):
        Booster.from_text(b" " * ((1 << 25) + 1))


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_mutated_text_gives_numbers_or_one_error(data: st.DataObject) -> None:
    raw = bytearray(TEXT.partition("feature_importances")[0].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["replace", "delete", "insert", "cut"]))
        if kind == "cut":
            stop = data.draw(st.integers(at, min(len(raw), at + 200)))
            del raw[at:stop]
        elif kind == "delete":
            del raw[at]
        else:
            token = data.draw(st.sampled_from([b"9", b"-", b" ", b"\n", b"=", b"e", b".", b"\xff"]))
            raw[at : at + (kind == "replace")] = token
        if not raw:
            raw = bytearray(b"x")
    try:
        booster = Booster.from_text(bytes(raw))
    except BundleError as error:
        assert "\n" not in str(error)
        return
    scores = booster.predict_raw(np.zeros((3, len(booster.feature_names))))
    assert np.isfinite(scores).all()


def test_rows_of_another_width_are_a_bug_of_the_caller() -> None:
    booster = Booster.from_text(TEXT)
    for shape in [(2, 3), (2, 5), (4,)]:
        with pytest.raises(ValueError, match="4 features"):
            booster.predict_raw(np.zeros(shape))
