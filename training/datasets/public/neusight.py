"""NeuSight's measured kernels (fp32, PyTorch 2.1, TF32 off) to ``kernels/neusight_*.csv.gz``.

Layout, under ``scripts/asplos/data/dataset``: ``train/collect/<op>/p2.1.0/<device>.csv`` and
``test/<op>.csv``, with the columns that neusight/Dataset/collect.py writes. Latency is in ms. Rows
keep the order in which they were measured, since the host's share of a latency drifts along a file.
Names of dimensions stay NeuSight's: its N is the inner dimension of a product, its K the columns of
the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from training.datasets.public.outputs import positive, read_rows, rounded, write_rows

__all__ = ["FILES", "convert"]

_GEMM_DEVICES = (
    "NVIDIA A100-PCIE-40GB", "Tesla P100-PCIE-16GB", "Tesla P4", "Tesla T4",
    "Tesla V100-PCIE-32GB",
)  # fmt: skip
_CONV_DEVICES = ("NVIDIA A100 80GB PCIe", *_GEMM_DEVICES[1:])
_VECTOR_OPS = (
    "add", "addu", "div", "divu", "gelu", "ln", "mul", "mulu", "pow", "powu", "relu", "softmax",
    "tanh",
)  # fmt: skip

_GEMM, _VECTOR = {c: c for c in "BMNK"}, {c: c for c in "BH"}
_CONV = {
    "B": "B", "in_channels": "Input_Channel", "out_channels": "Output_Channel",
    "kernel_size": "Kernel_Szie", "input_size": "Input_Size", "stride": "Stride",
    "padding": "Padding",
}  # fmt: skip
"""Our columns to NeuSight's, the misspelt one included."""


def _collected(op: str, devices: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"train/collect/{op}/p2.1.0/{device}.csv" for device in devices)


_TABLES = (
    # target, columns of the dimensions, with the kernel's name, files in order
    ("neusight_gemm", _GEMM, True, (*_collected("bmm", _GEMM_DEVICES),
                                    *_collected("linear", _GEMM_DEVICES))),
    ("neusight_conv", _CONV, True, _collected("conv", _CONV_DEVICES)),
    ("neusight_vector", _VECTOR, True,
     tuple(file for op in _VECTOR_OPS for file in _collected(op, _GEMM_DEVICES))),
    ("neusight_gemm_test", _GEMM, False, ("test/bmm.csv", "test/linear.csv")),
    ("neusight_vector_test", _VECTOR, False, ("test/elem.csv", "test/ln.csv", "test/softmax.csv")),
)  # fmt: skip

FILES = tuple(file for *_, files in _TABLES for file in files)
"""What is fetched, under ``scripts/asplos/data/dataset``."""

KERNEL_CHARACTERS = 60


def convert(raw: Path, data: Path) -> tuple[Path, ...]:
    """Write the five tables; returns their paths.

    Raises:
        InputError: a file is missing, or isn't as described above.
    """
    written = []
    for name, dimensions, with_kernel, files in _TABLES:
        target = data / "kernels" / f"{name}.csv.gz"
        columns = ["op", "device", "precision", "latency_ms", *dimensions]
        columns += ["kernel"] if with_kernel else []
        rows = (
            row for file in files for row in _rows(raw / file, dimensions.values(), with_kernel)
        )
        write_rows(target, columns, rows)
        written.append(target)
    return tuple(written)


def _rows(path: Path, dimensions: Iterable[str], with_kernel: bool) -> Iterator[Sequence[str]]:
    dimensions = tuple(dimensions)
    columns = ("OPName", "Latency", "Device", "Kernel Name", *dimensions)
    for line, row in read_rows(path, columns):
        latency = rounded(positive(path, line, row, "Latency"), 6)
        sizes = [str(int(positive(path, line, row, column))) for column in dimensions]
        kernel = [_kernel(row["Kernel Name"])] if with_kernel else []
        yield [row["OPName"], row["Device"], "fp32", latency, *sizes, *kernel]


def _kernel(name: str) -> str:
    """A kernel's name without return type, template and arguments."""
    return name.removeprefix("void ").split("<")[0].split("(")[0][:KERNEL_CHARACTERS]
