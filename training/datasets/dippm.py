"""DIPPM's published data set: a folder of ``data_<i>.pt``, one measured graph each.

The release file unpacks to 10,508 such files (Euro-Par 2023, arXiv 2303.11733; A100-SXM4-40GB,
torch 1.13.1). Each holds ``x`` [n, 32], ``edge_index`` [2, e], ``static`` [5] and ``y`` [3]. What
follows is derived from the public code (karthickai/dippm: dippm.py, model.py, train.py), since no
text describes the files.

**Units.** Training scales ``y`` to ``[y0 * 1000, y1 * 10, y2]`` (model.py); prediction divides the
three outputs by 1000, 10 and 1 and prints ms, J and MB (dippm.py). So ``y`` as stored is the
printed figure: latency in ms, energy in what the code calls J, memory in MB.

*Energy.* The README's own example (VGG16, batch 8) prints 7.39 ms and "1511.47 J": 204 kW, 500
times what the GPU can draw; as 1511.47 mJ it is 204 W. :func:`read_folder` therefore takes the unit
as J or mJ, or decides it: the median power, energy / latency, over the whole folder must lie
between 20 W (idle is about 50 W, and a short run can be read low) and 500 W (the board's limit is
400 W). Where neither unit does, it raises.

*Memory.* "MB" has no definition in the code. nvidia-smi and NVML, from which such a figure comes,
count MiB, and so it is read; were it 10^6 bytes, the true value would be 4.6% smaller.

*Meaning.* DIPPM's memory and latency are higher than no-grad inference elsewhere (its example
efficientnet_b0 at batch 32 says 80 ms and 4,772 MB), so a model shouldn't mix these labels with
others as if they measured the same: they keep ``source`` ``"dippm"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dippm_lite.bundle import Provenance
from dippm_lite.errors import InputError
from training.datasets.dippm_pickle import load_fields

__all__ = [
    "ATTRIBUTE_COLUMNS",
    "OPERATORS",
    "OPERATOR_COLUMNS",
    "SHAPE_COLUMNS",
    "SOURCE",
    "DippmLabels",
    "DippmRecord",
    "DippmStatic",
    "EnergyUnit",
    "energy_unit",
    "read_file",
    "read_folder",
]

SOURCE = "dippm"

NODE_WIDTH = 32
OPERATOR_COLUMNS = slice(0, 16)
"""One-hot operator of a node; all zeros for one that the code doesn't list."""
ATTRIBUTE_COLUMNS = slice(16, 28)
"""Of a convolution: strides (2), padding (4), dilation (2), groups, channels, kernel size (2)."""
SHAPE_COLUMNS = slice(28, 32)
"""Shape of the last argument that is a variable, padded with zeros."""

OPERATORS = (
    None, "nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.batch_matmul", "nn.bias_add",
    "nn.softmax", "nn.dropout", "nn.layer_norm", "reshape", "transpose", "add", "split",
    "multiply", "squeeze", "nn.adaptive_avg_pool2d",
)  # fmt: skip
"""Relay's names by one-hot column. The code counts from 1, so that column 0 is never set and
``nn.max_pool2d``, its 16th, has no column."""


class EnergyUnit(str, Enum):
    """What ``y[1]`` counts."""

    JOULE = "J"
    MILLIJOULE = "mJ"


_JOULES = {EnergyUnit.JOULE: 1.0, EnergyUnit.MILLIJOULE: 1e-3}

PLAUSIBLE_W = (20.0, 500.0)
"""Median power that a folder's energies may mean; see the text above."""


@dataclass(frozen=True, slots=True)
class DippmStatic:
    """What DIPPM gives its network beside the graph."""

    batch_size: int
    gmacs: float
    conv_count: int
    dense_count: int
    relu_count: int


@dataclass(frozen=True, slots=True)
class DippmLabels:
    """The measured targets, in this project's units."""

    latency_ms: float
    energy_j: float
    memory_mib: float


@dataclass(frozen=True, slots=True, eq=False)
class DippmRecord:
    """One measured graph.

    Shapes:
        node_features: (n, 32) float32; columns as in :data:`OPERATOR_COLUMNS`,
            :data:`ATTRIBUTE_COLUMNS` and :data:`SHAPE_COLUMNS`.
        edges: (2, e) int64, from and to. DIPPM chains the nodes in order; that is not dataflow.
    """

    index: int
    node_features: NDArray[np.float32]
    edges: NDArray[np.int64]
    static: DippmStatic
    labels: DippmLabels
    provenance: Provenance = Provenance.MEASURED
    source: str = SOURCE


_NAME = re.compile(r"data_(\d{1,9})\.pt", re.ASCII)


