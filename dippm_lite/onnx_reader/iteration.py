"""What Loop and Scan share: values that change from one run of the body to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dippm_lite.errors import InputError
from dippm_lite.graph import ABSENT, DType, ValueKind
from dippm_lite.onnx_reader.draft import DraftNode, DraftValue, Mark
from dippm_lite.onnx_reader.kinds import is_small, origin_of
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.shape_rules import TensorSequence
from dippm_lite.onnx_reader.tensors import Tensor

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = [
    "constant",
    "counter",
    "emitted",
    "multiply",
    "same_type",
    "sliced",
    "stacked",
    "varying",
]


def same_type(a: Tensor, b: Tensor) -> bool:
    """True where two tensors or sequences have the same type, shape and length."""
    if a.shape != b.shape or a.dtype is not b.dtype:
        return False
    if not isinstance(a, TensorSequence) or not isinstance(b, TensorSequence):
        return isinstance(a, TensorSequence) == isinstance(b, TensorSequence)
    if a.elements is None or b.elements is None:
        return a.elements is b.elements
    return [e.shape for e in a.elements] == [e.shape for e in b.elements]


def constant(walker: Walker, value: int | bool) -> int:
    """A scalar that is known, as a value."""
    dtype = DType.BOOL if isinstance(value, bool) else DType.INT64
    tensor = Tensor(dtype, (), np.array(value))
    return walker.draft.add(DraftValue("", tensor, ValueKind.HOST, constant_only=True))


def counter(walker: Walker, name: str) -> int:
    """The number of the iteration, which is known to the host alone."""
    return walker.draft.add(DraftValue(name, Tensor(DType.INT64, ()), ValueKind.HOST))


def varying(walker: Walker, name: str, initial: int, tensor: Tensor, repeat: int) -> int:
    """The value that a body sees of a loop-carried variable: like ``initial`` in the first run,
    like the body's result later, so that its content is never known. ``tensor`` is its type."""
    if initial == ABSENT:
        return ABSENT
    value = walker.draft.values[initial]
    on_device = value.kind in (ValueKind.INPUT, ValueKind.ACTIVATION)
    if on_device and tensor.data is None and same_type(value.tensor, tensor):
        return initial
    if tensor.data is not None:
        tensor = Tensor(tensor.dtype, tensor.shape, None, tensor.bounded)
    on_host = value.kind is ValueKind.HOST and not tensor.dtype.is_floating and is_small(tensor)
    kind = ValueKind.HOST if on_host else ValueKind.ACTIVATION
    return emitted(walker, "Identity", (initial,), DraftValue(name, tensor, kind), repeat)


def sliced(walker: Walker, name: str, whole: int, axis: int, repeat: int) -> int:
    """One slice of a scanned value, without the axis that is scanned (a scalar, against the
    definition, has none)."""
    if whole == ABSENT:
        return ABSENT
    value = walker.draft.values[whole]
    shape = value.tensor.shape
    if shape is not None:
        place = axis % max(len(shape), 1)
        shape = (*shape[:place], *shape[place + 1 :])
    tensor = Tensor(value.tensor.dtype, shape, None, value.tensor.bounded)
    origin = origin_of("", "Slice", (value,))
    part = DraftValue(name, tensor, origin.kind(tensor), origin.constant_only, origin.rooted)
    return emitted(walker, "Slice", (whole,), part, repeat)


def stacked(
    walker: Walker, name: str, parts: Sequence[int], count: int, axis: int, repeat: int
) -> int:
    """``count`` results of a body, one after the other along a new axis. ``parts`` are the values
    that stand for them: all of them, or one for all."""
    first = walker.draft.values[parts[0]].tensor
    shape = first.shape
    if shape is not None:
        place = axis % (len(shape) + 1)
        shape = (*shape[:place], count, *shape[place:])
    tensor = Tensor(first.dtype, shape, None, first.bounded)
    whole = DraftValue(name, tensor, ValueKind.ACTIVATION)
    attributes = {"axis": axis, "new_axis": 1}
    return emitted(walker, "ConcatFromSequence", tuple(parts), whole, repeat, attributes)


def multiply(walker: Walker, start: Mark, runs: int) -> None:
    """Every call since ``start`` runs ``runs`` times as often."""
    for node in walker.draft.nodes[start.nodes :]:
        node.repeat *= runs
        if node.repeat > walker.limits.max_repeat:
            name = quoted(node.name or node.op_type)
            raise InputError(f"node {name} would run {node.repeat} times: implausible")


def emitted(
    walker: Walker,
    op_type: str,
    inputs: tuple[int, ...],
    value: DraftValue,
    repeat: int,
    attributes: dict[str, int] | None = None,
) -> int:
    """A call that the file doesn't have but the runtime makes: its result."""
    index = walker.draft.add(value)
    name = f"{value.name}/{op_type.lower()}"
    node = DraftNode(name, "", op_type, inputs, (index,), attributes or {}, repeat)
    walker.draft.nodes.append(node)
    return index
