"""A decoded ONNX file: the messages of onnx.proto, cut down to what an analysis needs.

Documentation, metadata and annotations are left out; tensor contents stay in the file, a
:class:`TensorDef` only knows where they are. ``https://github.com/onnx/onnx/blob/main/onnx/onnx.proto``
is the source of every field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dippm_lite.graph import AttributeValue
from dippm_lite.onnx_reader.wire import Span

__all__ = [
    "AttributeContent",
    "AttributeDef",
    "Dim",
    "ExternalDef",
    "FunctionDef",
    "GraphDef",
    "ModelDef",
    "NodeDef",
    "SparseTensorDef",
    "TensorDef",
    "TypeDef",
    "ValueInfoDef",
]

Dim = int | str | None
"""A dimension as written: ``dim_value``, ``dim_param``, or neither."""


@dataclass(frozen=True, slots=True)
class ExternalDef:
    """Where the content of a tensor lies outside the file; unknown keys are never kept."""

    location: str
    offset: str
    length: str


@dataclass(frozen=True, slots=True)
class TensorDef:
    """``TensorProto``: dimensions and type, and the spans of the file that hold the content.

    ``typed`` maps the number of a typed data field (``int64_data`` is 7) to its packed pieces:
    spans of the file, or bytes where the file has single values.
    """

    name: str
    data_type: int
    dims: tuple[int, ...]
    raw: Span | None
    typed: Mapping[int, tuple[Span | bytes, ...]]
    external: ExternalDef | None


@dataclass(frozen=True, slots=True)
class SparseTensorDef:
    """``SparseTensorProto``: ``values`` carries the name and type, ``dims`` the dense shape."""

    values: TensorDef
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TypeDef:
    """``TypeProto``. ``kind`` is the name of the set member of its oneof without ``_type``, or
    ``"unset"``. ``dims`` is None where the file gives no shape. ``element`` is the inner type of
    a sequence, an optional or a map."""

    kind: str
    elem_type: int = 0
    dims: tuple[Dim, ...] | None = None
    element: TypeDef | None = None


@dataclass(frozen=True, slots=True)
class ValueInfoDef:
    """``ValueInfoProto``."""

    name: str
    type: TypeDef


@dataclass(frozen=True, slots=True)
class AttributeDef:
    """``AttributeProto``. ``value`` is None for a reference, a type, or content too long to be of
    use; ``ref`` names the attribute of the enclosing function that it stands for."""

    name: str
    type: int
    value: AttributeContent
    ref: str = ""


@dataclass(frozen=True, slots=True)
class NodeDef:
    """``NodeProto``; ``domain`` is ``""`` for the default one, however the file spells it."""

    op_type: str
    domain: str
    name: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[AttributeDef, ...]


@dataclass(frozen=True, slots=True)
class GraphDef:
    """``GraphProto``."""

    name: str
    nodes: tuple[NodeDef, ...]
    initializers: tuple[TensorDef, ...]
    sparse_initializers: tuple[SparseTensorDef, ...]
    inputs: tuple[ValueInfoDef, ...]
    outputs: tuple[ValueInfoDef, ...]
    value_info: tuple[ValueInfoDef, ...]


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """``FunctionProto``; ``defaults`` are the attributes that a call may leave out."""

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: tuple[AttributeDef, ...]
    nodes: tuple[NodeDef, ...]
    opsets: Mapping[str, int]
    value_info: tuple[ValueInfoDef, ...]


@dataclass(frozen=True, slots=True)
class ModelDef:
    """``ModelProto``; ``graph`` is None where the file has none."""

    ir_version: int
    opsets: Mapping[str, int]
    producer: str
    graph: GraphDef | None
    functions: tuple[FunctionDef, ...]
    has_training: bool


AttributeContent = (
    AttributeValue
    | TensorDef
    | SparseTensorDef
    | GraphDef
    | tuple[TensorDef, ...]
    | tuple[GraphDef, ...]
    | tuple[SparseTensorDef, ...]
    | None
)