def read_folder(folder: Path, unit: EnergyUnit | None = None) -> Iterator[DippmRecord]:
    """The records of a folder by number; one file is open at a time.

    Args:
        folder: holds ``data_<i>.pt``, such as ``PT`` of the release; other files are ignored.
        unit: of the stored energies; None decides it by :func:`energy_unit`, which reads every
            file once more.

    Raises:
        InputError: the folder has no such file, a file isn't of this layout, or the unit can't be
            decided.
    """
    paths = _paths(folder)
    unit = unit or energy_unit(folder)
    for index, path in paths:
        yield read_file(path, unit, index=index)


def read_file(path: Path, unit: EnergyUnit, *, index: int = 0) -> DippmRecord:
    """The record in one file.

    Raises:
        InputError: the file isn't of DIPPM's layout, or a value in it can't be a measurement.
    """
    fields = load_fields(path)
    nodes = _array(path, fields, "x", np.float32)
    if nodes.ndim != 2 or nodes.shape[1] != NODE_WIDTH or not len(nodes):
        raise InputError(f"{path}: x has shape {list(nodes.shape)}, not [n, {NODE_WIDTH}]")
    edges = _array(path, fields, "edge_index", np.int64)
    if edges.ndim != 2 or len(edges) != 2:
        raise InputError(f"{path}: edge_index has shape {list(edges.shape)}, not [2, e]")
    if edges.size and not 0 <= edges.min() <= edges.max() < len(nodes):
        raise InputError(f"{path}: edge_index names nodes outside of the {len(nodes)} in x")
    batch, gmacs, conv, dense, relu = _numbers(path, fields, "static", 5)
    if min(conv, dense, relu) < 0 or gmacs < 0 or batch < 1:
        raise InputError(f"{path}: static {[batch, gmacs, conv, dense, relu]} are no counts")
    latency, energy, memory = _labels(path, fields)
    return DippmRecord(
        index=index,
        node_features=nodes,
        edges=edges,
        static=DippmStatic(round(batch), gmacs, round(conv), round(dense), round(relu)),
        labels=DippmLabels(latency, energy * _JOULES[unit], memory),
    )


def energy_unit(folder: Path) -> EnergyUnit:
    """The unit of the folder's energies, from the power that they imply.

    Raises:
        InputError: the median power is impossible in either unit.
    """
    powers = []
    for _, path in _paths(folder):
        latency, energy, _ = _labels(path, load_fields(path))
        powers.append(energy / latency * 1e3)
    median = float(np.median(powers))
    low, high = PLAUSIBLE_W
    for unit, joules in _JOULES.items():
        if low <= median * joules <= high:
            return unit
    raise InputError(
        f"{folder}: the median of energy / latency is {median:.3g} W as J and "
        f"{median * 1e-3:.3g} W as mJ; neither is between {low:g} and {high:g} W"
    )


def _paths(folder: Path) -> list[tuple[int, Path]]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    paths = sorted((int(match[1]), path) for match, path in matches if match)
    if not paths:
        raise InputError(f"{folder} has no data_<i>.pt: name the folder PT of the release")
    return paths


def _labels(path: Path, fields: dict[str, Any]) -> tuple[float, float, float]:
    latency, energy, memory = _numbers(path, fields, "y", 3)
    if min(latency, energy, memory) <= 0:
        raise InputError(f"{path}: y {[latency, energy, memory]} must be positive")
    return latency, energy, memory


def _numbers(path: Path, fields: dict[str, Any], name: str, count: int) -> list[float]:
    values = _array(path, fields, name, np.float64).reshape(-1)
    if len(values) != count:
        raise InputError(f"{path}: {name} has {len(values)} numbers, not {count}")
    return [float(value) for value in values]


def _array(path: Path, fields: dict[str, Any], name: str, dtype: type[Any]) -> NDArray[Any]:
    """A tensor, or a (nested) list of numbers, as a read-only array without NaN or infinity."""
    import torch

    value = fields.get(name)
    if value is None:
        raise InputError(f"{path} has no {name}: not DIPPM's layout")
    try:
        tensor = torch.as_tensor(value)
        if tensor.layout is not torch.strided or tensor.is_complex() or tensor.is_quantized:
            raise TypeError(f"a tensor of {tensor.layout} and {tensor.dtype}")
        if dtype is np.int64 and tensor.is_floating_point():
            raise TypeError(f"numbers of {tensor.dtype}")
        # A copy: a tensor of few bytes can claim any shape with strides of 0.
        if tensor.numel() > tensor.untyped_storage().nbytes():
            raise ValueError(
                f"{tensor.numel()} numbers in {tensor.untyped_storage().nbytes()} bytes"
            )
        array = tensor.detach().numpy().astype(dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: {name} is no array of numbers: {error}") from error
    if not np.isfinite(array).all():
        raise InputError(f"{path}: {name} holds NaN or infinity")
    array.flags.writeable = False
    return array
