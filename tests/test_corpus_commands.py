"""``python -m training corpus`` from the command line's side."""

from __future__ import annotations

import json

import onnx
import pytest

from training.__main__ import VERBS, main


def test_export_writes_a_file_that_onnx_reads(tmp_path, capsys):
    target = tmp_path / "lstm.onnx"
    assert main(["corpus", "export", "plain/lstm", "--canonical", "--output", str(target)]) == 0
    model = onnx.load(str(target), load_external_data=False)
    assert "LSTM" in {node.op_type for node in model.graph.node}
    assert "3421194 parameters" in capsys.readouterr().out


def test_build_pack_stats_and_sample_agree(tmp_path, capsys, monkeypatch):
    from training.corpus import plan as plans

    monkeypatch.setattr(plans, "PLANS", {"plain": lambda: ["plain/gru", "plain/dcgan"]})
    work, records = str(tmp_path / "work"), str(tmp_path / "records")
    assert main(["corpus", "build", "--work", work, "--workers", "1", "--output", records]) == 0
    assert "2 records" in capsys.readouterr().out
    assert main(["corpus", "stats", "--records", records, "--format", "json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["graphs"] == 2
    assert counts["by_family"] == {"gan": 1, "gru": 1}
    assert main(["corpus", "stats", "--records", records]) == 0
    assert "       1 gan" in capsys.readouterr().out
    build = ["corpus", "build", "--output", records, "--sample", "2"]
    assert main(build) == 0
    assert "2 of 2 records rebuilt identically" in capsys.readouterr().out


def test_building_without_a_folder_is_a_usage_error(capsys):
    assert main(["corpus", "build", "--source", "plain"]) == 2
    assert "give --work FOLDER" in capsys.readouterr().err


def test_an_unknown_verb_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["corpse"])
    assert stopped.value.code == 2
    assert "corpse" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_that_the_help_lists_has_a_parser(verb, capsys):
    for arguments in ([], [verb]):
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--help"])
        assert stopped.value.code == 0
        assert verb in capsys.readouterr().out
