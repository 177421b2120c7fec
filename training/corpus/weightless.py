"""Export torch modules to ONNX files that hold no weights: dimensions and element types only.

Two exporters write the files: ``torchscript`` (``torch.onnx.export(dynamo=False)``) and ``dynamo``
(``dynamo=True``). Weights never reach the protobuf, so neither its 2 GiB limit nor the machine's
memory bounds the size of a model: a parameter is one number with stride 0 wherever a module is
built by :func:`hollow`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx
import torch
from torch.overrides import TorchFunctionMode

from training.corpus.shapes_only import ShapesOnly, TracedConvolution

__all__ = ["EXPORTERS", "WEIGHTS_FILE", "export", "hollow", "strip_metadata", "strip_weights"]

WEIGHTS_FILE = "weights.bin"
"""Where a stripped initializer says that its data is; no such file exists."""

KEPT_INTEGERS = 1024
"""Longest integer tensor whose content is kept: shapes, axes, pads, positions of a token."""

KEPT_NUMBERS = 8
"""Longest other tensor whose content is kept: scalars of patterns, scales of a Resize."""

ATTENTION_OPSET = 14
"""First opset for which the TorchScript exporter knows ``scaled_dot_product_attention``."""

_INTEGERS = frozenset({onnx.TensorProto.INT64, onnx.TensorProto.INT32})
_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
    "string_data",
)  # fmt: skip


def hollow(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Build a module in evaluation mode whose parameters take no memory.

    ``build`` runs on the meta device; each parameter then becomes one number with stride 0 in
    every dimension, a tied one still being one tensor. No two hold the same number, since
    exporters merge initializers of equal content. Buffers without content become zeros, which are
    valid as indices. A constructor that needs numbers (``.item()``) is run again on the CPU, and
    its buffers are kept.

    Raises:
        whatever ``build`` raises on the CPU.
    """
    try:
        with torch.device("meta"), _NoInitialisation():
            module = build()
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        module = build()
    made: dict[int, torch.Tensor] = {}
    for owner in module.modules():
        for name, parameter in list(owner._parameters.items()):
            if parameter is not None:
                new = made.get(id(parameter))
                if new is None:
                    number = 1 + len(made) / 4096
                    new = torch.nn.Parameter(_flat(parameter, number), requires_grad=False)
                    made[id(parameter)] = new
                owner._parameters[name] = new
        for name, buffer in list(owner._buffers.items()):
            if buffer is not None and buffer.is_meta:
                owner._buffers[name] = made.setdefault(id(buffer), _flat(buffer, 0))
    return module.eval()


