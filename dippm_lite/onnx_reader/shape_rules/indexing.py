"""Operators that read or write at given positions."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import common_size
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    axis_within,
    dtype_attribute,
    given,
    int_attribute,
    int_content,
    length_attribute,
    like,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"


def _gather_shape(data: Shape | None, indices: Shape | None, axis: int) -> Shape | None:
    """``data`` with the indices' shape in place of ``axis``."""
    if data is None:
        return None
    if not data:
        raise ShapeRuleError("a scalar can't be gathered from")
    axis = axis_within(axis, len(data))
    return None if indices is None else data[:axis] + indices + data[axis + 1 :]


def _gather(call: OpCall) -> Outputs:
    data = given(call, 0)
    shape = _gather_shape(data.shape, given(call, 1).shape, int_attribute(call, "axis", 0))
    return (Tensor(data.dtype, shape),)


def _gather_elements(call: OpCall) -> Outputs:
    data, indices = given(call, 0), given(call, 1)
    if data.shape is not None:
        axis_within(int_attribute(call, "axis", 0), len(data.shape))
        if indices.shape is not None:
            rank_is(indices.shape, len(data.shape), "the indices")
    return (Tensor(data.dtype, indices.shape),)


def _gather_nd(call: OpCall) -> Outputs:
    """Each row of the indices' last axis points into the data behind its batch dimensions."""
    data, indices = given(call, 0), given(call, 1)
    batch = int_attribute(call, "batch_dims", 0)
    if data.shape is None or indices.shape is None:
        return (Tensor(data.dtype, None),)
    if not indices.shape or not 0 <= batch < min(len(indices.shape), len(data.shape) + 1):
        raise ShapeRuleError(f"batch_dims {batch} doesn't fit indices of shape {indices.shape}")
    for axis in range(batch):
        common_size(call, data.shape[axis], indices.shape[axis], "batch sizes")
    depth = batch + indices.shape[-1]
    if not batch <= depth <= len(data.shape):
        raise ShapeRuleError(f"indices of shape {indices.shape} don't fit data of {data.shape}")
    return (Tensor(data.dtype, indices.shape[:-1] + data.shape[depth:]),)


def _scatter_elements(call: OpCall) -> Outputs:
    data, indices, updates = given(call, 0), given(call, 1), given(call, 2)
    if data.shape is not None:
        axis_within(int_attribute(call, "axis", 0), len(data.shape))
        for tensor, what in ((indices, "the indices"), (updates, "the updates")):
            if tensor.shape is not None:
                rank_is(tensor.shape, len(data.shape), what)
    return (like(data),)


def _scatter_nd(call: OpCall) -> Outputs:
    data, indices = given(call, 0), given(call, 1)
    if indices.shape is not None and data.shape is not None:
        if not indices.shape:
            raise ShapeRuleError("the indices are a scalar")
        if not 0 <= indices.shape[-1] <= len(data.shape):
            raise ShapeRuleError(f"indices of shape {indices.shape} don't fit data of {data.shape}")
    return (like(data),)


def _tensor_scatter(call: OpCall) -> Outputs:
    """A cache updated along ``axis``, which keeps its capacity."""
    cache, update = given(call, 0), given(call, 1)
    if cache.shape is not None:
        axis = axis_within(int_attribute(call, "axis", -2), len(cache.shape))
        if update.shape is not None:
            rank_is(update.shape, len(cache.shape), "the update")
            for i, size in enumerate(cache.shape):
                if i != axis:
                    common_size(call, size, update.shape[i], f"sizes along axis {i}")
    return (like(cache),)


def _one_hot(call: OpCall) -> Outputs:
    """A new axis of ``depth`` entries; the type is that of the values."""
    indices, depth, values = given(call, 0), given(call, 1), given(call, 2)
    if indices.shape is None:
        return (Tensor(values.dtype, None),)
    axis = axis_within(int_attribute(call, "axis", -1), len(indices.shape) + 1)
    content = _depth(depth)
    if content is None:
        return (Tensor(values.dtype, None),)
    shape = (*indices.shape[:axis], content, *indices.shape[axis:])
    return (Tensor(values.dtype, shape),)


def _depth(tensor: Tensor) -> int | None:
    """OneHot's depth, which may be stored as any numeric type."""
    data = tensor.data
    if data is None:
        return None
    if data.size != 1 or data.dtype.kind not in "iuf":
        raise ShapeRuleError("the depth is not one number")
    value = data.ravel().tolist()[0]
    if value != value or not 0 <= value < 2**63:
        raise ShapeRuleError(f"depth {value} is no size")
    return int(value)


def _reverse_sequence(call: OpCall) -> Outputs:
    x = given(call, 0)
    if x.shape is not None and len(x.shape) < 2:
        raise ShapeRuleError(f"shape {x.shape} has no batch and time axes")
    return (like(x),)


