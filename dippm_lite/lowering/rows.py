"""Rows and columns of normalisations, softmaxes and reductions."""

from __future__ import annotations

from math import prod

from dippm_lite.kernels import RowDims
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.op_costs import integer, shape_of

__all__ = ["row_dims"]

_SOFTMAX_BY_AXIS = 13  # before that opset, all axes from the given one on were one row
_ALONG_AXIS = frozenset({"TopK", "CumSum", "CumProd", "LpNormalization", "Hardmax"})
_SOFTMAXES = frozenset({"Softmax", "LogSoftmax"})
_FROM_AXIS = frozenset({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
_GROUPED = frozenset({"GroupNormalization", "GroupNorm", "SkipGroupNorm"})


def row_dims(index: GraphIndex, i: int) -> RowDims:
    """``rows`` independent rows of ``cols`` elements; together the elements of the input (of the
    output for an embedding).

    Raises:
        UnknownShapeError: a shape is missing.
    """
    graph, node = index.graph, index.node(i)
    op_type = node.op_type
    if op_type == "EmbedLayerNormalization" or op_type == "QEmbedLayerNormalization":
        shape = shape_of(graph, node, 0, output=True)
        return _rows(shape, prod(shape[-1:]))
    shape = shape_of(graph, node, 0)
    if op_type in _SOFTMAXES or op_type in _ALONG_AXIS:
        by_axis = op_type in _ALONG_AXIS or node.domain or index.graph.opset >= _SOFTMAX_BY_AXIS
        axis = _axis(index, i, -1 if by_axis else 1)
        if axis >= len(shape) or axis < -len(shape):
            return _rows(shape, prod(shape))
        return _rows(shape, shape[axis] if by_axis else prod(shape[axis:]))
    if op_type in _FROM_AXIS:
        axis = integer(node, "axis", -1)
        return _rows(shape, prod(shape[axis:] if -len(shape) <= axis < len(shape) else shape))
    if op_type == "InstanceNormalization":
        return _rows(shape, prod(shape[2:]))
    if op_type in _GROUPED:
        groups = max(integer(node, "num_groups", integer(node, "groups", 1)), 1)
        return _rows(shape, prod(shape) // max(prod(shape[:1]) * groups, 1))
    if op_type == "LRN":
        return _rows(shape, prod(shape[1:2]))
    if op_type.startswith(("Skip", "BiasSoftmax", "QLinearSoftmax")):
        return _rows(shape, prod(shape[-1:]))
    if op_type == "MeanVarianceNormalization":
        axes = node.attributes.get("axes", (0, 2, 3))
        axes = axes if isinstance(axes, tuple) else (0, 2, 3)
        kept = {int(a) % max(len(shape), 1) for a in axes if isinstance(a, int)}
        return _rows(shape, prod(shape[a] for a in kept))
    result = prod(shape_of(graph, node, 0, output=True))
    return RowDims(result, prod(shape) // max(result, 1))


def _axis(index: GraphIndex, i: int, default: int) -> int:
    """The axis, from the attribute or (CumSum) from the second input."""
    node = index.node(i)
    if node.op_type in ("CumSum", "CumProd") and len(node.inputs) > 1:
        content = index.scalar(node.inputs[1])
        return default if content is None else int(content)
    return integer(node, "axis", default)


def _rows(shape: tuple[int, ...], cols: int) -> RowDims:
    return RowDims(prod(shape) // max(cols, 1), cols)
