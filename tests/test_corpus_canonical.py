"""Canonical names and fingerprints: the same computation is the same record."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from training.corpus.canonical import canonicalise, fingerprint, shape_free_fingerprint


def model(
    *,
    width: int = 6,
    kernel: int = 3,
    second: str = "Relu",
    swap: bool = False,
    extra: bool = False,
    dtype: int = TensorProto.FLOAT,
    name: str = "t",
) -> onnx.ModelProto:
    """Two convolutions of one input, one activated, added."""

    def weight(label: str) -> onnx.TensorProto:
        values = np.ones((width, 3, kernel, kernel), helper.tensor_dtype_to_np_dtype(dtype))
        return onnx.numpy_helper.from_array(values, name + label)

    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("Conv", ["x", name + "w1"], [name + "a"], "n1", pads=pads),
        helper.make_node("Conv", ["x", name + "w2"], [name + "b"], "n2", pads=pads),
        helper.make_node(second, [name + "a"], [name + "c"], "n3"),
        helper.make_node(
            "Sub", [name + "b", name + "c"] if swap else [name + "c", name + "b"], ["y"], "n4"
        ),
    ]
    if extra:
        nodes.insert(3, helper.make_node("Exp", [name + "c"], [name + "d"]))
        nodes[4].input[:] = [name + "d", name + "b"]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("y", dtype, ["batch", width, 8, 8])],
        [weight("w1"), weight("w2")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@given(st.text("abcxyz_/.", min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_names_and_order_of_nodes_do_not_count(name: str, draw: random.Random) -> None:
    other = model(name=name)
    nodes = list(other.graph.node)
    head = nodes[:2]
    draw.shuffle(head)
    order = [*head, *nodes[2:]] if draw.random() < 0.5 else [nodes[0], nodes[2], nodes[1], nodes[3]]
    del other.graph.node[:]
    other.graph.node.extend(order)
    initializers = list(other.graph.initializer)
    del other.graph.initializer[:]
    other.graph.initializer.extend(reversed(initializers))
    assert fingerprint(other) == fingerprint(model())


def test_everything_that_changes_the_computation_changes_the_fingerprint():
    variants = [
        model(), model(width=8), model(kernel=1), model(second="Sigmoid"), model(swap=True),
        model(extra=True), model(dtype=TensorProto.FLOAT16),
    ]  # fmt: skip
    assert len({fingerprint(variant) for variant in variants}) == len(variants)


def test_one_architecture_at_two_widths_differs_in_shapes_alone():
    same = shape_free_fingerprint(model())
    assert (
        same == shape_free_fingerprint(model(width=64)) == shape_free_fingerprint(model(kernel=5))
    )
    assert same != shape_free_fingerprint(model(second="Sigmoid"))
    assert same != shape_free_fingerprint(model(extra=True))


def test_canonical_names_change_no_result_and_settle_at_once():
    original = model(name="some/long.name")
    renamed = canonicalise(onnx.ModelProto.FromString(original.SerializeToString()))
    onnx.checker.check_model(renamed, full_check=True)
    assert renamed.ByteSize() < original.ByteSize()
    assert [item.name for item in renamed.graph.input] == ["x"]
    assert [tensor.name for tensor in renamed.graph.initializer] == ["w0", "w1"]
    assert fingerprint(renamed) == fingerprint(original)
    again = onnx.ModelProto.FromString(renamed.SerializeToString())
    assert canonicalise(again).SerializeToString() == renamed.SerializeToString()
    image = {"x": np.random.default_rng(0).random((2, 3, 8, 8), np.float32)}
    results = [
        onnxruntime.InferenceSession(m.SerializeToString()).run(None, image)[0]
        for m in (original, renamed)
    ]
    np.testing.assert_array_equal(*results)


def test_inputs_called_like_canonical_names_stay_apart_from_them():
    graph = helper.make_graph(
        [helper.make_node("Add", ["v0", "w0"], ["sum"]), helper.make_node("Neg", ["sum"], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", "w0")],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    renamed = canonicalise(helper.make_model(graph))
    onnx.checker.check_model(renamed, full_check=True)
    assert list(renamed.graph.node[0].input) == ["v0", "w0"]
    assert renamed.graph.node[0].output[0] not in ("v0", "w0")


def test_names_of_the_outer_graph_are_followed_into_branches():
    def branch(operator: str) -> onnx.GraphProto:
        return helper.make_graph(
            [helper.make_node(operator, ["outer"], [f"{operator}_result"])],
            operator,
            [],
            [helper.make_tensor_value_info(f"{operator}_result", TensorProto.FLOAT, [2])],
        )

    graph = helper.make_graph(
        [
            helper.make_node("Abs", ["x"], ["outer"]),
            helper.make_node(
                "If", ["flag"], ["y"], then_branch=branch("Neg"), else_branch=branch("Exp")
            ),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    renamed = canonicalise(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    onnx.checker.check_model(renamed, full_check=True)
    session = onnxruntime.InferenceSession(renamed.SerializeToString())
    values = np.array([-1.0, 2.0], np.float32)
    (taken,) = session.run(None, {"x": values, "flag": np.array(True)})
    np.testing.assert_array_equal(taken, [-1.0, -2.0])
