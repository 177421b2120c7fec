"""Whether an exporter folded a BatchNormalization into a convolution or Gemm.

Inference engines fold it anyway. Eager PyTorch doesn't: the model behind a file with folded
weights still launches a batch-norm kernel after each convolution, and figures measured in eager
mode contain it. Folding can't be undone from the graph's structure (VGG's biased convolutions look
the same), but exporters leave traces in names:

- The TorchScript exporter computes new weights and gives both of them names without a module:
  ``onnx::Conv_497`` and ``onnx::Conv_498`` (``497`` and ``498`` before torch 1.10). Unfolded
  parameters keep their module's name, and a weight computed in the forward pass (weight
  standardisation) is anonymous alone. Bare numbers count only where some other weight has a name:
  the first exporters numbered everything.
- The dynamo exporter names the new bias ``<weight>_bias``, and the output of the convolution is
  the first of batch norm's results, ``getitem`` or ``getitem_3``; a convolution returns a single
  tensor, whose name is ``conv2d_1`` or ``convolution``.
- onnxruntime, saving an optimised model, names the new weight ``ConvBnFusion_W_...``, the bias
  ``ConvBnFusion_BN_B_...``.

On exports of torchvision and timm networks these traces are exact (the tests hold ResNet and VGG
style networks to it, folded by either exporter and not). A file from elsewhere, or one that was
renamed, has no trace: then the file is taken at its word and no batch norm is added. Names serve
this one purpose only.
"""

from __future__ import annotations

import re

from dippm_lite.graph import ABSENT
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.op_costs import Slots

__all__ = ["had_batch_norm"]

_ANONYMOUS = re.compile(r"onnx::Conv(Transpose)?_\d{1,9}")
_NUMBER = re.compile(r"\d{1,9}")
_UNPACKED = re.compile(r"getitem(_\d{1,9})?")
_FOLDED_BY_ORT = "ConvBnFusion_"


def had_batch_norm(index: GraphIndex, i: int, slots: Slots) -> bool:
    """True where the names around a convolution or Gemm show that a batch norm was folded in."""
    graph, node = index.graph, index.node(i)

    def name(slot: int) -> str:
        there = 0 <= slot < len(node.inputs) and node.inputs[slot] != ABSENT
        return graph.values[node.inputs[slot]].name if there else ""

    weight, bias = name(slots.weight), name(slots.bias)
    if node.outputs and node.outputs[0] != ABSENT:
        result = graph.values[node.outputs[0]].name
        if _UNPACKED.fullmatch(result) or (bias and bias == f"{weight}_bias"):
            return True
    if weight.startswith(_FOLDED_BY_ORT) or bias.startswith(_FOLDED_BY_ORT):
        return True
    if _ANONYMOUS.fullmatch(weight) and _ANONYMOUS.fullmatch(bias):
        return True
    if "Conv" not in node.op_type or not (_NUMBER.fullmatch(weight) and _NUMBER.fullmatch(bias)):
        return False
    return index.has_named_weights
