"""The README's figures, filled in from what produces them.

    python -m benchmarks.readme

replaces each block between ``<!-- name -->`` and ``<!-- /name -->``. A test holds the committed
README to this.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.neusight import render, rows
from dippm_lite.bundle import Bundle
from dippm_lite.cli import main as cli

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = ["predict", "tests/data/networks/resnet50.torchscript18.onnx", "--batch", "8"]


def _predict() -> str:
    out, notes, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
            cli(EXAMPLE)
    finally:
        os.chdir(before)
    return f"```\n{out.getvalue().rstrip()}\n```"


def _kernels() -> str:
    """The first table of the kernel models' evidence."""
    bundle_id = Bundle.load().manifest.bundle_id
    text = (ROOT / "artifacts" / bundle_id / "kernels.md").read_text(encoding="utf-8")
    return text.split("\n\n")[1].strip()


BLOCKS: Mapping[str, Callable[[], str]] = {
    "predict": _predict,
    "kernels": _kernels,
    "neusight": lambda: render(rows()).strip(),
}


def filled(text: str) -> str:
    """``text`` with every block filled in anew.

    Raises:
        ValueError: a block isn't there.
    """
    for name, produce in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", flags=re.S)
        content = produce()
        text, count = pattern.subn(lambda m, c=content: f"{m[1]}{c}\n{m[2]}", text)
        if count != 1:
            raise ValueError(f"README has {count} blocks {name!r}")
    return text


def main() -> None:
    """Rewrite the README's blocks."""
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