class _NoInitialisation(TorchFunctionMode):
    """Skip what writes numbers into tensors that hold none: it changes no shape and takes time."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _WRITERS:
            target = args[0] if args else kwargs.get("tensor")
            if isinstance(target, torch.Tensor) and target.is_meta:
                return target
        return func(*args, **kwargs)


_WRITERS = frozenset({
    "add_", "bernoulli_", "clamp_", "clip_", "copy_", "div_", "erfinv_", "fill_", "mul_",
    "kaiming_normal_", "kaiming_uniform_", "normal_", "pow_", "random_", "sub_", "trunc_normal_",
    "uniform_", "xavier_normal_", "xavier_uniform_", "zero_",
})  # fmt: skip


def _flat(like: torch.Tensor, number: float) -> torch.Tensor:
    return torch.full((), number, dtype=like.dtype).expand(like.shape)


def export(
    module: torch.nn.Module,
    arguments: Sequence[torch.Tensor],
    *,
    exporter: str,
    opset: int,
    input_names: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
) -> onnx.ModelProto:
    """Export ``module`` without its weights.

    Args:
        module: in evaluation mode, on the CPU.
        arguments: example inputs, positional; a dynamic dimension should be at least 2 there, as
            exporters specialise 0 and 1.
        exporter: ``"torchscript"`` or ``"dynamo"``.
        opset: version of the default operator set.
        input_names: one per argument.
        dynamic: input name to {dimension: its name}; None makes dimension 0 of every input the
            same free dimension ``"batch"``.

    Raises:
        KeyError: no such exporter.
        ValueError: the exporter writes another opset than the one asked for.
        whatever torch raises where it can't export the module.
    """
    if dynamic is None:
        dynamic = {name: {0: "batch"} for name in input_names}
    with warnings.catch_warnings(), torch.no_grad(), _quiet(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        stack.enter_context(_separate_operators())
        if opset < ATTENTION_OPSET:
            stack.enter_context(_composed_attention())
        model = EXPORTERS[exporter](module, tuple(arguments), opset, list(input_names), dynamic)
    written = {entry.domain: entry.version for entry in model.opset_import}.get("", 0)
    if written != opset:
        raise ValueError(f"the {exporter} exporter writes opset {written}, not {opset}")
    return strip_metadata(strip_weights(model))


def _export_torchscript(
    module: torch.nn.Module,
    arguments: tuple[torch.Tensor, ...],
    opset: int,
    input_names: list[str],
    dynamic: Mapping[str, Mapping[int, str]],
) -> onnx.ModelProto:
    target = io.BytesIO()
    with _hollow_initializers() as dims, _shapes_only(module):
        torch.onnx.export(
            module,
            arguments,
            target,
            dynamo=False,
            opset_version=opset,
            do_constant_folding=True,
            input_names=input_names,
            dynamic_axes={name: dict(axes) for name, axes in dynamic.items()},
        )
    model = onnx.ModelProto.FromString(target.getvalue())
    for tensor in model.graph.initializer:
        if tensor.name in dims:
            _drop_data(tensor)
            del tensor.dims[:]
            tensor.dims.extend(dims[tensor.name])
    return model


@contextlib.contextmanager
def _shapes_only(module: torch.nn.Module) -> Iterator[None]:
    """Run the module, and the exporter's passes, without computing or copying large tensors."""
    forward = module.forward
    infer = torch._C._jit_pass_onnx_graph_shape_type_inference
    fold = torch._C._jit_pass_onnx_constant_fold

    @functools.wraps(forward)
    def shapes_only(*args: Any, **kwargs: Any) -> Any:
        with ShapesOnly(), TracedConvolution():
            return forward(*args, **kwargs)

    def fold_shapes(*args: Any) -> Any:
        with ShapesOnly():
            return fold(*args)

    def infer_from_small(
        graph: torch._C.Graph, tensors: dict[str, torch.Tensor], opset: int
    ) -> None:
        small = {k: v for k, v in tensors.items() if v.numel() <= KEPT_INTEGERS}
        infer(graph, small, opset)

    module.forward = shapes_only
    torch._C._jit_pass_onnx_constant_fold = fold_shapes
    torch._C._jit_pass_onnx_graph_shape_type_inference = infer_from_small
    try:
        yield
    finally:
        del module.forward
        torch._C._jit_pass_onnx_constant_fold = fold
        torch._C._jit_pass_onnx_graph_shape_type_inference = infer


@contextlib.contextmanager
def _hollow_initializers() -> Iterator[dict[str, tuple[int, ...]]]:
    """Keep large weights out of the exporter's protobuf; yields their dimensions by name.

    The last pass that sees all initializers merges those of equal content, which would merge
    unrelated weights of a network that was never trained: it runs on shared storage alone here,
    and hands on empty tensors in place of large ones.
    """
    merge = torch._C._jit_pass_onnx_deduplicate_initializers
    dims: dict[str, tuple[int, ...]] = {}

    def merge_shared(
        graph: torch._C.Graph, tensors: dict[str, torch.Tensor], _training: bool
    ) -> dict[str, torch.Tensor]:
        kept: dict[str, torch.Tensor] = {}
        for name, tensor in merge(graph, tensors, True).items():
            if tensor.numel() > KEPT_INTEGERS:
                dims[name] = tuple(tensor.shape)
                kept[name] = torch.empty(0, dtype=tensor.dtype)
            else:
                kept[name] = tensor.contiguous()
        return kept

    torch._C._jit_pass_onnx_deduplicate_initializers = merge_shared  # type: ignore[assignment]
    try:
        yield dims
    finally:
        torch._C._jit_pass_onnx_deduplicate_initializers = merge  # type: ignore[assignment]


def _export_dynamo(
    module: torch.nn.Module,
    arguments: tuple[torch.Tensor, ...],
    opset: int,
    input_names: list[str],
    dynamic: Mapping[str, Mapping[int, str]],
) -> onnx.ModelProto:
    import onnx_ir as ir

    sizes = {label: torch.export.Dim(label) for axes in dynamic.values() for label in axes.values()}
    shapes: tuple[Any, ...] = tuple(
        {axis: sizes[label] for axis, label in dynamic.get(name, {}).items()}
        for name in input_names
    )
    if any(
        parameter.kind is inspect.Parameter.VAR_POSITIONAL
        for parameter in inspect.signature(module.forward).parameters.values()
    ):
        shapes = (shapes,)
    program = torch.onnx.export(
        module,
        tuple(argument.contiguous() for argument in arguments),
        dynamo=True,
        opset_version=opset,
        input_names=input_names,
        dynamic_shapes=shapes,
        verbose=False,
    )
    assert program is not None
    for value in program.model.graph.initializers.values():
        tensor = value.const_value
        if tensor is not None and tensor.size > KEPT_INTEGERS:
            value.const_value = ir.ExternalTensor(
                WEIGHTS_FILE, None, None, tensor.dtype, shape=tensor.shape, name=value.name
            )
    return ir.to_proto(program.model)


