"""DIPPM's layout: units, checks, and pickles that are opened without running them."""

from __future__ import annotations

import os
import pickle
import sys
import types
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.bundle import Provenance
from dippm_lite.errors import InputError
from training.datasets.dippm import (
    ATTRIBUTE_COLUMNS,
    OPERATOR_COLUMNS,
    OPERATORS,
    SHAPE_COLUMNS,
    EnergyUnit,
    energy_unit,
    read_file,
    read_folder,
)
from training.datasets.dippm_pickle import load_fields


@contextmanager
def torch_geometric() -> Iterator[Any]:
    """A module that pickles as torch_geometric 2.2 does: a Data with a storage that points back."""
    package = types.ModuleType("torch_geometric")
    data_package = types.ModuleType("torch_geometric.data")
    data = types.ModuleType("torch_geometric.data.data")
    storage = types.ModuleType("torch_geometric.data.storage")

    class GlobalStorage:
        def __init__(self, parent: object, mapping: dict[str, Any]) -> None:
            self._mapping = mapping
            self._parent = parent

    class DataTensorAttr:
        pass

    class DataEdgeAttr:
        pass

    class Data:
        def __init__(self, **fields: Any) -> None:
            self._tensor_attr_cls = DataTensorAttr
            self._edge_attr_cls = DataEdgeAttr
            self._store = GlobalStorage(self, fields)

    places = ((data, Data), (data, DataTensorAttr), (data, DataEdgeAttr), (storage, GlobalStorage))
    for owner, value in places:
        value.__module__ = owner.__name__
        value.__qualname__ = value.__name__
        setattr(owner, value.__name__, value)
    names = {m.__name__: m for m in (package, data_package, data, storage)}
    saved = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield Data
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def fields(**changes: Any) -> dict[str, Any]:
    """VGG16-like: the README's example figures, three nodes in a chain."""
    x = torch.zeros(3, 32)
    x[0, 1] = x[1, 3] = 1.0
    x[0, 16:28] = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 1, 64, 3, 3])
    x[0, 28:] = torch.tensor([64.0, 3, 3, 3])
    return {
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "x": x,
        "static": torch.tensor([8.0, 123.5, 13.0, 3.0, 15.0]),
        "y": torch.tensor([7.39, 1511.47, 3083.0]),
    } | changes


def save(path: Path, content: object) -> Path:
    torch.save(content, path)
    return path


def save_pyg(path: Path, content: dict[str, Any]) -> Path:
    with torch_geometric() as data:
        torch.save(data(**content), path)
    return path


@pytest.mark.parametrize("write", [save, save_pyg])
def test_a_record_holds_what_the_file_says_in_our_units(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "data_0.pt", fields())
    record = read_file(path, EnergyUnit.MILLIJOULE, index=7)
    assert record.index == 7
    assert record.source == "dippm"
    assert record.provenance is Provenance.MEASURED
    assert record.labels.latency_ms == pytest.approx(7.39)
    assert record.labels.energy_j == pytest.approx(1.51147)
    assert record.labels.memory_mib == 3083.0
    assert record.static.batch_size == 8
    assert record.static.gmacs == 123.5
    assert (record.static.conv_count, record.static.dense_count, record.static.relu_count) == (
        13, 3, 15,
    )  # fmt: skip
    np.testing.assert_array_equal(record.node_features, fields()["x"].numpy())
    np.testing.assert_array_equal(record.edges, [[0, 1], [1, 2]])
    assert OPERATORS[int(record.node_features[0, OPERATOR_COLUMNS].argmax())] == "nn.conv2d"
    assert OPERATORS[int(record.node_features[1, OPERATOR_COLUMNS].argmax())] == "nn.dense"
    assert record.node_features[0, ATTRIBUTE_COLUMNS][-2:].tolist() == [3, 3]
    assert record.node_features[0, SHAPE_COLUMNS].tolist() == [64, 3, 3, 3]
    with pytest.raises(ValueError, match="read-only"):
        record.node_features[0, 0] = 1


def test_scaling_back_gives_what_the_public_code_trains_on(tmp_path: Path) -> None:
    # model.py trains on [y0 * 1000, y1 * 10, y2]; dippm.py prints outputs / [1000, 10, 1].
    scaled = np.array([7390.0, 15114.7, 3083.0])
    printed = scaled / [1000, 10, 1]
    path = save(tmp_path / "data_0.pt", fields(y=torch.tensor(printed)))
    labels = read_file(path, EnergyUnit.JOULE).labels
    assert [labels.latency_ms, labels.energy_j, labels.memory_mib] == pytest.approx(list(printed))


