"""Initializers and Constant nodes as values: one for each, however often it is met."""

from __future__ import annotations

from dippm_lite.graph import DType, ValueKind
from dippm_lite.onnx_reader.content import stored_tensor
from dippm_lite.onnx_reader.draft import Draft, DraftValue
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.kinds import is_small, stored_kind
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.proto import SparseTensorDef, TensorDef
from dippm_lite.onnx_reader.scope import StoredDef
from dippm_lite.onnx_reader.source import Source
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["StoredValues", "stored_value"]

_SHAPE_TYPES = (DType.INT64, DType.INT32, DType.BOOL)
"""What axes, shapes and conditions are made of: without such a content, shapes may be lost."""


class StoredValues:
    """Adds what the file holds to a draft when it is first read.

    A Constant in a function that is called ten times is one value, as the file holds it once.
    """

    __slots__ = ("_draft", "_known", "_notes", "_source")

    def __init__(self, source: Source, draft: Draft, notes: Notes) -> None:
        self._source = source
        self._draft = draft
        self._notes = notes
        self._known: dict[int, int] = {}

    def index(self, name: str, stored: StoredDef) -> int:
        """The value of a stored tensor."""
        index = self._known.get(id(stored))
        if index is not None:
            return index
        if isinstance(stored, SparseTensorDef):
            self._notes.count(Topic.SPARSE, name)
            tensor = Tensor(dtype_of(stored.values.data_type), stored.dims)
        else:
            tensor, missing = stored_tensor(self._source.buffer, self._source.folder, stored)
            if missing and tensor.dtype in _SHAPE_TYPES and is_small(tensor):
                self._notes.count(Topic.UNREADABLE, name)
        index = self._draft.add(stored_value(name, tensor))
        self._known[id(stored)] = index
        return index

    def tensor(self, stored: TensorDef) -> Tensor:
        """A stored tensor that is an attribute and no value."""
        return stored_tensor(self._source.buffer, self._source.folder, stored)[0]


def stored_value(name: str, tensor: Tensor) -> DraftValue:
    """A value that the file holds."""
    kind = stored_kind(tensor.dtype, tensor.shape or ())
    weight = kind is ValueKind.WEIGHT
    return DraftValue(name, tensor, kind, constant_only=True, rooted=weight, in_file=True)
