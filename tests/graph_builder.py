"""Graphs from a few ONNX nodes, for tests that look at single operators and patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dippm_lite.graph import Graph
from dippm_lite.onnx_reader import read_graph

Shape = Sequence[int]
DOMAINS = ("com.microsoft", "ai.onnx.ml", "qonnx.custom_op.general", "nobody.knows")


def node(
    op_type: str, inputs: str, outputs: str, domain: str = "", **attributes: object
) -> onnx.NodeProto:
    """A node; names are separated by blanks, ``_`` is an absent one."""
    names = [["" if n == "_" else n for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op_type, *names, domain=domain, **attributes)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: str = "y",
    weights: Mapping[str, Shape | np.ndarray | float] | None = None,
    opset: int = 17,
    elem_type: int = TensorProto.FLOAT,
) -> Graph:
    """The nodes read as a model. A weight is given by its shape or its content."""
    stored = []
    for name, weight in (weights or {}).items():
        if isinstance(weight, float):
            weight = np.array(weight, np.float32)
        elif not isinstance(weight, np.ndarray):
            weight = np.random.default_rng(0).random(tuple(weight), np.float32)
        stored.append(numpy_helper.from_array(weight, name))
    made = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(n, elem_type, list(s)) for n, s in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs.split()],
        stored,
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in DOMAINS)]
    return read_graph(helper.make_model(made, opset_imports=opsets).SerializeToString()).graph
