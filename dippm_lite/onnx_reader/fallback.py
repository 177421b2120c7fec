"""onnx's own shape inference, for one call of an operator that the reader has no rule for.

The only place of the package that imports onnx, and only when such a call turns up. The native
code has crashed on ranks that an operator doesn't allow (onnx issues 6180, 6185, 8207), so it sees
nothing but well-formed calls: known types and ranks, no subgraphs, operators with a schema.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from dippm_lite.graph import AttributeValue, DType
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["native_outputs"]

_DOMAINS = frozenset({"", "ai.onnx.ml"})
_MAX_RANK = 16
_NUMBERS = {dtype: number for number, dtype in enumerate(DType)}


def native_outputs(call: OpCall) -> tuple[Tensor | None, ...]:
    """The outputs that onnx's inference gives; None for what it doesn't know."""
    nothing: tuple[Tensor | None, ...] = (None,) * call.n_outputs
    if call.domain not in _DOMAINS or call.tensors or not all(map(_is_plain, call.inputs)):
        return nothing
    with contextlib.suppress(ImportError):
        import onnx

        if onnx.defs.has(call.op_type, call.domain):
            return _infer(onnx, call) or nothing
    return nothing


def _is_plain(tensor: Tensor | None) -> bool:
    if tensor is None:
        return True
    return (
        type(tensor) is Tensor
        and tensor.dtype is not DType.UNDEFINED
        and tensor.shape is not None
        and len(tensor.shape) <= _MAX_RANK
        and all(size < 1 << 31 for size in tensor.shape)
    )


def _infer(onnx: Any, call: OpCall) -> tuple[Tensor | None, ...] | None:
    """Inference of a model of this one call. Its exceptions differ between onnx's versions; any of
    them means that the shape isn't known."""
    names = [f"i{i}" if tensor is not None else "" for i, tensor in enumerate(call.inputs)]
    results = [f"o{i}" for i in range(call.n_outputs)]
    newest = onnx.defs.onnx_opset_version()
    version = min(max(call.opset, 1), newest) if not call.domain else max(call.opset, 1)
    try:
        node = onnx.helper.make_node(
            call.op_type, names, results, domain=call.domain, **_attributes(call.attributes)
        )
        inputs = [
            onnx.helper.make_tensor_value_info(name, _NUMBERS[tensor.dtype], tensor.shape)
            for name, tensor in zip(names, call.inputs, strict=True)
            if tensor is not None
        ]
        stored = [
            onnx.numpy_helper.from_array(tensor.data, name)
            for name, tensor in zip(names, call.inputs, strict=True)
            if tensor is not None and tensor.data is not None and not tensor.dtype.is_floating
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in results]
        graph = onnx.helper.make_graph([node], "call", inputs, outputs, stored)
        opset = onnx.helper.make_opsetid(call.domain, version)
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        found = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output
    except Exception:
        return None
    return tuple(_tensor(info.type) for info in found)


def _attributes(attributes: Mapping[str, AttributeValue]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value != ()}


def _tensor(type_proto: Any) -> Tensor | None:
    if type_proto.WhichOneof("value") != "tensor_type":
        return None
    tensor_type = type_proto.tensor_type
    dtype = dtype_of(tensor_type.elem_type)
    if not tensor_type.HasField("shape"):
        return Tensor(dtype, None)
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor_type.shape.dim]
    known = tuple(size for size in sizes if size is not None and size >= 0)
    return Tensor(dtype, known if len(known) == len(sizes) else None)
