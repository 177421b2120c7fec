"""A published figure in our terms: a label of one workload, or a row with a reason."""

from __future__ import annotations

from dataclasses import dataclass

from training.datasets.reasons import Flag, Reason
from training.datasets.tables import PublishedRow

__all__ = ["MeasuredRow", "Workload"]

Workload = tuple[str, int, str, str, str, str]


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One published row, matched or left out.

    Attributes:
        row: as published.
        source: our id of the publication.
        device: a name for :func:`dippm_lite.devices.find_device`; empty for other devices.
        precision: a value of :class:`dippm_lite.execution.Precision`, or ``unknown``.
        runtime: label of the engine.
        reason: why it is left out; ``None`` for a label.
        graph: the record's name; the wanted network's name where no record has it.
        batch: samples of the graph in one pass; 0 where unknown.
        metric, value: ``latency_ms``, ``memory_mib`` (of the process), ``memory_allocated_mib``
            and ``memory_reserved_mib`` (of the allocator), ``energy_j`` or ``power_w`` of one pass.
        rule: how ``value`` follows from the published figure.
        flags: what weakens the label.
    """

    row: PublishedRow
    source: str
    device: str = ""
    precision: str = "unknown"
    runtime: str = "unknown"
    reason: Reason | None = None
    graph: str = ""
    batch: int = 0
    metric: str = ""
    value: float = 0.0
    rule: str = ""
    flags: tuple[Flag, ...] = ()

    @property
    def workload(self) -> Workload:
        """What was measured: graph, batch, device, runtime, precision, metric."""
        return (self.graph, self.batch, self.device, self.runtime, self.precision, self.metric)
