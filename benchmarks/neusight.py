"""Ten transformer workloads on an A100-PCIE-40GB, predicted beside the published measurements.

    python -m benchmarks.neusight

prints a markdown table and writes it to ``benchmarks/results/neusight.md``. The measurements and
networks are described in ``benchmarks/data/neusight/README.md``; nothing is fitted on them. The
roofline column is the sum over the same kernels of the larger of arithmetic and traffic time.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from dippm_lite import Precision, Predictor, Runtime
from dippm_lite.analysis import analyse
from dippm_lite.roofline import roofline_time_s
from dippm_lite.units import s_to_ms

DATA = Path(__file__).parent / "data" / "neusight"
RESULT = Path(__file__).parent / "results" / "neusight.md"
DEVICE = "a100-pcie-40gb"
NEUSIGHT_MEAN_APE_PERCENT = 4.9  # of its own predictions on these ten rows, from its repository


@dataclass(frozen=True)
class Row:
    """One workload: published latency, ours, and the bare roofline, in ms."""

    network: str
    batch: int
    tokens: int
    measured_ms: float
    predicted_ms: float
    low_ms: float
    high_ms: float
    roofline_ms: float

    @property
    def error_percent(self) -> float:
        """Signed error of the prediction."""
        return 100 * (self.predicted_ms / self.measured_ms - 1)

    @property
    def roofline_error_percent(self) -> float:
        """Signed error of the roofline."""
        return 100 * (self.roofline_ms / self.measured_ms - 1)


def rows() -> list[Row]:
    """Predict all ten workloads."""
    predictor = Predictor.load(DEVICE, Runtime.PYTORCH, Precision.FP32)
    result = []
    with (DATA / "measured.csv").open(newline="", encoding="utf-8") as file:
        for record in csv.DictReader(file):
            analysis = analyse(
                DATA / f"{record['network']}.onnx",
                batch_size=int(record["batch"]),
                precision=Precision.FP32,
            )
            latency = predictor.predict_analysis(analysis).latency_ms
            bare_s = sum(k.repeat * roofline_time_s(k, predictor.device) for k in analysis.kernels)
            result.append(
                Row(
                    record["network"],
                    int(record["batch"]),
                    int(record["tokens"]),
                    float(record["latency_ms"]),
                    latency.value,
                    latency.low,
                    latency.high,
                    s_to_ms(bare_s),
                )
            )
    return result


def mean_ape_percent(errors: list[float]) -> float:
    """Mean absolute percentage error of signed errors."""
    return sum(abs(error) for error in errors) / len(errors)


def render(table: list[Row]) -> str:
    """The markdown table with its means."""
    lines = [
        "| network | batch | tokens | measured | predicted | 80% interval | error | roofline |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {row.network} | {row.batch} | {row.tokens} | {row.measured_ms:,.1f} ms "
            f"| {row.predicted_ms:,.1f} ms | {row.low_ms:,.0f} to {row.high_ms:,.0f} ms "
            f"| {row.error_percent:+.1f}% | {row.roofline_error_percent:+.1f}% |"
            for row in table
        ),
    ]
    ours = mean_ape_percent([row.error_percent for row in table])
    bare = mean_ape_percent([row.roofline_error_percent for row in table])
    lines.append(
        f"\nMean absolute error: dippm-lite {ours:.1f}%, NeuSight's own predictor "
        f"{NEUSIGHT_MEAN_APE_PERCENT}%, roofline {bare:.1f}%. Measured by others on an "
        "A100-PCIE-40GB in fp32 (TF32 off), PyTorch 2.1 eager; predicted from kernels, composed."
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table and keep it."""
    text = render(rows())
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
