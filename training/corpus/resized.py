"""A record's model read at another resolution than the one it was exported at."""

from __future__ import annotations

import onnx

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import ReadModel, read_graph
from dippm_lite.op_costs import graph_macs
from training.corpus.records import Record

__all__ = ["own_size", "read_resized", "resize"]

TOLERANCE = 0.1
"""How far from proportional to the image's area the work may grow: classifiers behind the pooling
don't grow, borders of strided windows round."""


def own_size(record: Record) -> int | None:
    """Side of the square image that is the network's only input; None for other networks."""
    if len(record.inputs) != 1:
        return None
    _, shape, dtype = record.inputs[0]
    square = len(shape) == 3 and shape[1] == shape[2]
    return int(shape[1]) if square and dtype.startswith("float") else None


def resize(model: bytes, size: int) -> bytes:
    """The model with an input of ``size`` by ``size`` pixels, and no other declared shape."""
    parsed = onnx.ModelProto.FromString(model)
    for side in parsed.graph.input[0].type.tensor_type.shape.dim[2:]:
        side.dim_value = size
    del parsed.graph.value_info[:]
    for result in parsed.graph.output:
        result.type.tensor_type.ClearField("shape")
    return parsed.SerializeToString()


def read_resized(
    record: Record, model: bytes, own: ReadModel, size: int, batch: int | None
) -> ReadModel | None:
    """The model at ``size``, or None where its own size is built into it.

    Position embeddings, windows and reshapes to constant sizes contradict another resolution; the
    reader then refuses the model, or leaves shapes unresolved that it resolved before. Whatever
    passes must also do work in proportion to the area.

    Args:
        record, model: as :meth:`training.corpus.records.Corpus.models` gives them.
        own: the model at its own size and the same batch.
    """
    side = own_size(record)
    if side is None:
        return None
    try:
        other = read_graph(resize(model, size), batch_size=batch)
    except InputError:
        return None
    if len(other.caveats) > len(own.caveats):
        return None
    area = (size / side) ** 2
    growth = graph_macs(other.graph) / max(graph_macs(own.graph), 1) / area
    return other if 1 - TOLERANCE < growth < 1 + TOLERANCE else None