def test_a_folder_is_read_by_number_and_ignores_other_files(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        save_pyg(
            tmp_path / f"data_{number}.pt", fields(static=torch.tensor([1.0, number, 1, 1, 1]))
        )
    (tmp_path / "pre_filter.pt").write_bytes(b"other")
    records = list(read_folder(tmp_path))
    assert [record.index for record in records] == [0, 2, 10]
    assert [record.static.gmacs for record in records] == [0, 2, 10]


@pytest.mark.parametrize(
    ("energy", "unit"),
    [(1511.47, EnergyUnit.MILLIJOULE), (1.51147, EnergyUnit.JOULE)],
)
def test_the_unit_of_energy_is_the_one_that_a_gpu_can_draw(
    tmp_path: Path, energy: float, unit: EnergyUnit
) -> None:
    save(tmp_path / "data_0.pt", fields(y=torch.tensor([7.39, energy, 3083.0])))
    assert energy_unit(tmp_path) is unit
    (record,) = read_folder(tmp_path)
    assert record.labels.energy_j == pytest.approx(1.51147)  # 204.5 W over 7.39 ms
    assert record.labels.energy_j / record.labels.latency_ms * 1e3 == pytest.approx(204.5, abs=0.1)


def test_an_energy_that_is_impossible_in_both_units_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "data_0.pt", fields(y=torch.tensor([7.39, 15.0, 3083.0])))
    with pytest.raises(InputError, match="neither is between 20 and 500 W"):
        list(read_folder(tmp_path))
    (record,) = read_folder(tmp_path, EnergyUnit.MILLIJOULE)  # said by hand: no guess is needed
    assert record.labels.energy_j == pytest.approx(0.015)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.zeros(3, 31)}, r"x has shape \[3, 31\]"),
        ({"x": torch.zeros(0, 32)}, r"x has shape \[0, 32\]"),
        ({"x": torch.full((3, 32), float("nan"))}, "x holds NaN"),
        ({"x": "text"}, "x is no array"),
        ({"x": torch.zeros(1).expand(1 << 40, 32)}, "x is no array"),
        ({"x": torch.eye(32).to_sparse()}, "x is no array"),
        ({"edge_index": torch.tensor([[0], [3]])}, "outside of the 3"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "outside of the 3"),
        ({"edge_index": torch.tensor([0, 1])}, "not \\[2, e\\]"),
        ({"edge_index": torch.tensor([[0.5], [1.0]])}, "edge_index is no array"),
        ({"static": torch.tensor([8.0, 1.0])}, "static has 2 numbers, not 5"),
        ({"static": torch.tensor([0.0, 1, 1, 1, 1])}, "are no counts"),
        ({"y": torch.tensor([1.0, 2.0])}, "y has 2 numbers, not 3"),
        ({"y": torch.tensor([0.0, 2.0, 3.0])}, "must be positive"),
        ({"y": None}, "has no y"),
    ],
)
def test_a_file_of_another_layout_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = save(tmp_path / "data_0.pt", fields(**changes))
    with pytest.raises(InputError, match=message):
        read_file(path, EnergyUnit.JOULE)


def test_labels_as_a_list_and_static_as_a_row_are_read(tmp_path: Path) -> None:
    content = fields(y=[7.39, 1.5, 3083.0], static=fields()["static"].reshape(1, 5))
    record = read_file(save_pyg(tmp_path / "data_0.pt", content), EnergyUnit.JOULE)
    assert record.labels.energy_j == 1.5
    assert record.static.batch_size == 8


class Hostile:
    """Unpickled, it writes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self.target}",))


@pytest.mark.parametrize("where", ["top", "field", "inside Data", "legacy"])
def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path: Path, where: str) -> None:
    target, path = tmp_path / "pwned", tmp_path / "data_0.pt"
    hostile = Hostile(target)
    if where == "top":
        save(path, hostile)
    elif where == "field":
        save(path, fields(extra=hostile))
    elif where == "inside Data":
        save_pyg(path, fields(extra=hostile))
    else:
        path.write_bytes(pickle.dumps(hostile))
    with pytest.raises(InputError, match=r"refused|damaged"):
        load_fields(path)
    assert not target.exists()
    # The same file does act when it is trusted: the test can fail.
    if where in ("top", "field"):
        torch.load(path, weights_only=False)
        assert target.exists()


def test_other_classes_of_torch_geometric_are_refused_too(tmp_path: Path) -> None:
    with torch_geometric() as data:
        data.__module__ = "torch_geometric.data.batch"
        sys.modules["torch_geometric.data.batch"] = sys.modules["torch_geometric.data.data"]
        try:
            torch.save(data(**fields()), tmp_path / "data_0.pt")
        finally:
            del sys.modules["torch_geometric.data.batch"]
    with pytest.raises(InputError, match=r"refused.*torch_geometric\.data\.batch"):
        load_fields(tmp_path / "data_0.pt")


def test_a_large_file_or_archive_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "data_0.pt"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(InputError, match="no DIPPM graph"):
        load_fields(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(65 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="unpacks to"):
        load_fields(path)


def test_what_is_no_folder_of_data_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no data_<i>"):
        list(read_folder(tmp_path))
    with pytest.raises(InputError, match="not a folder"):
        list(read_folder(tmp_path / "missing"))
    with pytest.raises(InputError, match="can't be read"):
        load_fields(tmp_path / "missing.pt")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_raise_only_input_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("dippm") / "data_0.pt"
    save_pyg(path, fields())
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))] or b""))
    try:
        record = read_file(path, EnergyUnit.JOULE)
    except InputError:
        return
    assert record.node_features.shape[1] == 32


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_pickle_inside_a_sound_archive_raises_only_input_errors(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("dippm")
    whole, path = save_pyg(folder / "whole.pt", fields()), folder / "data_0.pt"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = bytearray(source.read(name))
            if name.endswith("data.pkl"):
                for _ in range(data.draw(st.integers(1, 3))):
                    place = data.draw(st.integers(0, len(content) - 1))
                    content[place] = data.draw(st.integers(0, 255))
            target.writestr(name, bytes(content))
    try:
        record = read_file(path, EnergyUnit.JOULE)
    except InputError:
        return
    assert record.node_features.shape[1] == 32
