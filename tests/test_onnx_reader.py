"""Reading a model: the order, kinds and shapes of what is in it, and what is odd about it."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dippm_lite.caveats import AssumedBatch, BoundedShapes, FileNote, UnresolvedShapes
from dippm_lite.errors import InputError
from dippm_lite.graph import ABSENT, DType, Graph, Value, ValueKind
from dippm_lite.onnx_reader import DEFAULT_LIMITS, ReadModel, read_graph
from dippm_lite.onnx_reader.decode_graph import MAX_LIST_ATTRIBUTE, decode_attribute
from dippm_lite.onnx_reader.decoding import Decoder


def read(proto: onnx.ModelProto, **bindings: Any) -> ReadModel:
    return read_graph(proto.SerializeToString(), **bindings)


def values(graph: Graph) -> dict[str, Value]:
    return {value.name: value for value in graph.values}


def ops(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.nodes]


def notes(model: ReadModel) -> str:
    return " | ".join(caveat.text for caveat in model.caveats if isinstance(caveat, FileNote))


def shape(graph: Graph, name: str) -> tuple[int, ...] | None:
    spec = values(graph)[name].spec
    return None if spec is None else spec.shape


def test_a_network_becomes_a_graph_with_real_edges_and_known_shapes() -> None:
    model = read(zoo.small_cnn(), batch_size=2)
    graph = model.graph
    assert ops(graph) == ["Conv", "Relu", "GlobalAveragePool", "Flatten", "Gemm"]
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert [graph.values[i].name for i in graph.inputs] == ["x"]
    assert [graph.values[i].name for i in graph.outputs] == ["y"]
    assert shape(graph, "c") == (2, 4, 8, 8)
    assert shape(graph, "y") == (2, 5)
    assert graph.nodes[0].attributes["pads"] == (1, 1, 1, 1)
    assert (graph.name, graph.opset, model.batch_size) == ("g", 17, 2)
    assert model.input_shapes == {"x": (2, 3, 8, 8)}
    assert (model.ir_version, model.opsets, model.caveats) == (8, {"": 17}, ())


def test_parameters_are_stored_weights_counted_once() -> None:
    graph = read(zoo.small_cnn()).graph
    stored = {graph.values[i].name: graph.values[i].spec.elements for i in graph.stored_weights}
    assert stored == {"w": 108, "b": 4, "v": 20, "u": 5}
    tied = zoo.model(
        [
            zoo.node("Gather", ["e", "ids"], ["h"]),
            zoo.node("Transpose", ["e"], ["t"], perm=[1, 0]),
            zoo.node("MatMul", ["h", "t"], ["y"]),
        ],
        [zoo.value("ids", [1, 8], zoo.INT64)],
        [zoo.value("y", None)],
        [zoo.weight("e", 100, 16)],
    )
    graph = read(tied).graph
    assert [graph.values[i].name for i in graph.stored_weights] == ["e"]
    transposed = values(graph)["t"]
    assert (transposed.kind, transposed.stored) == (ValueKind.WEIGHT, False)


def test_shape_arithmetic_leaves_no_node_and_its_result_is_known() -> None:
    graph = read(zoo.shape_arithmetic(), batch_size=3).graph
    assert ops(graph) == ["Reshape", "Gemm"]
    target = values(graph)["t"]
    assert (target.kind, target.constant) == (ValueKind.HOST, (3, -1))
    assert shape(graph, "y") == (3, 10)


def test_kinds_follow_from_where_a_value_comes_from() -> None:
    proto = zoo.model(
        [
            zoo.node("Add", ["x", "eps"], ["a"]),
            zoo.node("Mul", ["w", "two"], ["scaled"]),
            zoo.node("MatMul", ["a", "scaled"], ["m"]),
            zoo.node("Slice", ["m", "from", "to"], ["y"]),
        ],
        [zoo.value("x", [2, 4])],
        [zoo.value("y", None)],
        [
            zoo.stored("eps", 1e-5, np.float32),
            zoo.weight("w", 4, 4),
            zoo.stored("two", 2.0, np.float32),
            zoo.stored("from", [0]),
            zoo.stored("to", [1]),
        ],
    )
    graph = read(proto).graph
    kinds = {name: (value.kind, value.stored) for name, value in values(graph).items()}
    assert kinds == {
        "x": (ValueKind.INPUT, False),
        "eps": (ValueKind.HOST, False),
        "a": (ValueKind.ACTIVATION, False),
        "w": (ValueKind.WEIGHT, True),
        "two": (ValueKind.HOST, False),
        "scaled": (ValueKind.WEIGHT, False),
        "m": (ValueKind.ACTIVATION, False),
        "from": (ValueKind.HOST, False),
        "to": (ValueKind.HOST, False),
        "y": (ValueKind.ACTIVATION, False),
    }
    assert values(graph)["eps"].constant == pytest.approx((1e-5,))
    assert values(graph)["to"].constant == (1,)


def test_quantised_tensors_are_weights_and_a_short_int32_bias_is_one_too() -> None:
    proto = zoo.model(
        [
            zoo.node(
                "QLinearConv", ["x", "s", "xz", "w", "s", "wz", "s", "xz", "b"], ["y"], name="conv"
            )
        ],
        [zoo.value("x", [1, 3, 8, 8], TensorProto.UINT8)],
        [zoo.value("y", None, TensorProto.UINT8)],
        [
            zoo.stored("s", 0.1, np.float32),
            zoo.stored("xz", 0, np.uint8),
            zoo.weight("w", 4, 3, 3, 3, dtype=np.int8),
            zoo.weight("wz", 4, dtype=np.int8),
            zoo.weight("b", 4, dtype=np.int32),
        ],
    )
    graph = read(proto).graph
    stored = {graph.values[i].name for i in graph.stored_weights}
    assert stored == {"xz", "w", "wz", "b"}
    assert values(graph)["w"].spec.size_bytes == 108


def test_weights_in_constant_nodes_and_made_by_constantofshape_are_parameters() -> None:
    proto = zoo.model(
        [
            zoo.node("Constant", [], ["w"], value=zoo.weight("", 4, 3, 3, 3)),
            zoo.node("ConstantOfShape", ["s"], ["v"]),
            zoo.node("Conv", ["x", "w"], ["h"]),
            zoo.node("Conv", ["h", "v"], ["y"]),
        ],
        [zoo.value("x", [1, 3, 8, 8])],
        [zoo.value("y", None)],
        [zoo.stored("s", [8, 4, 3, 3])],
    )
    graph = read(proto).graph
    assert ops(graph) == ["Conv", "Conv"]
    elements = {graph.values[i].name: graph.values[i].spec.elements for i in graph.stored_weights}
    assert elements == {"w": 108, "v": 288}


def test_numbers_in_constant_nodes_are_known() -> None:
    nodes = [
        zoo.node("Constant", [], ["a"], value_ints=[2, 3]),
        zoo.node("Constant", [], ["b"], value_float=0.5),
        zoo.node("Constant", [], ["c"], value_int=7),
        zoo.node("Reshape", ["x", "a"], ["r"]),
        zoo.node("Mul", ["r", "b"], ["m"]),
        zoo.node("Cast", ["c"], ["cf"], to=1),
        zoo.node("Add", ["m", "cf"], ["y"]),
    ]
    graph = read(zoo.model(nodes, [zoo.value("x", [6])], [zoo.value("y", None)])).graph
    known = {name: value.constant for name, value in values(graph).items() if value.constant}
    assert known == {"a": (2, 3), "b": (0.5,), "cf": (7.0,)}
    assert shape(graph, "y") == (2, 3)


def test_what_no_output_needs_is_left_out_and_said() -> None:
    proto = zoo.model(
        [
            zoo.node("MatMul", ["x", "w"], ["dead"]),
            zoo.node("Relu", ["x"], ["y"]),
        ],
        [zoo.value("x", [64, 64])],
        [zoo.value("y", [64, 64])],
        [zoo.weight("w", 64, 64), zoo.weight("nobody", 100)],
    )
    model = read(proto)
    assert ops(model.graph) == ["Relu"]
    assert model.graph.stored_weights == ()
    assert "1 node that no output needs" in notes(model)


def test_an_absent_output_does_not_keep_a_dead_node_alive() -> None:
    proto = zoo.model(
        [
            zoo.node("LSTM", ["x", "w", "r"], ["", "dead", ""], hidden_size=8),
            zoo.node("Clip", ["x", "", "hi"], ["y"]),
        ],
        [zoo.value("x", [5, 2, 4])],
        [zoo.value("y", None)],
        [zoo.stored("hi", 6, np.float32), zoo.weight("w", 1, 32, 4), zoo.weight("r", 1, 32, 8)],
    )
    assert ops(read(proto).graph) == ["Clip"]


def test_nodes_out_of_order_are_sorted() -> None:
    proto = zoo.model(
        [zoo.node("Neg", ["a"], ["y"]), zoo.node("Relu", ["x"], ["a"])],
        [zoo.value("x", [4])],
        [zoo.value("y", [4])],
    )
    assert ops(read(proto).graph) == ["Relu", "Neg"]


@given(st.permutations(range(5)))
def test_any_order_of_the_nodes_gives_the_same_graph(order: list[int]) -> None:
    proto = zoo.small_cnn()
    shuffled = [proto.graph.node[i] for i in order]
    expected = read(proto).graph
    del proto.graph.node[:]
    proto.graph.node.extend(shuffled)
    assert read(proto).graph == expected


def test_a_cycle_is_an_error_that_names_its_nodes() -> None:
    proto = zoo.model(
        [
            zoo.node("Add", ["x", "c"], ["a"], name="first"),
            zoo.node("Relu", ["a"], ["c"], name="second"),
            zoo.node("Neg", ["c"], ["y"], name="after"),
        ],
        [zoo.value("x", [4])],
        [zoo.value("y", [4])],
    )
    with pytest.raises(InputError, match=r"nodes '(first|second)', '(first|second)' form a cycle"):
        read(proto)


def test_duplicate_and_empty_node_names_lose_no_node() -> None:
    proto = zoo.model(
        [
            zoo.node("Relu", ["x"], ["a"], name="n"),
            zoo.node("Neg", ["a"], ["b"], name="n"),
            zoo.node("Abs", ["b"], ["y"]),
        ],
        [zoo.value("x", [4])],
        [zoo.value("y", [4])],
    )
    assert [node.name for node in read(proto).graph.nodes] == ["n", "n", "Abs_2"]


def test_the_last_writer_of_a_duplicate_name_counts() -> None:
    proto = zoo.model(
        [zoo.node("Relu", ["x"], ["y"]), zoo.node("Neg", ["x"], ["y"])],
        [zoo.value("x", [4])],
        [zoo.value("y", [4])],
    )
    model = read(proto)
    assert ops(model.graph) == ["Neg"]
    assert "'y' is produced more than once" in notes(model)


def test_absent_inputs_and_outputs_stay_absent() -> None:
    proto = zoo.model(
        [
            zoo.node("Clip", ["x", "", "hi"], ["c"]),
            zoo.node("LSTM", ["c", "w", "r"], ["", "h", ""], hidden_size=8),
            zoo.node("LSTM", ["c", "w", "r"], ["", "", "k"], hidden_size=8),
        ],
        [zoo.value("x", [5, 2, 4])],
        [zoo.value("h", None), zoo.value("k", None)],
        [zoo.stored("hi", 6, np.float32), zoo.weight("w", 1, 32, 4), zoo.weight("r", 1, 32, 8)],
    )
    graph = read(proto).graph
    assert graph.nodes[0].inputs[1] == ABSENT
    assert graph.nodes[1].outputs[0] == graph.nodes[1].outputs[2] == ABSENT
    assert shape(graph, "h") == shape(graph, "k") == (1, 2, 8)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_an_initializer_among_the_inputs_is_no_input(ir_version: int) -> None:
    proto = zoo.model(
        [zoo.node("Reshape", ["x", "s"], ["y"])],
        [zoo.value("x", [1, 12]), zoo.value("s", [2], zoo.INT64)],
        [zoo.value("y", None)],
        [zoo.stored("s", [3, 4])],
        ir_version=ir_version,
        opset=8,
    )
    model = read(proto)
    assert [model.graph.values[i].name for i in model.graph.inputs] == ["x"]
    assert shape(model.graph, "y") == (3, 4)
    assert ("initializer 's' is an input too" in notes(model)) == (ir_version > 3)


def test_of_two_initializers_of_one_name_the_last_counts() -> None:
    proto = zoo.model(
        [zoo.node("MatMul", ["x", "w"], ["y"])],
        [zoo.value("x", [2, 4])],
        [zoo.value("y", None)],
        [zoo.weight("w", 4, 3), zoo.weight("w", 4, 5)],
    )
    model = read(proto)
    assert shape(model.graph, "y") == (2, 5)
    assert len(model.graph.stored_weights) == 1
    assert "initializer 'w' occurs more than once" in notes(model)


def test_a_name_that_nothing_produces_is_unknown_and_reported() -> None:
    proto = zoo.model(
        [zoo.node("Add", ["x", "nowhere"], ["y"])], [zoo.value("x", [4])], [zoo.value("y", None)]
    )
    model = read(proto)
    assert shape(model.graph, "nowhere") is None
    assert "nothing produces 'nowhere'" in notes(model)
    assert any(isinstance(caveat, UnresolvedShapes) for caveat in model.caveats)


def test_an_output_that_nothing_produces_is_left_out_and_the_nodes_stay() -> None:
    proto = zoo.model(
        [zoo.node("Relu", ["x"], ["a"])], [zoo.value("x", [4])], [zoo.value("missing", [4])]
    )
    model = read(proto)
    assert (ops(model.graph), model.graph.outputs) == (["Relu"], ())
    assert "output 'missing' is produced by no node" in notes(model)


def test_an_output_may_be_an_input_or_an_initializer() -> None:
    proto = zoo.model(
        [zoo.node("Relu", ["x"], ["y"])],
        [zoo.value("x", [4])],
        [zoo.value("y", [4]), zoo.value("x", [4]), zoo.value("c", [2])],
        [zoo.weight("c", 2)],
    )
    graph = read(proto).graph
    assert [graph.values[i].name for i in graph.outputs] == ["y", "x", "c"]


def test_declared_shapes_give_way_to_the_operators() -> None:
    proto = zoo.small_cnn(1)
    proto.graph.value_info.append(zoo.value("c", [1, 4, 99, 99]))
    model = read(proto)
    assert shape(model.graph, "c") == (1, 4, 8, 8)
    assert "'c' ((1, 4, 99, 99), not (1, 4, 8, 8)) contradicts the operators" in notes(model)


def test_declared_shapes_fill_in_for_unknown_operators() -> None:
    proto = zoo.model(
        [zoo.node("Gone", ["x"], ["h", "i"], domain="my.dom"), zoo.node("Neg", ["h"], ["y"])],
        [zoo.value("x", ["N", 4])],
        [zoo.value("y", None)],
        domains=["my.dom"],
    )
    proto.graph.value_info.append(zoo.value("h", ["N", 7]))
    model = read(proto, batch_size=3)
    assert shape(model.graph, "y") == (3, 7)
    assert model.graph.nodes[0].key == ("my.dom", "Gone")


def test_an_unknown_operator_is_guessed_to_keep_the_shape_and_that_is_said() -> None:
    proto = zoo.model(
        [
            zoo.node("Plugin", ["x"], ["h"], domain="com.acme", name="plugin"),
            zoo.node("Conv", ["h", "w"], ["y"]),
        ],
        [zoo.value("x", [1, 3, 8, 8])],
        [zoo.value("y", None)],
        [zoo.weight("w", 4, 3, 3, 3)],
    )
    model = read(proto)
    assert shape(model.graph, "y") == (1, 4, 6, 6)
    assert "'plugin' (com.acme::Plugin) has an unknown shape: taken as that of" in notes(model)


def test_a_contradiction_that_rests_on_a_guess_is_no_error() -> None:
    proto = zoo.model(
        [
            zoo.node("Decode", ["x"], ["h"], domain="com.acme"),
            zoo.node("Reshape", ["h", "s"], ["y"]),
        ],
        [zoo.value("x", ["bytes"], TensorProto.UINT8)],
        [zoo.value("y", None)],
        [zoo.stored("s", [2, 3])],
    )
    assert "contradicts its operator's definition" in notes(read(proto))


def test_a_contradiction_under_bound_dimensions_is_an_error_that_names_the_node() -> None:
    proto = zoo.model(
        [zoo.node("Reshape", ["x", "s"], ["y"], name="to_four")],
        [zoo.value("x", ["N", 6])],
        [zoo.value("y", None)],
        [zoo.stored("s", [4, 6])],
    )
    assert shape(read(proto, batch_size=4).graph, "y") == (4, 6)
    with pytest.raises(InputError, match=r"node 'to_four': .* with N=3 and input 'x' of \(3, 6\)"):
        read(proto, batch_size=3)


def test_a_contradiction_of_the_file_itself_is_a_note_and_leaves_the_shape_unknown() -> None:
    proto = zoo.model(
        [zoo.node("Conv", ["x", "w"], ["y"], name="bad")],
        [zoo.value("x", [1, 3, 8, 8]), zoo.value("w", [])],
        [zoo.value("y", None)],
    )
    model = read(proto)
    assert shape(model.graph, "y") is None
    assert "'bad' (" in notes(model)


def test_data_dependent_sizes_are_bounds_and_reported() -> None:
    proto = zoo.model(
        [
            zoo.node("NonZero", ["x"], ["i"]),
            zoo.node("Transpose", ["i"], ["t"]),
            zoo.node("Cast", ["t"], ["y"], to=1),
        ],
        [zoo.value("x", [10, 10])],
        [zoo.value("y", None)],
    )
    model = read(proto)
    assert shape(model.graph, "y") == (100, 2)
    assert values(model.graph)["y"].bounded
    assert model.caveats == (BoundedShapes(3, ("i", "t", "y")),)


def test_a_constant_of_petabytes_costs_nothing_to_read() -> None:
    proto = zoo.model(
        [
            zoo.node("ConstantOfShape", ["s"], ["z"]),
            zoo.node("ReduceSum", ["z"], ["y"], keepdims=0),
        ],
        [],
        [zoo.value("y", [])],
        [zoo.stored("s", [17592186044800])],
    )
    assert shape(read(proto).graph, "z") == (17592186044800,)


@pytest.mark.parametrize("target", [[1 << 30, 1 << 30], [1 << 60, 4]])
def test_an_implausible_size_is_an_error(target: list[int]) -> None:
    proto = zoo.model(
        [zoo.node("Expand", ["x", "s"], ["y"], name="huge")],
        [zoo.value("x", [1, 1])],
        [zoo.value("y", None)],
        [zoo.stored("s", target)],
    )
    with pytest.raises(InputError, match="implausible size"):
        read(proto)


def test_old_attribute_forms_of_shapes_axes_and_broadcasts_are_read() -> None:
    proto = zoo.model(
        [
            zoo.node("Add", ["x", "w"], ["a"], broadcast=1, axis=1),
            zoo.node("Reshape", ["a"], ["r"], shape=[0, -1]),
            zoo.node("Slice", ["r"], ["s"], starts=[0, 0], ends=[1, 9]),
            zoo.node("Squeeze", ["s"], ["y"], axes=[0]),
        ],
        [zoo.value("x", [1, 3, 4, 4])],
        [zoo.value("y", [9])],
        [zoo.weight("w", 3)],
        opset=1,
        ir_version=3,
    )
    assert shape(read(proto).graph, "y") == (9,)


def relu(**options: Any) -> onnx.ModelProto:
    return zoo.model(
        [zoo.node("Relu", ["x"], ["y"])], [zoo.value("x", [4])], [zoo.value("y", [4])], **options
    )


def test_newer_versions_are_read_with_a_note() -> None:
    assert "opset 99 is newer" in notes(read(relu(opset=99)))
    assert "IR version 99 is newer" in notes(read(relu(ir_version=99)))


def test_without_an_import_opset_1_is_assumed_with_a_note() -> None:
    proto = relu()
    del proto.opset_import[:]
    model = read(proto)
    assert "1 is assumed" in notes(model)
    assert model.graph.opset == 0


def test_the_default_domain_may_be_spelled_out() -> None:
    proto = zoo.model(
        [zoo.node("Relu", ["x"], ["y"], domain="ai.onnx")],
        [zoo.value("x", [4])],
        [zoo.value("y", [4])],
    )
    proto.opset_import[0].domain = "ai.onnx"
    model = read(proto)
    assert model.graph.nodes[0].key == ("", "Relu")
    assert (model.opsets, notes(model)) == ({"": 17}, "")


def test_a_file_of_ml_operators_needs_no_default_opset() -> None:
    proto = zoo.model(
        [zoo.node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])],
        [zoo.value("x", [1, 4])],
        [zoo.value("y", None)],
    )
    proto.opset_import[0].domain = "ai.onnx.ml"
    model = read(proto)
    assert (shape(model.graph, "y"), notes(model)) == ((1, 4), "")


@pytest.mark.parametrize("number", [0, 77])
def test_an_unknown_element_type_is_noted(number: int) -> None:
    proto = relu()
    proto.graph.input[0].type.tensor_type.elem_type = number
    proto.graph.output[0].type.tensor_type.elem_type = number
    model = read(proto)
    assert values(model.graph)["x"].spec.dtype is DType.UNDEFINED
    assert "has no element type that is known" in notes(model)


def test_mixed_float_types_and_training_nodes_are_noted() -> None:
    proto = zoo.model(
        [
            zoo.node("MatMul", ["x", "w"], ["m"], name="mixed"),
            zoo.node("BatchNormalization", ["h", *"abcd"], ["y", "e", "f"], training_mode=1),
        ],
        [zoo.value("x", [2, 4], TensorProto.FLOAT16), zoo.value("h", [2, 4])],
        [zoo.value("m", None), zoo.value("y", None)],
        [zoo.weight("w", 4, 4), *(zoo.weight(name, 4) for name in "abcd")],
    )
    text = notes(read(proto))
    assert "'mixed' (MatMul) have different floating-point types" in text
    assert "is in training mode" in text


def test_names_that_are_not_utf8_are_escaped_and_noted() -> None:
    content = relu().SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff")
    model = read_graph(content)
    assert shape(model.graph, "\\xff") == (4,)
    assert "names are not UTF-8" in notes(model)


def test_sparse_initializers_have_their_dense_shape() -> None:
    proto = zoo.model(
        [zoo.node("MatMul", ["x", "w"], ["y"])], [zoo.value("x", [2, 100])], [zoo.value("y", None)]
    )
    sparse = helper.make_sparse_tensor(
        zoo.stored("w", [1, 1, 1], np.float32), zoo.stored("i", [0, 5, 99]), [100, 50]
    )
    proto.graph.sparse_initializer.append(sparse)
    model = read(proto)
    assert shape(model.graph, "y") == (2, 50)
    assert "initializer 'w' is sparse" in notes(model)


def test_sequences_optionals_and_maps_are_read() -> None:
    proto = zoo.model(
        [
            zoo.node("SplitToSequence", ["x"], ["s"], axis=0),
            zoo.node("ConcatFromSequence", ["s"], ["y"], axis=0),
        ],
        [zoo.value("x", [4, 8])],
        [zoo.value("y", None), helper.make_tensor_sequence_value_info("s", 1, None)],
    )
    graph = read(proto).graph
    assert shape(graph, "y") == (4, 8)
    assert values(graph)["s"].spec.elements == 32
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, ["N", 4]))
    proto = zoo.model(
        [zoo.node("OptionalGetElement", ["o"], ["y"])],
        [helper.make_value_info("o", kind)],
        [zoo.value("y", None)],
        opset=18,
    )
    model = read(proto)
    assert shape(model.graph, "y") == (1, 4)
    assert model.caveats == (AssumedBatch("N", 1),)


def test_map_outputs_are_not_unresolved_shapes() -> None:
    mapped = helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, []))
    proto = zoo.model(
        [zoo.node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])],
        [zoo.value("x", [None, 2])],
        [helper.make_value_info("m", helper.make_sequence_type_proto(mapped))],
        domains=["ai.onnx.ml"],
    )
    assert [type(caveat) for caveat in read(proto).caveats] == [AssumedBatch]


def test_strings_have_no_size_and_break_nothing() -> None:
    proto = zoo.model(
        [zoo.node("Equal", ["x", "c"], ["y"])],
        [zoo.value("x", ["n"], TensorProto.STRING)],
        [zoo.value("y", None, zoo.BOOL)],
        [helper.make_tensor("c", TensorProto.STRING, [1], [b"\xff\xfe"])],
        opset=19,
    )
    graph = read(proto).graph
    assert values(graph)["c"].spec.size_bytes == 0
    assert shape(graph, "y") == (1,)


def test_a_tree_ensemble_of_any_length_is_one_node_without_its_lists() -> None:
    count = 100_000
    proto = zoo.model(
        [
            zoo.node(
                "TreeEnsembleRegressor",
                ["x"],
                ["y"],
                domain="ai.onnx.ml",
                n_targets=1,
                nodes_nodeids=list(range(count)),
                nodes_values=[0.5] * count,
                nodes_modes=["LEAF"] * count,
                target_ids=[0, 0],
            )
        ],
        [zoo.value("x", [2, 4])],
        [zoo.value("y", None)],
        domains=["ai.onnx.ml"],
    )
    (node,) = read(proto).graph.nodes
    assert set(node.attributes) == {"n_targets", "target_ids"}


def test_a_stream_and_a_path_read_alike(tmp_path: Any) -> None:
    content = zoo.small_cnn().SerializeToString()
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    expected = read_graph(content)
    assert read_graph(path) == read_graph(str(path)) == expected
    assert read_graph(io.BytesIO(content)) == expected
    with path.open("rb") as file:
        assert read_graph(file) == expected


def test_a_chain_far_longer_than_the_stack_is_walked() -> None:
    graph = read(zoo.chain(20_000)).graph
    assert len(graph.nodes) == 20_000
    assert shape(graph, "v20000") == (1, 16)


def test_wide_nodes_and_many_initializers_take_linear_time() -> None:
    wide = zoo.model(
        [zoo.node("Concat", ["x"] * 20_000, ["y"], axis=0)],
        [zoo.value("x", [1, 4])],
        [zoo.value("y", None)],
    )
    assert shape(read(wide).graph, "y") == (20_000, 4)
    many = zoo.model(
        [zoo.node("Sum", [f"w{i}" for i in range(5_000)], ["y"])],
        [],
        [zoo.value("y", [1])],
        [zoo.weight(f"w{i}", 1) for i in range(5_000)],
    )
    assert len(read(many).graph.stored_weights) == 5_000


def test_operators_are_counted_as_the_file_has_them() -> None:
    proto = zoo.kv_cache()
    graph = read(proto, batch_size=2, dims={"past_len": 3, "seq": 1}).graph
    assert Counter(ops(graph)) == Counter(node.op_type for node in proto.graph.node)


def test_a_list_too_long_to_be_of_use_ends_the_reading_of_its_attribute() -> None:
    """A forest of trees has tens of millions of entries, and reading on takes minutes: what comes
    after the cap is never looked at, here a field that is no protobuf."""
    for entry in (b"\x40\x01", b"\x3d\x00\x00\x80\x3f", b"\x4a\x01a"):  # an int, a float, a string
        body = b"\x0a\x05nodes" + entry * (MAX_LIST_ATTRIBUTE + 1) + b"\x07\x07"
        decoder = Decoder(memoryview(body), DEFAULT_LIMITS)
        attribute = decode_attribute(decoder, (0, len(body)), 0)
        assert (attribute.name, attribute.value) == ("nodes", None)
