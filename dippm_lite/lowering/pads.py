"""Padding in eager PyTorch."""

from __future__ import annotations

from math import prod

from dippm_lite.graph import OpNode
from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex, constant_of
from dippm_lite.lowering.steps import Step

__all__ = ["eager_pad", "has_padding"]


def eager_pad(index: GraphIndex, i: int, elements: int) -> tuple[Step, ...]:
    """``constant_pad_nd`` fills the output and copies the input into it; without any padding it
    only copies. The other modes have a kernel of their own."""
    node = index.node(i)
    mode = node.attributes.get("mode", b"constant")
    data, out = index.inputs[i][0], node.outputs[0]
    copied = min(prod(index.shape(data) or ()), elements)
    if mode not in (b"constant", "constant"):
        op = "pad"
        copied = elements
    else:
        op = "copy"
    copy = Step(
        KernelKind.DATA_MOVEMENT,
        op,
        (i,),
        (data,),
        (out,),
        ElementDims(copied, 1),
        repeat=node.repeat,
    )
    if op == "pad" or not has_padding(index, i):
        return (copy,)
    fill = Step(
        KernelKind.ELEMENTWISE,
        "fill",
        (i,),
        (),
        (out,),
        ElementDims(elements, 0),
        repeat=node.repeat,
    )
    return fill, copy


def has_padding(index: GraphIndex, i: int) -> bool:
    """False for a Pad whose pads are known to be all zero."""
    node = index.node(i)
    pads = constant_of(index.graph, node.inputs[1]) if len(node.inputs) > 1 else _pads(node)
    return pads is None or any(pads)


def _pads(node: OpNode) -> tuple[int, ...] | None:
    pads = node.attributes.get("pads", node.attributes.get("paddings"))
    return tuple(int(p) for p in pads) if isinstance(pads, tuple) else None
