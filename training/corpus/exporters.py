"""Torch's two exporters, kept from computing, copying and writing weights."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import onnx
import torch

from training.corpus.shapes_only import ShapesOnly, TracedConvolution
from training.corpus.stripping import KEPT_INTEGERS, WEIGHTS_FILE, drop_data

__all__ = ["EXPORTERS"]


def _export_torchscript(
    module: torch.nn.Module,
    arguments: tuple[torch.Tensor, ...],
    opset: int,
    input_names: list[str],
    dynamic: Mapping[str, Mapping[int, str]],
) -> onnx.ModelProto:
    def write(target: io.BytesIO) -> None:
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

    with _hollow_initializers() as dims:
        target = io.BytesIO()
        try:
            with _shapes_only(module):
                write(target)
        except NotImplementedError:
            # A shape depends on content (boxes above a score, say): it must be computed after all.
            target = io.BytesIO()
            write(target)
    model = onnx.ModelProto.FromString(target.getvalue())
    for tensor in model.graph.initializer:
        if tensor.name in dims:
            drop_data(tensor)
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
                WEIGHTS_FILE,
                None,
                None,
                tensor.dtype,
                shape=tensor.shape,
                name=value.name,
            )
    return ir.to_proto(program.model)


EXPORTERS: Mapping[str, Callable[..., onnx.ModelProto]] = {
    "torchscript": _export_torchscript,
    "dynamo": _export_dynamo,
}
