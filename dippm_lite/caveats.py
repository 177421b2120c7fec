"""What a person must know about a figure; typed here, worded in ``report``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AssumedBatch",
    "AssumedTripCount",
    "BoundedShapes",
    "BranchChosen",
    "Caveat",
    "DoesNotFit",
    "ExtrapolatedKernels",
    "FileNote",
    "NothingOnGpu",
    "OutOfRange",
    "UncalibratedInterval",
    "UnknownOps",
    "UnmeasuredDevice",
    "UnresolvedShapes",
]


@dataclass(frozen=True, slots=True)
class Caveat:
    """Base of all caveats."""

    @property
    def code(self) -> str:
        """Stable identifier, the class name: what JSON carries and a script can match."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class AssumedBatch(Caveat):
    """The leading dimension of the inputs was free and was taken as the batch."""

    dimension: str
    batch_size: int


@dataclass(frozen=True, slots=True)
class UnknownOps(Caveat):
    """Operators without a cost rule: only their bytes are counted. ``ops``: (name, count)."""

    ops: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class UnresolvedShapes(Caveat):
    """Values whose shape could not be found; their cost is missing from the figure."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundedShapes(Caveat):
    """Values whose size depends on the data; the upper bound was used."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssumedTripCount(Caveat):
    """Loops whose trip count depends on the data, counted once each."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BranchChosen(Caveat):
    """If nodes whose condition depends on the data: the costlier branch was taken."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutOfRange(Caveat):
    """Share of the predicted time in kernels outside the range of the training data."""

    share: float
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExtrapolatedKernels(Caveat):
    """Kernel classes for which no measured kernels exist at this precision; ``share`` of time."""

    classes: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class DoesNotFit(Caveat):
    """The pessimistic memory estimate exceeds what the device or profile has."""

    memory_mib: float
    available_mib: float


@dataclass(frozen=True, slots=True)
class NothingOnGpu(Caveat):
    """No operator of the model runs on a GPU (classical machine learning, string handling)."""

    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UncalibratedInterval(Caveat):
    """The interval comes from kernel-level errors and was not checked on whole models."""

    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnmeasuredDevice(Caveat):
    """No kernel was measured on this kind of GPU: times are scaled from ``measured`` ones."""

    device: str
    measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileNote(Caveat):
    """Something odd in the file that was worked around; ``text`` is one clause."""

    text: str
