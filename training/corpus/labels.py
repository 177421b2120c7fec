"""Composed labels and their file: one row a workload, as zstd-compressed CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.datasets.provenance import Provenance

__all__ = ["COLUMNS", "LABELS", "Label", "read_labels", "write_labels"]

LABELS = Path(__file__).parent / "labels" / "composed.csv.zst"
"""The labels of the records that the repository holds."""

LEVEL = 19
"""Compression level: slow to write once, as fast as any other to read."""


@dataclass(frozen=True, slots=True)
class Label:
    """What the kernel models, the memory schedule and the power model say of one workload.

    Attributes:
        fingerprint: short fingerprint of the record.
        name: of the record.
        batch: samples in a pass.
        size: pixels along each side of the image where that differs from the record's own; 0 for
            the record as it is.
        runtime, precision: values of :class:`dippm_lite.execution.Runtime` and ``Precision``.
        device: a name for :func:`dippm_lite.devices.find_device`.
        latency_ms, latency_low_ms, latency_high_ms: of one pass, with the 80% interval.
        launch_bound_share: part of the latency in which no kernel runs.
        memory_mib: peak of the process.
        energy_j: of one pass.
        macs: multiply-accumulates of one pass of the whole batch.
        params: elements of the stored weights.
        extrapolated_share: part of the kernels' time in classes that were never measured.
        caveats: codes of what the figures lack, joined by ``;``: ``UnresolvedShapes``,
            ``UnknownOps`` and the like.
        provenance: always ``composed``.
        bundle_id: bundle of the kernel models.
        engine: digest of the bundle and of the code that composed.
        schema: of a prediction, ``dippm_lite.prediction.SCHEMA``.
        package: version of ``dippm_lite``.
    """

    fingerprint: str
    name: str
    batch: int
    size: int
    runtime: str
    precision: str
    device: str
    latency_ms: float
    latency_low_ms: float
    latency_high_ms: float
    launch_bound_share: float
    memory_mib: float
    energy_j: float
    macs: int
    params: int
    extrapolated_share: float
    caveats: str
    provenance: str
    bundle_id: str
    engine: str
    schema: str
    package: str

    def __post_init__(self) -> None:
        positive = (self.batch, self.latency_ms, self.memory_mib, self.energy_j)
        if not all(0 < value < float("inf") for value in positive):
            raise ValueError(f"{self.name}: a batch, latency, memory or energy isn't positive")
        if self.provenance != Provenance.COMPOSED.value:
            raise ValueError(f"{self.name}: provenance {self.provenance!r} is not 'composed'")

    def row(self) -> list[str]:
        """Text of the columns: six significant digits of what isn't a whole number."""
        return [f"{v:.6g}" if isinstance(v, float) else str(v) for v in astuple(self)]

    @classmethod
    def of_row(cls, row: Iterable[str]) -> Label:
        """The label that :meth:`row` wrote."""
        return cls(*(kind(text) for kind, text in zip(_KINDS, row, strict=True)))


_TYPES: dict[Any, Any] = {"str": str, "int": int, "float": float}
_KINDS = tuple(_TYPES[column.type] for column in fields(Label))
COLUMNS = tuple(column.name for column in fields(Label))
"""Names in the header, in order."""


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    """Write the file; equal labels give equal bytes."""
    import zstandard

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(label.row() for label in labels)
    content = zstandard.ZstdCompressor(level=LEVEL).compress(text.getvalue().encode())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def read_labels(path: Path = LABELS) -> tuple[Label, ...]:
    """The labels in a file, in its order.

    Raises:
        InputError: it is missing, damaged or has other columns.
    """
    import zstandard

    if not path.is_file():
        raise InputError(f"no labels in {path}: make them with python -m training corpus label")
    try:
        text = zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode()
        header, *rows = csv.reader(io.StringIO(text))
        if tuple(header) != COLUMNS:
            raise ValueError(f"its columns are {', '.join(header)[:200]}")
        return tuple(Label.of_row(row) for row in rows)
    except (zstandard.ZstdError, ValueError) as error:
        raise InputError(
            f"{path} is no file of composed labels ({error}): "
            "make it again with python -m training corpus label --fresh"
        ) from error
