"""Free dimensions: how they are bound, and what is said where they can't be."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.caveats import AssumedBatch
from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import ReadModel, read_graph
from dippm_lite.onnx_reader.dimensions import is_batch_like, normal_dim, parse_expression


def read(proto: onnx.ModelProto, **bindings: Any) -> ReadModel:
    return read_graph(proto.SerializeToString(), **bindings)


def network(*inputs: tuple[str, list[Any] | None]) -> onnx.ModelProto:
    """A Relu for each input."""
    return zoo.model(
        [zoo.node("Relu", [name], [f"{name}_out"]) for name, _ in inputs],
        [zoo.value(name, dims) for name, dims in inputs],
        [zoo.value(f"{name}_out", None) for name, _ in inputs],
    )


def refused(proto: onnx.ModelProto, **bindings: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(proto, **bindings)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix("the given bytes: ")


def test_the_only_free_dimension_is_the_batch_and_1_by_default() -> None:
    model = read(zoo.small_cnn("N"))
    assert model.input_shapes == {"x": (1, 3, 8, 8)}
    assert model.batch_size == 1
    assert model.caveats == (AssumedBatch("N", 1),)
    model = read(zoo.small_cnn("N"), batch_size=8)
    assert (model.input_shapes, model.batch_size) == ({"x": (8, 3, 8, 8)}, 8)
    assert model.caveats == ()


@pytest.mark.parametrize("name", ["?", "", "unk__17", "None", "-1", "x_dynamic_axes_1", -1, None])
def test_an_unnamed_leading_dimension_is_the_batch_too(name: Any) -> None:
    model = read(network(("x", [name, 4])), batch_size=3)
    assert model.input_shapes == {"x": (3, 4)}
    assert read(network(("x", [name, 4]))).caveats == (AssumedBatch("dimension 0 of 'x'", 1),)


def test_leading_dimensions_of_other_names_are_all_the_batch() -> None:
    proto = network(("a", ["batch", 4]), ("b", ["batch_1", 2]))
    assert read(proto, batch_size=5).input_shapes == {"a": (5, 4), "b": (5, 2)}
    assert read(proto).input_shapes == {"a": (1, 4), "b": (1, 2)}
    one_given = read(proto, dims={"batch": 6})
    assert one_given.input_shapes == {"a": (6, 4), "b": (6, 2)}
    assert one_given.caveats == (AssumedBatch("batch_1", 6),)


def test_any_other_free_dimension_is_an_error_that_says_what_to_type() -> None:
    text = refused(network(("image", ["N", 3, "H", "W"])))
    assert text == (
        "input 'image' has free dimensions 'N', 'H', 'W' in (N, 3, H, W): "
        "bind them with --batch or --dim N=8 --dim H=224 --dim W=224"
    )
    assert refused(network(("image", ["N", 3, "H", 8])), batch_size=2) == (
        "input 'image' has free dimension 'H' in (N, 3, H, 8): bind it with --dim H=224"
    )


def test_unnamed_dimensions_are_each_their_own_and_are_given_by_shape() -> None:
    proto = network(("x", ["?", 3, "?", "?"]))
    text = refused(proto)
    assert "free dimensions 0 (unnamed), 2 (unnamed), 3 (unnamed) in (?, 3, ?, ?)" in text
    assert text.endswith("--shape x=8x3x224x224")
    model = read(proto, shapes={"x": (2, 3, 32, 48)})
    assert model.input_shapes == {"x": (2, 3, 32, 48)}
    assert "no dimension has a name" in refused(proto, dims={"?": 8})


def test_a_name_has_one_size_everywhere_and_sums_of_names_follow() -> None:
    model = read(zoo.kv_cache(), batch_size=2, dims={"past_len": 30, "seq": 2})
    assert model.input_shapes == {
        "past": (2, 2, 30, 4),
        "k": (2, 2, 2, 4),
        "q": (2, 2, 2, 4),
        "mask": (2, 1, 2, 32),
    }
    text = refused(zoo.kv_cache(), batch_size=2)
    assert "'past_len'" in text
    assert "'past_len + seq'" not in text
    assert "--dim past_len=128 --dim seq=128" in text


def test_a_cache_may_be_empty_but_a_batch_may_not() -> None:
    model = read(zoo.kv_cache(), dims={"batch": 1, "past_len": 0, "seq": 7})
    assert model.input_shapes["mask"] == (1, 1, 7, 7)
    assert "can't be 0" in refused(zoo.kv_cache(), dims={"batch": 0, "past_len": 1, "seq": 1})
    assert "not positive" in refused(zoo.small_cnn("N"), batch_size=0)
    assert "not positive" in refused(zoo.small_cnn("N"), batch_size=-4)
    assert "can't be negative" in refused(zoo.kv_cache(), dims={"seq": -1})
    assert "can't be negative" in refused(zoo.small_cnn("N"), shapes={"x": (1, 3, -8, 8)})
    assert "can't be 0" in refused(zoo.small_cnn("N"), shapes={"x": (0, 3, 8, 8)})


def test_a_file_may_have_a_dimension_of_size_0() -> None:
    assert read(network(("x", [0, 16]))).input_shapes == {"x": (0, 16)}


def test_the_batch_is_found_by_name_where_it_does_not_lead() -> None:
    proto = network(("x", ["T", "batch", 4]), ("h0", [2, "batch", 8]))
    model = read(proto, batch_size=3, dims={"T": 50})
    assert model.input_shapes == {"x": (50, 3, 4), "h0": (2, 3, 8)}
    assert model.batch_size == 3
    assert "free dimension 'T' in (T, batch, 4)" in refused(proto, batch_size=3)


def test_a_leading_dimension_is_not_taken_for_the_batch_where_another_is_named_so() -> None:
    proto = network(("image", ["batch", 4]), ("boxes", ["num_boxes", 4]))
    assert "free dimension 'num_boxes'" in refused(proto, batch_size=2)
    assert "free dimension 'batch'" in refused(proto)
    model = read(proto, batch_size=2, dims={"num_boxes": 9})
    assert model.input_shapes == {"image": (2, 4), "boxes": (9, 4)}


def test_shapes_bind_names_and_are_checked_against_the_file() -> None:
    proto = network(("a", ["N", 3, "H"]), ("b", ["N", "H"]))
    model = read(proto, shapes={"a": (2, 3, 16)})
    assert model.input_shapes == {"a": (2, 3, 16), "b": (2, 16)}
    assert refused(proto, shapes={"a": (2, 4, 16)}) == (
        "--shape a=2x4x16 contradicts input 'a' (N, 3, H): dimension 1 is 3, fixed in the file, "
        "not 4"
    )
    assert "has 2" in refused(proto, shapes={"a": (2, 3)})
    assert "dimension 1 is 16, bound already, not 17" in refused(
        proto, shapes={"a": (2, 3, 16), "b": (2, 17)}
    )
    assert "dimension 2 is 9, bound already, not 16" in refused(
        proto, dims={"H": 9}, shapes={"a": (2, 3, 16)}
    )


def test_unknown_names_are_errors_with_a_suggestion() -> None:
    proto = zoo.kv_cache()
    assert "did you mean 'past_len'?" in refused(proto, dims={"pastlen": 4})
    assert "did you mean 'mask'?" in refused(proto, shapes={"mash": (1, 1, 1, 1)})
    assert refused(zoo.small_cnn(4), dims={"q": 1}) == (
        "there is no dimension 'q': no dimension has a name"
    )


def test_a_fixed_batch_can_only_be_confirmed() -> None:
    assert read(zoo.small_cnn(4), batch_size=4).batch_size == 4
    text = refused(zoo.small_cnn(4), batch_size=8)
    assert text.startswith("the batch is fixed at 4 in the file (input 'x' is (4, 3, 8, 8))")
    assert "contradicts dimension 'N', bound to 4" in refused(
        zoo.small_cnn("N"), batch_size=8, dims={"N": 4}
    )
    assert "no input with a batch dimension" in refused(network(("x", [])), batch_size=2)


def test_an_input_of_unknown_rank_needs_a_shape() -> None:
    assert refused(network(("x", None))) == (
        "input 'x' of unknown rank: give the shape, --shape x=1x3x224x224 for example"
    )
    model = read(network(("x", None)), shapes={"x": (2, 5)})
    assert model.graph.values[model.graph.outputs[0]].spec.shape == (2, 5)


def test_an_input_that_nobody_reads_may_stay_free() -> None:
    proto = network(("x", ["N", 4]))
    proto.graph.input.append(zoo.value("unused", ["anything", "goes"]))
    model = read(proto)
    assert model.input_shapes == {"x": (1, 4)}
    assert len(model.graph.inputs) == 2


def test_names_of_outputs_can_be_bound() -> None:
    proto = zoo.model(
        [zoo.node("Detect", ["x"], ["boxes", "scores"], domain="com.acme")],
        [zoo.value("x", ["N", 4])],
        [zoo.value("boxes", ["N", "num_boxes", 4])],
        domains=["com.acme"],
    )
    graph = read(proto, dims={"num_boxes": 100}).graph
    assert graph.values[graph.outputs[0]].spec.shape == (1, 100, 4)


def test_a_size_that_is_no_whole_number_is_an_error() -> None:
    assert "is not a whole number" in refused(zoo.small_cnn("N"), batch_size=1.5)
    assert "is not a whole number" in refused(zoo.small_cnn("N"), batch_size=True)
    assert "is not a whole number" in refused(zoo.small_cnn("N"), dims={"N": "8"})


def test_an_implausible_size_is_an_error() -> None:
    assert "implausible size" in refused(network(("a", [2**31, 2**32])))
    assert "implausible size" in refused(zoo.small_cnn("N"), batch_size=2**47)


def test_names_are_printed_so_that_a_shell_and_a_terminal_take_them() -> None:
    text = refused(network(("in put\n", [2, "a b", "c\x1b[31m"])))
    assert "'in put\\n'" in text
    assert "--dim 'a b=8'" in text
    assert "\x1b" not in text


def test_very_long_names_and_shapes_are_shortened() -> None:
    text = refused(network(("x", [1, *(f"{'d' * 500}{i}" for i in range(60))])))
    assert len(text) < 10_000
    assert "... 49 more" in text
    assert "has 1,001 dimensions" in refused(network(("x", [1, *["d"] * 1000])))


@pytest.mark.parametrize(
    ("text", "values", "size"),
    [
        ("past_len + seq", {"past_len": 3, "seq": 4}, 7),
        ("2*N", {"N": 5}, 10),
        ("floor(N/2)", {"N": 5}, 2),
        ("ceil(N/2) - 1", {"N": 5}, 2),
        ("(H + 2*p)//s + 1", {"H": 224, "p": 3, "s": 2}, 116),
        ("Max(1, s0)", {"s0": 0}, 1),
        ("min(a, b, 3)", {"a": 9, "b": 5}, 3),
        ("-1 + N", {"N": 5}, 4),
        ("a - b - c", {"a": 9, "b": 3, "c": 2}, 4),
        ("N/0", {"N": 1}, None),
        ("a - b", {"a": 1, "b": 2}, None),
    ],
)
def test_arithmetic_in_names_is_evaluated(text: str, values: dict[str, int], size: Any) -> None:
    expression = parse_expression(text)
    assert expression is not None
    assert expression.value(values) == size
    assert expression.names == set(values)


@pytest.mark.parametrize(
    "text", ["batch", "12", "", "a b", "a +", "(a", "a)(", "eval(a)", "a ** b", "a" * 300 + "+b"]
)
def test_other_names_are_no_arithmetic(text: str) -> None:
    assert parse_expression(text) is None


@given(st.text("ab+-*/() ,1floormin", max_size=40))
def test_any_text_is_an_expression_or_not_without_an_exception(text: str) -> None:
    expression = parse_expression(text)
    if expression is not None:
        assert (
            expression.value(dict.fromkeys(expression.names, 3)) is None
            or expression.names >= set()
        )


def test_a_name_with_a_hyphen_is_a_name_unless_its_parts_are() -> None:
    assert read(network(("x", ["batch-size", 4])), dims={"batch-size": 3}).input_shapes == {
        "x": (3, 4)
    }
    proto = network(("x", [1, "a"]), ("y", [1, "a-1"]))
    assert read(proto, dims={"a": 5}).input_shapes == {"x": (1, 5), "y": (1, 4)}


@pytest.mark.parametrize("name", ["N", "batch", "Batch_Size", "bs", "decoder_batch_1", "b"])
def test_batch_like_names(name: str) -> None:
    assert is_batch_like(name)


@pytest.mark.parametrize("name", ["seq", "T", "num_boxes", "bytes", "nodes", "batch_plus_1"])
def test_other_names_are_not_batch_like(name: str) -> None:
    assert not is_batch_like(name)


@given(st.integers(-(2**63), 2**63 - 1))
def test_negative_sizes_are_unknown_and_others_stand(size: int) -> None:
    assert normal_dim(size) == (None if size < 0 else size)
