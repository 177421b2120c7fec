"""One operator through onnxruntime and through the shape rules."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx_calls
import onnxruntime
from onnx import helper

from dippm_lite.onnx_reader.shape_rules import infer
from dippm_lite.onnx_reader.tensors import Tensor

onnxruntime.set_default_logger_severity(4)
MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 255, shape).astype(np.uint8)


def i8(*shape: int) -> np.ndarray:
    return RNG.integers(-120, 120, shape).astype(np.int8)


def i32(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


class Case(NamedTuple):
    op_type: str
    inputs: list[Any]
    attributes: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default is never written to
    outputs: int = 1
    domain: str = MICROSOFT
    opset: int = 1


def computed(case: Case) -> list[np.ndarray]:
    """The outputs of onnxruntime, without its graph optimiser."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    feeds = {n: np.asarray(v) for n, v in zip(names, case.inputs, strict=True) if n}
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op_type, names, outputs, domain=case.domain, **case.attributes)
    graph = helper.make_graph(
        [node],
        "one operator",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in feeds.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    opsets = [helper.make_opsetid(case.domain, case.opset)]
    if case.domain:
        opsets.append(helper.make_opsetid("", 21))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, feeds))


def inferred(case: Case, known_up_to: int) -> tuple[Tensor | None, ...]:
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    values = {}
    for name, value in zip(names, case.inputs, strict=True):
        if name:
            array = np.asarray(value)
            code = helper.np_dtype_to_tensor_dtype(array.dtype)
            known = array.size <= known_up_to
            values[name] = onnx_calls.tensor_of_array(array, code, known)
    node = helper.make_node(
        case.op_type,
        names,
        [f"y{i}" for i in range(case.outputs)],
        domain=case.domain,
        **case.attributes,
    )
    return infer(onnx_calls.call_of(node, values, {case.domain: case.opset}))


def as_tensor(array: np.ndarray) -> Tensor:
    return onnx_calls.tensor_of_array(array, helper.np_dtype_to_tensor_dtype(array.dtype), True)
