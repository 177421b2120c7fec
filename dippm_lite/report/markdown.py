"""Markdown: one table of answers for all models, then each model's slowest kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dippm_lite.prediction import Estimate, Prediction
from dippm_lite.report.wording import caveat_text, precision_text, shapes_text, table_cell
from dippm_lite.units import format_count, format_energy, format_latency, format_memory

__all__ = ["render_markdown"]


def _range(estimate: Estimate, render: Callable[[float], str]) -> str:
    return f"{render(estimate.value)} ({render(estimate.low)} to {render(estimate.high)})"


def _row(p: Prediction) -> str:
    cells = [
        table_cell(p.model),
        f"{p.device}, {p.runtime.value}, {precision_text(p)}, batch {p.batch_size}",
        _range(p.latency_ms, format_latency),
        _range(p.energy_j, format_energy),
        _range(p.memory_mib, format_memory),
        p.mig.profile.name if p.mig.profile else "none",
        format_count(p.static.macs),
        format_count(p.static.params),
    ]
    return "| " + " | ".join(cells) + " |"


def _details(p: Prediction, top: int) -> list[str]:
    lines = ["", f"### {table_cell(p.model)}", "", f"Inputs: {table_cell(shapes_text(p, limit=8))}"]
    slowest = sorted(p.breakdown, key=lambda row: -row.time_ms)[:top]
    if slowest:
        lines += ["", "| kernel | node | time | share | bound |", "|---|---|---|---|---|"]
        lines += [
            f"| {row.op} | {table_cell(row.name)} | {format_latency(row.time_ms)} "
            f"| {100 * row.share:.1f}% | {row.bound} |"
            for row in slowest
        ]
    if p.caveats:
        lines += ["", *(f"- {table_cell(caveat_text(caveat))}" for caveat in p.caveats)]
    return lines


def render_markdown(predictions: Sequence[Prediction], top: int) -> str:
    """The predictions as GitHub markdown; intervals are 80% intervals."""
    lines = [
        "| model | for | latency | energy | memory | MIG | MACs | parameters |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(p) for p in predictions),
    ]
    for p in predictions:
        lines += _details(p, top)
    return "\n".join(lines)
