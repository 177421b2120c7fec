"""What a model is trained to say, and how its score becomes the quantity that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Target", "Transform"]


class Transform(str, Enum):
    """How a model's raw score relates to its target; applied and inverted here alone."""

    IDENTITY = "identity"
    LOG = "log"
    LOG_RATIO = "log_ratio"
    """log(target / prior): what a tree can't extrapolate, the prior does."""

    def apply(
        self, target: NDArray[np.float64], prior: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """What a model is trained on. ``prior`` has the target's unit and shape."""
        if self is Transform.IDENTITY:
            return target
        return np.log(target if self is Transform.LOG else target / _required(prior))

    def invert(
        self, raw: NDArray[np.float64], prior: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """The target from a raw score; the inverse of :meth:`apply`."""
        if self is Transform.IDENTITY:
            return raw
        return np.exp(raw) if self is Transform.LOG else np.exp(raw) * _required(prior)


def _required(prior: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if prior is None:
        raise ValueError("log_ratio needs the prior")
    return prior


@dataclass(frozen=True, slots=True)
class Target:
    """What a model predicts: ``transform(name)``, where ``prior`` is what log_ratio divides by."""

    name: str
    unit: str
    transform: Transform
    prior: str | None

    def __post_init__(self) -> None:
        if (self.transform is Transform.LOG_RATIO) != (self.prior is not None):
            raise ValueError("a prior goes with log_ratio and with nothing else")

    @property
    def formula(self) -> str:
        """``log(device_time_s / roofline_s)``."""
        return {
            Transform.IDENTITY: self.name,
            Transform.LOG: f"log({self.name})",
            Transform.LOG_RATIO: f"log({self.name} / {self.prior})",
        }[self.transform]
