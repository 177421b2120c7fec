"""What can be said of a model without any learned model: graph, kernels, memory schedule."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from dippm_lite.caveats import Caveat, NothingOnGpu, UnknownOps
from dippm_lite.execution import Precision, Runtime
from dippm_lite.graph import DType, Graph, TensorSpec
from dippm_lite.kernels import Kernel
from dippm_lite.liveness import Liveness, peak, weight_sizes
from dippm_lite.lowering import Lowering, lower
from dippm_lite.onnx_reader import ReadModel, read_graph
from dippm_lite.op_costs import find_rule, graph_macs, graph_params, graph_weight_bytes
from dippm_lite.prediction import Arithmetic, InputTensor, StaticAnalysis

__all__ = ["Analysis", "analyse"]


@dataclass(frozen=True)
class Analysis:
    """A model read, bound and lowered for one runtime and precision.

    ``model`` is the file's path, or the graph's name where there is no file. ``weight_sizes`` are
    the bytes of each weight in the run-time precision.
    """

    model: str
    graph: Graph
    inputs: tuple[InputTensor, ...]
    batch_size: int
    runtime: Runtime
    precision: Precision
    arithmetic: Arithmetic
    kernels: tuple[Kernel, ...]
    liveness: Liveness
    weight_sizes: tuple[int, ...]
    static: StaticAnalysis
    caveats: tuple[Caveat, ...]


def analyse(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    batch_size: int | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    runtime: Runtime = Runtime.PYTORCH,
    precision: Precision = Precision.AUTO,
) -> Analysis:
    """Read a model, bind its dimensions and lower it to kernels.

    Args:
        source: a path, the bytes of an ONNX file, or a binary file object.
        batch_size: the leading dimension of the inputs, where it is free.
        dims: sizes of named free dimensions.
        shapes: whole shapes of inputs by name.
        runtime, precision: what to lower for.

    Raises:
        InputError: the file or a binding can't be used; the text says what to do.
    """
    read = read_graph(source, batch_size=batch_size, dims=dims, shapes=shapes)
    return analyse_graph(read, _label(source, read.graph), runtime, precision)


def analyse_graph(read: ReadModel, model: str, runtime: Runtime, precision: Precision) -> Analysis:
    """Lower a model that was read before; ``model`` is what to call it."""
    graph = read.graph
    lowered = lower(graph, runtime, precision)
    liveness = peak(graph, lowered.kernels, runtime, lowered.size_of)
    ops = Counter(node.op_type for node in graph.nodes)
    inputs = tuple(
        InputTensor(value.name, value.spec.shape, value.spec.dtype.value)
        for value in (graph.values[index] for index in graph.inputs)
        if value.spec is not None
    )
    return Analysis(
        model=model,
        graph=graph,
        inputs=inputs,
        batch_size=read.batch_size or _leading(inputs),
        runtime=runtime,
        precision=precision,
        arithmetic=Arithmetic(*lowered.arithmetic),
        kernels=lowered.kernels,
        liveness=liveness,
        weight_sizes=_weight_sizes(graph, lowered),
        static=StaticAnalysis(
            macs=graph_macs(graph),
            params=graph_params(graph),
            weight_bytes=graph_weight_bytes(graph),
            peak_activation_bytes=liveness.peak_bytes,
            nodes=len(graph.nodes),
            kernels=sum(kernel.repeat for kernel in lowered.kernels),
            ops=dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        ),
        caveats=read.caveats + _cost_caveats(graph, lowered),
    )


def _weight_sizes(graph: Graph, lowered: Lowering) -> tuple[int, ...]:
    """Weights in the run-time precision; autocast keeps the single-precision ones and caches a
    half-precision copy of each matrix and filter."""
    stored = weight_sizes(graph, lowered.size_of)
    if not lowered.numerics.autocast:
        return stored
    return stored + weight_sizes(graph, lambda spec: 2 * spec.elements * _is_cast(spec))


def _is_cast(spec: TensorSpec) -> bool:
    return spec.dtype is DType.FLOAT and spec.rank > 1


def _cost_caveats(graph: Graph, lowered: Lowering) -> tuple[Caveat, ...]:
    """Operators without a cost rule, and the case that no kernel is launched at all. Unknown
    shapes are the reader's to report."""
    unknown = Counter(
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for kernel in lowered.kernels
        if kernel.unknown
        for node in (graph.nodes[index] for index in kernel.nodes)
        if find_rule(node) is None
    )
    caveats: list[Caveat] = [UnknownOps(tuple(unknown.most_common()))] if unknown else []
    if not lowered.kernels:
        caveats.append(NothingOnGpu(tuple(dict.fromkeys(node.op_type for node in graph.nodes))))
    return tuple(caveats)


def _label(source: str | os.PathLike[str] | bytes | BinaryIO, graph: Graph) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return graph.name or "model"


def _leading(inputs: tuple[InputTensor, ...]) -> int:
    """The batch of a model whose inputs share no free leading dimension: that of the first input
    which has one; 1 for models that take vectors and scalars."""
    return next((tensor.shape[0] for tensor in inputs if len(tensor.shape) > 1), 1) or 1
