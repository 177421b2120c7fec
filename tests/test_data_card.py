"""The data card and ``corpus stats``: the same counts, of the right things, from miniatures."""

from __future__ import annotations

import json
import re
import sys

import pytest
from match_rows import record
from zoo import model, node, value, weight

from training.__main__ import main
from training.corpus import card_command
from training.corpus.counts import composed_counts, corpus_digest
from training.corpus.labelling import label_corpus
from training.corpus.labels import read_labels
from training.corpus.records import Corpus, write_shards

VISION = (
    "source_id,model,library_hint,task,device,precision,framework,batch,height,width,metric,value,"
    "unit,percentile,notes",
    "paper,resnet50,torchvision:resnet50,cls,A100-SXM4-40GB,fp16,tensorrt,8,224,224,latency_ms,1.5,"
    "ms,p50,",
    "paper,resnet50,torchvision:resnet50,cls,A100-SXM4-80GB,fp32,pytorch-eager,1,224,224,"
    "latency_ms,9,ms,avg,",
    "paper,resnet50,torchvision:resnet50,cls,A100-SXM4-40GB,fp16,tensorrt,8,224,224,latency_ms,1.6,"
    "ms,p99,",
    "paper,resnet101,timm:resnet101,cls,A100-SXM4-40GB,fp16,tensorrt,8,224,224,latency_ms,2,ms,avg,",
)
SOURCES = (
    "source_id,title,repository_or_paper,path,commit_or_date,measurement_method",
    "paper,A paper | with a bar,arXiv 1,Table 1,v2,timed",
)


