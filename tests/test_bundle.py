"""Bundles: written, read back, and each kind of damage told apart."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.bundle import (
    Bundle,
    DataSource,
    DataUse,
    FeatureColumn,
    FeatureSchema,
    Manifest,
    MetricRow,
    ModelKind,
    Provenance,
    Target,
    Transform,
    available_bundles,
    load,
    render_model_card,
)
from dippm_lite.errors import BundleError
from training.export import (
    built_with,
    created_utc,
    describe_model,
    feature_columns,
    write_bundle,
)

COLUMNS = (("log_m", "1"), ("log_n", "1"), ("waves", "waves"))
EXPECTED = {"gemm": FeatureSchema(COLUMNS)}
LOG_RATIO = Target("device_time_s", "s", Transform.LOG_RATIO, "roofline_s")


def train_text(target: str = "regression", **params: Any) -> str:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    values = rows[:, 0] + rows[:, 1] ** 2
    if target == "multiclass":
        values = np.digitize(values, [0.0, 1.0])
        params["num_class"] = 3
    data = lightgbm.Dataset(rows, values, feature_name=[name for name, _ in COLUMNS])
    settings = {"objective": target, "verbose": -1, "num_threads": 1, "num_leaves": 5}
    return lightgbm.train(settings | params, data, 4).model_to_string()


TEXTS = {"linear_fp32": train_text(), "conv_algorithm": train_text("multiclass")}


def make_manifest(**changes: Any) -> Manifest:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    features = feature_columns(COLUMNS, rows)
    latency = describe_model(
        TEXTS["linear_fp32"],
        name="linear_fp32",
        kind=ModelKind.KERNEL_LATENCY,
        feature_table="gemm",
        target=LOG_RATIO,
        features=features,
        residual_sigma=0.0625,
        constants={"overhead_us": 27.5},
    )
    algorithm = describe_model(
        TEXTS["conv_algorithm"],
        name="conv_algorithm",
        kind=ModelKind.KERNEL_ALGORITHM,
        feature_table="gemm",
        target=Target("algorithm", "class", Transform.IDENTITY, None),
        features=features,
        classes=("implicit_gemm", "winograd", "fft"),
    )
    manifest = Manifest(
        format_version=Manifest.FORMAT_VERSION,
        bundle_id="test-kernels-1",
        description="Latency of single kernels.",
        created_utc="2026-01-02T03:04:05Z",
        devices=("a100-pcie-40gb",),
        built_with={"lightgbm": "4.6.0"},
        models=(latency, algorithm),
        constants={"launch_us": 4.25},
        data=(
            DataSource("kernels | x", "MIT", 6460, Provenance.MEASURED, DataUse.FIT, None),
            DataSource("sums", "Apache-2.0", 12, Provenance.COMPOSED, DataUse.TEST, "https://a.b"),
        ),
        fingerprints={"data": "0" * 64},
        feature_digest="f" * 64,
        metrics=(
            MetricRow("linear_fp32", "5-fold", Provenance.MEASURED, 4.25, 3.1, 91.5, 0.998, 6460),
            MetricRow("latency_ms", "sums", Provenance.COMPOSED, 12.75, 9.5, 55.5, None, 12),
        ),
        limits=("Only fp32.",),
        teacher=None,
        student=None,
    )
    return replace(manifest, **changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bundle(tmp_path, make_manifest(), TEXTS).folder


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def one_line_error(action: Callable[[], object]) -> str:
    with pytest.raises(BundleError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 3
    return message


def test_a_written_bundle_loads_with_equal_content(folder: Path) -> None:
    bundle = Bundle.load(folder, EXPECTED)
    assert bundle.manifest == make_manifest()
    rows = np.random.default_rng(1).normal(size=(50, 3))
    for name, text in TEXTS.items():
        oracle = lightgbm.Booster(model_str=text).predict(rows, raw_score=True)
        np.testing.assert_allclose(bundle.booster(name).predict_raw(rows), oracle, rtol=1e-12)
    assert bundle.booster("linear_fp32") is bundle.booster("linear_fp32")
    assert sorted(path.name for path in folder.iterdir()) == [
        "MODEL_CARD.md", "conv_algorithm.txt", "linear_fp32.txt", "manifest.json",
    ]  # fmt: skip


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_bundle(tmp_path / "a", make_manifest(), TEXTS).folder
    second = write_bundle(tmp_path / "b", make_manifest(), TEXTS).folder
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()


def test_the_writer_refuses_to_replace_a_bundle(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        write_bundle(folder.parent, make_manifest(), TEXTS)


def test_the_writer_refuses_other_models_than_the_manifests(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the manifest's models"):
        write_bundle(tmp_path, make_manifest(), {"linear_fp32": TEXTS["linear_fp32"]})
    swapped = dict.fromkeys(TEXTS, TEXTS["linear_fp32"])
    message = one_line_error(lambda: write_bundle(tmp_path, make_manifest(), swapped))
    assert "conv_algorithm.txt doesn't match its sha256" in message


def test_models_are_read_only_when_asked_for(folder: Path) -> None:
    (folder / "conv_algorithm.txt").write_text("damaged")
    bundle = Bundle.load(folder)
    assert bundle.booster("linear_fp32").num_trees == 4
    assert "conv_algorithm.txt doesn't match" in one_line_error(bundle.verify)


def test_a_flipped_byte_is_found_anywhere(folder: Path) -> None:
    path = folder / "linear_fp32.txt"
    original = path.read_bytes()
    for position in range(0, len(original), max(1, len(original) // 40)):
        damaged = bytearray(original)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        message = one_line_error(lambda: Bundle.load(folder).booster("linear_fp32"))
        assert "linear_fp32.txt doesn't match its sha256" in message


def test_a_missing_model_file_is_named_at_once(folder: Path) -> None:
    (folder / "conv_algorithm.txt").unlink()
    message = one_line_error(lambda: Bundle.load(folder))
    assert "conv_algorithm.txt is missing, the file of model 'conv_algorithm'" in message


@pytest.mark.parametrize("kind", ["nothing", "empty folder", "file", "manifest is a folder"])
def test_a_place_without_a_bundle_is_named(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("x")
    elif kind != "nothing":
        place.mkdir()
    if kind == "manifest is a folder":
        (place / "manifest.json").mkdir()
    message = one_line_error(lambda: Bundle.load(place))
    assert str(place / "manifest.json") in message and "is missing" in message


@pytest.mark.parametrize("version", [0, 2, "1", None, True, [1]])
def test_another_format_version_comes_first(folder: Path, version: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({"format_version": version, "layout": "of the future"}))
    message = one_line_error(lambda: Bundle.load(folder))
    assert f"format version {version!r}, this dippm-lite reads 1" in message


@pytest.mark.parametrize(
    ("columns", "clause"),
    [
        ((("log_m", "1"), ("log_k", "1"), ("waves", "waves")),
         "column 2 is 'log_n [1]', expected 'log_k [1]'"),
        ((("log_m", "1"), ("log_n", "1"), ("waves", "tiles")),
         "column 3 is 'waves [waves]', expected 'waves [tiles]'"),
        ((*COLUMNS, ("new", "s")), "column 4, 'new [s]', is missing"),
        (COLUMNS[:2], "column 3, 'waves [waves]', is unexpected"),
        ((COLUMNS[1], COLUMNS[0], COLUMNS[2]), "column 1 is 'log_m [1]', expected 'log_n [1]'"),
    ],
    ids=["renamed", "unit", "missing", "extra", "order"],
)  # fmt: skip
def test_the_first_differing_column_is_named(
    folder: Path, columns: tuple[tuple[str, str], ...], clause: str
) -> None:
    message = one_line_error(lambda: Bundle.load(folder, {"gemm": FeatureSchema(columns)}))
    assert "model 'linear_fp32' was made for other features" in message
    assert clause in message


def test_an_unknown_feature_table_is_named(folder: Path) -> None:
    message = one_line_error(lambda: Bundle.load(folder, {"conv": FeatureSchema(COLUMNS)}))
    assert "needs the features 'gemm', which this dippm-lite doesn't have" in message


def test_schema_digest_is_that_of_its_lines() -> None:
    text = "log_m [1]\nlog_n [1]\nwaves [waves]"
    assert FeatureSchema(COLUMNS).digest == hashlib.sha256(text.encode()).hexdigest()


def test_features_must_match_their_own_hash(folder: Path) -> None:
    edit(folder, lambda data: data["models"][0]["features"][1].update(name="log_k"))
    assert "schema_hash is not that of its features" in one_line_error(lambda: Bundle.load(folder))


def swap_model(folder: Path, text: str, **changes: Any) -> None:
    """Put ``text`` in place of linear_fp32 with a matching hash: only its content is wrong."""
    (folder / "linear_fp32.txt").write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    edit(folder, lambda data: data["models"][0].update(sha256=sha256, **changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXTS["linear_fp32"].replace("log_n", "log_k"), "column 2 is 'log_k', expected 'log_n'"),
        (TEXTS["conv_algorithm"], "12 trees, not 4"),
        (TEXTS["linear_fp32"][:500], "'end of trees' is missing"),
        (train_text(reg_sqrt=True), "'regression sqrt'"),
    ],
    ids=["names", "trees", "cut", "objective"],
)
def test_a_model_that_isnt_what_the_manifest_says_is_refused(
    folder: Path, text: str, message: str
) -> None:
    swap_model(folder, text)
    found = one_line_error(lambda: Bundle.load(folder).booster("linear_fp32"))
    assert "linear_fp32.txt" in found and message in found


def test_outputs_must_match_the_classes(folder: Path) -> None:
    swap_model(folder, TEXTS["conv_algorithm"], num_trees=12)
    message = one_line_error(lambda: Bundle.load(folder).booster("linear_fp32"))
    assert "3 outputs, not 1" in message


def test_another_number_of_columns_is_refused(folder: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    data = lightgbm.Dataset(rows, rows[:, 0], feature_name=["log_m", "log_n"])
    swap_model(folder, lightgbm.train({"verbose": -1}, data, 4).model_to_string())
    message = one_line_error(lambda: Bundle.load(folder).booster("linear_fp32"))
    assert "2 columns, not 3" in message


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/hosts.txt", "a/b.txt", "..", "", "C:\\x.txt", "x.pkl", "x\n.txt",
     "con trol.txt", ".txt", "a" * 70 + ".txt", "./linear_fp32.txt"],
)  # fmt: skip
def test_file_names_cant_leave_the_folder(folder: Path, name: str) -> None:
    (folder.parent / "secret.txt").write_text("secret")
    edit(folder, lambda data: data["models"][0].update(file=name))
    message = one_line_error(lambda: Bundle.load(folder))
    assert "file" in message


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    outside = folder.parent / "outside.txt"
    (folder / "linear_fp32.txt").rename(outside)
    (folder / "linear_fp32.txt").symlink_to(outside)
    assert "is a link out of the bundle's folder" in one_line_error(lambda: Bundle.load(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_an_installation_made_of_links_loads(folder: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in folder.iterdir():
        (linked / path.name).symlink_to(path)
    Bundle.load(linked, EXPECTED).verify()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this platform")
def test_a_pipe_in_place_of_a_file_doesnt_hang(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    assert "is missing" in one_line_error(lambda: Bundle.load(folder))


def test_an_oversized_manifest_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_text(" " * ((1 << 22) + 1))
    assert "is larger than 4194304 bytes" in one_line_error(lambda: Bundle.load(folder))


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"format_version": 1, "format_version": 1}', "same key twice"),
        ('{"format_version": NaN}', "NaN is no JSON number"),
        ("[]", "format version None"),
        ('{"format_version": 1}', "lacks the key 'bundle_id'"),
    ],
)
def test_a_manifest_that_isnt_one_is_refused(folder: Path, text: str, clause: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert clause in one_line_error(lambda: Bundle.load(folder))


def test_a_manifest_in_another_encoding_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\xff\xfe{")
    assert "not UTF-8" in one_line_error(lambda: Bundle.load(folder))


@pytest.mark.parametrize(
    ("change", "clause"),
    [
        (lambda d: d.update(colour=1), "unknown key 'colour'"),
        (lambda d: d.update(FORMAT_VERSION=1), "unknown key 'FORMAT_VERSION'"),
        (lambda d: d.pop("limits"), "lacks the key 'limits'"),
        (lambda d: d.update(models=[]), "no models"),
        (lambda d: d.update(models={}), "models should be a list, found {}"),
        (lambda d: d.update(models=[3]), "models[0] should be an object, found 3"),
        (lambda d: d.update(models=d["models"][:1] * 2), "a model name occurs twice"),
        (lambda d: d.update(bundle_id="../x"), "bundle_id '../x' is not allowed"),
        (lambda d: d.update(created_utc="yesterday"), "created_utc 'yesterday'"),
        (lambda d: d.update(description="two\nlines"), "description should be printable text"),
        (lambda d: d.update(description="\x1b[31m"), "description should be printable text"),
        (lambda d: d.update(fingerprints={"data": "00"}), "fingerprint '00'"),
        (lambda d: d.update(constants={"x": "1"}), "constants['x'] should be a number, found '1'"),
        (lambda d: d.update(constants={"x": 10**400}), "should be a finite number"),
        (lambda d: d.update(constants=[]), "constants should be an object"),
        (lambda d: d["models"][0].update(num_trees=1.5), "num_trees should be a whole number"),
        (lambda d: d["models"][0].update(num_trees=True), "num_trees should be a whole number"),
        (lambda d: d["models"][0].update(num_trees=0), "0 trees"),
        (lambda d: d["models"][0].update(kind="magic"), "kind should be one of kernel_latency"),
        (lambda d: d["models"][0].update(sha256="ABC"), "sha256 'ABC' is not allowed"),
        (lambda d: d["models"][0].update(residual_sigma=-1), "negative residual_sigma"),
        (lambda d: d["models"][0]["target"].update(prior=None), "a prior goes with log_ratio"),
        (lambda d: d["models"][0]["features"][0].update(train_min=9), "from high to low"),
        (lambda d: d["models"][0]["features"][0].update(name="a b"), "feature name 'a b'"),
        (lambda d: d["data"][0].update(rows=0), "has 0 rows"),
        (lambda d: d["data"][0].update(provenance="guessed"), "one of measured, composed"),
        (lambda d: d["metrics"][0].update(n=0), "impossible metrics for 'linear_fp32'"),
        (lambda d: d["metrics"][0].update(within_10_percent=101), "impossible metrics"),
        (lambda d: d["metrics"][0].update(spearman=1.5), "impossible metrics"),
        (lambda d: d["metrics"][0].update(mape_percent=None), "mape_percent should be a number"),
    ],
)
def test_each_wrong_field_is_named(
    folder: Path, change: Callable[[dict[str, Any]], object], clause: str
) -> None:
    edit(folder, change)
    message = one_line_error(lambda: Bundle.load(folder))
    assert clause in message and str(folder / "manifest.json") in message


NAMES = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True)
WORDS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    bundle_id=NAMES,
    description=WORDS,
    devices=st.lists(WORDS, max_size=3).map(tuple),
    constants=st.dictionaries(WORDS, NUMBERS, max_size=3),
    limits=st.lists(WORDS, max_size=3).map(tuple),
    teacher=st.none() | st.dictionaries(WORDS, WORDS, max_size=3),
    metrics=st.lists(
        st.builds(
            MetricRow,
            subject=WORDS,
            split=WORDS,
            provenance=st.sampled_from(Provenance),
            mape_percent=st.floats(0, 1e300),
            median_ape_percent=st.floats(0, 1e300),
            within_10_percent=st.floats(0, 100),
            spearman=st.none() | st.floats(-1, 1),
            n=st.integers(1, 10**12),
        ),
        max_size=3,
    ).map(tuple),
)
def test_json_keeps_everything(**changes: Any) -> None:
    manifest = make_manifest(**changes)
    text = manifest.to_json()
    again = Manifest.from_json(text)
    assert again == manifest
    assert again.to_json() == text
    assert render_model_card(again) == render_model_card(manifest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
MANIFEST_JSON = make_manifest().to_json()


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found: list[tuple[Any, Any]] = []
    for key, value in items:
        found.append((node, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


@settings(max_examples=300)
@given(data=st.data())
def test_a_mutated_manifest_is_a_manifest_or_one_error(data: st.DataObject) -> None:
    tree = json.loads(MANIFEST_JSON)
    spots = places(tree)
    container, key = spots[data.draw(st.integers(0, len(spots) - 1))]
    container[key] = data.draw(JSON)
    try:
        manifest = Manifest.from_json(json.dumps(tree))
    except BundleError as error:
        assert "\n" not in str(error)
    else:
        assert Manifest.from_json(manifest.to_json()) == manifest
        render_model_card(manifest)


@pytest.mark.parametrize("transform", Transform)
def test_transforms_are_inverted(transform: Transform) -> None:
    target, prior = np.array([1e-6, 0.5, 3.0]), np.array([2e-6, 0.5, 1.0])
    score = transform.apply(target, prior)
    np.testing.assert_allclose(transform.invert(score, prior), target, rtol=1e-14)


def test_log_ratio_is_the_logarithm_of_target_over_prior() -> None:
    score = Transform.LOG_RATIO.apply(np.array([np.e * 4.0]), np.array([4.0]))
    assert score[0] == pytest.approx(1.0, rel=1e-15)
    assert Transform.LOG.apply(np.array([np.e]))[0] == pytest.approx(1.0, rel=1e-15)
    with pytest.raises(ValueError, match="needs the prior"):
        Transform.LOG_RATIO.invert(score)


def test_feature_columns_take_the_range_of_present_values() -> None:
    rows = np.array([[1.0, np.nan], [-2.0, 5.0], [3.0, 4.0]])
    found = feature_columns((("a", "m"), ("b", "s")), rows)
    assert found == (FeatureColumn("a", "m", -2.0, 3.0), FeatureColumn("b", "s", 4.0, 5.0))
    with pytest.raises(ValueError, match="'b' has no value"):
        feature_columns((("a", "m"), ("b", "s")), rows[:1])
    with pytest.raises(ValueError, match="1 columns"):
        feature_columns((("a", "m"),), rows)


def test_source_date_epoch_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert created_utc() == "2023-11-14T22:13:20Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert make_manifest(created_utc=created_utc()).created_utc > "2025"
    assert built_with("numpy")["numpy"] == np.__version__


def test_model_card_says_it_all() -> None:
    card = render_model_card(make_manifest(teacher={"kind": "sage"}))
    measured, composed = card.split("Measured: published"), card.split("Composed: summed")
    assert len(measured) == len(composed) == 3  # once under data, once under metrics
    for fact in (
        "# test-kernels-1",
        "`log(device_time_s / roofline_s)`",
        "| kernels \\| x | fit | 6,460 | MIT |  |",
        "| sums | test | 12 | Apache-2.0 | https://a.b |",
        "| linear_fp32 | 5-fold | 4.25 | 3.10 | 91.5 | 0.9980 | 6,460 |",
        "| latency_ms | sums | 12.75 | 9.50 | 55.5 |  | 12 |",
        "- Only fp32.",
        "| launch_us | 4.25 |",
        "| linear_fp32: overhead_us | 27.5 |",
        "- Teacher: kind sage",
        f"| `linear_fp32.txt` | `{hashlib.sha256(TEXTS['linear_fp32'].encode()).hexdigest()}` |",
    ):
        assert fact in card


class TestPackagedFolder:
    """How the default bundle is found, on a stand-in for the package's folder."""

    @pytest.fixture
    def packaged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(load, "BUNDLES_FOLDER", tmp_path)
        write_bundle(tmp_path, make_manifest(), TEXTS)
        write_bundle(tmp_path, make_manifest(bundle_id="other-2"), TEXTS, default=True)
        return tmp_path

    def test_the_pointer_names_the_default(self, packaged: Path) -> None:
        assert load.available_bundles() == ("other-2", "test-kernels-1")
        assert Bundle.load().manifest.bundle_id == "other-2"

    def test_a_missing_pointer_is_a_broken_installation(self, packaged: Path) -> None:
        (packaged / "DEFAULT").unlink()
        assert "this installation has no bundle" in one_line_error(Bundle.load)

    @pytest.mark.parametrize("name", ["gone-3", "", "../test", "other-2\ntest-kernels-1"])
    def test_a_wrong_pointer_is_a_broken_installation(self, packaged: Path, name: str) -> None:
        (packaged / "DEFAULT").write_text(name)
        assert "which is not there" in one_line_error(Bundle.load)


