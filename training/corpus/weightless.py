"""Export torch modules to ONNX files that hold no weights: dimensions and element types only.

Two exporters write the files: ``torchscript`` (``torch.onnx.export(dynamo=False)``) and ``dynamo``
(``dynamo=True``). Weights never reach the protobuf, so neither its 2 GiB limit nor the machine's
memory bounds the size of a model: a parameter is one number with stride 0 wherever a module is
built by :func:`hollow`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence

import onnx
import torch

from training.corpus.composed_operators import (
    ATTENTION_OPSET,
    composed_attention,
    separate_operators,
)
from training.corpus.exporters import EXPORTERS
from training.corpus.stripping import strip_metadata, strip_weights

__all__ = ["export"]


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
    with (
        warnings.catch_warnings(),
        torch.no_grad(),
        _quiet(),
        contextlib.ExitStack() as stack,
    ):
        warnings.simplefilter("ignore")
        stack.enter_context(separate_operators())
        if opset < ATTENTION_OPSET:
            stack.enter_context(composed_attention())
        model = EXPORTERS[exporter](module, tuple(arguments), opset, list(input_names), dynamic)
    written = {entry.domain: entry.version for entry in model.opset_import}.get("", 0)
    if written != opset:
        raise ValueError(f"the {exporter} exporter writes opset {written}, not {opset}")
    return strip_metadata(strip_weights(model))


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
