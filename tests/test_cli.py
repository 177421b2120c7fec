"""The command line as a person meets it: answers, notes, exit codes, one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from dippm_lite.cli import main

NETWORKS = Path(__file__).parent / "data" / "networks"
RESNET = str(NETWORKS / "resnet50.torchscript18.onnx")


@pytest.fixture(autouse=True)
def _in_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NETWORKS)  # goldens name files, not folders


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must end with exit code 2 and one line on stderr; returns the line."""

    def run(*argv: str) -> str:
        code = main(argv)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert err.count("\n") == 1 and err.startswith("dippm-lite: ")
        return err

    return run


def _save(path: Path, shape: tuple[object, ...], name: str = "x") -> str:
    graph = helper.make_graph(
        [helper.make_node("Relu", [name], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return str(path)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_predict_matches_its_golden(
    form: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    assert main(["predict", "resnet50.torchscript18.onnx", "--batch", "8", "--format", form]) == 0
    golden(f"cli_predict.{form}", capsys.readouterr().out)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_inspect_matches_its_golden(
    form: str, capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    assert main(["inspect", "bert_base.torchscript18.onnx", "--batch", "2", "--format", form]) == 0
    golden(f"cli_inspect.{form}", capsys.readouterr().out)


def test_devices_matches_its_golden(
    capsys: pytest.CaptureFixture[str], golden: Callable[[str, str], None]
) -> None:
    assert main(["devices"]) == 0
    golden("cli_devices.text", capsys.readouterr().out)
    assert main(["devices", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"a100-sxm4-40gb", "a100-pcie-80gb"} <= {device["name"] for device in listed}


def test_info_shows_the_model_card_and_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    card = capsys.readouterr().out
    assert main(["info", "--format", "json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert manifest["bundle_id"] in card


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", RESNET, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert {
        *("schema", "model", "inputs", "device", "runtime", "precision", "batch_size"),
        *("latency_ms", "energy_j", "memory_mib", "mig", "caveats", "bundle_id", "static"),
    } <= set(answer)
    for target in ("latency_ms", "energy_j", "memory_mib"):
        assert set(answer[target]) == {"value", "low", "high"}
        assert 0 < answer[target]["low"] <= answer[target]["value"] <= answer[target]["high"]
    assert set(answer["mig"]) == {"profile", "paper_profile", "alternatives"}
    assert {
        *("macs", "params", "weight_bytes", "peak_activation_bytes", "nodes", "kernels", "ops"),
    } == set(answer["static"])
    assert answer["caveats"][0]["code"] == "AssumedBatch"
    assert "taken as the batch" in err  # the batch was not given, and that is said


def test_several_files_give_an_array_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["mobilenet_v2.dynamo18.onnx", "resnet50.dynamo18.onnx"]
    assert main(["predict", *files, "--format", "json"]) == 0
    assert [answer["model"] for answer in json.loads(capsys.readouterr().out)] == files


def test_top_says_how_many_kernels_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", RESNET, "--format", "json", "--top", "3"]) == 0
    assert len(json.loads(capsys.readouterr().out)["breakdown"]) == 3


# Bad input: what is wrong, exit code 2, one line.


def test_a_missing_file(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "no-such.onnx" in fails("predict", str(tmp_path / "no-such.onnx"))


def test_a_folder(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "folder" in fails("predict", str(tmp_path))


def test_a_text_file_named_onnx(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "notes.onnx"
    path.write_text("just some notes\n", encoding="utf-8")
    assert "not an ONNX model" in fails("predict", str(path))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_model(fails: Callable[..., str], tmp_path: Path, share: float) -> None:
    whole = Path(RESNET).read_bytes()
    path = tmp_path / "half.onnx"
    path.write_bytes(whole[: int(len(whole) * share)])
    fails("predict", str(path), "--batch", "1")


def test_an_empty_graph(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [])), path)
    assert "no nodes" in fails("predict", str(path))


@pytest.mark.parametrize("batch", ["0", "-1", "1.5", "many"])
def test_an_impossible_batch(batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["predict", RESNET, "--batch", batch])
    assert stopped.value.code == 2
    assert "--batch" in capsys.readouterr().err.splitlines()[-1]


def test_an_unknown_dimension_name(fails: Callable[..., str]) -> None:
    assert "'hight'" in fails("predict", RESNET, "--dim", "hight=224")


def test_a_shape_that_contradicts_the_model(fails: Callable[..., str]) -> None:
    error = fails("predict", RESNET, "--shape", "image=1x4x224x224")
    assert "image" in error and "4" in error and "3" in error


def test_a_shape_of_another_rank(fails: Callable[..., str]) -> None:
    assert "image" in fails("predict", RESNET, "--shape", "image=3x224x224")


def test_an_unknown_input(fails: Callable[..., str]) -> None:
    assert "imagee" in fails("predict", RESNET, "--shape", "imagee=1x3x224x224")


def test_a_dimension_that_stays_free(fails: Callable[..., str], tmp_path: Path) -> None:
    error = fails("predict", _save(tmp_path / "free.onnx", ("N", 3, "H", "W")))
    assert "--dim" in error and "H" in error and "W" in error


def test_a_binding_that_is_no_binding(fails: Callable[..., str]) -> None:
    assert "NAME=N" in fails("predict", RESNET, "--dim", "seq")
    assert "INPUT=SIZES" in fails("predict", RESNET, "--shape", "image=1xax3")


def test_an_unknown_device_names_the_closest(fails: Callable[..., str]) -> None:
    assert "did you mean 'a100-40gb'" in fails("predict", RESNET, "--device", "a100-40bg")


def test_one_bad_file_among_good_ones_is_named(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "gone.onnx" in fails("predict", RESNET, str(tmp_path / "gone.onnx"))


def test_control_characters_of_a_name_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = _save(tmp_path / "odd.onnx", ("N\x1b[31m\n", 4))
    assert main(["predict", path]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err


def _run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": root},
        check=False,
    )


def test_the_module_runs_as_a_program() -> None:
    done = _run("-m", "dippm_lite", "--version")
    assert done.returncode == 0 and done.stdout.startswith("dippm-lite ")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f'"{sys.executable}" -m dippm_lite devices --format json | head -n 1',
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    assert done.stdout.startswith("[") and done.stderr == ""