@pytest.mark.parametrize("bundle_id", available_bundles())
class TestShippedBundles:
    def test_is_intact(self, bundle_id: str) -> None:
        bundle = Bundle.load(load.BUNDLES_FOLDER / bundle_id)
        bundle.verify()
        assert bundle.manifest.bundle_id == bundle_id

    def test_model_card_is_rendered_from_the_manifest(self, bundle_id: str) -> None:
        folder = load.BUNDLES_FOLDER / bundle_id
        card = (folder / "MODEL_CARD.md").read_bytes().decode()
        assert card == render_model_card(Bundle.load(folder).manifest)

    def test_holds_what_the_manifest_lists_and_nothing_else(self, bundle_id: str) -> None:
        folder = load.BUNDLES_FOLDER / bundle_id
        listed = {model.file for model in Bundle.load(folder).manifest.models}
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        assert found == listed | {"manifest.json", "MODEL_CARD.md"}

    def test_names_licence_and_use_of_its_data(self, bundle_id: str) -> None:
        manifest = Bundle.load(load.BUNDLES_FOLDER / bundle_id).manifest
        assert any(source.used_for is DataUse.FIT for source in manifest.data)
        assert all(source.licence for source in manifest.data)
        assert manifest.metrics and manifest.limits


@pytest.mark.skipif(not load.BUNDLES_FOLDER.is_dir(), reason="no bundle has been trained yet")
def test_shipped_bundles_stay_below_20_mb_and_one_is_the_default() -> None:
    sizes = [path.stat().st_size for path in load.BUNDLES_FOLDER.rglob("*") if path.is_file()]
    assert 0 < sum(sizes) < 20e6
    assert Bundle.load().manifest.bundle_id in available_bundles()
