"""Tiny ONNX models, one quirk each, and the builders to make more of them in a line or two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Dims = Sequence[int | str | None] | None


def value(name: str, dims: Dims, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """An input or output; ``dims`` None leaves the rank open."""
    return helper.make_tensor_value_info(name, dtype, dims)


def weight(name: str, *dims: int, dtype: type = np.float32) -> onnx.TensorProto:
    """An initializer of zeros."""
    return numpy_helper.from_array(np.zeros(dims, dtype), name)


def stored(name: str, content: ArrayLike, dtype: type = np.int64) -> onnx.TensorProto:
    """An initializer that holds ``content``."""
    return numpy_helper.from_array(np.asarray(content, dtype), name)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object
) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)


def graph(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto] = (),
    outputs: Iterable[onnx.ValueInfoProto] = (),
    stored_tensors: Iterable[onnx.TensorProto] = (),
    name: str = "g",
) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(stored_tensors))


def model(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto] = (),
    outputs: Iterable[onnx.ValueInfoProto] = (),
    stored_tensors: Iterable[onnx.TensorProto] = (),
    *,
    opset: int = 17,
    ir_version: int = 8,
    domains: Iterable[str] = (),
    functions: Iterable[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model; ``domains`` are imported at version 1 beside the default one."""
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(
        graph(nodes, inputs, outputs, stored_tensors),
        ir_version=ir_version,
        opset_imports=imports,
        functions=list(functions),
    )


def function(
    name: str,
    nodes: Iterable[onnx.NodeProto],
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("r",),
    *,
    attributes: Sequence[str] = (),
    defaults: Sequence[onnx.AttributeProto] = (),
) -> onnx.FunctionProto:
    """A local function of domain ``my.dom``."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my.dom", 1)]
    return helper.make_function(
        "my.dom",
        name,
        list(inputs),
        list(outputs),
        list(nodes),
        imports,
        list(attributes),
        list(defaults),
    )


def attribute_reference(name: str, kind: int, refers_to: str) -> onnx.AttributeProto:
    """An attribute of a node in a function body that takes the caller's value."""
    return onnx.AttributeProto(name=name, type=kind, ref_attr_name=refers_to)


def small_cnn(batch: int | str | None = "N") -> onnx.ModelProto:
    """Conv, Relu, global pooling and a classifier on 3 x 8 x 8 images; 139 parameters."""
    return model(
        [
            node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            node("Relu", ["c"], ["r"], name="relu"),
            node("GlobalAveragePool", ["r"], ["p"], name="pool"),
            node("Flatten", ["p"], ["f"], name="flatten"),
            node("Gemm", ["f", "v", "u"], ["y"], name="fc", transB=1),
        ],
        [value("x", [batch, 3, 8, 8])],
        [value("y", [batch, 5])],
        [weight("w", 4, 3, 3, 3), weight("b", 4), weight("v", 5, 4), weight("u", 5)],
    )


def shape_arithmetic() -> onnx.ModelProto:
    """Flattening as exporters write it: Shape, Gather, Unsqueeze, Concat, Reshape."""
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Unsqueeze", ["n", "axes"], ["n1"]),
            node("Concat", ["n1", "rest"], ["t"], axis=0),
            node("Reshape", ["x", "t"], ["f"]),
            node("Gemm", ["f", "w"], ["y"], transB=1),
        ],
        [value("x", ["N", 8, 4, 4])],
        [value("y", ["N", 10])],
        [stored("zero", 0), stored("axes", [0]), stored("rest", [-1]), weight("w", 10, 128)],
    )


def kv_cache() -> onnx.ModelProto:
    """One attention score with a cache: dimensions named batch, seq, past_len and their sum."""
    return model(
        [
            node("Concat", ["past", "k"], ["present"], axis=2),
            node("Transpose", ["present"], ["kt"], perm=[0, 1, 3, 2]),
            node("MatMul", ["q", "kt"], ["s"]),
            node("Add", ["s", "mask"], ["y"]),
        ],
        [
            value("past", ["batch", 2, "past_len", 4]),
            value("k", ["batch", 2, "seq", 4]),
            value("q", ["batch", 2, "seq", 4]),
            value("mask", ["batch", 1, "seq", "past_len + seq"]),
        ],
        [value("y", None)],
    )


def branches(condition: bool | None) -> onnx.ModelProto:
    """If with a MatMul or an Identity on outer values; the condition is an input for None."""
    heavy = graph([node("MatMul", ["x", "w"], ["t"], name="heavy")], [], [value("t", None)])
    light = graph([node("Neg", ["x"], ["e"], name="light")], [], [value("e", None)])
    known = [] if condition is None else [stored("c", condition, bool)]
    return model(
        [node("If", ["c"], ["y"], name="choice", then_branch=heavy, else_branch=light)],
        [value("x", [4, 16]), *([value("c", [], BOOL)] if condition is None else [])],
        [value("y", None)],
        [weight("w", 16, 16), *known],
    )


def loop(trips: int | None, *, grows: bool = False, scans: bool = False) -> onnx.ModelProto:
    """Loop over a MatMul; ``trips`` None makes the count an input; ``grows`` appends a row to the
    state in each run; ``scans`` collects the states."""
    step = (
        [node("Concat", ["s", "row"], ["s2"], axis=0, name="append")]
        if grows
        else [node("MatMul", ["s", "w"], ["s2"], name="step")]
    )
    collect = [node("Identity", ["s2"], ["each"])] if scans else []
    body = graph(
        [*step, node("Identity", ["go"], ["on"]), *collect],
        [value("i", [], INT64), value("go", [], BOOL), value("s", None)],
        [value("on", [], BOOL), value("s2", None), *([value("each", None)] if scans else [])],
    )
    known = [] if trips is None else [stored("n", trips)]
    return model(
        [node("Loop", ["n", "c", "x"], ["y", *(["all"] if scans else [])], name="loop", body=body)],
        [value("x", [4, 16]), *([value("n", [], INT64)] if trips is None else [])],
        [value("y", None), *([value("all", None)] if scans else [])],
        [stored("c", True, bool), weight("w", 16, 16), weight("row", 1, 16), *known],
    )


def chain(length: int) -> onnx.ModelProto:
    """``length`` Relus in a row."""
    return model(
        [node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(length)],
        [value("v0", ["n", 16])],
        [value(f"v{length}", ["n", 16])],
    )
