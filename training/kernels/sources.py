"""Reading the measured kernels: what each file holds, in this project's terms.

Two traps of the files are dealt with here and nowhere else. NeuSight's gemm columns are the
arguments of ``(B, M, N) @ (B, N, K)`` and of ``Linear(N, K)`` (its neusight/Dataset/collect.py):
its N is the inner dimension and its K the columns of the result, so the two change names here. And
rows are in the order in which they were measured, which matters for convolutions
(:mod:`training.kernels.overhead`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dippm_lite.bundle import DataSource, DataUse, Provenance
from dippm_lite.devices import DEVICES, DeviceSpec
from dippm_lite.execution import MathMode
from dippm_lite.kernel_features import (
    ELEMENT_OPS,
    ROW_OPS,
    ConvBatch,
    ElementBatch,
    KernelBatch,
    ProductBatch,
    RowBatch,
    device_rates,
)

__all__ = ["Measured", "data_source", "fingerprint", "read", "read_rows"]

Array = NDArray[np.float64]

_DEVICES = {
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "a100": "a100-sxm4-80gb",
}
"""The files' names of the devices that models are fitted on or tested on."""

_NEUSIGHT = ("MIT", "https://github.com/sitar-lab/NeuSight")
_VIDUR = ("MIT", "https://github.com/microsoft/vidur")
_ITEMSIZE = {MathMode.FP32: 4.0, MathMode.FP16: 2.0}

_ELEMENT_NAMES = {
    "addu": "add_scalar", "mulu": "mul_scalar", "divu": "div_scalar", "powu": "pow_scalar",
    "act": "gelu", "act_gated": "swiglu", "rope": "rotary_embedding",
}  # fmt: skip
_ROW_NAMES = {"ln": "layer_norm", "layernorm": "rms_norm"}
_MOVED = {"add": 3, "mul": 3, "div": 3, "pow": 3, "swiglu": 3}
"""Elements read and written for each one written; 2 for the others."""


@dataclass(frozen=True)
class Measured:
    """Measured kernels of one batch kind on one device.

    Shapes:
        every array: (n,). ``time_s`` is as published; ``op`` is the file's operator name;
        ``order`` is the position among the rows of the same operator and device.
    """

    batch: KernelBatch
    time_s: Array
    op: NDArray[np.str_]
    order: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time_s)


def read_rows(path: Path, device: str, ops: Iterable[str]) -> pd.DataFrame:
    """The rows of ``ops`` on our device ``device``, in file order, which is that of measuring.

    Raises:
        ValueError: there are none.
    """
    frame = pd.read_csv(path)
    ours = frame["device"].map(_DEVICES) == device
    chosen = frame[ours & frame["op"].isin(list(ops))].reset_index(drop=True)
    if chosen.empty:
        raise ValueError(f"{path.name} has no rows of {sorted(ops)} on {device}")
    return chosen


def read(path: Path, device: str, math: MathMode, ops: tuple[str, ...]) -> Measured:
    """The kernels of ``ops`` in a file of ``data/kernels``."""
    frame = read_rows(path, device, ops)
    order = frame.groupby("op").cumcount().to_numpy()
    return Measured(
        _batch(frame, DEVICES[device], math),
        frame["latency_ms"].to_numpy(np.float64) * 1e-3,
        frame["op"].to_numpy(str),
        order,
    )


def _batch(frame: pd.DataFrame, device: DeviceSpec, math: MathMode) -> KernelBatch:
    rates, itemsize = device_rates(device, math), _ITEMSIZE[math]

    def column(name: str) -> Array:
        return frame[name].to_numpy(np.float64)

    first = frame["op"].iloc[0]
    if first == "conv":
        size = column("input_size")
        result = (size + 2 * column("padding") - column("kernel_size")) // column("stride") + 1
        kernel = column("kernel_size")
        return ConvBatch(
            rates, itemsize, column("B"), column("in_channels"), column("out_channels"),
            size, size, result, result, kernel, kernel,
        )  # fmt: skip
    if first == "bmm" or (first == "linear" and "B" in frame):
        return ProductBatch(rates, itemsize, column("B"), column("M"), column("K"), column("N"))
    if first == "linear":
        one = np.ones(len(frame))
        return ProductBatch(rates, itemsize, one, column("M"), column("N"), column("K"))
    rows, cols = ("B", "H") if "B" in frame else ("M", "N")
    names = frame["op"].map(lambda op: _ROW_NAMES.get(op, _ELEMENT_NAMES.get(op, op)))
    if names.iloc[0] in ROW_OPS:
        codes = names.map(ROW_OPS.index).to_numpy(np.float64)
        return RowBatch(rates, itemsize, column(rows), column(cols), codes)
    codes = names.map(ELEMENT_OPS.index).to_numpy(np.float64)
    elements = column(rows) * column(cols)
    moved = elements * names.map(lambda name: _MOVED.get(name, 2)).to_numpy(np.float64)
    return ElementBatch(rates, itemsize, elements, moved, codes)


def data_source(file: str, rows: int, used_for: DataUse) -> DataSource:
    """The manifest's line for ``rows`` rows of ``file``."""
    licence, url = _VIDUR if file.startswith("vidur") else _NEUSIGHT
    return DataSource(file.split(".", 1)[0], licence, rows, Provenance.MEASURED, used_for, url)


def fingerprint(paths: Iterable[Path]) -> str:
    """Sha256 over the names and contents of ``paths``."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
