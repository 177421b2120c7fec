"""timm's own benchmark tables, as they are, to ``published_a100/timm_<card>_<table>.csv``.

Layout: ``results/benchmark-infer-<...>.csv``: for each model and image size the batch, samples/s
and step time in ms. Rows without a time (out of memory) stay.
"""

from __future__ import annotations

from pathlib import Path

from training.datasets.public.outputs import read_rows, write_rows

__all__ = ["FILES", "convert"]

_TABLES = {
    "infer-amp-nchw-pt210-cu121-rtx3090": "rtx3090",
    "infer-amp-nchw-pt240-cu124-rtx3090": "rtx3090",
    "infer-amp-nhwc-pt240-cu124-rtx3090": "rtx3090",
    "infer-amp-nchw-pt291-cu128-4090": "rtx4090",
    "infer-amp-nchw-pt291-cu128-4090-dynamo": "rtx4090",
    "infer-amp-nhwc-pt240-cu124-rtx4090": "rtx4090",
}

FILES = tuple(f"benchmark-{table}.csv" for table in _TABLES)
"""What is fetched, under ``results``."""

COLUMNS = (
    "model", "infer_img_size", "infer_samples_per_sec", "infer_step_time", "infer_batch_size",
    "param_count", "infer_gmacs", "infer_macts",
)  # fmt: skip


def convert(raw: Path, data: Path) -> tuple[Path, ...]:
    """Write one table a file; returns their paths.

    Raises:
        InputError: a file is missing or lacks a column.
    """
    written = []
    for table, card in _TABLES.items():
        source = raw / f"benchmark-{table}.csv"
        target = data / "published_a100" / f"timm_{card}_{table}.csv"
        rows = ([row[column] for column in COLUMNS] for _, row in read_rows(source, COLUMNS))
        write_rows(target, COLUMNS, rows)
        written.append(target)
    return tuple(written)
