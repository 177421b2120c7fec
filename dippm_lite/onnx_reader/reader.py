"""``read_graph``: an ONNX file to a graph with every dimension bound."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, SupportsIndex

from dippm_lite.caveats import Caveat
from dippm_lite.errors import InputError
from dippm_lite.graph import Graph, ValueKind
from dippm_lite.onnx_reader.binding import Request, bind, say_bound
from dippm_lite.onnx_reader.decode_model import decode_model
from dippm_lite.onnx_reader.decoding import Decoder
from dippm_lite.onnx_reader.finish import Frame, finish
from dippm_lite.onnx_reader.functions import function_table
from dippm_lite.onnx_reader.inputs import declared_input, dimension_names, input_value, true_inputs
from dippm_lite.onnx_reader.limits import DEFAULT_LIMITS, Limits
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.notes import Notes, Topic
from dippm_lite.onnx_reader.order import reads
from dippm_lite.onnx_reader.proto import GraphDef, ModelDef, TypeDef
from dippm_lite.onnx_reader.scope import Scope
from dippm_lite.onnx_reader.sniff import what_it_is
from dippm_lite.onnx_reader.source import Source, open_source
from dippm_lite.onnx_reader.walk import Walker
from dippm_lite.onnx_reader.wire import MalformedError

__all__ = ["NEWEST_IR", "NEWEST_OPSET", "ReadModel", "read_graph"]

NEWEST_OPSET = 28
"""Default operator set that the shape rules were written against (onnx 1.23)."""

NEWEST_IR = 14
"""``onnx.IR_VERSION`` of onnx 1.23."""


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A model as it was read.

    ``batch_size`` is what ``--batch`` gave or what the leading dimension came to; None where the
    inputs have no common one. ``input_shapes`` has the inputs whose shape is known; ``opsets``
    maps domains to versions, ``""`` being the default one.
    """

    graph: Graph
    batch_size: int | None
    input_shapes: Mapping[str, tuple[int, ...]]
    ir_version: int
    opsets: Mapping[str, int]
    producer: str
    caveats: tuple[Caveat, ...]


def read_graph(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    batch_size: int | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> ReadModel:
    """Read an ONNX file without its weights and bind its dimensions.

    Args:
        source: a path, the bytes of a file, or an object open for reading in binary.
        batch_size: size of the free leading dimension of the inputs; where that is the only free
            one, it may be left out and 1 is assumed, with a caveat.
        dims: sizes of named dimensions, wherever the names occur.
        shapes: whole shapes of inputs, by input name.
        limits: what the reader may hold.

    Raises:
        InputError: the file can't be read, is no ONNX model or beyond a limit; a dimension stays
            free, or a binding contradicts the model. The text names the file and what to do.
    """
    with open_source(source, limits) as opened:
        model, damaged = _decoded(opened, limits)
        try:
            request = _request(batch_size, dims or {}, shapes or {})
            return _read(opened, model, damaged, request, limits)
        except InputError as error:
            raise InputError(f"{opened.label}: {error}") from None


def _decoded(opened: Source, limits: Limits) -> tuple[ModelDef, int]:
    """The model, and how many of its names are damaged."""
    buffer = opened.buffer
    decoder = Decoder(buffer, limits)
    reason = "it has no graph"
    try:
        model = decode_model(decoder, ((0, len(buffer)),))
        if model.graph is not None:
            return model, decoder.damaged_texts
    except MalformedError as error:
        reason = str(error)
    except InputError as error:
        sentence = what_it_is(buffer, limits)
        raise InputError(f"{opened.label}{f' {sentence}' if sentence else f': {error}'}") from None
    sentence = what_it_is(buffer, limits) or (
        f"is not an ONNX model, truncated or corrupt ({reason}): download or export it again"
    )
    raise InputError(f"{opened.label} {sentence}")


def _request(
    batch_size: int | None, dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> Request:
    return Request(
        None if batch_size is None else _whole("batch size", batch_size),
        {name: _whole(f"dimension {quoted(name)}", size) for name, size in dims.items()},
        {
            name: tuple(_whole(f"the shape of {quoted(name)}", size) for size in shape)
            for name, shape in shapes.items()
        },
    )


def _whole(what: str, size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, SupportsIndex):
        raise InputError(f"{what}: {size!r} is not a whole number")
    return operator.index(size)


def _read(
    opened: Source, model: ModelDef, damaged: int, request: Request, limits: Limits
) -> ReadModel:
    graph = model.graph
    if graph is None or not graph.nodes:
        raise InputError("the graph has no nodes, so there is nothing to predict")
    notes = Notes()
    _remark_on_file(model, damaged, notes)
    inputs = true_inputs(model, graph, notes)
    read = {name for node in graph.nodes for name in reads(node)}
    read.update(info.name for info in graph.outputs)
    binding = bind([declared_input(info, read) for info in inputs], dimension_names(graph), request)
    walker = Walker(opened, function_table(model.functions), binding, limits, notes)
    scope = Scope(model.opsets)
    scope.declare_graph(graph)
    for info in inputs:
        value = input_value(info, binding, limits)
        scope.values[info.name] = walker.draft.add(value)
    numbers = tuple(scope.values.values())
    walker.follow(graph.nodes, scope, 1)
    frame = Frame(
        graph.name or opened.stem,
        model.opsets.get("", 0),
        numbers,
        _outputs(walker, scope, graph, notes),
        say_bound(binding) if binding.had_free else None,
    )
    finished, caveats = finish(walker.draft, frame, notes)
    return ReadModel(
        finished,
        binding.batch_size,
        binding.shapes,
        model.ir_version,
        model.opsets,
        model.producer,
        (*((binding.assumed,) if binding.assumed else ()), *caveats, *notes.caveats()),
    )


def _remark_on_file(model: ModelDef, damaged: int, notes: Notes) -> None:
    opset = model.opsets.get("", 0)
    if opset > NEWEST_OPSET:
        notes.remark(f"opset {opset} is newer than {NEWEST_OPSET}: read by the newest known rules")
    if model.ir_version > NEWEST_IR:
        notes.remark(f"IR version {model.ir_version} is newer than {NEWEST_IR}: read all the same")
    if model.has_training:
        notes.remark("the file has training information: only the inference graph is read")
    if damaged:
        notes.remark(f"{damaged} names are not UTF-8: shown with \\x escapes")


def _outputs(walker: Walker, scope: Scope, graph: GraphDef, notes: Notes) -> tuple[int, ...]:
    found = []
    for info in graph.outputs:
        if not info.name or not scope.sees(info.name):
            notes.count(Topic.MISSING_OUTPUT, info.name)
            continue
        index = walker.find(scope, info.name)
        value = walker.draft.values[index]
        if value.kind is not ValueKind.INPUT and not value.in_file:
            value.name = info.name  # made in a branch or function under an inner name
        value.is_tensor = value.is_tensor and not _is_map(info.type)
        found.append(index)
    return tuple(found)


def _is_map(declared: TypeDef) -> bool:
    while declared.kind in ("sequence", "optional") and declared.element is not None:
        declared = declared.element
    return declared.kind in ("map", "opaque")
