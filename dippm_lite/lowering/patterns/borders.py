"""Pads and quantisers: operators that belong to their neighbours."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.numerics import Numerics
from dippm_lite.lowering.operators import steps_of
from dippm_lite.lowering.pads import has_padding
from dippm_lite.lowering.patterns.found import Found
from dippm_lite.lowering.steps import Step

__all__ = ["empty_pad", "fake_quantize", "padded_pool"]


def padded_pool(index: GraphIndex, pool: int, numerics: Numerics) -> Found | None:
    """A Pad before an AveragePool: ``count_include_pad`` as the TorchScript exporter writes it."""
    pad = index.made_by(index.inputs[pool][0], "Pad")
    if pad is None:
        return None
    steps = steps_of(index, pool, numerics.runtime)
    nodes = tuple(sorted((pad, pool)))
    step = replace(steps[0], nodes=nodes, inputs=(index.inputs[pad][0],))
    return None if step.unknown else Found(nodes, (step,))


def empty_pad(index: GraphIndex, pad: int, numerics: Numerics) -> Found | None:
    """A Pad by nothing: engines drop it (eager PyTorch copies)."""
    if has_padding(index, pad) or numerics.runtime is Runtime.PYTORCH:
        return None
    node = index.node(pad)
    if index.shape(index.inputs[pad][0]) != index.shape(node.outputs[0]):
        return None
    source, result = index.inputs[pad][0], node.outputs[0]
    step = Step(
        KernelKind.DATA_MOVEMENT, "pad", (pad,), (source,), (result,), repeat=node.repeat, view=True
    )
    return Found((pad,), (step,))


def fake_quantize(index: GraphIndex, quantize: int, numerics: Numerics) -> Found | None:
    """QuantizeLinear and DequantizeLinear in a row: one ``fake_quantize`` kernel in PyTorch."""
    back = index.only_reader(index.node(quantize).outputs[0], "DequantizeLinear")
    if back is None:
        return None
    source, result = index.inputs[quantize][0], index.node(back).outputs[0]
    elements = prod(index.shape(result) or ())
    step = Step(
        KernelKind.ELEMENTWISE,
        "fake_quantize",
        tuple(sorted((quantize, back))),
        (source,),
        (result,),
        ElementDims(elements, 1),
        flops_other=6 * elements,
        repeat=index.node(quantize).repeat,
    )
    return Found(step.nodes, (step,))
