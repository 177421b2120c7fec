"""CSV: one row a model, units in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dippm_lite.prediction import Prediction

__all__ = ["COLUMNS", "render_csv"]

COLUMNS = (
    "model", "device", "runtime", "precision", "batch_size",
    "latency_ms", "latency_ms_low", "latency_ms_high",
    "energy_j", "energy_j_low", "energy_j_high",
    "memory_mib", "memory_mib_low", "memory_mib_high",
    "throughput_per_s", "mig_profile", "paper_profile",
    "macs", "params", "weight_bytes", "peak_activation_bytes", "nodes", "kernels",
    "caveats", "bundle_id",
)  # fmt: skip


def render_csv(predictions: Sequence[Prediction], top: int) -> str:
    """The predictions as CSV with a header; ``caveats`` joins their codes with ``;``.

    ``top`` is unused: the kernels of a model don't fit a row.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for p in predictions:
        static = p.static
        writer.writerow(
            [p.model, p.device, p.runtime.value, p.precision.value, p.batch_size]
            + [
                f"{number:.6g}"
                for estimate in (p.latency_ms, p.energy_j, p.memory_mib)
                for number in (estimate.value, estimate.low, estimate.high)
            ]
            + [f"{p.throughput_per_s:.6g}"]
            + [p.mig.profile.name if p.mig.profile else "", p.mig.paper_profile or ""]
            + [static.macs, static.params, static.weight_bytes, static.peak_activation_bytes]
            + [static.nodes, static.kernels]
            + [";".join(caveat.code for caveat in p.caveats), p.bundle_id]
        )
    return out.getvalue().rstrip("\n")
