"""What is measured: a network at a batch, in a precision, under a runtime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dippm_lite.errors import InputError
from dippm_lite.execution import Precision

__all__ = ["RUNTIMES", "Workload", "parse_plan", "plan_line"]

RUNTIMES = ("pytorch", "pytorch-compile", "onnxruntime")
"""Labels, spelt as those of the published rows."""

MAX_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of a plan.

    Attributes:
        runtime: one of :data:`RUNTIMES`.
        precision: as the package understands it; a backend refuses what it can't do.
        batch_size: samples in a pass.
        network: a name of the corpus catalog (``timm/resnet50@288``), or the path of an ONNX file,
            which ends in ``.onnx``.

    Raises:
        ValueError: a value is none of these.
    """

    runtime: str
    precision: Precision
    batch_size: int
    network: str

    def __post_init__(self) -> None:
        if self.runtime not in RUNTIMES:
            raise ValueError(f"no runtime {self.runtime!r}: one of {', '.join(RUNTIMES)}")
        if not 1 <= self.batch_size <= MAX_BATCH:
            raise ValueError(f"batch {self.batch_size} is not within 1 and {MAX_BATCH}")
        if not self.network.strip() or "\n" in self.network:
            raise ValueError(f"no network {self.network!r}")
        if self.file and self.runtime != "onnxruntime":
            raise ValueError(f"{self.network} needs the runtime onnxruntime")

    @property
    def file(self) -> Path | None:
        """The ONNX file, where the network is one."""
        return Path(self.network) if self.network.endswith(".onnx") else None


def plan_line(workload: Workload) -> str:
    """The workload as a line of a plan file."""
    return f"{workload.runtime} {workload.precision.value} {workload.batch_size} {workload.network}"


def parse_plan(lines: Iterable[str], where: str = "the plan") -> tuple[Workload, ...]:
    """Workloads, the most important first, of lines ``RUNTIME PRECISION BATCH NETWORK``.

    Empty lines and those that begin with ``#`` don't count; a workload counts once.

    Raises:
        InputError: a line is no workload.
    """
    found: dict[Workload, None] = {}
    for number, line in enumerate(lines, 1):
        words = line.split(maxsplit=3)
        if not words or words[0].startswith("#"):
            continue
        try:
            runtime, precision, batch, network = words
            found[Workload(runtime, Precision(precision), int(batch), network.strip())] = None
        except ValueError as error:
            raise InputError(
                f"{where} line {number}: {line.strip()!r} is no "
                f"'RUNTIME PRECISION BATCH NETWORK': {error}"
            ) from error
    return tuple(found)
