"""Records: built resumably, merged, packed, read back, and rebuilt the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.corpus import records
from training.corpus.build import build, failures, make_record, pack, rebuild, unpack
from training.corpus.counts import record_counts
from training.corpus.records import Corpus, Record, write_shards

RECORD = Record(
    name="plain/a",
    family="a",
    builder="b",
    arguments={"width": 3},
    exporter="torchscript",
    opset=17,
    inputs=[["x", [3], "float32"]],
    batch=True,
    parameters=5,
    nodes=2,
    fingerprint="0",
    architecture="1",
    torch="2",
)


def entries(count: int) -> list[tuple[Record, bytes]]:
    return [
        (replace(RECORD, name=f"plain/{n}", fingerprint=str(n)), bytes([n % 251]) * (100 + n))
        for n in range(count)
    ]


def test_records_come_back_as_they_were_written_over_several_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "SHARD_BYTES", 1000)
    written = entries(40)
    write_shards(tmp_path, written)
    assert len(list(tmp_path.glob("*.onnx.zst"))) > 3
    assert list(Corpus(tmp_path).models()) == written
    assert list(Corpus(tmp_path).models([written[17][0]])) == [written[17]]


def test_writing_again_leaves_nothing_of_the_old_records(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "SHARD_BYTES", 1000)
    write_shards(tmp_path, entries(40))
    write_shards(tmp_path, entries(2))
    assert len(Corpus(tmp_path).records) == 2
    assert len(list(tmp_path.glob("*.onnx.zst"))) == 1


def test_a_missing_or_shortened_shard_is_an_error(tmp_path):
    write_shards(tmp_path, entries(3))
    index = tmp_path / "index.jsonl"
    lines = [json.loads(line) for line in index.read_text().splitlines()]
    lines[2]["place"]["size"] += 1
    index.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match="plain/2 lies outside"):
        list(Corpus(tmp_path).models())
    (tmp_path / "000.onnx.zst").unlink()
    with pytest.raises(FileNotFoundError):
        list(Corpus(tmp_path).models())


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    names = ["random/cells-0", "random/mixed-0", "plain/lstm", "plain/nothing"]
    build(names, folder, exporters=(("torchscript", 17),))
    return folder


def test_what_is_built_is_kept_and_what_fails_is_listed_with_its_reason(work):
    assert len(list((work / "models").glob("*.onnx"))) == 3
    ((name, reason),) = failures(work)
    assert name == "plain/nothing"
    assert "no network 'plain/nothing'" in reason


def test_a_second_run_builds_nothing_again(work, capfd):
    before = {path: path.stat().st_mtime_ns for path in (work / "models").iterdir()}
    build(["random/cells-0", "random/mixed-0", "plain/lstm", "plain/nothing"], work)
    assert {path: path.stat().st_mtime_ns for path in (work / "models").iterdir()} == before
    assert "4 of 4 networks are built already" in capfd.readouterr().err


def test_packed_records_count_rebuild_and_notice_a_change(work, tmp_path):
    assert pack(work, tmp_path) == 3
    corpus = Corpus(tmp_path)
    counts = record_counts(corpus)
    assert counts["graphs"] == 3
    assert counts["by_source"] == {"random": 2, "plain": 1}
    assert counts["by_exporter"] == {"torchscript opset 17": 3}
    assert json.loads((tmp_path / "failures.jsonl").read_text())["name"] == "plain/nothing"
    assert rebuild(corpus, 3) == ()
    changed = [
        (record if record.name != "plain/lstm" else replace(record, nodes=1), content)
        for record, content in corpus.models()
    ]
    write_shards(tmp_path, changed)
    assert rebuild(Corpus(tmp_path), 3) == (("plain/lstm", "its metadata differ"),)


def test_a_build_goes_on_from_packed_records(work, tmp_path, capfd):
    pack(work, tmp_path / "records")
    unpack(Corpus(tmp_path / "records"), tmp_path / "work")
    build(["random/cells-0", "random/mixed-0", "plain/lstm"], tmp_path / "work")
    assert "3 of 3 networks are built already" in capfd.readouterr().err
    assert pack(tmp_path / "work", tmp_path / "again") == 3
    first, again = (Corpus(tmp_path / folder) for folder in ("records", "again"))
    assert list(first.models()) == list(again.models())


def test_networks_of_one_computation_become_one_record_with_aliases(work, tmp_path):
    copy = tmp_path / "work"
    (copy / "models").mkdir(parents=True)
    (copy / "failures").mkdir()
    for path in (work / "models").iterdir():
        (copy / "models" / path.name).write_bytes(path.read_bytes())
        if path.suffix == ".json":
            fields = json.loads(path.read_text())
            fields["name"] = "twin/" + fields["name"]
            (copy / "models" / f"twin{path.name}").write_text(json.dumps(fields))
            model = path.with_suffix(".onnx").read_bytes()
            (copy / "models" / f"twin{path.stem}.onnx").write_bytes(model)
    assert pack(copy, tmp_path / "records") == 3
    merged = {r.name: r.aliases for r in Corpus(tmp_path / "records").records}
    assert merged["plain/lstm"] == ("twin/plain/lstm",)
    assert record_counts(Corpus(tmp_path / "records"))["names"] == 6


def test_a_record_says_how_its_network_is_made():
    record, model = make_record("random/mixed-3", "torchscript", 17)
    assert record.family == "random_mixed"
    assert record.builder == "training.corpus.random_networks.MixedNetwork"
    size = record.arguments["image_size"]
    assert record.inputs == [["image", [3, size, size], "float32"]]
    assert record.nodes == len(model.graph.node)
    assert json.loads(json.dumps(record.arguments)) == record.arguments


def test_a_model_whose_shapes_contradict_each_other_is_no_record(monkeypatch):
    from dippm_lite.errors import InputError
    from training.corpus import build as building

    def broken(network, *, exporter, opset):
        model, parameters = export_network(network, exporter=exporter, opset=opset)
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 7
        return model, parameters

    export_network = building.export_network
    monkeypatch.setattr(building, "export_network", broken)
    with pytest.raises(InputError):
        make_record("plain/unet", "torchscript", 17)
