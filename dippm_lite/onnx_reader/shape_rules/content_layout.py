"""Content of operators that move elements: layout, cutting, joining, indexing."""

from __future__ import annotations

import numpy as np

from dippm_lite.onnx_reader.shape_rules.calls import (
    int_attribute,
    ints_attribute,
    optional_int_attribute,
    text_attribute,
)
from dippm_lite.onnx_reader.shape_rules.content import Array, Arrays, Evaluator
from dippm_lite.onnx_reader.shape_rules.slicing import pad_widths, slice_cuts, split_sizes
from dippm_lite.onnx_reader.shape_rules.storage import NATIVE
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

__all__ = ["COMPUTING", "MOVING"]

Wanted = tuple[Tensor, ...]
Index = tuple[Array, ...]


def _laid_out(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    """Reshape, Flatten, Squeeze, Unsqueeze: the rule has found the shape."""
    return [arrays[0].reshape(wanted[0].shape or ())]


def _transpose(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [np.transpose(arrays[0], ints_attribute(call, "perm"))]


def _expand(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [np.broadcast_to(arrays[0], wanted[0].shape or ())]


def _tile(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    return [np.tile(arrays[0], arrays[1])] if len(arrays) == 2 else None


def _concat(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [np.concatenate(arrays, axis=int_attribute(call, "axis", 1))]


def _split(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    axis = int_attribute(call, "axis", 0)
    sizes = split_sizes(call, arrays[0].shape[axis])
    return None if sizes is None else np.split(arrays[0], np.cumsum(sizes[:-1]), axis=axis)


def _slice(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    cuts = slice_cuts(call, arrays[0].shape)
    if cuts is None:
        return None
    index = [slice(None)] * arrays[0].ndim
    for axis, start, end, step in cuts:
        index[axis] = slice(start, end if end >= 0 else None, step)
    return [arrays[0][tuple(index)]]


def _pad(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    """Negative widths cut; the border is constant, an edge, a mirror image or wrapped around."""
    x = arrays[0]
    widths = pad_widths(call, x.ndim)
    if widths is None or x.dtype.kind not in "biuf":
        return None
    cut = tuple(
        [
            slice(-min(begin, 0), size + min(end, 0))
            for size, (begin, end) in zip(x.shape, widths, strict=True)
        ]
    )
    added = [(max(begin, 0), max(end, 0)) for begin, end in widths]
    mode = text_attribute(call, "mode", "constant")
    if mode == "constant":
        filler = call.inputs[2] if len(call.inputs) > 2 else None
        value = call.attributes.get("value", 0) if filler is None else arrays[2].reshape(())
        return [np.pad(x[cut], added, constant_values=value)]
    if mode == "edge":
        return [np.pad(x[cut], added, mode="edge")]
    if mode == "reflect":
        return [np.pad(x[cut], added, mode="reflect")]
    return [np.pad(x[cut], added, mode="wrap")] if mode == "wrap" else None


def _gather(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [np.take(arrays[0], arrays[1], axis=int_attribute(call, "axis", 0))]


def _elements_index(indices: Array, axis: int) -> Index:
    """Every element's own place, with ``indices`` along ``axis``."""
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return tuple(places)


def _gather_elements(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [arrays[0][_elements_index(arrays[1], int_attribute(call, "axis", 0))]]


def _rows_index(indices: Array, batch: int) -> Index:
    """The index that each row of the last axis spells out, behind ``batch`` own dimensions."""
    own = np.indices(indices.shape[:-1], sparse=True)[:batch]
    return (*own, *np.moveaxis(indices, -1, 0))


def _gather_nd(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    return [arrays[0][_rows_index(arrays[1], int_attribute(call, "batch_dims", 0))]]


def _scatter_elements(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    index = _elements_index(arrays[1], int_attribute(call, "axis", 0))
    return _scattered(call, arrays[0], index, arrays[2], wanted)


def _scatter_nd(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    return _scattered(call, arrays[0], _rows_index(arrays[1], 0), arrays[2], wanted)


def _scattered(
    call: OpCall, data: Array, index: Index, updates: Array, wanted: Wanted
) -> list[Array] | None:
    result = data.copy()
    reduction = text_attribute(call, "reduction", "none")
    if reduction == "none":
        result[index] = updates
    elif reduction in _SCATTERS and wanted[0].dtype in NATIVE:
        _SCATTERS[reduction].at(result, index, updates)
    else:
        return None
    return [result]


_SCATTERS = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


def _trilu(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    diagonal = int(arrays[1].reshape(())) if len(arrays) > 1 and arrays[1].size else 0
    height, width = arrays[0].shape[-2:]
    rows, columns = np.arange(height)[:, None], np.arange(width)
    upper = int_attribute(call, "upper", 1) != 0
    kept = columns - rows >= diagonal if upper else columns - rows <= diagonal
    return [np.where(kept, arrays[0], np.zeros((), dtype=arrays[0].dtype))]


def _one_hot(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    """Indices outside of the depth select nothing."""
    indices, values = arrays[0], arrays[2]
    axis = int_attribute(call, "axis", -1)
    axis += indices.ndim + 1 if axis < 0 else 0
    depth = (wanted[0].shape or ())[axis]
    places = np.arange(depth).reshape((depth,) + (1,) * (indices.ndim - axis))
    index = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
    return [np.where(index == places, values[1], values[0])]


def _compress(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    axis = optional_int_attribute(call, "axis")
    size = arrays[0].size if axis is None else arrays[0].shape[axis]
    return [np.compress(arrays[1].reshape(-1)[:size], arrays[0], axis=axis)]


def _non_zero(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    return [np.array(np.nonzero(arrays[0]), dtype=np.int64)] if arrays[0].ndim else None


def _reverse_sequence(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    """The first ``sequence_lens[b]`` steps of each sequence, the last one first."""
    time, batch = int_attribute(call, "time_axis", 0), int_attribute(call, "batch_axis", 1)
    if {time, batch} != {0, 1}:
        return None
    x = arrays[0] if time == 0 else np.swapaxes(arrays[0], 0, 1)
    steps = np.arange(x.shape[0])[:, None]
    lengths = arrays[1][None, :]
    source = np.where(steps < lengths, lengths - 1 - steps, steps)
    result = x[source, np.arange(x.shape[1])[None, :]]
    return [result if time == 0 else np.swapaxes(result, 0, 1)]


def _filled(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array] | None:
    """ConstantOfShape: the one element of attribute ``value``, float 0 by default."""
    value = call.tensors.get("value")
    if value is None:
        return [np.broadcast_to(np.float32(0), wanted[0].shape or ())]
    if value.data is None:
        return None
    return [np.broadcast_to(value.data.reshape(()), wanted[0].shape or ())]


def _eye(call: OpCall, arrays: Arrays, wanted: Wanted) -> list[Array]:
    height, width = wanted[0].shape or (0, 0)
    diagonal = int_attribute(call, "k", 0)
    return [np.arange(width) - np.arange(height)[:, None] == diagonal]


def _both(names: tuple[str, ...], evaluator: Evaluator) -> dict[tuple[str, str], Evaluator]:
    return {(domain, name): evaluator for domain in ("", "com.microsoft") for name in names}


MOVING: dict[tuple[str, str], Evaluator] = {
    **{("", name): _laid_out for name in ("Flatten", "Reshape", "Squeeze", "Unsqueeze")},
    **_both(("GatherND",), _gather_nd),
    **_both(("Pad",), _pad),
    **_both(("Trilu",), _trilu),
    ("", "Compress"): _compress,
    ("", "Concat"): _concat,
    ("", "ConstantOfShape"): _filled,
    ("", "Expand"): _expand,
    ("", "Gather"): _gather,
    ("", "GatherElements"): _gather_elements,
    ("", "OneHot"): _one_hot,
    ("", "ReverseSequence"): _reverse_sequence,
    ("", "Scatter"): _scatter_elements,
    ("", "ScatterElements"): _scatter_elements,
    ("", "ScatterND"): _scatter_nd,
    ("", "Slice"): _slice,
    ("", "Split"): _split,
    ("", "Tile"): _tile,
    ("", "Transpose"): _transpose,
    ("com.microsoft", "ExpandDims"): _laid_out,
}

COMPUTING: dict[tuple[str, str], Evaluator] = {("", "EyeLike"): _eye, ("", "NonZero"): _non_zero}
