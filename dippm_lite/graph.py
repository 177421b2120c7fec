"""What a model is once every dimension is bound: tensors, operators and the dataflow between them.

A :class:`Graph` never holds weight data. Values are numbered; nodes name them by index, so that
renaming a tensor changes nothing downstream. Subgraphs and local functions are already inlined:
``OpNode.repeat`` says how often a node of a loop body runs in one inference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

__all__ = [
    "ABSENT",
    "TRACED_BIAS",
    "AttributeValue",
    "DType",
    "Graph",
    "OpNode",
    "TensorSpec",
    "Value",
    "ValueKind",
]

ABSENT = -1
"""Index of an optional input or output that the model leaves out."""

TRACED_BIAS = "traced_bias"
"""Attribute of ours, 1 on a convolution that has a bias in PyTorch and none in the file: the dynamo
exporter drops a bias of zeros, as an untrained network has, and leaves the call in the metadata."""

MAX_CONSTANT_ELEMENTS = 64
"""Longest constant that a value carries: enough for axes, pads, shapes and pattern scalars."""

AttributeValue = (
    int
    | float
    | str
    | bytes
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | tuple[bytes, ...]
)

_BITS = {
    "UNDEFINED": 0, "FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32,
    "INT64": 64, "STRING": 0, "BOOL": 8, "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64,
    "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8,
    "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "FLOAT8E8M0": 8,
    "UINT2": 2, "INT2": 2,
}  # fmt: skip


class DType(str, Enum):
    """Element types under their ONNX names (``TensorProto.DataType``)."""

    UNDEFINED = "UNDEFINED"
    FLOAT = "FLOAT"
    UINT8 = "UINT8"
    INT8 = "INT8"
    UINT16 = "UINT16"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    STRING = "STRING"
    BOOL = "BOOL"
    FLOAT16 = "FLOAT16"
    DOUBLE = "DOUBLE"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    COMPLEX64 = "COMPLEX64"
    COMPLEX128 = "COMPLEX128"
    BFLOAT16 = "BFLOAT16"
    FLOAT8E4M3FN = "FLOAT8E4M3FN"
    FLOAT8E4M3FNUZ = "FLOAT8E4M3FNUZ"
    FLOAT8E5M2 = "FLOAT8E5M2"
    FLOAT8E5M2FNUZ = "FLOAT8E5M2FNUZ"
    UINT4 = "UINT4"
    INT4 = "INT4"
    FLOAT4E2M1 = "FLOAT4E2M1"
    FLOAT8E8M0 = "FLOAT8E8M0"
    UINT2 = "UINT2"
    INT2 = "INT2"

    @property
    def itemsize_bits(self) -> int:
        """Bits of one element; 0 where it has no fixed size (STRING, UNDEFINED)."""
        return _BITS[self.value]

    @property
    def is_floating(self) -> bool:
        """True for every real floating-point type, 4- and 8-bit ones included."""
        return self.value.startswith(("FLOAT", "BFLOAT", "DOUBLE"))

    @property
    def is_quantized(self) -> bool:
        """True for the integer types that quantised weights and activations use."""
        return self in _QUANTIZED


_QUANTIZED = frozenset({DType.INT8, DType.UINT8, DType.INT4, DType.UINT4, DType.INT2, DType.UINT2})


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and element type of a tensor; never its data.

    ``shape`` is ``()`` for a scalar; a dimension may be 0. Python integers don't overflow, so
    ``elements`` and ``size_bytes`` are exact for any shape.
    """

    shape: tuple[int, ...]
    dtype: DType

    def __post_init__(self) -> None:
        if any(dim < 0 for dim in self.shape):
            raise ValueError(f"negative dimension in shape {self.shape}")

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Packed size: 4-bit and 2-bit elements share bytes."""
        return (self.elements * self.dtype.itemsize_bits + 7) // 8


class ValueKind(str, Enum):
    """Where a value's content comes from, which decides what it costs."""

    INPUT = "input"
    """A graph input: different at every inference."""
    ACTIVATION = "activation"
    """Computed on the device from at least one input."""
    WEIGHT = "weight"
    """Stored in the file (initializer, Constant node), or computed from weights alone."""
    HOST = "host"
    """Known once the shapes are bound (shape arithmetic, axes, pads): costs no kernel."""


