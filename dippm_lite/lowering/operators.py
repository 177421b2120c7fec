"""Single operators as steps, for nodes that no pattern claims."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT, TRACED_BIAS
from dippm_lite.kernels import ElementDims, KernelKind, RecurrentDims
from dippm_lite.lowering.convolutions import batch_norm_step, bias_step, conv_step
from dippm_lite.lowering.folded import had_batch_norm
from dippm_lite.lowering.index import GraphIndex, is_plain
from dippm_lite.lowering.pads import eager_pad
from dippm_lite.lowering.products import (
    attention_steps,
    einsum_step,
    gemm_step,
    matmul_step,
    moe_step,
    operands,
)
from dippm_lite.lowering.rows import row_dims
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

__all__ = ["convolution_steps", "steps_of"]


def steps_of(index: GraphIndex, i: int, runtime: Runtime) -> tuple[Step, ...]:
    """What ``runtime`` does for node ``i`` on its own; an unknown step where the operator has no
    rule or a shape is missing."""
    node = index.node(i)
    rule = find_rule(node)
    if rule is None:
        return (unknown_step(index, i),)
    try:
        if any(index.spec(v) is None for v in node.outputs if v != ABSENT):
            raise UnknownShapeError(f"output of node {node.name!r} ({node.op_type})")
        return _BY_KIND.get(rule.kind, _plain_steps)(index, i, rule, runtime)
    except UnknownShapeError:
        return (unknown_step(index, i),)


def unknown_step(index: GraphIndex, i: int) -> Step:
    """An operator of unknown cost: its bytes and MACs are counted as far as they are known."""
    node = index.node(i)
    try:
        macs = node_macs(index.graph, node)
    except UnknownShapeError:
        macs = 0
    outputs = operands(index, node.outputs)
    elements = sum(prod(index.shape(v) or (0,)) for v in outputs)
    return Step(
        KernelKind.OTHER,
        node.op_type.lower(),
        (i,),
        operands(index, index.inputs[i]),
        outputs,
        ElementDims(elements, 1),
        macs,
        repeat=node.repeat,
        unknown=True,
    )


def convolution_steps(
    index: GraphIndex, i: int, rule: OpRule, runtime: Runtime
) -> tuple[Step, ...]:
    """A convolution. Engines add the bias in its epilogue. Eager PyTorch does so only in its own
    depthwise kernel; after cuDNN it launches an addition, or the batch norm that an exporter
    folded."""
    bias_slot = rule.slots.bias
    inputs = index.inputs[i]
    bias = inputs[bias_slot] if 0 <= bias_slot < len(inputs) else ABSENT
    if runtime is not Runtime.PYTORCH:
        return (conv_step(index, i),)
    if had_batch_norm(index, i, rule.slots):
        conv = conv_step(index, i, ABSENT)
        out = conv.outputs[0]
        channels = (index.shape(out) or (0, 0))[1]
        return conv, batch_norm_step(index, (i,), out, out, channels, conv.repeat)
    conv = conv_step(index, i)
    traced = integer(index.node(i), TRACED_BIAS, 0) != 0  # dropped by the exporter: all zeros
    if (bias == ABSENT and not traced) or is_depthwise_step(conv) or not conv.outputs:
        return (conv,)
    conv = conv_step(index, i, ABSENT)
    return conv, bias_step(index, conv, bias)


def is_depthwise_step(step: Step) -> bool:
    return step.kind is KernelKind.DEPTHWISE_CONV


def _gemm_steps(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    if rule.name != "gemm":
        return (matmul_step(index, i, rule),)
    gemm = gemm_step(index, i, rule)
    if runtime is Runtime.PYTORCH and had_batch_norm(index, i, rule.slots):
        out = gemm.outputs[0]
        channels = (index.shape(out) or (0,))[-1]
        return gemm, batch_norm_step(index, (i,), out, out, channels, gemm.repeat)
    return (gemm,)


def _batched_steps(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    return (einsum_step(index, i, rule) if rule.name == "einsum" else moe_step(index, i, rule),)


def _attention(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    return attention_steps(index, i, rule)


def _recurrent_steps(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    """One layer in one step: cuDNN runs all time steps in a single call. Initial states that are
    zeros made on the spot, and last states that nobody reads, are left out."""
    graph, node = index.graph, index.node(i)
    data = shape_of(graph, node, 0)
    weight = shape_of(graph, node, 1)
    recurrence = shape_of(graph, node, 2)
    if len(data) != 3 or len(weight) != 3 or len(recurrence) != 3:
        raise UnknownShapeError(f"operands of node {node.name!r} ({node.op_type})")
    gates = {"lstm": 4, "gru": 3}.get(rule.name, 1)
    batch_first = node.attributes.get("layout", 0) == 1
    hidden = recurrence[1] if node.op_type.startswith("DynamicQuantize") else recurrence[2]
    batch, steps = (data[0], data[1]) if batch_first else (data[1], data[0])
    dims = RecurrentDims(batch, steps, data[2], hidden, gates, weight[0])
    flops = rule.flops * batch * steps * hidden * weight[0]
    inputs = index.inputs[i]
    states = tuple(v for v in inputs[5:7] if not index.is_weight(v))
    outputs = operands(index, node.outputs)
    read = tuple(v for v in outputs if index.readers(v) or v in index.held)
    return (
        Step(
            KernelKind.RECURRENT,
            rule.name,
            (i,),
            operands(index, (*inputs[:5], *states, *inputs[7:])),
            read or outputs,
            dims,
            node_macs(graph, node),
            flops,
            node.repeat,
        ),
    )


def _row_steps(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    graph, node = index.graph, index.node(i)
    return (
        Step(
            rule.kind,
            rule.name,
            (i,),
            operands(index, index.inputs[i]),
            operands(index, node.outputs),
            row_dims(index, i),
            flops_other=other_flops(graph, node, rule),
            repeat=node.repeat,
            sparse=rule.sparse,
        ),
    )


def _plain_steps(index: GraphIndex, i: int, rule: OpRule, runtime: Runtime) -> tuple[Step, ...]:
    """Elementwise operators, movement, gathers, pooling and the rest: elements and operands."""
    graph, node = index.graph, index.node(i)
    inputs = operands(index, index.inputs[i])
    outputs = operands(index, node.outputs)
    elements = sum(prod(index.shape(v) or ()) for v in outputs)
    name = rule.name
    if is_plain(node, "BatchNormalization") and len(inputs) > 1:
        channels = (*shape_of(graph, node, 0), 0, 0)[1]
        data, out = inputs[0], outputs[0]
        return (batch_norm_step(index, (i,), data, out, channels, node.repeat),)
    if is_plain(node, "Pad") and runtime is Runtime.PYTORCH:
        return eager_pad(index, i, elements)
    if is_plain(node, "Gather") and index.is_weight(index.inputs[i][0]):
        rank = len(index.shape(index.inputs[i][0]) or ())
        name = "embedding" if rank == 2 and node.attributes.get("axis", 0) == 0 else name
    flops = other_flops(graph, node, rule)
    kernel = node.attributes.get("kernel_shape")
    if rule.kind is KernelKind.POOLING and isinstance(kernel, tuple):
        flops = rule.flops * elements * prod(int(k) for k in kernel)
    read = len(inputs) - (sum(index.is_weight(v) for v in inputs) if rule.sparse else 0)
    if name == "cat":
        read = len(index.inputs[i])
    return (
        Step(
            rule.kind,
            name,
            (i,),
            inputs,
            outputs,
            ElementDims(elements, max(read, 1)),
            node_macs(graph, node),
            flops,
            node.repeat,
            sparse=rule.sparse,
        ),
    )


_Lower = Callable[[GraphIndex, int, OpRule, Runtime], tuple[Step, ...]]

_BY_KIND: dict[KernelKind, _Lower] = {
    KernelKind.CONV: convolution_steps,
    KernelKind.DEPTHWISE_CONV: convolution_steps,
    KernelKind.GEMM: _gemm_steps,
    KernelKind.BATCHED_GEMM: _batched_steps,
    KernelKind.ATTENTION: _attention,
    KernelKind.RECURRENT: _recurrent_steps,
    KernelKind.NORMALIZATION: _row_steps,
    KernelKind.SOFTMAX: _row_steps,
    KernelKind.REDUCTION: _row_steps,
}
