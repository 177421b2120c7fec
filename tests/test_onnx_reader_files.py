"""Files: what is no model, what lies outside of the file, and how little of it is loaded."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import zoo
from onnx import TensorProto, numpy_helper

from dippm_lite.caveats import FileNote
from dippm_lite.errors import InputError
from dippm_lite.graph import DType
from dippm_lite.onnx_reader import Limits, read_graph
from dippm_lite.onnx_reader.fallback import native_outputs
from dippm_lite.onnx_reader.proto import ExternalDef
from dippm_lite.onnx_reader.tensors import OpCall, Tensor


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "x" * 50)
    return content.getvalue()


NOT_MODELS = {
    "empty": (b"", "is empty"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "page": (b"\n<!DOCTYPE html><html><body>404</body></html>", "is a web page"),
    "zip": (zipped("model.onnx"), "is a zip archive"),
    "checkpoint": (zipped("archive/data.pkl", "archive/version"), "is a PyTorch checkpoint"),
    "pickle": (pickle.dumps({"state_dict": [1.5]}), "is a Python pickle"),
    "text": (b"just some words\n" * 9, "is a text file"),
    "json": (json.dumps({"layers": []}).encode(), "is JSON"),
    "xml": (b"<?xml version='1.0'?><net name='x'/>", "OpenVINO"),
    "onnx_text": (b'ir_version: 8\ngraph { name: "g" }\n', "in text form"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "HDF5"),
    "gzip": (b"\x1f\x8b\x08\0\0", "gzip"),
    "safetensors": (b"\x10\0\0\0\0\0\0\0" + b'{"a":{"dtype":"F32"}}', "safetensors"),
    "tflite": (b"\x1c\0\0\0TFL3" + b"\0" * 99, "TensorFlow Lite"),
    "tensor": (zoo.weight("w", 3, 3).SerializeToString(), "holds one tensor"),
    "no_graph": (onnx.ModelProto(ir_version=8, producer_name="x").SerializeToString(), "no graph"),
    "truncated": (zoo.small_cnn().SerializeToString()[:300], "truncated"),
    "no_nodes": (zoo.model([]).SerializeToString(), "has no nodes"),
    "zeros": (b"\0" * 500, "is not an ONNX model"),
}


@pytest.mark.parametrize("kind", NOT_MODELS)
def test_what_is_no_model_is_named_in_one_line_with_the_file(kind: str, tmp_path: Path) -> None:
    content, clause = NOT_MODELS[kind]
    path = tmp_path / "given.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=clause) as caught:
        read_graph(path)
    text = str(caught.value)
    assert "\n" not in text
    assert "given.onnx" in text


def test_missing_files_and_folders_suggest_the_models_beside_them(tmp_path: Path) -> None:
    (tmp_path / "resnet.onnx").write_bytes(b"x")
    with pytest.raises(InputError, match=r"does not exist.*'resnet.onnx'"):
        read_graph(tmp_path / "resnt.onnx")
    with pytest.raises(InputError, match=r"is a folder; ONNX files in it: 'resnet.onnx'"):
        read_graph(tmp_path)
    with pytest.raises(InputError, match="can't be read"):
        read_graph("bad\0name.onnx")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(InputError, match="not a regular file"):
        read_graph(tmp_path / "pipe.onnx")


def test_streams_have_to_be_binary_and_short() -> None:
    with pytest.raises(InputError, match="text mode"):
        read_graph(io.StringIO("text"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too long for a stream"):
        read_graph(io.BytesIO(b"x" * 100), limits=Limits(max_stream_bytes=99))


# ---- external data


def with_external_shape(location: str, offset: str = "", length: str = "") -> bytes:
    """Reshape to a target that lies outside of the file: two int64, 16 bytes."""
    proto = zoo.model(
        [zoo.node("Reshape", ["x", "s"], ["y"])],
        [zoo.value("x", [1, 12])],
        [zoo.value("y", None)],
        [zoo.stored("s", [3, 4])],
    )
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location, "offset": offset, "length": length, "__class__": "x"}
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    return proto.SerializeToString()


def shape_from(path: Path) -> tuple[int, ...] | None:
    model = read_graph(path)
    spec = model.graph.values[model.graph.outputs[0]].spec
    noted = any(isinstance(c, FileNote) and "can't be read" in c.text for c in model.caveats)
    assert noted == (spec is None)
    return None if spec is None else spec.shape


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "model"
    (inner / "parts").mkdir(parents=True)
    content = np.array([9, 9, 3, 4], np.int64).tobytes()
    for place in (tmp_path / "outside.bin", inner / "data.bin", inner / "parts" / "data.bin"):
        place.write_bytes(content)
    return inner


@pytest.mark.parametrize("location", ["data.bin", "parts/data.bin", "./parts/data.bin"])
@pytest.mark.parametrize("length", ["16", ""])
def test_integers_that_a_shape_needs_are_read_from_beside_the_model(
    folder: Path, location: str, length: str
) -> None:
    path = folder / "net.onnx"
    path.write_bytes(with_external_shape(location, "16", length))
    assert shape_from(path) == (3, 4)


@pytest.mark.parametrize(
    ("location", "offset", "length"),
    [
        ("../outside.bin", "16", "16"),
        ("parts/../../outside.bin", "16", "16"),
        ("{absolute}", "16", "16"),
        ("link.bin", "16", "16"),
        ("linked_parts/data.bin", "16", "16"),
        ("C:\\data.bin", "16", "16"),
        ("..\\outside.bin", "16", "16"),
        ("parts", "0", "16"),
        ("missing.bin", "0", "16"),
        ("data.bin\0", "0", "16"),
        ("", "0", "16"),
        ("data.bin", "24", "16"),
        ("data.bin", "1099511627776", "16"),
        ("data.bin", "-8", "16"),
        ("data.bin", "16", "8"),
        ("data.bin", "16", "-1"),
        ("data.bin", "9" * 5000, "16"),
        ("data.bin", "１６", "16"),
    ],
)
def test_nothing_is_read_from_elsewhere_or_out_of_bounds(
    folder: Path, location: str, offset: str, length: str
) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "outside.bin")
    (folder / "linked_parts").symlink_to(folder / "parts")
    path = folder / "net.onnx"
    location = location.format(absolute=folder.parent / "outside.bin")
    path.write_bytes(with_external_shape(location, offset, length))
    assert shape_from(path) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_as_external_data_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.bin")
    path = folder / "net.onnx"
    path.write_bytes(with_external_shape("pipe.bin", "0", "16"))
    assert shape_from(path) is None


def test_bytes_have_no_folder_to_read_from(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder)
    model = read_graph(with_external_shape("data.bin", "16", "16"))
    assert model.graph.values[model.graph.outputs[0]].spec is None


def test_external_keys_that_are_not_known_are_not_kept() -> None:
    assert set(ExternalDef.__slots__) == {"location", "offset", "length"}


def test_a_model_reads_without_its_weights(tmp_path: Path) -> None:
    proto = zoo.small_cnn(1)
    for tensor in proto.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="/etc/passwd")
    path = tmp_path / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    model = read_graph(path)
    whole = read_graph(zoo.small_cnn(1).SerializeToString()).graph
    assert model.graph.nodes == whole.nodes
    for found, expected in zip(model.graph.values, whole.values, strict=True):
        assert (found.name, found.spec, found.kind) == (expected.name, expected.spec, expected.kind)
    assert model.caveats == ()


def test_content_that_is_shorter_than_its_shape_is_not_used() -> None:
    proto = zoo.shape_arithmetic()
    rest = next(tensor for tensor in proto.graph.initializer if tensor.name == "rest")
    rest.raw_data = b"\xff\xff"
    model = read_graph(proto.SerializeToString())
    assert any("content of 'rest'" in c.text for c in model.caveats if isinstance(c, FileNote))


# ---- memory and imports

MEASURE = """
import resource, sys
from dippm_lite.onnx_reader import read_graph
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = read_graph(sys.argv[1])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
weights = sum(model.graph.values[i].spec.size_bytes for i in model.graph.stored_weights)
print(after - before, weights, *{"onnx", "google.protobuf"} & set(sys.modules))
"""


def test_two_gigabytes_of_weights_in_the_file_cost_no_memory_and_no_onnx_import(
    tmp_path: Path,
) -> None:
    """The weight is a hole in the file: written with a seek, it takes no disk either."""
    elements = 1 << 29
    hole = elements * 4
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1 << 15, 1 << 14])
    head = tensor.SerializeToString() + b"\x4a" + varint(hole)
    rest = zoo.model(
        [zoo.node("MatMul", ["x", "w"], ["y"])],
        [zoo.value("x", [1, 1 << 15])],
        [zoo.value("y", None)],
    )
    tail = rest.graph.SerializeToString()
    rest.ClearField("graph")
    prefix = b"\x2a" + varint(len(head) + hole) + head
    start = rest.SerializeToString() + b"\x3a" + varint(len(prefix) + hole + len(tail)) + prefix
    path = tmp_path / "big.onnx"
    with path.open("wb") as file:
        file.write(start)
        file.seek(hole, os.SEEK_CUR)
        file.write(tail)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("the file system has no holes")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    grown_kib, weight_bytes, *imported = done.stdout.split()
    assert int(weight_bytes) == hole
    assert int(grown_kib) < 16 << 10
    assert imported == []


def varint(number: int) -> bytes:
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_large_files_are_mapped_and_read_alike(tmp_path: Path) -> None:
    proto = zoo.small_cnn(1)
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(1 << 19, np.float32), "pad"))
    path = tmp_path / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    assert path.stat().st_size > 2 << 20
    assert read_graph(path).graph == read_graph(zoo.small_cnn(1).SerializeToString()).graph


# ---- onnx's own inference, for operators that come later


def test_onnx_infers_what_no_rule_knows() -> None:
    x = Tensor(DType.FLOAT, (2, 3, 8, 8))
    w = Tensor(DType.FLOAT, (4, 3, 3, 3))
    call = OpCall("", "Conv", 17, {"pads": (1, 1, 1, 1)}, (x, w, None), 1)
    assert native_outputs(call) == (Tensor(DType.FLOAT, (2, 4, 8, 8)),)
    target = Tensor(DType.INT64, (2,), np.array([6, -1]))
    call = OpCall("", "Reshape", 17, {}, (x, target), 1)
    assert native_outputs(call) == (Tensor(DType.FLOAT, (6, 64)),)


@pytest.mark.parametrize(
    "call",
    [
        OpCall("", "NoSuchOperator", 17, {}, (Tensor(DType.FLOAT, (2,)),), 1),
        OpCall("com.acme", "Relu", 1, {}, (Tensor(DType.FLOAT, (2,)),), 1),
        OpCall("", "Relu", 17, {}, (Tensor(DType.FLOAT, None),), 1),
        OpCall("", "Relu", 17, {}, (Tensor(DType.UNDEFINED, (2,)),), 1),
        OpCall("", "MatMul", 17, {}, (Tensor(DType.FLOAT, (2, 3)),) * 2, 1),
        OpCall("", "Relu", 17, {"bad": (1, "mixed")}, (Tensor(DType.FLOAT, (2,)),), 1),
    ],
)
def test_what_onnx_cannot_infer_is_unknown(call: OpCall) -> None:
    (found,) = native_outputs(call)
    assert found is None or found.shape is None