def _embedding(call: OpCall) -> Outputs:
    """TorchEmbedding: rows of a (vocabulary, ...) weight."""
    weight = given(call, 0)
    return (Tensor(weight.dtype, _gather_shape(weight.shape, given(call, 1).shape, 0)),)


def _gather_block_quantized(call: OpCall) -> Outputs:
    """Rows of a quantised table, in the type of its scales. Sub-byte numbers that share a uint8
    are unpacked along the last axis."""
    data, indices, scales = given(call, 0), given(call, 1), given(call, 2)
    shape = data.shape
    if shape and data.dtype is DType.UINT8:
        bits = int_attribute(call, "bits", 4)
        if bits not in (2, 4, 8):
            raise ShapeRuleError(f"bits is {bits}, not 2, 4 or 8")
        shape = (*shape[:-1], shape[-1] * (8 // bits))
    axis = int_attribute(call, "gather_axis", 0)
    return (Tensor(scales.dtype, _gather_shape(shape, indices.shape, axis)),)


def _gather_packed(call: OpCall) -> Outputs:
    """Rows of ``K`` numbers out of a table in a packed format."""
    indices = given(call, 1).shape
    shape = None if indices is None else (*indices, length_attribute(call, "K"))
    return (Tensor(dtype_attribute(call, "output_dtype", DType.BFLOAT16), shape),)


def _array_feature_extractor(call: OpCall) -> Outputs:
    """Columns of the last axis; a vector counts as one row."""
    x, columns = given(call, 0), given(call, 1)
    if x.shape is None or columns.shape is None:
        return (Tensor(x.dtype, None),)
    if not x.shape:
        raise ShapeRuleError("a scalar has no features")
    count = 1
    for size in columns.shape:
        count *= size
    return (Tensor(x.dtype, (*(x.shape[:-1] or (1,)), count)),)


def _n_gram_block(call: OpCall) -> Outputs:
    """NGramRepeatBlock: scores (batch, vocabulary) under a mask."""
    return (like(given(call, 1)),)


def _affine_grid(call: OpCall) -> Outputs:
    """Theta (N, 2 or 3, 3 or 4) and the size (N, C, spatial...) to (N, spatial..., 2 or 3)."""
    theta, size = given(call, 0), int_content(given(call, 1))
    if size is None:
        return (Tensor(theta.dtype, None),)
    if len(size) not in (4, 5):
        raise ShapeRuleError(f"size {size} is neither 2-D nor 3-D")
    return (Tensor(theta.dtype, (size[0], *size[2:], len(size) - 2)),)


def _grid_sample(call: OpCall) -> Outputs:
    """(N, C, spatial...) at a grid (N, out..., axes) to (N, C, out...)."""
    x, grid = given(call, 0), given(call, 1)
    if x.shape is None or grid.shape is None:
        return (Tensor(x.dtype, None),)
    rank_is(grid.shape, len(x.shape), "the grid")
    if len(x.shape) < 3 or grid.shape[-1] != len(x.shape) - 2:
        raise ShapeRuleError(f"a grid of {grid.shape} doesn't sample {x.shape}")
    batch = common_size(call, x.shape[0], grid.shape[0], "batch sizes")
    return (Tensor(x.dtype, (batch, x.shape[1], *grid.shape[1:-1])),)


def _unfold(call: OpCall) -> Outputs:
    """UnfoldTensor: windows of ``size`` every ``step`` along ``dim``, put last."""
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    axis = axis_within(int_attribute(call, "dim", -1), len(x.shape))
    size, step = length_attribute(call, "size"), length_attribute(call, "step", 1)
    if size > x.shape[axis]:
        raise ShapeRuleError(f"a window of {size} exceeds size {x.shape[axis]}")
    count = (x.shape[axis] - size) // step + 1
    return (Tensor(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :], size)),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "AffineGrid"): _affine_grid,
    ("", "Gather"): _gather,
    ("", "GatherElements"): _gather_elements,
    ("", "GatherND"): _gather_nd,
    ("", "GridSample"): _grid_sample,
    ("", "OneHot"): _one_hot,
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "Scatter"): _scatter_elements,
    ("", "ScatterElements"): _scatter_elements,
    ("", "ScatterND"): _scatter_nd,
    ("", "TensorScatter"): _tensor_scatter,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _array_feature_extractor,
    (_MICROSOFT, "GatherBlockQuantized"): _gather_block_quantized,
    (_MICROSOFT, "GatherND"): _gather_nd,
    (_MICROSOFT, "GatherPacked"): _gather_packed,
    (_MICROSOFT, "GridSample"): _grid_sample,
    (_MICROSOFT, "NGramRepeatBlock"): _n_gram_block,
    (_MICROSOFT, "TorchEmbedding"): _embedding,
    (_MICROSOFT, "UnfoldTensor"): _unfold,
}
