"""Predictions as text: one exporter a file, chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dippm_lite.prediction import Prediction
from dippm_lite.report.csv import render_csv
from dippm_lite.report.json import render_json
from dippm_lite.report.markdown import render_markdown
from dippm_lite.report.text import render_text

__all__ = ["FORMATS"]

FORMATS: dict[str, Callable[[Sequence[Prediction], int], str]] = {
    "text": render_text,
    "json": render_json,
    "csv": render_csv,
    "markdown": render_markdown,
}
"""Format name to ``render(predictions, top)``; ``top`` limits the kernels that are listed."""
