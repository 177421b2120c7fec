"""Shapes, element types and small contents of every operator's outputs, from those of its inputs.

``infer`` is all that the reader needs. The rules are grouped by family, one file each; ``table``
joins them; ``content*`` files evaluate small known tensors with numpy (shape arithmetic, masks,
positions). Sizes are plain Python integers, so nothing overflows and nothing is allocated.
"""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.calls import MAX_RANK
from dippm_lite.onnx_reader.shape_rules.content import with_content
from dippm_lite.onnx_reader.shape_rules.sequence import TensorSequence
from dippm_lite.onnx_reader.shape_rules.table import RULES
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["MAX_RANK", "TensorSequence", "has_rule", "infer"]

_MAX_SIZE = 2**63 - 1


def has_rule(domain: str, op_type: str) -> bool:
    """Whether ``infer`` knows the operator; the default domain is ``""``."""
    return (domain, op_type) in RULES


def infer(call: OpCall) -> tuple[Tensor | None, ...]:
    """The outputs of ``call``, as many as it has slots; None where nothing is known of one.

    An output whose type is known but whose rank isn't has shape None. A shape that depends on the
    data, or on an input whose shape does, is an upper bound and marked so. Sequences are
    :class:`TensorSequence`; an input that is None is absent, one of which nothing is known is
    ``Tensor(DType.UNDEFINED, None)``.

    Raises:
        ShapeRuleError: the call contradicts its operator: a required input or attribute is
            missing or of the wrong type, ranks or sizes don't fit, a size would be negative or
            beyond int64, or a rank beyond ``MAX_RANK``.
    """
    entry = RULES.get((call.domain, call.op_type))
    if entry is None:
        return (None,) * call.n_outputs
    known, bounded = bool(call.inputs), False
    for tensor in call.inputs:
        if tensor is not None:
            if tensor.data is None:
                known = False
            if tensor.bounded:
                bounded = True
            if tensor.shape:
                _check_sizes(tensor.shape)
    try:
        outputs = entry.rule(call)
    except ShapeRuleError:
        if bounded:  # sizes that are bounds may seem to contradict one another
            return (None,) * call.n_outputs
        raise
    for tensor in outputs:
        if tensor is not None and tensor.shape:
            _check_sizes(tensor.shape)
    if known and entry.evaluator is not None:
        outputs = with_content(call, outputs, entry.evaluator, entry.moves)
    if bounded:
        outputs = tuple([_as_bound(tensor) for tensor in outputs])
    count = call.n_outputs
    if len(outputs) == count:
        return outputs
    return outputs[:count] + (None,) * (count - len(outputs))


def _check_sizes(shape: tuple[int, ...]) -> None:
    if len(shape) > MAX_RANK:
        raise ShapeRuleError(f"a tensor has {len(shape)} dimensions, more than {MAX_RANK}")
    if min(shape) < 0:
        raise ShapeRuleError(f"shape {shape} has a negative size")
    if max(shape) > _MAX_SIZE:
        raise ShapeRuleError("a size exceeds 64 bits")


def _as_bound(tensor: Tensor | None) -> Tensor | None:
    """What follows from a bound is one, except for the shape of a scalar."""
    if tensor is None or tensor.bounded or (tensor.shape == () and tensor.data is None):
        return tensor
    if isinstance(tensor, TensorSequence):
        return TensorSequence(tensor.dtype, tensor.shape, tensor.data, True, tensor.elements)
    return Tensor(tensor.dtype, tensor.shape, tensor.data, True)
