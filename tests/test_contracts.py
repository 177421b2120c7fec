"""Promises about the package as a whole: what it imports, exports and ships."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import dippm_lite
from benchmarks.readme import filled

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "torch_geometric", "lightgbm", "sklearn", "onnxruntime", "pandas", "scipy")
RESNET = "tests/data/networks/resnet50.torchscript18.onnx"


def _loaded_by(code: str) -> set[str]:
    """Top-level modules in ``sys.modules`` after running ``code`` in a fresh interpreter."""
    report = "import sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy() -> None:
    assert not _loaded_by("import dippm_lite") & {*HEAVY, "onnx", "numpy"}


@pytest.mark.parametrize("argv", [["devices"], ["--version"], ["--help"]])
def test_listing_commands_load_neither_numpy_nor_onnx(argv: list[str]) -> None:
    code = (
        "import contextlib, io\nfrom dippm_lite.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({argv!r})"
    )
    assert not _loaded_by(code) & {*HEAVY, "onnx", "numpy"}


def test_predicting_loads_numpy_alone() -> None:
    loaded = _loaded_by(f"import dippm_lite\ndippm_lite.predict({RESNET!r}, batch_size=1)")
    assert "numpy" in loaded
    assert not loaded & {*HEAVY, "onnx"}


def test_the_import_test_can_fail() -> None:
    assert "onnx" in _loaded_by("import dippm_lite, onnx")


def test_every_public_name_resolves_and_is_documented() -> None:
    for name in dippm_lite.__all__:
        assert getattr(dippm_lite, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dippm_lite.nonsense  # noqa: B018


def test_the_wheel_runs_outside_the_checkout(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    shipped = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert shipped == {"dippm_lite"}
    assert not [name for name in names if name.endswith((".pkl", ".pt", ".npz", ".onnx"))]
    done = subprocess.run(
        [sys.executable, "-m", "dippm_lite", "predict", str(ROOT / RESNET), "--format", "json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        check=True,
    )
    assert json.loads(done.stdout)["latency_ms"]["value"] > 0


def test_python_blocks_of_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], cwd=ROOT, check=True, capture_output=True)


def test_figures_of_the_readme_are_those_that_its_commands_give() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert filled(text) == text, "run python -m benchmarks.readme"


def test_commands_of_the_readme_run() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ dippm-lite (.*)$", text, flags=re.M)
    assert commands
    for command in commands:
        subprocess.run(
            [sys.executable, "-m", "dippm_lite", *shlex.split(command)],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
