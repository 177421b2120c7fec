"""Normalisations that exporters write out in elementary operators."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from dippm_lite.kernels import KernelKind, RowDims
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found, nearly
from dippm_lite.lowering.steps import Step

__all__ = ["group_norm", "layer_norm", "rms_norm"]

_FLOPS = {"layer_norm": 8, "rms_norm": 6, "group_norm": 8}


@dataclass(slots=True)
class _Moment:
    """The square root of a second moment plus epsilon: of ``data``, or of it minus its mean.

    ``centred`` is the difference, ``mean`` the mean's value; both None for a plain mean square.
    ``cols`` is the length of a row.
    """

    nodes: list[int]
    data: int
    cols: int
    centred: int | None = None
    mean: int | None = None


def _through_cast(index: GraphIndex, value: int, nodes: list[int]) -> int:
    """What a value was before a cast to the type that the norm is computed in."""
    i = index.made_by(value, "Cast")
    if i is None:
        return value
    nodes.append(i)
    return index.inputs[i][0]


def _row_length(index: GraphIndex, data: int, mean: int) -> int | None:
    """Elements in a row, if ``mean`` keeps the leading axes of ``data`` and reduces the rest."""
    whole, reduced = index.shape(data), index.shape(mean)
    if whole is None or reduced is None or len(whole) != len(reduced):
        return None
    kept = next((k for k, size in enumerate(reduced) if size != whole[k]), len(whole))
    if kept == len(whole) or any(size != 1 for size in reduced[kept:]):
        return None
    return prod(whole[kept:])


def _moment(index: GraphIndex, root: int) -> _Moment | None:
    add = index.made_by(index.inputs[root][0], "Add")
    pair = None if add is None else index.operand_and_scalar(add)
    if add is None or pair is None:
        return None
    mean = index.made_by(pair[0], "ReduceMean")
    if mean is None:
        return None
    square = index.made_by(index.inputs[mean][0], "Pow", "Mul")
    if square is None:
        return None
    base, exponent = index.inputs[square]
    if index.node(square).op_type == "Pow":
        if not nearly(index.scalar(exponent), 2.0):
            return None
    elif base != exponent:
        return None
    cols = _row_length(index, base, pair[0])
    if cols is None:
        return None
    moment = _Moment([square, mean, add, root], base, cols)
    nodes: list[int] = []
    centred = _through_cast(index, base, nodes)
    sub = index.made_by(centred, "Sub")
    if sub is None:
        return moment
    data, average = index.inputs[sub]
    first = index.made_by(average, "ReduceMean")
    if first is None or index.inputs[first][0] != data:
        return moment
    return _Moment([first, sub, *nodes, *moment.nodes], data, cols, base, average)


def _normalised(index: GraphIndex, moment: _Moment, root: int) -> int | None:
    """The node that divides the data (or the centred data) by the root; adds what it needs to
    ``moment.nodes``."""
    deviation = index.node(root).outputs[0]
    numerator = moment.data if moment.centred is None else moment.centred
    divisors = [i for i in index.readers(deviation)[:2] if index.node(i).op_type == "Div"]
    for div in divisors:
        top, bottom = index.inputs[div]
        if bottom != deviation:
            continue
        if top == numerator or _is_again_centred(index, moment, top):
            moment.nodes.append(div)
            return div
        if nearly(index.scalar(top), 1.0):
            return _times_inverse(index, moment, div, numerator)
    inverse = index.only_reader(deviation, "Reciprocal")
    return None if inverse is None else _times_inverse(index, moment, inverse, numerator)


def _is_again_centred(index: GraphIndex, moment: _Moment, value: int) -> bool:
    """True for a second subtraction of the same mean, as the first exporters wrote."""
    sub = index.made_by(value, "Sub")
    if sub is None or moment.mean is None or index.inputs[sub] != (moment.data, moment.mean):
        return False
    moment.nodes.append(sub)
    return True


def _times_inverse(index: GraphIndex, moment: _Moment, inverse: int, numerator: int) -> int | None:
    mul = index.only_reader(index.node(inverse).outputs[0], "Mul")
    if mul is None or numerator not in index.inputs[mul]:
        return None
    moment.nodes += [inverse, mul]
    return mul


def _affine(index: GraphIndex, last: int, cols: int, nodes: list[int]) -> tuple[int, list[int]]:
    """The last node and the parameters, after a following scale and shift by weights of ``cols``
    elements; a cast back in between belongs to them."""
    parameters: list[int] = []
    for op_type in ("Mul", "Add"):
        end = last
        passed: list[int] = []
        cast = index.only_reader(index.node(end).outputs[0], "Cast")
        if cast is not None:
            passed.append(cast)
            end = cast
        i = index.only_reader(index.node(end).outputs[0], op_type)
        if i is None:
            continue
        a, b = index.inputs[i]
        weight = b if a == index.node(end).outputs[0] else a
        if not index.is_weight(weight) or prod(index.shape(weight) or (0,)) != cols:
            continue
        parameters.append(weight)
        nodes += [*passed, i]
        last = i
    return last, parameters


def _norm(
    index: GraphIndex,
    op: str,
    nodes: list[int],
    data: int,
    parameters: list[int],
    last: int,
    cols: int,
) -> Found:
    result = index.node(last).outputs[0]
    elements = prod(index.shape(data) or ())
    cast = index.made_by(data, "Cast")
    if cast is not None and set(index.readers(data)) <= set(nodes):
        nodes = [cast, *nodes]
        data = index.inputs[cast][0]
    step = Step(
        KernelKind.NORMALIZATION,
        op,
        tuple(sorted(set(nodes))),
        (data, *parameters),
        (result,),
        RowDims(elements // max(cols, 1), cols),
        flops_other=_FLOPS[op] * elements,
        repeat=index.node(last).repeat,
    )
    return Found(step.nodes, (step,))


def layer_norm(index: GraphIndex, root: int, numerics: Numerics) -> Found | None:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over trailing axes."""
    moment = _moment(index, root)
    if moment is None or moment.centred is None:
        return None
    last = _normalised(index, moment, root)
    if last is None:
        return _folded_affine(index, root)
    last, parameters = _affine(index, last, moment.cols, moment.nodes)
    return _norm(index, "layer_norm", moment.nodes, moment.data, parameters, last, moment.cols)


