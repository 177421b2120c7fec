"""Branches, loops and functions: what of them ends up in the flat graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import zoo
from onnx import AttributeProto, helper

from dippm_lite.caveats import AssumedTripCount, BranchChosen, FileNote
from dippm_lite.errors import InputError
from dippm_lite.graph import Graph, ValueKind
from dippm_lite.onnx_reader import Limits, ReadModel, read_graph


def read(proto: onnx.ModelProto, **bindings: Any) -> ReadModel:
    return read_graph(proto.SerializeToString(), **bindings)


def runs(graph: Graph) -> dict[str, int]:
    """Operator to how often it runs, all its nodes together."""
    counts: dict[str, int] = {}
    for node in graph.nodes:
        counts[node.op_type] = counts.get(node.op_type, 0) + node.repeat
    return counts


def shape(graph: Graph, name: str) -> tuple[int, ...] | None:
    return next(
        None if value.spec is None else value.spec.shape
        for value in reversed(graph.values)
        if value.name == name
    )


def notes(model: ReadModel) -> str:
    return " | ".join(caveat.text for caveat in model.caveats if isinstance(caveat, FileNote))


# ---- If


def test_the_costlier_branch_stands_for_an_open_choice_and_that_is_said() -> None:
    model = read(zoo.branches(None))
    assert runs(model.graph) == {"MatMul": 1}
    assert model.caveats == (BranchChosen(1, ("choice",)),)
    assert model.graph.nodes[0].name == "choice/heavy"
    swapped = zoo.branches(None)
    then_branch, else_branch = swapped.graph.node[0].attribute
    then_branch.name, else_branch.name = else_branch.name, then_branch.name
    assert runs(read(swapped).graph) == {"MatMul": 1}


def test_a_branch_that_contradicts_itself_gives_way_to_the_other() -> None:
    """One branch is for other sizes than the ones bound, as for another sample rate: it can't be
    the one that runs, though it would cost more."""
    proto = zoo.branches(None)
    x = proto.graph.input[0]
    x.type.tensor_type.shape.dim[-1].dim_param = "width"
    model = read(proto, dims={"width": 3})
    assert runs(model.graph) == {"Neg": 1}
    assert "MatMul" not in notes(model)


@pytest.mark.parametrize(("condition", "op_type"), [(True, "MatMul"), (False, "Neg")])
def test_a_known_condition_takes_its_branch_without_a_caveat(condition: bool, op_type: str) -> None:
    model = read(zoo.branches(condition))
    assert runs(model.graph) == {op_type: 1}
    assert model.caveats == ()
    assert shape(model.graph, "y") == (4, 16)


def test_a_condition_on_shapes_is_known_once_they_are_bound() -> None:
    proto = zoo.branches(None)
    proto.graph.input.pop()
    proto.graph.input[0].CopyFrom(zoo.value("x", ["N", 16]))
    proto.graph.initializer.append(zoo.stored("eight", 8))
    proto.graph.initializer.append(zoo.stored("zero", 0))
    before = [
        zoo.node("Shape", ["x"], ["s"]),
        zoo.node("Gather", ["s", "zero"], ["n"]),
        zoo.node("Less", ["n", "eight"], ["c"]),
    ]
    nodes = [*before, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert runs(read(proto, batch_size=4).graph) == {"MatMul": 1}
    assert runs(read(proto, batch_size=8).graph) == {"Neg": 1}


def test_what_an_open_condition_is_computed_from_is_kept() -> None:
    proto = zoo.branches(None)
    proto.graph.input.pop()
    proto.graph.initializer.append(zoo.stored("bound", 1.0, np.float32))
    first = [
        zoo.node("ReduceMax", ["x"], ["m"], keepdims=0),
        zoo.node("Less", ["m", "bound"], ["c"]),
    ]
    nodes = [*first, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    assert runs(read(proto).graph) == {"ReduceMax": 1, "Less": 1, "MatMul": 1}


def test_inner_names_hide_outer_ones_and_end_with_the_branch() -> None:
    then_branch = zoo.graph([zoo.node("Relu", ["h"], ["t"])], [], [zoo.value("t", None)])
    inner = [zoo.node("Concat", ["x", "x"], ["h"], axis=0), zoo.node("Neg", ["h"], ["e"])]
    else_branch = zoo.graph(inner, [], [zoo.value("e", None)])
    proto = zoo.model(
        [
            zoo.node("Abs", ["x"], ["h"]),
            zoo.node("If", ["c"], ["y"], then_branch=then_branch, else_branch=else_branch),
            zoo.node("Exp", ["h"], ["z"]),
        ],
        [zoo.value("x", [4]), zoo.value("c", [], zoo.BOOL)],
        [zoo.value("y", None), zoo.value("z", None)],
    )
    graph = read(proto).graph
    assert runs(graph) == {"Abs": 1, "Concat": 1, "Neg": 1, "Exp": 1}
    assert shape(graph, "y") == (8,)
    assert shape(graph, "z") == (4,)


def test_weights_of_a_branch_that_is_not_taken_are_not_counted() -> None:
    graph = read(zoo.branches(False)).graph
    assert graph.stored_weights == ()


# ---- Loop


def test_a_loop_with_a_known_count_repeats_its_body() -> None:
    model = read(zoo.loop(10))
    assert runs(model.graph) == {"MatMul": 10}
    assert [node.op_type for node in model.graph.nodes] == ["MatMul"]
    assert model.caveats == ()
    assert shape(model.graph, "y") == (4, 16)


def test_a_loop_with_an_open_count_is_taken_once_and_that_is_said() -> None:
    model = read(zoo.loop(None))
    assert runs(model.graph) == {"MatMul": 1}
    assert model.caveats == (AssumedTripCount(1, ("loop",)),)


def test_what_a_loop_collects_gets_the_trip_count_as_its_first_dimension() -> None:
    graph = read(zoo.loop(7, scans=True)).graph
    assert shape(graph, "all") == (7, 4, 16)
    stack = next(node for node in graph.nodes if node.op_type == "ConcatFromSequence")
    assert stack.repeat == 1


@pytest.mark.parametrize("trips", [1, 3, 64])
def test_a_state_that_grows_is_followed_run_by_run(trips: int) -> None:
    graph = read(zoo.loop(trips, grows=True)).graph
    assert shape(graph, "y") == (4 + trips, 16)
    assert runs(graph) == {"Concat": trips}


def test_a_state_that_grows_over_many_runs_is_a_reported_bound() -> None:
    model = read(zoo.loop(1000, grows=True))
    assert runs(model.graph) == {"Concat": 1000, "Identity": 1}
    assert [type(caveat).__name__ for caveat in model.caveats] == ["BoundedShapes"]


@pytest.mark.parametrize("trips", [0, -1])
def test_a_loop_that_never_runs_costs_nothing(trips: int) -> None:
    model = read(zoo.loop(trips, scans=True))
    assert model.graph.nodes == ()
    assert shape(model.graph, "x") == (4, 16)
    assert model.graph.values[model.graph.outputs[1]].spec.shape == (0, 4, 16)
    assert "'loop' never runs" in notes(model)


def test_the_largest_integer_as_a_count_means_until_the_condition_ends() -> None:
    model = read(zoo.loop(2**63 - 1))
    assert runs(model.graph) == {"MatMul": 1}
    assert [type(caveat) for caveat in model.caveats] == [AssumedTripCount]


def while_loop(bound: int, limit: int = 2**63 - 1) -> onnx.ModelProto:
    """``for i in range(limit): x = x @ w; if i + 1 >= bound: break``"""
    body = zoo.graph(
        [
            zoo.node("Add", ["i", "one"], ["next"]),
            zoo.node("Less", ["next", "bound"], ["on"]),
            zoo.node("MatMul", ["s", "w"], ["s2"]),
        ],
        [zoo.value("i", [], zoo.INT64), zoo.value("go", [], zoo.BOOL), zoo.value("s", [4, 16])],
        [zoo.value("on", [], zoo.BOOL), zoo.value("s2", [4, 16])],
    )
    return zoo.model(
        [zoo.node("Loop", ["n", "", "x"], ["y"], body=body)],
        [zoo.value("x", [4, 16])],
        [zoo.value("y", None)],
        [
            zoo.stored("n", limit),
            zoo.stored("one", 1),
            zoo.stored("bound", bound),
            zoo.weight("w", 16, 16),
        ],
    )


def test_a_condition_that_counts_is_followed_to_its_end() -> None:
    for bound in (1, 12, 500):
        model = read(while_loop(bound))
        assert runs(model.graph) == {"MatMul": bound}
        assert model.caveats == ()
    assert runs(read(while_loop(12, limit=5)).graph) == {"MatMul": 5}
    assert runs(read(while_loop(12, limit=50)).graph) == {"MatMul": 12}


def test_a_condition_that_never_ends_or_an_open_limit_is_an_assumed_count() -> None:
    endless = read(while_loop(2**40))
    assert runs(endless.graph) == {"MatMul": 1}
    assert [type(caveat) for caveat in endless.caveats] == [AssumedTripCount]
    proto = while_loop(12)
    del proto.graph.initializer[0]
    proto.graph.input.append(zoo.value("n", [], zoo.INT64))
    assert [type(caveat) for caveat in read(proto).caveats] == [AssumedTripCount]


def test_a_counter_that_the_loop_carries_is_followed_without_the_rest_of_the_body() -> None:
    """As TensorFlow writes it: the count of steps comes from the shape of the input."""
    body = zoo.graph(
        [
            zoo.node("Add", ["k", "one"], ["k2"]),
            zoo.node("Less", ["k2", "steps"], ["on"]),
            zoo.node("Gather", ["x", "k"], ["row"]),
            zoo.node("MatMul", ["s", "w"], ["m"]),
            zoo.node("Add", ["m", "row"], ["s2"]),
        ],
        [
            zoo.value("i", [], zoo.INT64),
            zoo.value("go", [], zoo.BOOL),
            zoo.value("k", [], zoo.INT64),
            zoo.value("s", [16]),
        ],
        [zoo.value("on", [], zoo.BOOL), zoo.value("k2", [], zoo.INT64), zoo.value("s2", [16])],
    )
    proto = zoo.model(
        [
            zoo.node("Shape", ["x"], ["shape"]),
            zoo.node("Gather", ["shape", "zero"], ["steps"]),
            zoo.node("Loop", ["", "", "zero", "start"], ["end", "y"], body=body),
        ],
        [zoo.value("x", ["T", 16]), zoo.value("start", [16])],
        [zoo.value("y", None)],
        [zoo.stored("zero", 0), zoo.stored("one", 1), zoo.weight("w", 16, 16)],
    )
    model = read(proto, dims={"T": 300})
    assert runs(model.graph) == {"Gather": 300, "MatMul": 300, "Add": 300}
    assert model.caveats == ()


def test_nested_loops_multiply() -> None:
    inner = zoo.loop(3).graph.node[0]
    inner.input[2] = "s"
    inner.output[0] = "s2"
    body = zoo.graph(
        [inner, zoo.node("Identity", ["go"], ["on"])],
        [zoo.value("i", [], zoo.INT64), zoo.value("go", [], zoo.BOOL), zoo.value("s", None)],
        [zoo.value("on", [], zoo.BOOL), zoo.value("s2", None)],
    )
    proto = zoo.model(
        [zoo.node("Loop", ["m", "c", "x"], ["y"], body=body)],
        [zoo.value("x", [4, 16])],
        [zoo.value("y", None)],
        [
            zoo.stored("m", 5),
            zoo.stored("n", 3),
            zoo.stored("c", True, bool),
            zoo.weight("w", 16, 16),
        ],
    )
    assert runs(read(proto).graph) == {"MatMul": 15}
    with pytest.raises(InputError, match="would run 15 times"):
        read(proto, limits=Limits(max_repeat=14))


def test_a_constant_initial_state_is_no_constant_inside_the_loop() -> None:
    proto = zoo.loop(10)
    proto.graph.node[0].input[2] = "start"
    proto.graph.initializer.append(zoo.weight("start", 4, 16))
    graph = read(proto).graph
    product = next(node for node in graph.nodes if node.op_type == "MatMul")
    assert graph.values[product.inputs[0]].kind is ValueKind.ACTIVATION
    assert graph.values[product.outputs[0]].kind is ValueKind.ACTIVATION


# ---- Scan and SequenceMap


def scan(**attributes: Any) -> onnx.ModelProto:
    body = zoo.graph(
        [zoo.node("Add", ["s", "e"], ["s2"]), zoo.node("Exp", ["s2"], ["o"])],
        [zoo.value("s", [8]), zoo.value("e", [8])],
        [zoo.value("s2", [8]), zoo.value("o", [8])],
    )
    return zoo.model(
        [zoo.node("Scan", ["s0", "x"], ["last", "y"], body=body, num_scan_inputs=1, **attributes)],
        [zoo.value("s0", [8]), zoo.value("x", [20, 8] if not attributes else [8, 20])],
        [zoo.value("last", None), zoo.value("y", None)],
    )


def test_scan_runs_once_for_each_slice() -> None:
    graph = read(scan()).graph
    assert runs(graph)["Add"] == runs(graph)["Exp"] == 20
    assert shape(graph, "last") == (8,)
    assert shape(graph, "y") == (20, 8)


def test_scan_axes_are_followed() -> None:
    graph = read(scan(scan_input_axes=[1], scan_output_axes=[-1])).graph
    assert runs(graph)["Add"] == 20
    assert shape(graph, "y") == (8, 20)


def test_sequence_map_runs_once_for_each_element() -> None:
    body = zoo.graph(
        [zoo.node("MatMul", ["e", "w"], ["o"])], [zoo.value("e", None)], [zoo.value("o", None)]
    )
    proto = zoo.model(
        [
            zoo.node("SplitToSequence", ["x"], ["parts"], axis=0),
            zoo.node("SequenceMap", ["parts"], ["done"], body=body),
            zoo.node("ConcatFromSequence", ["done"], ["y"], axis=0),
        ],
        [zoo.value("x", [5, 16])],
        [zoo.value("y", None)],
        [zoo.weight("w", 16, 3)],
        opset=18,
    )
    graph = read(proto).graph
    assert runs(graph)["MatMul"] == 5
    assert shape(graph, "y") == (5, 3)


# ---- functions


def test_a_local_function_is_inlined_each_time_it_is_called() -> None:
    body = [zoo.node("MatMul", ["a", "b"], ["t"], name="mm"), zoo.node("Relu", ["t"], ["r"])]
    proto = zoo.model(
        [
            zoo.node("Dense", ["x", "w"], ["h"], domain="my.dom", name="first"),
            zoo.node("Dense", ["h", "w"], ["y"], domain="my.dom", name="second"),
        ],
        [zoo.value("x", [4, 16])],
        [zoo.value("y", None)],
        [zoo.weight("w", 16, 16)],
        domains=["my.dom"],
        functions=[zoo.function("Dense", body, ["a", "b"])],
    )
    graph = read(proto).graph
    assert runs(graph) == {"MatMul": 2, "Relu": 2}
    assert graph.nodes[0].name == "first/mm"
    assert len(graph.stored_weights) == 1
    assert shape(graph, "y") == (4, 16)


def softmax_function(**options: Any) -> onnx.FunctionProto:
    call = zoo.node("Concat", ["a", "a"], ["r"])
    call.attribute.append(zoo.attribute_reference("axis", AttributeProto.INT, "where"))
    return zoo.function("Twice", [call], **options)


def call_twice(function: onnx.FunctionProto, **attributes: Any) -> onnx.ModelProto:
    return zoo.model(
        [zoo.node("Twice", ["x"], ["y"], domain="my.dom", **attributes)],
        [zoo.value("x", [4, 16])],
        [zoo.value("y", None)],
        domains=["my.dom"],
        functions=[function],
    )


def test_attributes_of_a_call_reach_the_body_and_have_defaults() -> None:
    plain = softmax_function(attributes=["where"])
    assert shape(read(call_twice(plain, where=1)).graph, "y") == (4, 32)
    with_default = softmax_function(defaults=[helper.make_attribute("where", 0)])
    assert shape(read(call_twice(with_default)).graph, "y") == (8, 16)
    assert shape(read(call_twice(with_default, where=1)).graph, "y") == (4, 32)


def test_attributes_pass_through_two_functions_and_into_subgraphs() -> None:
    relay = zoo.node("Twice", ["a"], ["r"], domain="my.dom")
    relay.attribute.append(zoo.attribute_reference("where", AttributeProto.INT, "outer"))
    then_branch = zoo.graph([relay], [], [zoo.value("r", None)])
    condition = zoo.node("Constant", [], ["c"], value=zoo.stored("", True, bool))
    choose = zoo.node("If", ["c"], ["q"], then_branch=then_branch, else_branch=then_branch)
    outer = zoo.function("Outer", [condition, choose], outputs=["q"], attributes=["outer"])
    proto = call_twice(softmax_function(attributes=["where"]))
    proto.functions.append(outer)
    proto.graph.node[0].op_type = "Outer"
    proto.graph.node[0].attribute.append(helper.make_attribute("outer", 1))
    assert shape(read(proto).graph, "y") == (4, 32)


def test_a_function_sees_nothing_of_its_caller() -> None:
    proto = call_twice(zoo.function("Twice", [zoo.node("Add", ["a", "x"], ["r"])]))
    assert "nothing produces 'x'" in notes(read(proto))


def test_an_optional_input_that_the_call_leaves_out_is_absent_in_the_body() -> None:
    body = [zoo.node("Clip", ["a", "low", "high"], ["r"])]
    proto = call_twice(zoo.function("Twice", body, ["a", "low", "high"]))
    assert read(proto).graph.nodes[0].inputs[1:] == (-1, -1)


def test_functions_that_call_themselves_are_an_error() -> None:
    recursive = zoo.function("Twice", [zoo.node("Twice", ["a"], ["r"], domain="my.dom")])
    with pytest.raises(InputError, match=r"function 'my\.dom::Twice' calls itself"):
        read(call_twice(recursive))
    mutual = [
        zoo.function("Twice", [zoo.node("Other", ["a"], ["r"], domain="my.dom")]),
        zoo.function("Other", [zoo.node("Twice", ["a"], ["r"], domain="my.dom")]),
    ]
    proto = call_twice(mutual[0])
    proto.functions.append(mutual[1])
    with pytest.raises(InputError, match="calls itself"):
        read(proto)


def test_functions_that_double_at_each_level_are_stopped() -> None:
    levels = [
        zoo.function(
            f"F{i}",
            [
                zoo.node(f"F{i + 1}", ["a"], ["t"], domain="my.dom"),
                zoo.node(f"F{i + 1}", ["t"], ["r"], domain="my.dom"),
            ],
        )
        for i in range(30)
    ]
    last = zoo.function("F30", [zoo.node("Relu", ["a"], ["r"])])
    proto = call_twice(levels[0])
    proto.graph.node[0].op_type = "F0"
    proto.functions.extend([*levels[1:], last])
    with pytest.raises(InputError, match="more than 5,000 calls"):
        read(proto, limits=Limits(max_nodes=5000))


def test_overloads_are_told_apart() -> None:
    proto = call_twice(zoo.function("Twice", [zoo.node("Neg", ["a"], ["r"])]))
    other = zoo.function("Twice", [zoo.node("Exp", ["a"], ["r"])])
    other.overload = "second"
    proto.functions.append(other)
    proto.graph.node[0].overload = "second"
    assert runs(read(proto).graph) == {"Exp": 1}


def test_constants_of_a_function_called_twice_are_stored_once() -> None:
    body = [
        zoo.node("Constant", [], ["k"], value=helper.make_tensor("k", 1, [16], np.ones(16))),
        zoo.node("Add", ["a", "k"], ["r"]),
    ]
    proto = call_twice(zoo.function("Twice", body))
    proto.graph.node.insert(0, zoo.node("Twice", ["x"], ["h"], domain="my.dom"))
    proto.graph.node[1].input[0] = "h"
    assert len(read(proto).graph.stored_weights) == 1
