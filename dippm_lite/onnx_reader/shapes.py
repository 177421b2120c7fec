"""What a call returns: from the shape rules, else onnx's own, the file's declarations, a guess."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dippm_lite.errors import InputError
from dippm_lite.graph import MAX_CONSTANT_ELEMENTS
from dippm_lite.onnx_reader.binding import Binding
from dippm_lite.onnx_reader.draft import UNKNOWN
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.fallback import native_outputs
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.names import quoted, shape_text
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.proto import TypeDef
from dippm_lite.onnx_reader.scope import Scope
from dippm_lite.onnx_reader.shape_rules import TensorSequence, has_rule, infer
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["ShapeFinder", "typed"]


class ShapeFinder:
    """Finds output tensors, and keeps count of the contents that are held."""

    __slots__ = ("_binding", "_known_left", "_limits", "_notes")

    def __init__(self, binding: Binding, limits: Limits, notes: Notes) -> None:
        self._binding = binding
        self._limits = limits
        self._notes = notes
        self._known_left = limits.max_known_bytes

    def outputs(
        self, call: OpCall, names: Sequence[str], scope: Scope
    ) -> tuple[list[Tensor], str | None, bool]:
        """The outputs of ``call``, how it contradicts its operator (None where it doesn't), and
        whether a shape is a mere guess.

        Raises:
            InputError: an output has an implausible size.
        """
        problem = None
        try:
            found = infer(call)
        except ShapeRuleError as error:
            problem, found = str(error), (None,) * call.n_outputs
        tensors = [self._checked(t, name) for t, name in zip(found, names, strict=True)]
        if any(tensor.shape is None for tensor in tensors):
            return self._searched(call, tensors, names, scope, problem)
        if scope.declared:
            self._compare(tensors, names, scope)
        return tensors, problem, False

    def _checked(self, tensor: Tensor | None, name: str) -> Tensor:
        """``tensor`` within the limits on size and on known contents."""
        if tensor is None:
            return UNKNOWN
        shape, data = tensor.shape, tensor.data
        if data is not None and data.size > MAX_CONSTANT_ELEMENTS:
            self._known_left -= data.nbytes
            if self._known_left < 0:
                tensor = Tensor(tensor.dtype, shape, None, tensor.bounded)
        if shape is not None and math.prod(shape) > self._limits.max_elements:
            if tensor.bounded:
                return Tensor(tensor.dtype, None)
            raise InputError(
                f"value {quoted(name)} has the implausible size {shape_text(shape)}: "
                "check --batch, --dim and --shape"
            )
        return tensor

    def _searched(
        self,
        call: OpCall,
        tensors: list[Tensor],
        names: Sequence[str],
        scope: Scope,
        problem: str | None,
    ) -> tuple[list[Tensor], str | None, bool]:
        """Second sources for the outputs without a shape."""
        ruled = problem is not None or has_rule(call.domain, call.op_type)
        native: Sequence[Tensor | None] = () if ruled else native_outputs(call)
        guessed = False
        for i, (tensor, name) in enumerate(zip(tensors, names, strict=True)):
            if tensor.shape is not None or isinstance(tensor, TensorSequence):
                continue
            declared = typed(scope.declared.get(name), self._binding)
            sources = [tensor, *(native[i : i + 1]), declared]
            shaped = [t for t in sources if t is not None and t.shape is not None]
            dtypes = [t.dtype for t in sources if t is not None and t.dtype is not UNKNOWN.dtype]
            if isinstance(declared, TensorSequence):
                tensors[i] = declared
                continue
            first = call.inputs[0] if call.inputs else None
            if not shaped and not ruled and len(tensors) == 1 and first and first.shape is not None:
                shaped, dtypes, guessed = [first], [*dtypes, first.dtype], True
            shape = shaped[0].shape if shaped else None
            dtype = dtypes[0] if dtypes else UNKNOWN.dtype
            tensors[i] = self._checked(Tensor(dtype, shape), name)
        return tensors, problem, guessed

    def _compare(self, tensors: Sequence[Tensor], names: Sequence[str], scope: Scope) -> None:
        """Note where the file declares another shape; what the operators say stands. Caffe2 wrote
        ``()`` for "not known"."""
        for tensor, name in zip(tensors, names, strict=True):
            declared = scope.declared.get(name)
            if declared is None or not declared.dims or tensor.shape is None or tensor.bounded:
                continue
            sizes = declared.dims
            if len(sizes) != len(tensor.shape) or any(
                isinstance(size, int) and 0 <= size != actual
                for size, actual in zip(sizes, tensor.shape, strict=True)
            ):
                detail = f"{shape_text(sizes)}, not {shape_text(tensor.shape)}"
                self._notes.count(Topic.DECLARED_SHAPE, name, detail)


def typed(declared: TypeDef | None, binding: Binding) -> Tensor | None:
    """A declared type as a tensor: an optional is what it may hold, a map is nothing."""
    if declared is None:
        return None
    if declared.kind == "sequence":
        element = typed(declared.element, binding)
        return element and TensorSequence(element.dtype, element.shape)
    if declared.kind == "optional":
        return typed(declared.element, binding)
    if declared.kind not in ("tensor", "sparse"):
        return None
    dtype = dtype_of(declared.elem_type)
    if declared.dims is None:
        return Tensor(dtype, None)
    sizes = [binding.size(dim) for dim in declared.dims]
    known = tuple(size for size in sizes if size is not None)
    return Tensor(dtype, known if len(known) == len(sizes) else None)
