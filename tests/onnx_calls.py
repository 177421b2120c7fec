"""ONNX protos as the reader's calls: how the shape-rule tests feed what other tools describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TypeProto, helper, numpy_helper

from dippm_lite.graph import AttributeValue, DType
from dippm_lite.onnx_reader.shape_rules import TensorSequence, infer
from dippm_lite.onnx_reader.shape_rules.storage import STORAGE
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, OpCall, Tensor

DTYPES = tuple(DType)
NOTHING_KNOWN = Tensor(DType.UNDEFINED, None)


def tensor_of_array(array: Any, code: int, known: bool) -> Tensor:
    """``array`` of ``TensorProto.DataType`` number ``code``, with its content where ``known``."""
    dtype, values = DTYPES[code], np.asarray(array)
    keep = known and dtype in STORAGE and values.size <= MAX_KNOWN_ELEMENTS
    return Tensor(dtype, values.shape, values.astype(STORAGE[dtype]) if keep else None)


def tensor_of_value(value: Any, declared: TypeProto, known: bool) -> Tensor | None:
    """A test case's value (array, TensorProto, list, or None) under its declared type."""
    if declared.HasField("optional_type"):
        if value is None:
            return None
        return tensor_of_value(value, declared.optional_type.elem_type, known)
    if declared.HasField("sequence_type"):
        inner = declared.sequence_type.elem_type
        elements = tuple(tensor_of_value(item, inner, known) for item in value)
        shapes = {element.shape for element in elements}
        shape = shapes.pop() if len(shapes) == 1 else None
        return TensorSequence(DTYPES[inner.tensor_type.elem_type], shape, elements=elements)
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return tensor_of_array(value, declared.tensor_type.elem_type, known)


def attributes_of(node: NodeProto) -> tuple[dict[str, AttributeValue], dict[str, Tensor]]:
    """Plain attributes, and tensor ones; graphs and types are left out."""
    plain: dict[str, AttributeValue] = {}
    tensors: dict[str, Tensor] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.type == AttributeProto.TENSOR:
            array = numpy_helper.to_array(value)
            tensors[attribute.name] = tensor_of_array(array, value.data_type, known=True)
        elif attribute.type == AttributeProto.SPARSE_TENSOR:
            dtype = DTYPES[value.values.data_type]
            tensors[attribute.name] = Tensor(dtype, tuple(value.dims))
        elif attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
            plain[attribute.name] = tuple(value)
        elif attribute.type in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING):
            plain[attribute.name] = value
    return plain, tensors


def call_of(
    node: NodeProto, values: Mapping[str, Tensor | None], opsets: Mapping[str, int]
) -> OpCall:
    """``node`` with its inputs out of ``values``."""
    plain, tensors = attributes_of(node)
    return OpCall(
        domain=node.domain,
        op_type=node.op_type,
        opset=opsets.get(node.domain, 0),
        attributes=plain,
        inputs=tuple(values[name] if name else None for name in node.input),
        n_outputs=len(node.output),
        tensors=tensors,
    )


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in model.opset_import}


def walk(model: onnx.ModelProto, feeds: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
    """All values of a model without subgraphs, from those of its inputs."""
    values: dict[str, Tensor | None] = dict(feeds)
    for stored in model.graph.initializer:
        array = numpy_helper.to_array(stored)
        values[stored.name] = tensor_of_array(array, stored.data_type, known=True)
    opsets = opsets_of(model)
    for node in model.graph.node:
        outputs = infer(call_of(node, values, opsets))
        for name, tensor in zip(node.output, outputs, strict=True):
            values[name] = NOTHING_KNOWN if tensor is None else tensor
    return values


def has_subgraphs(model: onnx.ModelProto) -> bool:
    return any(a.type == AttributeProto.GRAPH for node in model.graph.node for a in node.attribute)


def fits(found: Tensor, true_shape: Sequence[int]) -> bool:
    """Whether a found shape is the true one, or bounds it where it says so."""
    if found.shape is None or len(found.shape) != len(true_shape):
        return False
    pairs = zip(found.shape, true_shape, strict=True)
    return all(bound >= size if found.bounded else bound == size for bound, size in pairs)


def same_content(found: Tensor, true: Tensor) -> bool:
    """Equal content; floats to the precision of their type."""
    if found.data is None or true.data is None:
        return False
    tolerance = 2e-3 if found.dtype is DType.FLOAT16 else 1e-5
    a, b = found.data.astype(np.float64), true.data.astype(np.float64)
    return np.allclose(a, b, rtol=tolerance, atol=1e-6, equal_nan=True)
