"""Plain text that fits a terminal: the four answers first, then what they stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dippm_lite.prediction import Estimate, MigAdvice, Prediction
from dippm_lite.report.wording import precision_text, shapes_text
from dippm_lite.units import (
    format_bytes,
    format_count,
    format_energy,
    format_latency,
    format_memory,
    format_significant,
)

__all__ = ["render_text"]

RUNTIME_TITLES = {
    "pytorch": "PyTorch eager",
    "onnxruntime": "onnxruntime CUDA",
    "tensorrt": "TensorRT",
}


def _interval(estimate: Estimate, render: Callable[[float], str]) -> str:
    return f"80%: {render(estimate.low)} to {render(estimate.high)}"


def _answer(label: str, value: str, interval: str, remark: str) -> str:
    return f"  {label:<8} {value:<11} {interval:<31} {remark}".rstrip()


def _mig_line(mig: MigAdvice, device: str) -> str:
    rule = f"DIPPM's rule: {mig.paper_profile or 'none'}"
    if not mig.alternatives:
        return _answer("MIG", "-", f"{device} can't be partitioned", "")
    if mig.profile is None:
        return _answer("MIG", "none fits", "", rule)
    row = next(row for row in mig.alternatives if row.profile == mig.profile.name)
    return _answer(
        "MIG",
        row.profile,
        f"{format_latency(row.latency_ms)} there, up to {row.instances} a card",
        rule,
    )


def _kernel_table(prediction: Prediction, top: int) -> list[str]:
    slowest = sorted(prediction.breakdown, key=lambda row: -row.time_ms)[:top]
    if not slowest:
        return []
    lines = ["", f"  {'kernel':<20} {'time':>9} {'share':>6}  {'bound':<8} node"]
    for row in slowest:
        op = row.op if row.repeat == 1 else f"{row.op} x{row.repeat}"
        op = op if len(op) <= 20 else op[:17] + "..."
        name = row.name if len(row.name) <= 32 else "..." + row.name[-29:]
        time = format_latency(row.time_ms)
        lines.append(f"  {op:<20} {time:>9} {100 * row.share:>5.1f}%  {row.bound:<8} {name}")
    hidden = len(prediction.breakdown) - len(slowest)
    if hidden > 0:
        rest = sum(r.share for r in prediction.breakdown) - sum(r.share for r in slowest)
        lines.append(f"  {'and ' + str(hidden) + ' more':<20} {'':>9} {100 * rest:>5.1f}%")
    return lines


def _one(prediction: Prediction, top: int) -> str:
    p = prediction
    static = p.static
    if not static.kernels:
        ops = ", ".join(f"{name} {count}" for name, count in static.ops.items())
        return f"{p.model}\n  nothing in this model runs on a GPU: {static.nodes} nodes ({ops})"
    per_sample = p.energy_j.value / p.batch_size
    throughput = f"{format_significant(p.throughput_per_s)} samples/s"
    lines = [
        p.model,
        f"  for      {p.device}, {RUNTIME_TITLES[p.runtime.value]}, {precision_text(p)}, "
        f"batch {p.batch_size}",
        f"  inputs   {shapes_text(p)}",
        "",
        _answer(
            "latency",
            format_latency(p.latency_ms.value),
            _interval(p.latency_ms, format_latency),
            throughput,
        ),
        _answer(
            "energy",
            format_energy(p.energy_j.value),
            _interval(p.energy_j, format_energy),
            f"{format_energy(per_sample)} a sample",
        ),
        _answer(
            "memory",
            format_memory(p.memory_mib.value),
            _interval(p.memory_mib, format_memory),
            "peak of the process",
        ),
        _mig_line(p.mig, p.device),
        "",
        f"  {format_count(static.macs)} MACs, {format_count(static.params)} parameters "
        f"({format_bytes(static.weight_bytes)}), peak activations "
        f"{format_bytes(static.peak_activation_bytes)}",
        f"  {static.nodes} nodes, {static.kernels} kernels"
        + (
            f"; {100 * p.launch_bound_share:.0f}% of the time the GPU waits for the host"
            if p.launch_bound_share >= 0.005
            else ""
        ),
    ]
    return "\n".join(lines + _kernel_table(p, top))


def render_text(predictions: Sequence[Prediction], top: int) -> str:
    """The predictions for a terminal, at most 100 columns but for long file names.

    Intervals are 80% intervals. ``top`` is how many kernels are listed for each model.
    """
    return "\n\n".join(_one(prediction, top) for prediction in predictions)