EXPORTERS: Mapping[str, Callable[..., onnx.ModelProto]] = {
    "torchscript": _export_torchscript,
    "dynamo": _export_dynamo,
}


@contextlib.contextmanager
def _composed_attention() -> Iterator[None]:
    """Attention as the matmul, softmax and matmul that PyTorch used before 2.0."""
    functional = torch.nn.functional
    before = functional.scaled_dot_product_attention

    def composed(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if is_causal or enable_gqa:
            raise ValueError("causal or grouped attention needs opset 14 or newer")
        scores = query @ key.transpose(-2, -1)
        scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            scores = scores + attn_mask
        return scores.softmax(dim=-1) @ value

    functional.scaled_dot_product_attention = composed
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = before


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No log lines and no progress text of the exporters."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _separate_operators() -> Iterator[None]:
    """Keep torch from fused operators that no exporter knows, or only at newer opsets."""
    fused_attention = torch.backends.mha.get_fastpath_enabled()
    rms_norm = torch.nn.functional.rms_norm
    torch.backends.mha.set_fastpath_enabled(False)
    torch.nn.functional.rms_norm = _composed_rms_norm
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused_attention)
        torch.nn.functional.rms_norm = rms_norm


def _composed_rms_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        eps = torch.finfo(input.dtype).eps
    scaled = input * torch.rsqrt(input.pow(2).mean(axes, keepdim=True) + eps)
    return scaled if weight is None else scaled * weight


def strip_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the data of large tensors in place, keeping dimensions and types; returns ``model``.

    Small integer tensors and scalars stay, since shapes and patterns depend on them. A large
    Constant node becomes an initializer. What is dropped points to :data:`WEIGHTS_FILE`.
    """
    _strip_graph(model.graph)
    return model


def _strip_graph(graph: onnx.GraphProto) -> None:
    constants = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _strip_graph(attribute.g)
            for subgraph in attribute.graphs:
                _strip_graph(subgraph)
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensor = node.attribute[0].t
            if not _is_kept(tensor):
                tensor.name = node.output[0]
                graph.initializer.append(tensor)
                constants.append(node)
    for node in constants:
        graph.node.remove(node)
    for tensor in graph.initializer:
        if not _is_kept(tensor):
            _drop_data(tensor)


def _is_kept(tensor: onnx.TensorProto) -> bool:
    elements = 1
    for size in tensor.dims:
        elements *= size
    if elements == 0 or tensor.data_type == onnx.TensorProto.STRING:
        return True
    return elements <= (KEPT_INTEGERS if tensor.data_type in _INTEGERS else KEPT_NUMBERS)


def _drop_data(tensor: onnx.TensorProto) -> None:
    for name in (*_DATA_FIELDS, "external_data", "doc_string"):
        tensor.ClearField(name)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=WEIGHTS_FILE)


def strip_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop doc strings, metadata and intermediate shapes in place; returns ``model``.

    Producer, opsets, names of inputs and outputs stay.
    """
    model.ClearField("doc_string")
    model.ClearField("metadata_props")
    for function in model.functions:
        function.ClearField("doc_string")
        function.ClearField("metadata_props")
        _strip_nodes(function.node)
    _strip_graph_metadata(model.graph)
    return model


def _strip_graph_metadata(graph: onnx.GraphProto) -> None:
    for name in ("doc_string", "metadata_props", "value_info", "quantization_annotation"):
        graph.ClearField(name)
    for item in (*graph.input, *graph.output, *graph.initializer):
        item.ClearField("doc_string")
        item.ClearField("metadata_props")
    _strip_nodes(graph.node)


def _strip_nodes(nodes: Any) -> None:
    for node in nodes:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
        for attribute in node.attribute:
            attribute.ClearField("doc_string")
            if attribute.HasField("g"):
                _strip_graph_metadata(attribute.g)
            for subgraph in attribute.graphs:
                _strip_graph_metadata(subgraph)
