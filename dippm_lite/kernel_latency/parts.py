"""What a kernel's time is made of: rows of measured models, with a stated factor each."""

from __future__ import annotations

from dataclasses import dataclass

from dippm_lite.execution import MathMode

__all__ = ["STREAM", "Part"]

STREAM = "stream"
"""In place of a model's name: ``sizes`` is ``(bytes,)``, crossing DRAM at its data-sheet rate."""


@dataclass(frozen=True, slots=True)
class Part:
    """``factor`` times what ``model`` says of ``sizes``.

    Attributes:
        model: name in the bundle, or :data:`STREAM`.
        sizes: the arrays' entries of the model's batch, in the order of its fields.
        math: arithmetic whose peak rate the sizes are held against.
        itemsize: bytes of one element.
        measured: True where the model was fitted on kernels of this very class.
        factor: how much longer than the model's kernel it takes.
    """

    model: str
    sizes: tuple[float, ...]
    math: MathMode
    itemsize: float
    measured: bool
    factor: float = 1.0
