"""Caveats and conditions in plain words: the only place that turns them into text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dippm_lite import caveats as c
from dippm_lite.execution import MathMode
from dippm_lite.prediction import Arithmetic, Prediction
from dippm_lite.units import format_memory

__all__ = ["caveat_text", "precision_text", "shapes_text", "table_cell"]


def _examples(names: Sequence[str], count: int) -> str:
    shown = ", ".join(repr(name) if len(name) <= 40 else repr(name[:37] + "...") for name in names)
    return f"{shown}, ..." if count > len(names) else shown


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else "under 1%"


def _unknown_ops(caveat: c.UnknownOps) -> str:
    total = sum(count for _, count in caveat.ops)
    names = ", ".join(f"{name} x{count}" for name, count in caveat.ops[:6])
    more = ", ..." if len(caveat.ops) > 6 else ""
    return f"{total} nodes have no cost rule, only their bytes are counted: {names}{more}"


def _nothing_on_gpu(caveat: c.NothingOnGpu) -> str:
    return f"nothing in this model runs on a GPU ({', '.join(caveat.ops[:6])}): it runs on the host"


_TEXT: dict[type[c.Caveat], Callable[..., str]] = {
    c.AssumedBatch: lambda x: (
        f"free dimension {x.dimension} taken as the batch, {x.batch_size}: set it with --batch"
    ),
    c.UnknownOps: _unknown_ops,
    c.UnresolvedShapes: lambda x: (
        f"the shapes of {x.count} values are unknown and their cost is missing: "
        f"{_examples(x.examples, x.count)}"
    ),
    c.BoundedShapes: lambda x: (
        f"the sizes of {x.count} values depend on the data, the largest possible was used: "
        f"{_examples(x.examples, x.count)}"
    ),
    c.AssumedTripCount: lambda x: (
        f"{x.count} loops run as often as the data says, once was counted: "
        f"{_examples(x.examples, x.count)}"
    ),
    c.BranchChosen: lambda x: (
        f"{x.count} If nodes depend on the data, the costlier branch was taken: "
        f"{_examples(x.examples, x.count)}"
    ),
    c.OutOfRange: lambda x: (
        f"{_percent(x.share)} of the time is in kernels larger or smaller than any measured one "
        f"({', '.join(x.features[:4])})"
    ),
    c.ExtrapolatedKernels: lambda x: (
        f"{_percent(x.share)} of the time is in kernels with no measurements at this precision, "
        f"carried over from related ones: {', '.join(x.classes)}"
    ),
    c.DoesNotFit: lambda x: (
        f"the upper memory estimate, {format_memory(x.memory_mib)}, exceeds the "
        f"{format_memory(x.available_mib)} of the device"
    ),
    c.NothingOnGpu: _nothing_on_gpu,
    c.UncalibratedInterval: lambda x: (
        f"the intervals of {', '.join(x.targets)} rest on kernel errors and cited anchors, not on "
        "measured whole models"
    ),
    c.UnmeasuredDevice: lambda x: (
        f"no kernel was measured on {x.device}: times are scaled from {', '.join(x.measured)} by "
        "the data sheets and may be off by a factor of two"
    ),
    c.FileNote: lambda x: x.text,
}


def caveat_text(caveat: c.Caveat) -> str:
    """One line of plain words for a caveat."""
    return _TEXT[type(caveat)](caveat)


_MODE = {MathMode.TF32: "TF32", MathMode.INT8: "INT8"}


def precision_text(prediction: Prediction) -> str:
    """``fp16``, or what ``auto`` became: ``auto (TF32 convolutions, fp32 matmuls)``."""
    became: Arithmetic = prediction.arithmetic
    conv = _MODE.get(became.conv, became.conv.value)
    matmul = _MODE.get(became.matmul, became.matmul.value)
    requested = prediction.precision.value
    if requested != "auto":
        return requested
    if conv == matmul:
        return f"auto ({conv})"
    return f"auto ({conv} convolutions, {matmul} matmuls)"


def shapes_text(prediction: Prediction, limit: int = 3) -> str:
    """``input 1x3x224x224``; at most ``limit`` inputs, then how many more there are."""
    parts = [
        f"{tensor.name} {'x'.join(map(str, tensor.shape)) or 'scalar'}"
        for tensor in prediction.inputs[:limit]
    ]
    hidden = len(prediction.inputs) - limit
    return ", ".join(parts) + (f" and {hidden} more" if hidden > 0 else "")


def table_cell(text: str) -> str:
    """Text that can't break a markdown table: names come from the file and may hold anything."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
