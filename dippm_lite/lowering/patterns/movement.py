"""Views, slices and concatenations that exporters write in several nodes."""

from __future__ import annotations

from math import prod

from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex, is_plain
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found
from dippm_lite.lowering.products import operands
from dippm_lite.lowering.steps import Step

__all__ = [
    "as_strided",
    "nested_cat",
    "roll",
    "split",
    "swapped_axes",
]

_MAX_PARTS = 64


def _cut_axis(index: GraphIndex, source: int, part: int) -> int | None:
    """The only axis on which ``part`` is shorter than ``source``."""
    whole, cut = index.shape(source), index.shape(part)
    if whole is None or cut is None or len(whole) != len(cut):
        return None
    axes = [axis for axis, (a, b) in enumerate(zip(whole, cut, strict=True)) if a != b]
    return axes[0] if len(axes) == 1 else None


def roll(index: GraphIndex, concat: int, numerics: Numerics) -> Found | None:
    """``torch.roll`` along one axis: two slices of a tensor, put together the other way round."""
    parts = index.inputs[concat]
    if len(parts) != 2 or parts[0] == parts[1]:
        return None
    slices = [index.made_by(part, "Slice") for part in parts]
    if slices[0] is None or slices[1] is None:
        return None
    source = index.inputs[slices[0]][0]
    result = index.node(concat).outputs[0]
    if index.inputs[slices[1]][0] != source or index.shape(source) != index.shape(result):
        return None
    axes = [_cut_axis(index, source, part) for part in parts]
    if axes[0] is None or axes[0] != axes[1]:
        return None
    nodes = tuple(sorted((slices[0], slices[1], concat)))
    step = Step(
        KernelKind.DATA_MOVEMENT,
        "roll",
        nodes,
        (source,),
        (result,),
        ElementDims(prod(index.shape(result) or ()), 1),
        repeat=index.node(concat).repeat,
    )
    return Found(nodes, (step,))


def nested_cat(index: GraphIndex, outer: int, numerics: Numerics) -> Found | None:
    """A concatenation of a concatenation along the same axis, which the TorchScript exporter
    flattens and the dynamo exporter leaves."""
    result = index.node(outer).outputs[0]
    shape = index.shape(result)
    if shape is None:
        return None
    nodes, parts = [outer], []
    for value in index.inputs[outer]:
        inner = index.made_by(value, "Concat")
        same = inner is not None and _concat_axis(index, inner) == _concat_axis(index, outer)
        if inner is None or not same or index.only_reader(value) != outer:
            parts.append(value)
            continue
        nodes.append(inner)
        parts += index.inputs[inner]
    if len(nodes) == 1:
        return None
    step = Step(
        KernelKind.DATA_MOVEMENT,
        "cat",
        tuple(sorted(nodes)),
        operands(index, parts),
        (result,),
        ElementDims(prod(shape), len(parts)),
        repeat=index.node(outer).repeat,
    )
    return Found(step.nodes, (step,))


def _concat_axis(index: GraphIndex, i: int) -> int:
    rank = len(index.shape(index.node(i).outputs[0]) or ())
    axis = index.node(i).attributes.get("axis", 0)
    return axis % rank if isinstance(axis, int) and rank else -1


def split(index: GraphIndex, first: int, numerics: Numerics) -> Found | None:
    """Slices (or single indices) of one tensor that make up the whole of it along one axis: a
    Split, which the dynamo exporter takes apart."""
    source = index.inputs[first][0]
    readers = index.readers(source)
    if not 1 < len(readers) <= _MAX_PARTS or readers[0] != first:
        return None
    whole = index.shape(source)
    if whole is None:
        return None
    covered = 0
    axis: int | None = None
    for i in readers:
        node = index.node(i)
        if not is_plain(node, "Slice", "Gather") or index.inputs[i][0] != source:
            return None
        taken = _taken(index, i, source)
        if taken is None or (axis is not None and taken[0] != axis):
            return None
        axis = taken[0]
        covered += taken[1]
    if axis is None or covered != whole[axis]:
        return None
    outputs = tuple(index.node(i).outputs[0] for i in readers)
    if any(index.node(i).repeat != index.node(first).repeat for i in readers):
        return None
    step = Step(
        KernelKind.DATA_MOVEMENT,
        "split",
        tuple(readers),
        (source,),
        outputs,
        ElementDims(prod(whole), 1),
        repeat=index.node(first).repeat,
    )
    return Found(step.nodes, (step,))


def _taken(index: GraphIndex, i: int, source: int) -> tuple[int, int] | None:
    """``(axis, length)`` of what a Slice or a Gather of one index takes."""
    node = index.node(i)
    result = index.shape(node.outputs[0])
    whole = index.shape(source)
    if result is None or whole is None:
        return None
    if is_plain(node, "Slice"):
        axis = _cut_axis(index, source, node.outputs[0])
        return None if axis is None else (axis, result[axis])
    given = node.attributes.get("axis", 0)
    if not isinstance(given, int) or index.scalar(index.inputs[i][1]) is None:
        return None
    return given % max(len(whole), 1), 1


def swapped_axes(index: GraphIndex, transpose: int, numerics: Numerics) -> Found | None:
    """The last two axes of a batch of matrices swapped by way of a single batch axis, as the
    dynamo exporter transposes the keys of an attention."""
    before = index.made_by(index.inputs[transpose][0], "Reshape")
    after = index.only_reader(index.node(transpose).outputs[0], "Reshape")
    if before is None or after is None or index.node(transpose).attributes.get("perm") != (0, 2, 1):
        return None
    source, result = index.inputs[before][0], index.node(after).outputs[0]
    shape, swapped = index.shape(source), index.shape(result)
    flat = index.shape(index.inputs[transpose][0])
    if shape is None or swapped is None or flat is None or len(shape) < 3:
        return None
    if flat[1:] != shape[-2:] or swapped != (*shape[:-2], shape[-1], shape[-2]):
        return None
    rank = len(shape)
    nodes = (before, transpose, after)
    step = Step(
        KernelKind.DATA_MOVEMENT,
        "transpose",
        nodes,
        (source,),
        (result,),
        repeat=index.node(transpose).repeat,
        view=True,
        perm=(*range(rank - 2), rank - 1, rank - 2),
    )
    return Found(nodes, (step,))


def as_strided(index: GraphIndex, gather: int, numerics: Numerics) -> Found | None:
    """All elements of a flattened tensor in an order known in advance: ``as_strided``, by which
    PyTorch changes a memory format."""
    flat = index.made_by(index.inputs[gather][0], "Reshape")
    result = index.shape(index.node(gather).outputs[0])
    source = index.shape(index.inputs[gather][0])
    indices = index.inputs[gather][1]
    if flat is None or result is None or source is None or len(source) != 1:
        return None
    if not index.is_weight(indices) or prod(result) != source[0] or len(result) < 2:
        return None
    nodes = (flat, gather)
    step = Step(
        KernelKind.DATA_MOVEMENT,
        "as_strided",
        nodes,
        (index.inputs[flat][0],),
        (index.node(gather).outputs[0],),
        repeat=index.node(gather).repeat,
        view=True,
    )
    return Found(nodes, (step,))
