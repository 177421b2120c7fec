"""Steps of convolutions: their sizes, and what stands around them in eager PyTorch."""

from __future__ import annotations

from math import prod

from dippm_lite.graph import ABSENT, OpNode
from dippm_lite.kernels import ConvDims, ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.steps import Step
from dippm_lite.op_costs import (
    OpRule,
    UnknownShapeError,
    find_rule,
    integer,
    node_macs,
    other_flops,
    shape_of,
)

__all__ = ["batch_norm_step", "bias_step", "conv_dims", "conv_step", "is_depthwise"]

_CHANNELS_LAST = {
    ("com.microsoft", "NhwcConv"),
    ("com.microsoft", "NhwcFusedConv"),
    ("com.ms.internal.nhwc", "Conv"),
    ("com.ms.internal.nhwc", "ConvTranspose"),
    ("com.ms.internal.nhwc", "QLinearConv"),
}


def _ints(node: OpNode, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = node.attributes.get(name)
    if isinstance(value, tuple) and len(value) == len(default):
        return tuple(int(x) for x in value)
    return default


def conv_dims(index: GraphIndex, i: int, rule: OpRule) -> ConvDims:
    """Sizes of a convolution.

    Raises:
        UnknownShapeError: a shape is missing, or the operands don't make a convolution.
    """
    graph, node = index.graph, index.node(i)
    data = shape_of(graph, node, rule.slots.data)
    weight = shape_of(graph, node, rule.slots.weight)
    result = shape_of(graph, node, 0, output=True)
    if min(len(data), len(weight), len(result)) < 3:
        raise UnknownShapeError(f"operands of node {node.name!r} ({node.op_type})")
    last = node.key in _CHANNELS_LAST
    transposed = rule.name == "conv_transpose"
    spatial = slice(1, -1) if last else slice(2, None)
    groups = max(integer(node, "group", data[1] if rule.name == "causal_conv" else 1), 1)
    kernel = weight[1:-1] if last else weight[2:]
    strides = _ints(node, "strides", (1,) * len(kernel))
    dilations = _ints(node, "dilations", (1,) * len(kernel))
    pads = _ints(node, "pads", (0,) * (2 * len(kernel)))
    auto_pad = node.attributes.get("auto_pad", b"NOTSET")
    if auto_pad in (b"SAME_UPPER", b"SAME_LOWER", "SAME_UPPER", "SAME_LOWER"):
        pads = _same_pads(data[spatial], result[spatial], kernel, strides, dilations, transposed)
    return ConvDims(
        batch=data[0],
        in_channels=data[-1] if last else data[1],
        out_channels=result[-1] if last else result[1],
        groups=groups,
        input_size=data[spatial],
        output_size=result[spatial],
        kernel_size=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        transposed=transposed,
    )


def _same_pads(
    data: tuple[int, ...],
    result: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    transposed: bool,
) -> tuple[int, ...]:
    """What SAME_UPPER comes to (SAME_LOWER differs in which side gets an odd element)."""
    small, large = (data, result) if transposed else (result, data)
    total = [
        max((few - 1) * stride + (size - 1) * dilation + 1 - many, 0)
        for few, many, size, stride, dilation in zip(
            small, large, kernel, strides, dilations, strict=True
        )
    ]
    return (*(pad // 2 for pad in total), *(pad - pad // 2 for pad in total))


def is_depthwise(dims: ConvDims) -> bool:
    """Each input channel is convolved on its own."""
    return dims.groups == dims.in_channels > 1


def conv_step(index: GraphIndex, i: int, bias: int | None = None) -> Step:
    """The convolution of node ``i``. ``bias`` replaces its own bias operand: ABSENT for none, as
    where a BatchNormalization follows or was folded in.

    Raises:
        UnknownShapeError: a shape is missing.
    """
    graph, node = index.graph, index.node(i)
    rule = find_rule(node)
    if rule is None:
        raise UnknownShapeError(f"node {node.name!r} ({node.op_type})")
    dims = conv_dims(index, i, rule)
    slots = rule.slots
    inputs = list(index.inputs[i])
    if bias is not None:
        inputs += [ABSENT] * (slots.bias + 1 - len(inputs))
        inputs[slots.bias] = bias
    activation = node.attributes.get("activation")
    op = rule.name
    if isinstance(activation, bytes | str) and activation:
        text = (
            activation.decode("ascii", "replace") if isinstance(activation, bytes) else activation
        )
        op = f"{op}+{text.lower()}"
    return Step(
        KernelKind.DEPTHWISE_CONV if is_depthwise(dims) else KernelKind.CONV,
        op,
        (i,),
        tuple(v for v in dict.fromkeys(inputs) if v != ABSENT and not index.is_argument(v)),
        tuple(v for v in node.outputs if v != ABSENT),
        dims,
        node_macs(graph, node),
        other_flops(graph, node, rule),
        node.repeat,
    )


def bias_step(index: GraphIndex, conv: Step, bias: int) -> Step:
    """The bias as a kernel of its own: ATen adds it after ``cudnn_convolution``. ``bias`` is ABSENT
    where the file lacks it."""
    result = conv.outputs[0]
    shape = index.shape(result) or ()
    elements = prod(shape)
    return Step(
        KernelKind.ELEMENTWISE,
        "add",
        conv.nodes,
        (result,) if bias == ABSENT else (result, bias),
        (result,),
        ElementDims(elements, 2),
        flops_other=elements,
        repeat=conv.repeat,
        extra_weights=shape[1] if bias == ABSENT and len(shape) > 1 else 0,
    )


def batch_norm_step(
    index: GraphIndex, nodes: tuple[int, ...], data: int, result: int, channels: int, repeat: int
) -> Step:
    """Inference-mode batch normalisation of ``data``: four vectors of ``channels`` are read,
    which a file that folded it no longer has."""
    elements = prod(index.shape(result) or ())
    return Step(
        KernelKind.ELEMENTWISE,
        "batch_norm",
        nodes,
        (data,),
        (result,),
        ElementDims(elements, 1),
        flops_other=2 * elements,
        repeat=repeat,
        extra_weights=4 * channels,
    )
