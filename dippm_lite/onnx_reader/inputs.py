"""The inputs of a graph: which of them the caller feeds, and with what shapes."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator

from dippm_lite.errors import InputError
from dippm_lite.graph import ValueKind
from dippm_lite.onnx_reader.binding import Binding, InputDecl
from dippm_lite.onnx_reader.draft import UNKNOWN, DraftValue
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.names import quoted, shape_text
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.proto import GraphDef, ModelDef, ValueInfoDef
from dippm_lite.onnx_reader.shape_rules import TensorSequence
from dippm_lite.onnx_reader.shapes import typed
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["declared_input", "dimension_names", "input_value", "true_inputs"]

_MAX_RANK = 64  # numpy's limit; onnxruntime and TensorRT stop at 8 or fewer for most operators
_FIRST_OVERRIDABLE = 4  # IR version from which an initializer that is an input is a mere default


def true_inputs(model: ModelDef, graph: GraphDef, notes: Notes) -> list[ValueInfoDef]:
    """The inputs that the caller feeds: up to IR version 3 initializers are listed among them.
    An integer that may be overridden is noted, since a shape may depend on it."""
    stored = [tensor.name for tensor in graph.initializers]
    stored += [sparse.values.name for sparse in graph.sparse_initializers]
    known = set(stored)
    if len(known) < len(stored):
        seen: set[str] = set()
        for name in stored:
            if name in seen:
                notes.count(Topic.DUPLICATE_STORED, name)
            seen.add(name)
    inputs: dict[str, ValueInfoDef] = {}
    for info in graph.inputs:
        if info.name in known:
            dtype = dtype_of(info.type.elem_type)
            if model.ir_version >= _FIRST_OVERRIDABLE and not dtype.is_floating:
                notes.count(Topic.OVERRIDABLE, info.name)
        elif info.name:
            inputs.setdefault(info.name, info)
    return list(inputs.values())


def declared_input(info: ValueInfoDef, read: Container[str]) -> InputDecl:
    """The dimensions that have to be bound. A sequence or a map may stay unknown, and so may
    what no node reads.

    Raises:
        InputError: it has more dimensions than any tensor.
    """
    held = info.type
    while held.kind in ("optional", "sequence") and held.element is not None:
        held = held.element
    if held.dims is not None and len(held.dims) > _MAX_RANK:
        raise InputError(f"input {quoted(info.name)} has {len(held.dims):,} dimensions")
    plain = info.type.kind in ("tensor", "sparse", "unset", "optional")
    return InputDecl(info.name, held.dims, plain and info.name in read)


def dimension_names(graph: GraphDef) -> Iterator[str]:
    """The names that outputs and intermediate values have in their shapes."""
    for info in (*graph.outputs, *graph.value_info):
        for dim in info.type.dims or ():
            if isinstance(dim, str):
                yield dim


def input_value(info: ValueInfoDef, binding: Binding, limits: Limits) -> DraftValue:
    """An input as a value of the draft.

    Raises:
        InputError: it has an implausible size.
    """
    tensor = typed(info.type, binding) or UNKNOWN
    shape = binding.shapes.get(info.name, tensor.shape)
    if shape is not None and math.prod(shape) > limits.max_elements:
        raise InputError(
            f"input {quoted(info.name)} has the implausible size {shape_text(shape)}: "
            "check --batch, --dim and --shape"
        )
    if isinstance(tensor, TensorSequence):
        tensor = TensorSequence(tensor.dtype, shape)
    else:
        tensor = Tensor(tensor.dtype, shape)
    is_tensor = info.type.kind not in ("map", "opaque")
    return DraftValue(info.name, tensor, ValueKind.INPUT, is_tensor=is_tensor)
