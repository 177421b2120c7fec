"""Composed labels: which workloads, what they hold, and that a run can be broken off."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from itertools import pairwise

import pytest
from match_rows import published
from zoo import model, node, stored, value, weight

from dippm_lite import Predictor
from dippm_lite.devices import find_device
from dippm_lite.errors import InputError
from dippm_lite.execution import Precision, Runtime
from dippm_lite.onnx_reader import read_graph
from training.__main__ import main
from training.corpus import labelling
from training.corpus.comparison import comparable, compare, render_ratios
from training.corpus.label_plan import (
    ANCHOR,
    FEWEST,
    PER_BATCH,
    SETTINGS,
    TICKETS,
    batches_of,
    device_order,
    settings_of,
)
from training.corpus.labelling import Composer, label_corpus, label_record
from training.corpus.labels import Label, read_labels, write_labels
from training.corpus.records import Corpus, Record, write_shards
from training.corpus.resized import read_resized, resize
from training.datasets.measured import MeasuredRow
from training.datasets.reasons import Reason
from training.datasets.splits import Side, freeze

FINGERPRINTS = [f"{n:032x}" for n in range(300)]


def record(name: str, number: int, shape: tuple[int, ...], batch: bool = True) -> Record:
    return Record(
        name=name, family=name.split("/")[1], builder="b", arguments={}, exporter="torchscript",
        opset=17, inputs=[["x", list(shape), "float32"]], batch=batch, parameters=1, nodes=4,
        fingerprint=f"{number:012x}{0:020x}", architecture=str(number), torch="2",
    )  # fmt: skip


def convolutions(batch: int | str = "N", side: int = 64, channels: int = 32) -> bytes:
    """Two convolutions, a mean over the image and a classifier."""
    return model(
        [
            node("Conv", ["x", "w0"], ["a"], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
            node("Relu", ["a"], ["b"]),
            node("Conv", ["b", "w1"], ["c"], kernel_shape=[3, 3], pads=[1] * 4),
            node("GlobalAveragePool", ["c"], ["d"]),
            node("Flatten", ["d"], ["e"]),
            node("Gemm", ["e", "w2"], ["y"], transB=1),
        ],
        [value("x", [batch, 3, side, side])],
        [value("y", [batch, 10])],
        [
            weight("w0", channels, 3, 3, 3),
            weight("w1", channels, channels, 3, 3),
            weight("w2", 10, channels),
        ],
    ).SerializeToString()


def patches() -> bytes:
    """Patches of 16 pixels with one learnt position each: made for 64 pixels."""
    return model(
        [
            node("Conv", ["x", "w0"], ["a"], kernel_shape=[16, 16], strides=[16, 16]),
            node("Reshape", ["a", "shape"], ["b"]),
            node("Add", ["b", "w1"], ["y"]),
        ],
        [value("x", ["N", 3, 64, 64])],
        [value("y", None)],
        [weight("w0", 32, 3, 16, 16), weight("w1", 1, 32, 16), stored("shape", [0, 32, -1])],
    ).SerializeToString()


CNN = record("plain/cnn", 1, (3, 64, 64))
VIT = record("plain/vit", 2, (3, 64, 64))
FIXED = record("plain/fixed", 3, (3, 64, 64), batch=False)
BROKEN = record("plain/broken", 4, (3, 64, 64))
MODELS = ((CNN, convolutions()), (VIT, patches()), (FIXED, convolutions(1)), (BROKEN, b"no onnx"))


@pytest.fixture(scope="module")
def composer() -> Composer:
    return Composer()


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    write_shards(tmp_path / "records", MODELS)
    return Corpus(tmp_path / "records")


# The plan


def test_batches_are_one_small_and_large_and_all_of_1_to_256_occur():
    drawn = [batches_of(fingerprint, 100.0, 10.0) for fingerprint in FINGERPRINTS]
    assert all(b[0] == 1 and 2 <= b[1] <= 16 and 32 <= b[2] <= 256 for b in drawn)
    assert {batch for batches in drawn for batch in batches} == {2**n for n in range(9)}


def test_batches_shrink_to_what_fits_and_one_remains():
    room = find_device("a100-sxm4-80gb").usable_mib - 1000.0 - 1024
    for fingerprint in FINGERPRINTS[:50]:
        batches = batches_of(fingerprint, 1000.0, room / 20)
        assert max(batches) == 16
        assert batches[0] == 1
        assert batches_of(fingerprint, 90_000.0, 5000.0) == (1,)


def test_each_batch_has_the_default_and_no_setting_is_dealt_twice():
    for fingerprint in FINGERPRINTS:
        plan = settings_of(fingerprint, (1, 8, 64))
        taken = [setting for wanted, settings in plan.values() for setting in settings[:wanted]]
        assert len(taken) == 3 * PER_BATCH
        others = [setting for setting in taken if setting != ANCHOR]
        assert len(set(others)) == len(others) == len(taken) - 3


@pytest.mark.parametrize("batches", [(1,), (1, 4), (1, 4, 32)])
def test_a_record_has_more_than_five_workloads_whatever_its_batches(batches):
    plan = settings_of(FINGERPRINTS[0], batches)
    assert sum(wanted for wanted, _ in plan.values()) >= FEWEST > 5
    assert all(set(settings) == {ANCHOR, *SETTINGS} for _, settings in plan.values())


def test_every_setting_and_every_device_is_drawn_often_enough():
    first = [settings_of(f, (1,))[1][1][1] for f in FINGERPRINTS]
    assert all(first.count(setting) > len(FINGERPRINTS) / len(SETTINGS) / 3 for setting in SETTINGS)
    setting = (Runtime.TENSORRT, Precision.FP16)
    devices = [device_order(f, 8, setting)[0].name for f in FINGERPRINTS]
    share = len(FINGERPRINTS) / sum(TICKETS.values())
    assert all(devices.count(name) > share * weight / 3 for name, weight in TICKETS.items())


def test_the_plan_depends_on_the_fingerprint_alone():
    assert settings_of(FINGERPRINTS[7], (1, 8)) == settings_of(FINGERPRINTS[7], (1, 8))
    assert len({settings_of(f, (1,))[1] for f in FINGERPRINTS}) > 250


# Another resolution


def test_a_resized_convolutional_network_is_the_one_made_for_that_size():
    own, other = (
        read_graph(convolutions(), batch_size=2),
        read_graph(convolutions(side=96), batch_size=2),
    )
    resized = read_resized(CNN, convolutions(), own, 96, 2)
    assert resized is not None
    assert [v.spec for v in resized.graph.values] == [v.spec for v in other.graph.values]
    assert read_graph(resize(convolutions(), 96), batch_size=2).graph == resized.graph


def test_a_size_that_is_built_in_is_noticed():
    own = read_graph(patches(), batch_size=2)
    assert read_resized(VIT, patches(), own, 96, 2) is None


# Labels


def test_labels_are_the_predictions_of_the_product(composer):
    outcome = label_record(CNN, convolutions(), composer)
    assert outcome.reason == ""
    assert len(outcome.labels) == 3 * PER_BATCH + 2
    product = Predictor.load()
    for label in outcome.labels:
        predictor = replace(
            product,
            device=find_device(label.device),
            runtime=Runtime(label.runtime),
            precision=Precision(label.precision),
        )
        content = convolutions(side=label.size or 64)
        prediction = predictor.predict(content, batch_size=label.batch)
        assert label.latency_ms == pytest.approx(prediction.latency_ms.value)
        assert label.energy_j == pytest.approx(prediction.energy_j.value)
        assert label.memory_mib == pytest.approx(prediction.memory_mib.value)
        assert label.bundle_id == prediction.bundle_id
        side = (label.size or 64) // 2
        macs = side * side * 9 * (3 * 32 + 32 * 32) + 32 * 10
        assert label.macs == label.batch * macs
        assert label.params == 9 * 3 * 32 + 9 * 32 * 32 + 320
        assert label.provenance == "composed"


def test_the_default_does_not_get_faster_or_smaller_with_the_batch(composer):
    content = convolutions(channels=128)
    labels = label_record(CNN, content, composer).labels
    anchors = [
        (label.batch, label.latency_ms, label.memory_mib, label.energy_j)
        for label in labels
        if (label.runtime, label.precision, label.size) == ("pytorch", "auto", 0)
    ]
    assert len(anchors) == 3
    for smaller, larger in pairwise(anchors):
        assert larger[0] > smaller[0]
        # Trees have steps; launches bound the smallest batches.
        assert all(b > 0.98 * a for a, b in zip(smaller, larger, strict=True))
    assert all(b > a for a, b in zip(anchors[0], anchors[-1], strict=True))


def test_a_fixed_batch_gets_as_many_workloads_at_that_batch(composer):
    labels = label_record(FIXED, convolutions(1), composer).labels
    assert {label.batch for label in labels} == {1}
    assert len([label for label in labels if label.size == 0]) == FEWEST


def test_a_workload_goes_to_a_device_that_has_the_memory(composer):
    """Weights of 11.5 GiB in fp32 leave no instance below 3g.20gb for full precision."""
    big = model(
        [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "v"], ["y"])],
        [value("x", ["N", 38_000])],
        [value("y", ["N", 38_000])],
        [big_weight("w", 38_000, 40_700), big_weight("v", 40_700, 38_000)],
    ).SerializeToString()
    outcome = label_record(record("plain/wide", 5, (38_000,)), big, composer)
    assert len(outcome.labels) >= FEWEST
    for label in outcome.labels:
        assert label.memory_mib <= find_device(label.device).usable_mib
        assert label.memory_mib > (11_000 if label.precision == "fp32" else 2_000)


def big_weight(name: str, *dims: int):
    """A weight without its numbers, as the records hold them."""
    tensor = weight(name, 1, 1)
    del tensor.dims[:]
    tensor.dims.extend(dims)
    tensor.ClearField("raw_data")
    return tensor


def test_what_fits_nowhere_is_a_record_with_a_reason(composer):
    huge = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["N", 400_000])],
        [value("y", ["N", 400_000])],
        [big_weight("w", 400_000, 400_000)],
    ).SerializeToString()
    outcome = label_record(record("plain/huge", 6, (400_000,)), huge, composer)
    assert outcome.labels == ()
    assert "fits" in outcome.reason


# Files and runs


def test_labels_come_back_from_the_file_and_equal_labels_are_equal_bytes(composer, tmp_path):
    labels = label_record(CNN, convolutions(), composer).labels
    for name in ("a", "b"):
        write_labels(tmp_path / name, labels)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for read, label in zip(read_labels(tmp_path / "a"), labels, strict=True):
        for back, before in zip(astuple(read), astuple(label), strict=True):
            assert back == (
                pytest.approx(before, rel=1e-5) if isinstance(before, float) else before
            )


def test_a_damaged_or_foreign_file_is_refused(composer, tmp_path):
    path = tmp_path / "labels.csv.zst"
    with pytest.raises(InputError, match="no labels in"):
        read_labels(path)
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match="no file of composed labels"):
        read_labels(path)


def test_a_label_must_be_composed_and_positive(composer):
    label = label_record(CNN, convolutions(), composer).labels[0]
    with pytest.raises(ValueError, match="not 'composed'"):
        replace(label, provenance="measured")
    with pytest.raises(ValueError, match="positive"):
        replace(label, energy_j=0.0)


def run(corpus: Corpus, output, **options) -> list[str]:
    said: list[str] = []
    label_corpus(corpus, output, report=said.append, **options)
    return said


def test_a_run_lists_failures_and_a_second_one_composes_nothing_again(corpus, tmp_path):
    output = tmp_path / "composed.csv.zst"
    run(corpus, output)
    labels = read_labels(output)
    assert list(dict.fromkeys(label.name for label in labels)) == [r.name for r, _ in MODELS[:3]]
    failures = (tmp_path / "composed_failures.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in failures] == ["plain/broken"]
    before = output.read_bytes()
    assert run(corpus, output)[0].startswith("3 of 4")
    assert output.read_bytes() == before


def test_a_run_that_was_broken_off_goes_on_where_it_was(corpus, tmp_path, monkeypatch):
    output, whole = tmp_path / "composed.csv.zst", tmp_path / "whole.csv.zst"
    run(corpus, whole)
    label_one = labelling.label_record

    def break_off(record, model, composer):
        if record.name == "plain/fixed":
            raise KeyboardInterrupt
        return label_one(record, model, composer)

    monkeypatch.setattr(labelling, "label_record", break_off)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, output)
    assert not output.exists()
    part = tmp_path / "composed.csv.zst.part"
    part.write_text(part.read_text() + '[["half a li')
    monkeypatch.undo()
    assert run(corpus, output)[0].startswith("2 of 4")
    assert output.read_bytes() == whole.read_bytes()
    assert not part.exists()


def test_several_processes_make_the_same_file(corpus, tmp_path):
    outputs = [tmp_path / name / "composed.csv.zst" for name in "ab"]
    for workers, output in enumerate(outputs, 1):
        run(corpus, output, workers=workers)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_labels_of_another_engine_are_composed_again(corpus, tmp_path):
    output = tmp_path / "composed.csv.zst"
    run(corpus, output)
    labels = read_labels(output)
    assert len({label.engine for label in labels}) == 1
    write_labels(output, [replace(label, engine="0" * 12) for label in labels])
    assert run(corpus, output)[0].startswith("0 of 4")
    assert read_labels(output) == labels


def test_the_command_says_what_it_made(corpus, tmp_path, capsys):
    output = tmp_path / "out" / "composed.csv.zst"
    command = ["corpus", "label", "--records", str(corpus.folder), "--output", str(output)]
    assert main([*command, "--sample", "2"]) == 0
    shown = capsys.readouterr()
    assert f"{len(read_labels(output))} workloads of 2 records, 0 without" in shown.out
    assert "workloads/s" in shown.err
    assert main(["corpus", "label", "--records", str(tmp_path)]) == 2
    assert "no records in" in capsys.readouterr().err


# Beside measured figures


def measured(graph: str, **fields) -> MeasuredRow:
    row = {
        "row": published(), "source": "paper", "device": "a100-sxm4-40gb", "precision": "fp16",
        "runtime": "tensorrt", "graph": graph, "batch": 8, "metric": "latency_ms", "value": 2.0,
    }  # fmt: skip
    return MeasuredRow(**{**row, **fields})


def test_rows_of_the_test_side_and_of_other_engines_are_not_compared(tmp_path):
    many = [record(f"plain/net-{n}", n, (3, 64, 64)) for n in range(40)]
    write_shards(tmp_path, [(r, convolutions()) for r in many])
    corpus = Corpus(tmp_path)
    splits = freeze(corpus.records)
    kept = comparable([measured(r.name) for r in many], corpus)
    sides = {r.name: splits.side(r.fingerprint) for r in many}
    assert {sides[row.graph] for row in kept} == {Side.TRAIN, Side.VALIDATION}
    assert len(kept) == sum(side is not Side.TEST for side in sides.values()) < 40
    name = kept[0].graph
    for change in (
        {"runtime": "vllm"},
        {"precision": "unknown"},
        {"metric": "power_w"},
        {"reason": Reason.OUTLIER},
    ):
        assert comparable([measured(name, **change)], corpus) == []


def test_a_ratio_is_the_prediction_over_the_measured_figure(corpus, composer):
    rows = [measured("plain/cnn"), measured("plain/cnn", metric="memory_mib", value=400.0)]
    latency, memory = compare([*rows, measured("plain/broken")], corpus, composer)
    prediction = Predictor.load("a100-sxm4-40gb", "tensorrt", "fp16").predict(
        convolutions(), batch_size=8
    )
    assert latency.ratio == pytest.approx(prediction.latency_ms.value / 2)
    assert memory.ratio == pytest.approx(prediction.memory_mib.value / 400)
    text = render_ratios([latency, memory])
    assert f"{latency.ratio:.2f}" in text
    assert "tensorrt fp16" in text


def test_a_row_has_the_types_of_its_columns():
    row = ["f", "n", "2", "0", "pytorch", "auto", "a100", "1.5", "1", "2", "0.1", "600", "0.5", "9",
           "8", "0", "", "composed", "b", "e", "s", "0.1"]  # fmt: skip
    label = Label.of_row(row)
    assert (label.batch, label.latency_ms, label.macs) == (2, 1.5, 9)
    assert label.row() == row
