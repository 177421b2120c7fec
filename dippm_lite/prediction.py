"""The result types: what a prediction is of, what it says, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dippm_lite.caveats import Caveat
from dippm_lite.devices import MigProfile
from dippm_lite.execution import MathMode, Precision, Runtime

__all__ = [
    "SCHEMA",
    "Arithmetic",
    "Estimate",
    "InputTensor",
    "KernelRow",
    "MigAdvice",
    "MigRow",
    "Prediction",
    "StaticAnalysis",
    "plain",
    "plain_caveats",
]

SCHEMA = "dippm-lite/1"
"""Names the JSON layout; it changes when a key changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 80% interval, all in the unit that the field's name carries."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high < float("inf"):
            raise ValueError(f"not an interval: {self.low} <= {self.value} <= {self.high}")


@dataclass(frozen=True, slots=True)
class InputTensor:
    """A model input as it was bound: ``shape`` has no free dimension left."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What the requested precision became for convolutions and for matrix products."""

    conv: MathMode
    matmul: MathMode


@dataclass(frozen=True, slots=True)
class StaticAnalysis:
    """What follows from the graph alone, without any model of the device.

    ``macs`` and byte counts are for one inference of the whole batch. ``params`` counts the
    elements of every stored weight once. ``ops`` counts the nodes of each operator type.
    """

    macs: int
    params: int
    weight_bytes: int
    peak_activation_bytes: int
    nodes: int
    kernels: int
    ops: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of the breakdown.

    ``time_ms`` is its time on the GPU over all its runs, ``share`` its part of the sum over all
    kernels, ``bound`` what limits it ("compute", "memory" or "launch"), ``basis`` whether its time
    comes from a model of measured kernels ("measured") or from one carried over ("extrapolated").
    """

    name: str
    op: str
    kind: str
    time_ms: float
    share: float
    macs: int
    total_bytes: int
    repeat: int
    bound: str
    basis: str


@dataclass(frozen=True, slots=True)
class MigRow:
    """One MIG profile seen from the workload: does it fit, and how fast is it there.

    ``memory_mib`` is what the profile can hold; ``instances`` how many of it one card takes;
    ``throughput_per_s`` is samples per second of one instance.
    """

    profile: str
    fits: bool
    memory_mib: int
    latency_ms: float
    throughput_per_s: float
    instances: int


@dataclass(frozen=True, slots=True)
class MigAdvice:
    """The smallest profile that fits, DIPPM's own rule for comparison, and the whole table.

    ``profile`` is None where none fits (or the device can't be partitioned); so is
    ``paper_profile`` where DIPPM's rule names none.
    """

    profile: MigProfile | None
    paper_profile: str | None
    alternatives: tuple[MigRow, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One workload's answers. Field names are the JSON keys."""

    model: str
    inputs: tuple[InputTensor, ...]
    device: str
    runtime: Runtime
    precision: Precision
    arithmetic: Arithmetic
    batch_size: int
    latency_ms: Estimate
    energy_j: Estimate
    memory_mib: Estimate
    mig: MigAdvice
    caveats: tuple[Caveat, ...]
    bundle_id: str
    static: StaticAnalysis
    breakdown: tuple[KernelRow, ...]
    launch_bound_share: float

    @property
    def throughput_per_s(self) -> float:
        """Samples per second at this batch size, one inference after another."""
        return 1e3 * self.batch_size / self.latency_ms.value if self.latency_ms.value else 0.0

    def to_dict(self, top: int | None = 10) -> dict[str, Any]:
        """The prediction as plain JSON types, the same object that ``--format json`` prints.

        Args:
            top: how many kernels of the breakdown to keep, slowest first; None keeps all.
        """
        slowest = sorted(self.breakdown, key=lambda row: -row.time_ms)
        return {
            "schema": SCHEMA,
            "model": self.model,
            "inputs": [plain(tensor) for tensor in self.inputs],
            "device": self.device,
            "runtime": self.runtime.value,
            "precision": self.precision.value,
            "arithmetic": plain(self.arithmetic),
            "batch_size": self.batch_size,
            "latency_ms": plain(self.latency_ms),
            "energy_j": plain(self.energy_j),
            "memory_mib": plain(self.memory_mib),
            "throughput_per_s": self.throughput_per_s,
            "mig": {
                "profile": self.mig.profile.name if self.mig.profile else None,
                "paper_profile": self.mig.paper_profile,
                "alternatives": [plain(row) for row in self.mig.alternatives],
            },
            "caveats": plain_caveats(self.caveats),
            "bundle_id": self.bundle_id,
            "static": plain(self.static),
            "launch_bound_share": self.launch_bound_share,
            "breakdown": [plain(row) for row in slowest[:top]],
        }


def plain(value: Any) -> Any:
    """Dataclasses, enums, tuples and mappings as JSON types, keys being the field names."""
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if hasattr(value, "value") else value


def plain_caveats(caveats: Sequence[Caveat]) -> list[dict[str, Any]]:
    """Caveats as JSON objects: the code, then the fields."""
    return [{"code": caveat.code, **plain(caveat)} for caveat in caveats]
