"""Reductions along axes, and the losses that reduce to a scalar."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    like,
    optional,
    quoted,
    text_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "reduced_axes", "reduced_shape"]


def reduced_axes(call: OpCall, rank: int) -> tuple[int, ...] | None:
    """The axes that a Reduce operator removes, counted from the front; None where not known.

    They are an attribute in older opsets and input 1 in newer ones. Without any, all axes are
    meant, or none where ``noop_with_empty_axes`` is set.
    """
    axes = ints_attribute(call, "axes")
    if axes is None:
        tensor = optional(call, 1)
        if tensor is not None:
            axes = int_content(tensor)
            if axes is None and tensor.shape != (0,):
                return tuple(range(rank)) if tensor.shape == (rank,) else None
    if not axes:
        return () if int_attribute(call, "noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple([axis_within(axis, rank) for axis in axes])


def reduced_shape(call: OpCall, shape: Shape | None) -> Shape | None:
    """``shape`` without its reduced axes, or with 1 in their place (``keepdims``)."""
    if shape is None:
        return None
    axes = reduced_axes(call, len(shape))
    if axes is None:
        return None
    if int_attribute(call, "keepdims", 1):
        return tuple([1 if i in axes else size for i, size in enumerate(shape)])
    return tuple([size for i, size in enumerate(shape) if i not in axes])


def _reduce(call: OpCall) -> Outputs:
    x = given(call, 0)
    return (Tensor(x.dtype, reduced_shape(call, x.shape)),)


def _reduce_integer(call: OpCall) -> Outputs:
    """ReduceSumInteger: 8-bit integers are summed in 32."""
    return (Tensor(DType.INT32, reduced_shape(call, given(call, 0).shape)),)


def _arg_reduce(call: OpCall) -> Outputs:
    """ArgMax and ArgMin: positions along one axis."""
    shape = given(call, 0).shape
    if shape is not None:
        axis = axis_within(int_attribute(call, "axis", 0), len(shape))
        kept = (1,) if int_attribute(call, "keepdims", 1) else ()
        shape = shape[:axis] + kept + shape[axis + 1 :]
    return (Tensor(DType.INT64, shape),)


def _loss(call: OpCall) -> Outputs:
    """Scores (N, C, d1, ...) against labels (N, d1, ...); the second output keeps the scores'
    shape (the log probabilities of SoftmaxCrossEntropyLoss)."""
    scores, labels = given(call, 0), given(call, 1)
    reduction = text_attribute(call, "reduction", "mean")
    if reduction not in ("mean", "none", "sum"):
        raise ShapeRuleError(f"reduction {quoted(reduction)} is not known")
    shape = labels.shape if reduction == "none" else ()
    return Tensor(scores.dtype, shape), like(scores)


RULES: dict[tuple[str, str], Rule] = {
    **{
        ("", "Reduce" + name): _reduce
        for name in (
            "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare",
        )
    },
    ("", "ArgMax"): _arg_reduce,
    ("", "ArgMin"): _arg_reduce,
    ("", "NegativeLogLikelihoodLoss"): _loss,
    ("", "SoftmaxCrossEntropyLoss"): _loss,
    ("com.microsoft", "ReduceSumInteger"): _reduce_integer,
}  # fmt: skip
