"""ParvaGPU's profiles of MIG slices (A100 80 GB) into ``facts/mig_slowdown.csv``.

Layout: ``prof_data/<model>.csv``: slice, batch, processes, samples/s of one process, and seconds
rounded to 1 ms. Latency is computed from the throughput, which has more digits. The workload is
that of the repository's scripts/dl_infer_runtime.py: torchvision networks at 224 x 224 (Inception
too) and BERT-large at 128 tokens in PyTorch, with gradients on, a copy of the pageable batch to the
GPU in each step and no further synchronisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dippm_lite.errors import InputError
from training.datasets.public.outputs import number, positive, read_rows, replace_rows, rounded

__all__ = ["COLUMNS", "FILES", "REPOSITORY", "convert"]

REPOSITORY = "MunQ-Lee/ParvaGPU_SC24"

_NETWORKS = (
    "bert", "densenet121", "densenet169", "densenet201", "inceptionv3", "mobilenetv2",
    "resnet101", "resnet152", "resnet50", "vgg16", "vgg19",
)  # fmt: skip

FILES = tuple(f"{network}.csv" for network in _NETWORKS)
"""What is fetched, under ``prof_data``."""

COLUMNS = (
    "source", "device", "model", "precision", "framework", "batch", "profile", "metric", "value",
    "unit", "notes",
)  # fmt: skip
"""Of ``facts/mig_slowdown.csv``."""

_PROFILES = {1: "1g.10gb", 2: "2g.20gb", 3: "3g.40gb", 4: "4g.40gb", 7: "7g.80gb"}
_COPY = " (MPS inside slice; per-process figures); loop includes pageable H2D copy of the batch"
_ROUNDING = "; batch/throughput (file latency rounded to 1 ms)"


def convert(raw: Path, data: Path) -> tuple[Path, ...]:
    """Put the rows in place of those that ``facts/mig_slowdown.csv`` has from ParvaGPU.

    Raises:
        InputError: a file is missing, or isn't as described above.
    """
    target = data / "facts" / "mig_slowdown.csv"
    rows = [row for network in _NETWORKS for row in _rows(raw / f"{network}.csv", network)]
    replace_rows(target, COLUMNS, rows, lambda row: row["source"].startswith(REPOSITORY))
    return (target,)


def _rows(path: Path, network: str) -> Iterator[Sequence[str]]:
    model = "bert-large seq128" if network == "bert" else f"{network} 224x224"
    columns = ("Mig instance", "Batch size", "Workload Number", "Throughput")
    for line, row in read_rows(path, columns):
        slices, batch, processes = (int(positive(path, line, row, c)) for c in columns[:3])
        if slices not in _PROFILES:
            raise InputError(f"{path} line {line}: no profile has {slices} slices")
        rate = number(path, line, row, "Throughput")
        workload = (
            f"{REPOSITORY}:prof_data/{path.name}", "A100-80GB", model, "tf32-default",
            "pytorch(ngc21.11)", str(batch), _PROFILES[slices],
        )  # fmt: skip
        if rate > 0:
            notes = f"procs={processes}{_COPY}"
            yield *workload, "throughput_per_process", rounded(rate, 6), "samples/s", notes
            latency = rounded(1e3 * batch / rate, 4)
            yield *workload, "latency", latency, "ms", notes + _ROUNDING
        elif processes == 1:
            yield *workload, "oom_or_not_run", "1", "flag", "procs=1"
