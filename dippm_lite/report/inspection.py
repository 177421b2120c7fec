"""Static analyses as text, JSON, CSV and markdown: what a model asks for, on any device."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dippm_lite.analysis import Analysis
from dippm_lite.kernels import Kernel
from dippm_lite.prediction import SCHEMA, plain, plain_caveats
from dippm_lite.report.json import dump
from dippm_lite.report.wording import caveat_text, table_cell
from dippm_lite.units import format_bytes, format_count

__all__ = ["INSPECT_FORMATS"]


def _kernel_row(analysis: Analysis, kernel: Kernel) -> dict[str, Any]:
    cost = kernel.cost
    return {
        "name": analysis.graph.nodes[kernel.nodes[-1]].name if kernel.nodes else "",
        "op": kernel.op,
        "kind": kernel.kind.value,
        "math": kernel.math.value,
        "macs": cost.macs * kernel.repeat,
        "flops": cost.flops * kernel.repeat,
        "total_bytes": cost.total_bytes * kernel.repeat,
        "repeat": kernel.repeat,
    }


def _heaviest(analysis: Analysis, top: int) -> list[dict[str, Any]]:
    rows = [_kernel_row(analysis, kernel) for kernel in analysis.kernels]
    return sorted(rows, key=lambda row: (-row["macs"], -row["total_bytes"]))[:top]


def _to_dict(analysis: Analysis, top: int) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "model": analysis.model,
        "inputs": plain(analysis.inputs),
        "runtime": analysis.runtime.value,
        "precision": analysis.precision.value,
        "arithmetic": plain(analysis.arithmetic),
        "batch_size": analysis.batch_size,
        "opset": analysis.graph.opset,
        "static": plain(analysis.static),
        "kernels": _heaviest(analysis, top),
        "caveats": plain_caveats(analysis.caveats),
    }


def _json(analyses: Sequence[Analysis], top: int) -> str:
    return dump([_to_dict(analysis, top) for analysis in analyses])


def _text(analyses: Sequence[Analysis], top: int) -> str:
    return "\n\n".join(_one_text(analysis, top) for analysis in analyses)


def _one_text(analysis: Analysis, top: int) -> str:
    static = analysis.static
    shapes = ", ".join(
        f"{tensor.name} {'x'.join(map(str, tensor.shape)) or 'scalar'} {tensor.dtype}"
        for tensor in analysis.inputs
    )
    ops = sorted(static.ops.items(), key=lambda item: (-item[1], item[0]))
    lines = [
        analysis.model,
        f"  inputs       {shapes}",
        f"  opset        {analysis.graph.opset}",
        f"  MACs         {format_count(static.macs)} ({static.macs:,}; 1 MAC = 2 FLOPs)",
        f"  parameters   {format_count(static.params)} ({static.params:,})",
        f"  weights      {format_bytes(static.weight_bytes)}",
        f"  activations  {format_bytes(static.peak_activation_bytes)} at the peak, "
        f"{analysis.runtime.value}",
        f"  nodes        {static.nodes} -> {static.kernels} kernels, {analysis.runtime.value}",
        "  operators    " + ", ".join(f"{name} {count}" for name, count in ops),
    ]
    heaviest = _heaviest(analysis, top)
    if heaviest:
        lines += ["", f"  {'kernel':<20} {'MACs':>9} {'traffic':>9} {'FLOP/B':>7}  node"]
    for row in heaviest:
        name = row["name"] if len(row["name"]) <= 42 else "..." + row["name"][-39:]
        intensity = row["flops"] / row["total_bytes"] if row["total_bytes"] else 0.0
        lines.append(
            f"  {row['op'][:20]:<20} {format_count(row['macs']):>9} "
            f"{format_bytes(row['total_bytes']):>9} {intensity:>7.1f}  {name}"
        )
    return "\n".join(lines)


_COLUMNS = (
    "model", "batch_size", "macs", "params", "weight_bytes", "peak_activation_bytes", "nodes",
    "kernels", "caveats",
)  # fmt: skip


def _csv(analyses: Sequence[Analysis], top: int) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for analysis in analyses:
        static = analysis.static
        writer.writerow(
            [
                *(analysis.model, analysis.batch_size, static.macs, static.params),
                *(static.weight_bytes, static.peak_activation_bytes, static.nodes),
                *(static.kernels, ";".join(caveat.code for caveat in analysis.caveats)),
            ]
        )
    return out.getvalue().rstrip("\n")


def _markdown(analyses: Sequence[Analysis], top: int) -> str:
    lines = [
        "| model | MACs | parameters | weights | peak activations | nodes | kernels |",
        "|---|---|---|---|---|---|---|",
    ]
    for analysis in analyses:
        static = analysis.static
        lines.append(
            f"| {table_cell(analysis.model)} | {format_count(static.macs)} "
            f"| {format_count(static.params)} | {format_bytes(static.weight_bytes)} "
            f"| {format_bytes(static.peak_activation_bytes)} | {static.nodes} | {static.kernels} |"
        )
    for analysis in analyses:
        if analysis.caveats:
            lines += ["", f"{table_cell(analysis.model)}:", ""]
            lines += [f"- {table_cell(caveat_text(caveat))}" for caveat in analysis.caveats]
    return "\n".join(lines)


INSPECT_FORMATS: Mapping[str, Callable[[Sequence[Analysis], int], str]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
}
"""Format name to ``render(analyses, top)``; ``top`` limits the kernels that are listed."""