@dataclass(frozen=True, slots=True)
class Value:
    """One tensor of the graph.

    ``spec`` is None when the rank can't be known. ``constant`` holds the flattened content of a
    small known tensor (at most ``MAX_CONSTANT_ELEMENTS``). ``bounded`` marks a shape that is an
    upper bound, since the true one depends on the data. ``stored`` marks a WEIGHT that occupies
    the file itself, as against one derived from others (a transposed or cast weight).
    """

    name: str
    spec: TensorSpec | None
    kind: ValueKind
    constant: tuple[int, ...] | tuple[float, ...] | None = None
    bounded: bool = False
    stored: bool = False

    def __post_init__(self) -> None:
        if self.constant is not None and len(self.constant) > MAX_CONSTANT_ELEMENTS:
            raise ValueError(f"constant of {len(self.constant)} elements on value {self.name!r}")


@dataclass(frozen=True, slots=True)
class OpNode:
    """One operator call.

    ``inputs`` and ``outputs`` are indices into ``Graph.values``, in ONNX order, ``ABSENT`` where
    an optional one is left out. ``domain`` is ``""`` for the default domain (never "ai.onnx").
    ``repeat`` is how often the node runs in one inference (trip counts of enclosing loops).
    """

    name: str
    domain: str
    op_type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    repeat: int = 1

    def __post_init__(self) -> None:
        if self.repeat < 0:
            raise ValueError(f"node {self.name!r} repeats {self.repeat} times")

    @property
    def key(self) -> tuple[str, str]:
        """``(domain, op_type)``: the same name in two domains is two operators."""
        return (self.domain, self.op_type)


@dataclass(frozen=True)
class Graph:
    """A model with every dimension bound.

    Attributes:
        name: the graph's own name, or the file's stem.
        values: all tensors; nodes, ``inputs`` and ``outputs`` are indices into it.
        nodes: topologically sorted: a value is produced before any node reads it.
        inputs: values that the caller feeds (initializers are not among them).
        outputs: values that the model returns.
        opset: version of the default operator set; 0 where the model imports none.

    Raises:
        ValueError: an index is out of range, a value has two producers or is read before it is
            produced.
    """

    name: str
    values: tuple[Value, ...]
    nodes: tuple[OpNode, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    opset: int

    def __post_init__(self) -> None:
        count = len(self.values)
        produced_later = bytearray(count)
        for node in self.nodes:
            for index in node.outputs:
                if index == ABSENT:
                    continue
                if not 0 <= index < count:
                    raise ValueError(f"node {node.name!r} writes value {index} of {count}")
                if produced_later[index]:
                    raise ValueError(f"value {self.values[index].name!r} has two producers")
                produced_later[index] = 1
        for node in self.nodes:
            for index in node.inputs:
                if index == ABSENT:
                    continue
                if not 0 <= index < count:
                    raise ValueError(f"node {node.name!r} reads value {index} of {count}")
                if produced_later[index]:
                    raise ValueError(
                        f"node {node.name!r} reads {self.values[index].name!r} before it exists"
                    )
            for index in node.outputs:
                if index != ABSENT:
                    produced_later[index] = 0
        for index in (*self.inputs, *self.outputs):
            if not 0 <= index < count:
                raise ValueError(f"graph input or output {index} of {count} values")

    @cached_property
    def producers(self) -> Mapping[int, int]:
        """Value index to the index of the node that writes it."""
        return {v: i for i, node in enumerate(self.nodes) for v in node.outputs if v != ABSENT}

    @cached_property
    def consumers(self) -> Mapping[int, tuple[int, ...]]:
        """Value index to the indices of the nodes that read it, ascending, each once."""
        readers: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for value in dict.fromkeys(node.inputs):
                if value != ABSENT:
                    readers.setdefault(value, []).append(i)
        return {value: tuple(nodes) for value, nodes in readers.items()}

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Dataflow between nodes as sorted, distinct ``(producer, consumer)`` node indices."""
        return tuple(
            sorted(
                (producer, consumer)
                for value, producer in self.producers.items()
                for consumer in self.consumers.get(value, ())
            )
        )

    def spec(self, index: int) -> TensorSpec | None:
        """The spec of a value, or None for an absent or unknown one."""
        return None if index == ABSENT else self.values[index].spec

    @cached_property
    def stored_weights(self) -> tuple[int, ...]:
        """Stored weights that live nodes or graph outputs read, each once."""
        return tuple(
            i
            for i, value in enumerate(self.values)
            if value.kind is ValueKind.WEIGHT and value.stored
        )
