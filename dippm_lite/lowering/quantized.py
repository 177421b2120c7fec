"""Tensors that an engine keeps in bytes because QuantizeLinear and DequantizeLinear surround it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dippm_lite.graph import ABSENT
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.steps import Step
from dippm_lite.lowering.views import RESHAPES

__all__ = ["dequantized_bits", "drop_dequantizers"]

_KEEPS_BITS = RESHAPES | {"Transpose", "Expand", "Slice", "Split", "Gather", "Identity"}


def dequantized_bits(index: GraphIndex) -> dict[int, int]:
    """Bits in memory of values that DequantizeLinear gives, and of views of them. The reader of
    such a value takes the quantised tensor itself and dequantises on the fly."""
    graph = index.graph
    bits: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        inputs = index.inputs[i]
        if not inputs:
            continue
        if node.op_type == "DequantizeLinear":
            spec = graph.spec(inputs[0]) if node.outputs[0] not in index.held else None
            if spec is not None and spec.dtype.itemsize_bits:
                bits[node.outputs[0]] = spec.dtype.itemsize_bits
        elif node.op_type in _KEEPS_BITS and inputs[0] in bits:
            bits.update((v, bits[inputs[0]]) for v in node.outputs if v != ABSENT)
    return bits


def drop_dequantizers(index: GraphIndex, steps: Iterable[Step]) -> list[Step]:
    """The steps with each DequantizeLinear a view, unless the caller gets its result."""
    return [
        replace(step, view=True, inputs=step.inputs[:1])
        if step.op == "dequantize" and index.held.isdisjoint(step.outputs)
        else step
        for step in steps
    ]
