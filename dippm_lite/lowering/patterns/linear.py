"""Products with their neighbours: bias, scale, batch norm."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT
from dippm_lite.kernels import GemmDims
from dippm_lite.lowering.convolutions import batch_norm_step, conv_step
from dippm_lite.lowering.index import GraphIndex, is_plain
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.patterns.found import Found
from dippm_lite.lowering.products import gemm_step, matmul_step
from dippm_lite.op_costs import UnknownShapeError, find_rule

__all__ = ["batch_norm", "channel_affine", "linear", "scaled_matmul"]


def linear(index: GraphIndex, matmul: int, numerics: Numerics) -> Found | None:
    """A product with a weight and the addition of a bias as long as its rows."""
    rule = find_rule(index.node(matmul))
    result = index.node(matmul).outputs[0]
    add = index.only_reader(result, "Add")
    if rule is None or add is None:
        return None
    a, b = index.inputs[add]
    bias = b if a == result else a
    out, bias_shape = index.shape(result), index.shape(bias)
    if not index.is_weight(bias) or not out or not bias_shape:
        return None
    if prod(bias_shape) != out[-1] or bias_shape[-1] != out[-1]:
        return None
    try:
        step = matmul_step(index, matmul, rule)
    except UnknownShapeError:
        return None
    if step.op != "linear":
        return None
    nodes = tuple(sorted((matmul, add)))
    step = replace(
        step,
        nodes=nodes,
        inputs=(*step.inputs, bias),
        outputs=(index.node(add).outputs[0],),
        flops_other=step.flops_other + prod(out),
    )
    return Found(nodes, (step,))


def batch_norm(index: GraphIndex, norm: int, numerics: Numerics) -> Found | None:
    """BatchNormalization of a convolution's or Gemm's result by stored statistics.

    Engines fold it into the weights. Eager PyTorch launches it; the convolution's own bias, which
    a folded file wouldn't show, is then left out, so that folded and unfolded files agree.
    """
    inputs = index.inputs[norm]
    source = index.made_by(inputs[0], "Conv", "ConvTranspose", "Gemm")
    if source is None or len(inputs) < 5 or not all(index.is_weight(v) for v in inputs[1:5]):
        return None
    rule = find_rule(index.node(source))
    result = index.node(norm).outputs[0]
    if rule is None or len([v for v in index.node(norm).outputs if v != ABSENT]) > 1:
        return None
    nodes = tuple(sorted((source, norm)))
    eager = numerics.runtime is Runtime.PYTORCH
    try:
        if is_plain(index.node(source), "Gemm"):
            step = gemm_step(index, source, rule)
        else:
            step = conv_step(index, source, ABSENT if eager else inputs[2])
    except UnknownShapeError:
        return None
    if not eager:
        return Found(nodes, (replace(step, nodes=nodes, outputs=(result,)),))
    channels = prod(index.shape(inputs[1]) or (0,))
    data = index.node(source).outputs[0]
    norm_step = batch_norm_step(index, (norm,), data, result, channels, step.repeat)
    return Found(nodes, (step, norm_step))


def channel_affine(index: GraphIndex, conv: int, numerics: Numerics) -> Found | None:
    """A convolution followed by a sum or product with one known number a channel: TensorFlow's
    biases, a norm that was frozen. Engines fold both (ConvAddFusion, ConvMulFusion)."""
    result = index.node(conv).outputs[0]
    shape = index.shape(result)
    nodes = [conv]
    bias = None
    for _ in range(2):
        i = index.only_reader(result, "Add", "Mul")
        if i is None or shape is None or len(index.inputs[i]) != 2:
            break
        a, b = index.inputs[i]
        constant = b if a == result else a
        if not index.is_weight(constant) or not _is_per_channel(index, constant, shape):
            break
        nodes.append(i)
        bias = constant
        result = index.node(i).outputs[0]
    if bias is None:
        return None
    try:
        step = conv_step(index, conv, bias)
    except UnknownShapeError:
        return None
    step = replace(step, nodes=tuple(sorted(nodes)), outputs=(result,))
    return Found(step.nodes, (step,))


def _is_per_channel(index: GraphIndex, value: int, shape: tuple[int, ...]) -> bool:
    """One number, or one a channel, as seen from an (N, C, *spatial) tensor."""
    own = index.shape(value)
    if own is None or len(own) > len(shape):
        return False
    padded = (1,) * (len(shape) - len(own)) + own
    return all(size == 1 or axis == 1 for axis, size in enumerate(padded))


def scaled_matmul(index: GraphIndex, matmul: int, numerics: Numerics) -> Found | None:
    """A product of activations, scaled before or after by known numbers: the scale becomes alpha
    (onnxruntime's MatMulScaleFusion, TensorRT's alpha)."""
    rule = find_rule(index.node(matmul))
    if rule is None:
        return None
    try:
        step = matmul_step(index, matmul, rule)
    except UnknownShapeError:
        return None
    if not isinstance(step.dims, GemmDims) or step.dims.weight_b or step.op != "bmm":
        return None
    nodes = [matmul]
    inputs = []
    for value in step.inputs:
        i = index.made_by(value, "Mul", "Div")
        pair = None if i is None else index.operand_and_scalar(i)
        alone = i is not None and index.only_reader(value) == matmul
        if i is None or pair is None or not alone or not _scales(index, i, pair[0]):
            inputs.append(value)
            continue
        nodes.append(i)
        inputs.append(pair[0])
    result = step.outputs[0]
    i = index.only_reader(result, "Mul", "Div")
    pair = None if i is None else index.operand_and_scalar(i)
    if i is not None and pair is not None and _scales(index, i, pair[0]):
        nodes.append(i)
        result = index.node(i).outputs[0]
    if len(nodes) == 1:
        return None
    claimed = tuple(sorted(nodes))
    step = replace(step, nodes=claimed, inputs=tuple(dict.fromkeys(inputs)), outputs=(result,))
    return Found(claimed, (step,))


def _scales(index: GraphIndex, i: int, operand: int) -> bool:
    """True unless the node divides by the operand or its result has another shape."""
    if index.node(i).op_type == "Div" and index.inputs[i][0] != operand:
        return False
    return index.shape(operand) == index.shape(index.node(i).outputs[0])
