"""ONNX files, and networks of the catalog through their export, in onnxruntime."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dippm_lite.execution import Precision
from training.measure.device import Device
from training.measure.filled_weights import fill_weights
from training.measure.prepared import Prepared
from training.measure.timing import WallTimer
from training.measure.workloads import Workload

__all__ = ["prepare"]

EXPORTER, OPSET = "torchscript", 17

_TF32 = {Precision.AUTO: "1", Precision.TF32: "1", Precision.FP32: "0"}
"""``use_tf32`` of the CUDA provider, whose default is 1."""

_NUMPY = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
}  # fmt: skip
_SEED = 0


def prepare(workload: Workload, device: Device) -> Prepared:
    """Open a session; inputs and outputs stay on the device.

    Raises:
        KeyError: the catalog has no such network.
        ValueError: the precision or device is not to be had, or an input has a free dimension
            besides the first.
        whatever onnxruntime or the exporter raises.
    """
    import onnxruntime

    kind = device.kind
    if workload.precision not in _TF32 or (kind, workload.precision) == ("cpu", Precision.TF32):
        raise ValueError(
            f"onnxruntime on {kind} runs the types of the file: no {workload.precision.value}"
        )
    providers: list[Any] = ["CPUExecutionProvider"]
    if kind == "cuda":
        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            raise ValueError("this onnxruntime has no CUDA provider: install onnxruntime-gpu")
        providers.insert(0, ("CUDAExecutionProvider", {"use_tf32": _TF32[workload.precision]}))
    with tempfile.TemporaryDirectory() as folder:
        path, facts = _model(workload, Path(folder))
        session = onnxruntime.InferenceSession(path, providers=providers)
    if kind == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        raise ValueError("onnxruntime fell back to the CPU: its CUDA libraries can't be loaded")
    feeds = _feeds(session, workload.batch_size)
    facts["providers"] = session.get_providers()
    # A run returns when the device is done, so that the host's clock tells its time.
    if kind == "cpu":
        return Prepared(lambda: session.run(None, feeds), WallTimer(), facts)
    binding = session.io_binding()
    for name, array in feeds.items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0)
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    return Prepared(lambda: session.run_with_iobinding(binding), WallTimer(), facts)


def _model(workload: Workload, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A file with weights, and what a row says of the network."""
    if workload.file is not None:
        model = onnx.load(workload.file, load_external_data=False)
        content = hashlib.sha256(workload.file.read_bytes())
        facts: dict[str, Any] = {"graph": workload.file.name, "sha256": content.hexdigest()}
        source = workload.file.parent
    else:
        from training.corpus.canonical import fingerprint
        from training.corpus.catalog import export_network, find_network

        network = find_network(workload.network)
        if not network.batch and workload.batch_size != 1:
            raise ValueError(f"{network.name} takes one sample at a time")
        model, parameters = export_network(network, exporter=EXPORTER, opset=OPSET)
        facts = {
            "graph": network.name,
            "family": network.family,
            "builder": network.builder,
            "arguments": dict(network.arguments),
            "parameters": parameters,
            "fingerprint": fingerprint(model),
            "exporter": EXPORTER,
        }
        source = None
    facts["opset"] = max((e.version for e in model.opset_import if not e.domain), default=0)
    if source is not None and not _missing(model, source):
        assert workload.file is not None
        return workload.file, facts
    return fill_weights(model, folder), facts


def _missing(model: onnx.ModelProto, folder: Path) -> bool:
    """Whether the file's weights lie in another file that isn't there."""
    return any(
        entry.key == "location" and not (folder / entry.value).is_file()
        for tensor in model.graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
    )


def _feeds(session: Any, batch_size: int) -> dict[str, Any]:
    """Normal numbers for floating-point inputs, zeros for others, which are valid as indices."""
    random = np.random.default_rng(_SEED)
    feeds = {}
    for item in session.get_inputs():
        if item.type not in _NUMPY:
            raise ValueError(f"input {item.name!r} has type {item.type}")
        shape = []
        for axis, size in enumerate(item.shape):
            if isinstance(size, int):
                shape.append(size)
            elif axis == 0:
                shape.append(batch_size)
            else:
                raise ValueError(
                    f"input {item.name!r} has the free dimension {size!r} besides the batch"
                )
        dtype = np.dtype(_NUMPY[item.type])
        floating = np.issubdtype(dtype, np.floating)
        values = random.standard_normal(shape) if floating else np.zeros(shape)
        feeds[item.name] = values.astype(dtype)
    return feeds
