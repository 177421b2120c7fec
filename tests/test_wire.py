"""The decoder against protobuf's own parser: the same messages, and no crash on any bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
import zoo
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, TensorProto

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import DEFAULT_LIMITS, Limits, read_graph
from dippm_lite.onnx_reader.content import stored_tensor
from dippm_lite.onnx_reader.decode_model import decode_model
from dippm_lite.onnx_reader.decoding import Decoder
from dippm_lite.onnx_reader.proto import ModelDef
from dippm_lite.onnx_reader.wire import MalformedError, fields, packed_varints, unpack_varints

# ---- random messages, built with protobuf's classes

names = st.text(max_size=6)
int64s = st.integers(-(2**63), 2**63 - 1)
sizes = st.integers(0, 5)
floats = st.floats(width=32, allow_nan=False)
FILLED = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 19, 21, 22, 23)


@st.composite
def tensors(draw: Any) -> TensorProto:
    tensor = TensorProto(name=draw(names), data_type=draw(st.sampled_from(range(28))))
    tensor.dims.extend(draw(st.lists(sizes, max_size=3)))
    form = draw(st.sampled_from(["raw", "int32", "int64", "float", "double", "uint64", "none"]))
    if form == "raw":
        tensor.raw_data = draw(st.binary(max_size=40))
    elif form == "int32":
        tensor.int32_data.extend(draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5)))
    elif form == "int64":
        tensor.int64_data.extend(draw(st.lists(int64s, max_size=5)))
    elif form == "float":
        tensor.float_data.extend(draw(st.lists(floats, max_size=5)))
    elif form == "double":
        tensor.double_data.extend(draw(st.lists(floats, max_size=5)))
    elif form == "uint64":
        tensor.uint64_data.extend(draw(st.lists(st.integers(0, 2**64 - 1), max_size=5)))
    if draw(st.booleans()):
        tensor.data_location = TensorProto.EXTERNAL
        for key in draw(st.lists(st.sampled_from(["location", "offset", "length", "other"]))):
            tensor.external_data.add(key=key, value=draw(names))
    return tensor


@st.composite
def types(draw: Any, depth: int = 0) -> onnx.TypeProto:
    kinds = ["tensor", "sparse", "opaque", "unset"]
    kind = draw(st.sampled_from(kinds if depth > 2 else [*kinds, "sequence", "optional", "map"]))
    made = onnx.TypeProto()
    if kind in ("tensor", "sparse"):
        member = made.tensor_type if kind == "tensor" else made.sparse_tensor_type
        member.elem_type = draw(st.integers(0, 30))
        if draw(st.booleans()):
            member.shape.SetInParent()
            for dim in draw(st.lists(st.one_of(int64s, names, st.none()), max_size=4)):
                added = member.shape.dim.add()
                if isinstance(dim, int):
                    added.dim_value = dim
                elif dim is not None:
                    added.dim_param = dim
    elif kind == "opaque":
        made.opaque_type.name = draw(names)
    elif kind == "map":
        made.map_type.key_type = 7
        made.map_type.value_type.CopyFrom(draw(types(depth + 1)))
    elif kind != "unset":
        member = made.sequence_type if kind == "sequence" else made.optional_type
        member.elem_type.CopyFrom(draw(types(depth + 1)))
    return made


@st.composite
def infos(draw: Any) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=draw(names), type=draw(types()), doc_string=draw(names))


@st.composite
def attributes(draw: Any, depth: int) -> AttributeProto:
    made = AttributeProto(name=draw(names), doc_string="ignored")
    if draw(st.integers(0, 9)) == 0:
        made.ref_attr_name = "outer"
        made.type = AttributeProto.INT
        return made
    kind = draw(st.sampled_from(range(1, 13)))
    made.type = kind
    if kind == AttributeProto.FLOAT:
        made.f = draw(floats)
    elif kind == AttributeProto.INT:
        made.i = draw(int64s)
    elif kind == AttributeProto.STRING:
        made.s = draw(st.binary(max_size=5))
    elif kind == AttributeProto.TENSOR:
        made.t.CopyFrom(draw(tensors()))
    elif kind == AttributeProto.GRAPH and depth < 2:
        made.g.CopyFrom(draw(graphs(depth + 1)))
    elif kind == AttributeProto.FLOATS:
        made.floats.extend(draw(st.lists(floats, max_size=4)))
    elif kind == AttributeProto.INTS:
        made.ints.extend(draw(st.lists(int64s, max_size=4)))
    elif kind == AttributeProto.STRINGS:
        made.strings.extend(draw(st.lists(st.binary(max_size=3), max_size=3)))
    elif kind == AttributeProto.TENSORS:
        made.tensors.extend(draw(st.lists(tensors(), max_size=2)))
    elif kind == AttributeProto.GRAPHS and depth < 2:
        made.graphs.extend(draw(st.lists(graphs(depth + 1), max_size=2)))
    elif kind == AttributeProto.SPARSE_TENSOR:
        made.sparse_tensor.values.CopyFrom(draw(tensors()))
        made.sparse_tensor.dims.extend(draw(st.lists(sizes, max_size=3)))
    return made


@st.composite
def nodes(draw: Any, depth: int) -> onnx.NodeProto:
    return onnx.NodeProto(
        op_type=draw(names),
        name=draw(names),
        domain=draw(st.sampled_from(["", "ai.onnx", "com.acme"])),
        overload=draw(names),
        input=draw(st.lists(names, max_size=3)),
        output=draw(st.lists(names, max_size=3)),
        attribute=draw(st.lists(attributes(depth), max_size=2)),
        doc_string=draw(names),
    )


@st.composite
def graphs(draw: Any, depth: int = 0) -> onnx.GraphProto:
    made = onnx.GraphProto(
        name=draw(names),
        node=draw(st.lists(nodes(depth), max_size=3 - depth)),
        initializer=draw(st.lists(tensors(), max_size=2)),
        input=draw(st.lists(infos(), max_size=2)),
        output=draw(st.lists(infos(), max_size=2)),
        value_info=draw(st.lists(infos(), max_size=1)),
    )
    for values in draw(st.lists(tensors(), max_size=1)):
        made.sparse_initializer.add(values=values, dims=[7, 8])
    return made


@st.composite
def models(draw: Any) -> onnx.ModelProto:
    made = onnx.ModelProto(
        ir_version=draw(int64s), producer_name=draw(names), producer_version=draw(names)
    )
    made.graph.CopyFrom(draw(graphs()))
    for domain in draw(st.lists(names, max_size=2, unique=True)):
        made.opset_import.add(domain=domain, version=draw(int64s))
    if draw(st.booleans()):
        made.functions.add(
            name=draw(names),
            domain=draw(names),
            input=draw(st.lists(names, max_size=2)),
            output=draw(st.lists(names, max_size=2)),
            attribute=draw(st.lists(names, max_size=2)),
            attribute_proto=draw(st.lists(attributes(2), max_size=2)),
            node=draw(st.lists(nodes(2), max_size=2)),
        )
    if draw(st.booleans()):
        made.training_info.add()
    return made


# ---- what a message says, as plain values, from either side


def domain_of(text: str) -> str:
    return "" if text == "ai.onnx" else text


def tensor_facts(proto: TensorProto) -> tuple[Any, ...]:
    external = None
    if proto.data_location == TensorProto.EXTERNAL:
        found = {entry.key: entry.value for entry in proto.external_data}
        external = tuple(found.get(key, "") for key in ("location", "offset", "length"))
    raw = proto.raw_data if proto.HasField("raw_data") else None
    return (proto.name, proto.data_type, tuple(proto.dims), raw, external)


def decoded_tensor_facts(buffer: bytes, tensor: Any) -> tuple[Any, ...]:
    external = tensor.external and (
        tensor.external.location,
        tensor.external.offset,
        tensor.external.length,
    )
    raw = None if tensor.raw is None else buffer[slice(*tensor.raw)]
    return (tensor.name, tensor.data_type, tensor.dims, raw, external)


def type_facts(proto: onnx.TypeProto) -> tuple[Any, ...]:
    member = proto.WhichOneof("value")
    kind = "unset" if member is None else member.removesuffix("_type").removesuffix("_tensor")
    if kind in ("tensor", "sparse"):
        inner = getattr(proto, member)
        dims = None
        if inner.HasField("shape"):
            dims = tuple(
                getattr(dim, dim.WhichOneof("value")) if dim.WhichOneof("value") else None
                for dim in inner.shape.dim
            )
        return (kind, inner.elem_type, dims)
    if kind in ("sequence", "optional"):
        return (kind, type_facts(getattr(proto, member).elem_type))
    return (kind, type_facts(proto.map_type.value_type)) if kind == "map" else (kind,)


def decoded_type_facts(declared: Any) -> tuple[Any, ...]:
    if declared.kind in ("tensor", "sparse"):
        return (declared.kind, declared.elem_type, declared.dims)
    if declared.kind in ("sequence", "optional", "map"):
        inner = ("unset",) if declared.element is None else decoded_type_facts(declared.element)
        return (declared.kind, inner)
    return (declared.kind,)


def text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def attribute_facts(proto: AttributeProto) -> tuple[Any, ...]:
    if proto.ref_attr_name:
        return (proto.name, proto.type, proto.ref_attr_name)
    strings = [text_or_bytes(item) for item in proto.strings]
    if any(isinstance(item, bytes) for item in strings):
        strings = list(proto.strings)
    content = {
        AttributeProto.FLOAT: lambda: proto.f,
        AttributeProto.INT: lambda: proto.i,
        AttributeProto.STRING: lambda: text_or_bytes(proto.s),
        AttributeProto.TENSOR: lambda: tensor_facts(proto.t),
        AttributeProto.GRAPH: lambda: graph_facts(proto.g),
        AttributeProto.FLOATS: lambda: tuple(proto.floats),
        AttributeProto.INTS: lambda: tuple(proto.ints),
        AttributeProto.STRINGS: lambda: tuple(strings),
        AttributeProto.TENSORS: lambda: tuple(map(tensor_facts, proto.tensors)),
        AttributeProto.GRAPHS: lambda: tuple(map(graph_facts, proto.graphs)),
        AttributeProto.SPARSE_TENSOR: lambda: (
            tensor_facts(proto.sparse_tensor.values),
            tuple(proto.sparse_tensor.dims),
        ),
        AttributeProto.SPARSE_TENSORS: lambda: (),
    }[proto.type]()
    return (proto.name, proto.type, content)


def decoded_attribute_facts(buffer: bytes, attribute: Any) -> tuple[Any, ...]:
    value = attribute.value
    if attribute.ref:
        return (attribute.name, attribute.type, attribute.ref)
    if attribute.type == AttributeProto.TENSOR:
        value = decoded_tensor_facts(buffer, value)
    elif attribute.type == AttributeProto.TENSORS:
        value = tuple(decoded_tensor_facts(buffer, tensor) for tensor in value)
    elif attribute.type == AttributeProto.GRAPH:
        value = decoded_graph_facts(buffer, value)
    elif attribute.type == AttributeProto.GRAPHS:
        value = tuple(decoded_graph_facts(buffer, inner) for inner in value)
    elif attribute.type == AttributeProto.SPARSE_TENSOR:
        value = (decoded_tensor_facts(buffer, value.values), value.dims)
    return (attribute.name, attribute.type, value)


def node_facts(proto: onnx.NodeProto) -> tuple[Any, ...]:
    return (
        (proto.op_type, domain_of(proto.domain), proto.name, proto.overload),
        tuple(proto.input),
        tuple(proto.output),
        tuple(map(attribute_facts, proto.attribute)),
    )


def decoded_node_facts(buffer: bytes, node: Any) -> tuple[Any, ...]:
    return (
        (node.op_type, node.domain, node.name, node.overload),
        node.inputs,
        node.outputs,
        tuple(decoded_attribute_facts(buffer, attribute) for attribute in node.attributes),
    )


def graph_facts(proto: onnx.GraphProto) -> tuple[Any, ...]:
    return (
        proto.name,
        tuple(map(node_facts, proto.node)),
        tuple(map(tensor_facts, proto.initializer)),
        tuple((tensor_facts(s.values), tuple(s.dims)) for s in proto.sparse_initializer),
        *(
            tuple((info.name, type_facts(info.type)) for info in group)
            for group in (proto.input, proto.output, proto.value_info)
        ),
    )


def decoded_graph_facts(buffer: bytes, graph: Any) -> tuple[Any, ...]:
    return (
        graph.name,
        tuple(decoded_node_facts(buffer, node) for node in graph.nodes),
        tuple(decoded_tensor_facts(buffer, tensor) for tensor in graph.initializers),
        tuple((decoded_tensor_facts(buffer, s.values), s.dims) for s in graph.sparse_initializers),
        *(
            tuple((info.name, decoded_type_facts(info.type)) for info in group)
            for group in (graph.inputs, graph.outputs, graph.value_info)
        ),
    )


def model_facts(proto: onnx.ModelProto) -> tuple[Any, ...]:
    return (
        proto.ir_version,
        f"{proto.producer_name} {proto.producer_version}".strip(),
        {domain_of(entry.domain): entry.version for entry in proto.opset_import},
        graph_facts(proto.graph),
        tuple(
            (
                (domain_of(f.domain), f.name, f.overload),
                tuple(f.input),
                tuple(f.output),
                tuple(f.attribute),
                tuple(map(attribute_facts, f.attribute_proto)),
                tuple(map(node_facts, f.node)),
            )
            for f in proto.functions
        ),
        bool(proto.training_info),
    )


def decoded_model_facts(buffer: bytes, model: ModelDef) -> tuple[Any, ...]:
    return (
        model.ir_version,
        model.producer,
        dict(model.opsets),
        decoded_graph_facts(buffer, model.graph),
        tuple(
            (
                (f.domain, f.name, f.overload),
                f.inputs,
                f.outputs,
                f.attributes,
                tuple(decoded_attribute_facts(buffer, attribute) for attribute in f.defaults),
                tuple(decoded_node_facts(buffer, node) for node in f.nodes),
            )
            for f in model.functions
        ),
        model.has_training,
    )


def decode(content: bytes) -> ModelDef:
    return decode_model(Decoder(content, DEFAULT_LIMITS), ((0, len(content)),))


# ---- the tests


@settings(max_examples=150, deadline=None)
@given(models())
def test_any_model_decodes_as_protobuf_decodes_it(proto: onnx.ModelProto) -> None:
    content = proto.SerializeToString()
    assert decoded_model_facts(content, decode(content)) == model_facts(proto)


@settings(max_examples=50, deadline=None)
@given(models(), models())
def test_two_messages_in_a_row_are_merged_as_protobuf_merges_them(
    first: onnx.ModelProto, second: onnx.ModelProto
) -> None:
    content = first.SerializeToString() + second.SerializeToString()
    proto = onnx.ModelProto.FromString(content)
    assert decoded_model_facts(content, decode(content)) == model_facts(proto)


@settings(max_examples=150, deadline=None)
@given(tensors())
def test_small_contents_equal_what_onnx_reads(proto: TensorProto) -> None:
    proto.ClearField("data_location")
    content = onnx.ModelProto(graph=onnx.GraphProto(initializer=[proto])).SerializeToString()
    graph = decode(content).graph
    assert graph is not None
    tensor, missing = stored_tensor(content, None, graph.initializers[0])
    try:
        expected = onnx.numpy_helper.to_array(proto)
    except (ValueError, TypeError, KeyError):  # too few values, or a type that numpy lacks
        return
    if tensor.data is not None:
        assert tensor.data.shape == expected.shape
        np.testing.assert_array_equal(tensor.data.astype(np.float64), expected.astype(np.float64))
    else:
        assert (
            missing
            or not expected.size
            or tensor.dtype.value in ("STRING", "UNDEFINED")
            or (tensor.dtype.value.startswith("COMPLEX") or tensor.dtype.is_quantized)
        )


@pytest.mark.parametrize("number", FILLED)
def test_content_of_every_type_is_read_from_its_own_field_and_from_raw_data(number: int) -> None:
    values = np.array([0, 1, 2, 3, 1], np.float64)
    proto = onnx.helper.make_tensor("t", number, [5], values.astype(int).tolist())
    as_field = proto.SerializeToString()
    as_raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(proto), "t")
    as_raw.data_type = number
    for tensor in (as_field, as_raw.SerializeToString()):
        content = onnx.ModelProto(
            graph=onnx.GraphProto(initializer=[TensorProto.FromString(tensor)])
        ).SerializeToString()
        graph = decode(content).graph
        assert graph is not None
        found, _ = stored_tensor(content, None, graph.initializers[0])
        assert found.data is not None
        expected = onnx.numpy_helper.to_array(proto).astype(np.float64)
        np.testing.assert_array_equal(found.data.astype(np.float64), expected)


@pytest.mark.parametrize(
    "number",
    [
        TensorProto.FLOAT8E4M3FN,
        TensorProto.FLOAT8E4M3FNUZ,
        TensorProto.FLOAT8E5M2,
        TensorProto.FLOAT8E5M2FNUZ,
        TensorProto.FLOAT8E8M0,
        TensorProto.FLOAT4E2M1,
        TensorProto.BFLOAT16,
        TensorProto.INT4,
        TensorProto.UINT4,
        TensorProto.INT2,
        TensorProto.UINT2,
    ],
)
def test_every_code_of_the_narrow_types_means_what_onnx_says(number: int) -> None:
    for start in range(0, 256, 32):
        raw = bytes(range(start, start + 32))
        count = min(64, 32 * 8 // {16: 16, 21: 4, 22: 4, 23: 4, 25: 2, 26: 2}.get(number, 8))
        proto = TensorProto(name="t", data_type=number, dims=[count])
        proto.raw_data = raw[: count * {16: 2}.get(number, 1)] if count < 64 else raw
        if number in (TensorProto.INT2, TensorProto.UINT2):
            proto.raw_data = raw[:16]
        content = onnx.ModelProto(graph=onnx.GraphProto(initializer=[proto])).SerializeToString()
        graph = decode(content).graph
        assert graph is not None
        found, _ = stored_tensor(content, None, graph.initializers[0])
        assert found.data is not None
        expected = onnx.numpy_helper.to_array(proto).astype(np.float64)
        np.testing.assert_array_equal(found.data.astype(np.float64), expected)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_varints_survive_packing(values: list[int]) -> None:
    packed = packed_varints(values)
    assert list(unpack_varints(packed, (0, len(packed)))) == values


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        (b"\x0a\x05ab", "5 bytes long, but only 2 follow"),
        (b"\x08" + b"\xff" * 11, "longer than 10 bytes"),
        (b"\x08", "breaks off"),
        (b"\x00\x01", "field number 0"),
        (b"\x0e", "unknown wire type 6"),
        (b"\x0c", "unknown wire type 4"),
        (b"\x0b\x14", "unbalanced group"),
        (b"\x0b" * 200, "nested too deeply"),
        (b"\x0d\x00", "breaks off"),
    ],
)
def test_broken_bytes_are_named(content: bytes, clause: str) -> None:
    with pytest.raises(MalformedError, match=clause):
        list(fields(content, ((0, len(content)),)))


def test_unknown_fields_and_groups_are_skipped() -> None:
    content = b"\x08\x07" + b"\xf3\x01\x08\x01\x12\x02ab\xf4\x01" + b"\xf9\x01" + b"\0" * 8
    assert decode(content).ir_version == 7
    assert onnx.ModelProto.FromString(content).ir_version == 7


SEEDS: Mapping[str, bytes] = {
    name: proto.SerializeToString()
    for name, proto in {
        "cnn": zoo.small_cnn(),
        "shapes": zoo.shape_arithmetic(),
        "cache": zoo.kv_cache(),
        "if": zoo.branches(None),
        "loop": zoo.loop(3, scans=True),
        "growing": zoo.loop(4, grows=True),
    }.items()
}


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_are_an_input_error(content: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_graph(content)
    assert "\n" not in str(caught.value)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(sorted(SEEDS)),
    st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=4), st.integers(0, 3))),
)
def test_damaged_models_are_read_or_an_input_error(
    name: str, edits: list[tuple[int, bytes, int]]
) -> None:
    content = SEEDS[name]
    for position, replacement, removed in edits:
        position %= len(content)
        content = content[:position] + replacement + content[position + removed :]
    try:
        read_graph(content)
    except InputError as error:
        assert "\n" not in str(error)


@settings(max_examples=120, deadline=None)
@given(models())
def test_models_of_nonsense_are_read_or_an_input_error(proto: onnx.ModelProto) -> None:
    try:
        read_graph(proto.SerializeToString())
    except InputError as error:
        assert "\n" not in str(error)


@given(st.sampled_from(sorted(SEEDS)), st.integers(1, 2000))
def test_what_protobuf_refuses_is_refused(name: str, cut: int) -> None:
    content = SEEDS[name][: -(cut % len(SEEDS[name])) or None]
    try:
        onnx.ModelProto.FromString(content)
    except DecodeError:
        with pytest.raises(InputError):
            read_graph(content)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(max_nodes=4), "more than 4 nodes"),
        (Limits(max_tensors=3), "more than 3 initializers"),
        (Limits(max_items=20), "than the reader holds|more than 20 names"),
        (Limits(max_text_bytes=30), "more than the reader holds"),
    ],
)
def test_a_file_beyond_a_limit_is_refused(limits: Limits, text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_graph(zoo.small_cnn().SerializeToString(), limits=limits)


def delimited(field: int, content: bytes) -> bytes:
    return packed_varints((field << 3 | 2, len(content))) + content


def nested_ifs(depth: int) -> bytes:
    """A model with an If in an If: by hand, as protobuf refuses to write past 100 messages."""
    inner = zoo.graph([zoo.node("Relu", ["x"], ["y"])], [], [zoo.value("y", None)])
    small = inner.SerializeToString()
    content = small
    for _ in range(depth):
        branches = b"".join(
            delimited(5, delimited(1, name) + delimited(6, branch) + packed_varints((160, 5)))
            for name, branch in ((b"then_branch", content), (b"else_branch", small))
        )
        call = delimited(1, b"c") + delimited(2, b"y") + delimited(4, b"If") + branches
        content = delimited(1, call) + delimited(12, zoo.value("y", None).SerializeToString())
    inputs = zoo.value("x", [4]), zoo.value("c", [], zoo.BOOL)
    content += b"".join(delimited(11, info.SerializeToString()) for info in inputs)
    return delimited(7, content) + delimited(8, packed_varints((16, 17)))


def test_subgraphs_nested_too_deep_are_refused() -> None:
    assert [node.op_type for node in read_graph(nested_ifs(20)).graph.nodes] == ["Relu"]
    with pytest.raises(InputError, match="subgraphs are nested more than 32 deep"):
        read_graph(nested_ifs(60))


def test_types_nested_too_deep_are_refused() -> None:
    deep = onnx.TypeProto()
    for _ in range(40):
        outer = onnx.TypeProto()
        outer.sequence_type.elem_type.CopyFrom(deep)
        deep = outer
    proto = zoo.model([zoo.node("Relu", ["x"], ["y"])])
    proto.graph.input.append(onnx.ValueInfoProto(name="x", type=deep))
    with pytest.raises(InputError, match="types are nested more than 32 deep"):
        read_graph(proto.SerializeToString())