def network(width: int) -> bytes:
    return model(
        [
            node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], strides=[4, 4]),
            node("GlobalAveragePool", ["a"], ["y"]),
        ],
        [value("x", ["N", 3, 224, 224])],
        [value("y", ["N", width, 1, 1])],
        [weight("w", width, 3, 3, 3)],
    ).SerializeToString()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two records, one with measured rows, their composed labels, a data folder."""
    root = tmp_path_factory.mktemp("card")
    records = [record(name) for name in ("torchvision/resnet50", "plain/other")]
    # Fingerprints must differ within their first digits.
    records = [
        type(r)(**{**{f: getattr(r, f) for f in r.__slots__}, "fingerprint": f"{n:012x}rest",
                   "family": ("resnet", "other")[n]})
        for n, r in enumerate(records)
    ]  # fmt: skip
    write_shards(root / "records", zip(records, (network(16), network(24)), strict=True))
    failure = {"name": "plain/bad", "reason": "torchscript opset 17: KeyError: no"}
    (root / "records" / "failures.jsonl").write_text(json.dumps(failure) + "\n")
    label_corpus(Corpus(root / "records"), root / "labels.csv.zst", report=lambda text: None)
    published = root / "data" / "published_a100"
    published.mkdir(parents=True)
    for name, lines in (("vision.csv", VISION), ("sources_vision.csv", SOURCES)):
        (published / name).write_text("".join(f"{line}\n" for line in lines))
    return root


@pytest.fixture(scope="module")
def card(folder):
    pytest.importorskip("matplotlib")
    output = folder / "out" / "DATA.md"
    output.parent.mkdir()
    assert main([*command(folder, "card"), "--output", str(output)]) == 0
    return output


def command(folder, verb: str, *, data: bool = True) -> list[str]:
    files = ["--records", str(folder / "records"), "--labels", str(folder / "labels.csv.zst")]
    return ["corpus", verb, *files, *(["--data", str(folder / "data")] if data else [])]


def stats(folder, capsys, *, data: bool = True) -> dict:
    capsys.readouterr()
    assert main([*command(folder, "stats", data=data), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_stats_count_records_composed_and_measured_labels_apart(folder, capsys):
    facts = stats(folder, capsys)
    assert (facts["graphs"], facts["by_family"]) == (2, {"other": 1, "resnet": 1})
    composed, measured = facts["composed"], facts["measured"]
    labels = read_labels(folder / "labels.csv.zst")
    assert composed["provenance"] == "composed"
    assert composed["workloads"] == len(labels) == 22
    assert composed["fewest_per_graph"] == 11
    assert composed["by_family"] == {"other": 11, "resnet": 11}
    assert (measured["provenance"], measured["labels"], measured["graphs"]) == ("measured", 2, 1)
    assert measured["by_source"] == {"paper": 2}
    assert measured["by_device"] == {"a100-sxm4-40gb": 1, "a100-sxm4-80gb": 1}
    assert measured["by_runtime"] == {"pytorch": 1, "tensorrt": 1}
    assert measured["by_precision"] == {"fp16": 1, "fp32": 1}
    assert measured["left_out"] == {"not_exported": 1, "tail_statistic": 1}
    assert measured["most_missing"] == {"timm/resnet101@224": 1}


def test_every_count_adds_up_to_its_total(folder, capsys):
    facts = stats(folder, capsys)
    for counts, total, keys in (
        (facts, facts["graphs"], ("source", "family", "exporter")),
        (
            facts["composed"],
            facts["composed"]["workloads"],
            ("source", "family", "device", "runtime", "precision", "batch", "resolution", "engine"),
        ),
        (
            facts["measured"],
            facts["measured"]["labels"],
            ("source", "family", "device", "runtime", "precision", "batch", "metric"),
        ),
    ):
        for key in keys:
            assert sum(counts[f"by_{key}"].values()) == total, key


def test_the_text_of_stats_has_the_same_numbers(folder, capsys):
    assert main(command(folder, "stats")) == 0
    text = capsys.readouterr().out
    assert "graphs: 2" in text
    assert re.search(r"(?m)^measured:\n  provenance: measured\n  labels: 2$", text)
    assert re.search(r"(?m)^  by_source:\n         2 paper$", text)


def test_labels_of_other_records_are_not_counted(folder):
    labels = read_labels(folder / "labels.csv.zst")
    write_shards(folder / "one", list(Corpus(folder / "records").models())[:1])
    assert composed_counts(labels, Corpus(folder / "one"))["workloads"] == 11


def test_the_card_says_what_stats_count(card, folder, capsys):
    text = card.read_text(encoding="utf-8")
    facts = stats(folder, capsys)
    assert json.loads((card.parent / "data_card" / "counts.json").read_text()) == facts
    for line in (
        "| distinct graphs | 2 |",
        "| composed workloads | 22 |",
        "| measured labels | 2 |",
        "| resnet | 1 | 11 | 2 |",
        "| other | 1 | 11 | 0 |",
        "| `paper` | A paper \\| with a bar | arXiv 1 | 2 |",
        "| not_exported | 1 |",
        "| a100-sxm4-80gb | 1 |",
    ):
        assert line in text.splitlines(), line
    assert "1 of 2 families have no measured label." in text
    assert "`timm/resnet101@224` (1)" in text
    assert "could not be exported: 1 (KeyError 1)" in text
    assert "CC BY-NC-SA" in text


def test_the_card_shows_its_plots_and_renders_the_same_again(card, folder):
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", card.read_text(encoding="utf-8"))
    assert len(pictures) == 2
    before = {name: (card.parent / name).read_bytes() for name in (*pictures, card.name)}
    assert all(before[name].startswith(b"\x89PNG") for name in pictures)
    assert all(len(content) < 500_000 for content in before.values())
    assert main([*command(folder, "card"), "--output", str(card)]) == 0
    assert {name: (card.parent / name).read_bytes() for name in before} == before


def test_without_the_measurements_stats_take_them_from_the_card_of_these_records(
    card, folder, capsys, monkeypatch
):
    monkeypatch.setattr(card_command, "CARD", card)
    known = stats(folder, capsys)
    assert stats(folder, capsys, data=False) == known
    counts = card.parent / "data_card" / "counts.json"
    text = counts.read_text()
    counts.write_text(text.replace(corpus_digest(Corpus(folder / "records")), "0" * 12))
    assert stats(folder, capsys, data=False)["measured"] is None
    counts.write_text(text)


def test_without_matplotlib_the_card_says_what_to_install(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([*command(folder, "card"), "--output", str(tmp_path / "DATA.md")]) == 2
    assert "dippm-lite[train]" in capsys.readouterr().err
    assert not (tmp_path / "DATA.md").exists()


def test_a_folder_without_records_and_a_missing_file_of_labels_are_input_errors(folder, capsys):
    assert main(["corpus", "stats", "--records", str(folder / "none")]) == 2
    assert "corpus build" in capsys.readouterr().err
    wrong = ["corpus", "stats", "--records", str(folder / "records"), "--labels", "none.zst"]
    assert main(wrong) == 2
    assert "corpus label" in capsys.readouterr().err
