"""Numbers in place of weights that a file lacks, so that a runtime can run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

__all__ = ["fill_weights"]

WEIGHTS = "weights.bin"
_FLOATING = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.DOUBLE,
)
_SEED = 0


def fill_weights(model: onnx.ModelProto, folder: Path) -> Path:
    """Write ``model`` with numbers for every initializer that lies outside of it; returns the file.

    Floating-point weights are small and positive (a variance must not be negative, and sums must
    not overflow half precision), integers are 0, which is valid as an index. Weights lie beside
    the file, so that neither protobuf's 2 GiB nor alignment matters.
    """
    random = np.random.default_rng(_SEED)
    with (folder / WEIGHTS).open("wb") as file:
        for graph in _graphs(model.graph):
            for tensor in graph.initializer:
                if tensor.data_location != onnx.TensorProto.EXTERNAL:
                    continue
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
                shape = tuple(tensor.dims)
                if tensor.data_type in _FLOATING:
                    values = random.uniform(0.01, 0.03, shape).astype(dtype)
                else:
                    values = np.zeros(shape, dtype)
                content = values.tobytes()
                offset = file.tell()
                file.write(content)
                tensor.ClearField("external_data")
                for key, value in (
                    ("location", WEIGHTS), ("offset", offset), ("length", len(content)),
                ):  # fmt: skip
                    tensor.external_data.add(key=key, value=str(value))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def _graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                found += _graphs(inner)
    return found