def _folded_affine(index: GraphIndex, root: int) -> Found | None:
    """TensorFlow's form: ``x * r + (bias - mean * r)`` with ``r = weight / sqrt(...)``."""
    moment = _moment(index, root)
    if moment is None or moment.mean is None:
        return None
    inverse = index.only_reader(index.node(root).outputs[0], "Reciprocal")
    scale = None if inverse is None else index.only_reader(index.node(inverse).outputs[0], "Mul")
    if inverse is None or scale is None:
        return None
    factor = index.node(scale).outputs[0]
    weight = next((v for v in index.inputs[scale] if index.is_weight(v)), None)
    products = {v: i for i in index.readers(factor)[:3] for v in index.inputs[i] if v != factor}
    scaled, shifted = products.get(moment.data), products.get(moment.mean)
    if weight is None or scaled is None or shifted is None:
        return None
    sub = index.only_reader(index.node(shifted).outputs[0], "Sub")
    add = index.only_reader(index.node(scaled).outputs[0], "Add")
    if sub is None or add is None or index.node(sub).outputs[0] not in index.inputs[add]:
        return None
    bias = index.inputs[sub][0]
    if not index.is_weight(bias):
        return None
    nodes = [*moment.nodes, inverse, scale, scaled, shifted, sub, add]
    return _norm(index, "layer_norm", nodes, moment.data, [weight, bias], add, moment.cols)


def rms_norm(index: GraphIndex, root: int, numerics: Numerics) -> Found | None:
    """``x / sqrt(mean(x ** 2) + eps) * weight``."""
    moment = _moment(index, root)
    if moment is None or moment.centred is not None:
        return None
    last = _normalised(index, moment, root)
    if last is None:
        return None
    last, parameters = _affine(index, last, moment.cols, moment.nodes)
    return _norm(index, "rms_norm", moment.nodes, moment.data, parameters, last, moment.cols)


def group_norm(index: GraphIndex, instance: int, numerics: Numerics) -> Found | None:
    """Groups as instances: Reshape, InstanceNormalization, Reshape back, then the affine part."""
    before = index.made_by(index.inputs[instance][0], "Reshape")
    after = index.only_reader(index.node(instance).outputs[0], "Reshape")
    if before is None or after is None:
        return None
    data = index.inputs[before][0]
    shape, grouped = index.shape(data), index.shape(index.inputs[instance][0])
    result = index.shape(index.node(after).outputs[0])
    if shape is None or grouped is None or result != shape or len(grouped) < 3:
        return None
    nodes = [before, instance, after]
    channels = shape[1] if len(shape) > 1 else 0
    last, parameters = _affine(index, after, channels, nodes)
    return _norm(index, "group_norm", nodes, data, parameters, last, prod(grouped[2:]))
