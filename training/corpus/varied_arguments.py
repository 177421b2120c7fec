"""What the draws of varied networks share: resolutions, and rounded widths."""

from __future__ import annotations

from typing import Any

__all__ = ["SIZES", "Arguments", "multiple", "without_size"]

Arguments = dict[str, Any]

SIZES = (96, 128, 160, 192, 224, 256, 288, 320, 384)
"""Resolutions that every network of stride 32 accepts."""


def multiple(value: float, of: int) -> int:
    """The multiple of ``of`` nearest to ``value``, at least one of it."""
    return max(of, round(value / of) * of)


def without_size(arguments: Arguments) -> Arguments:
    """The arguments that a constructor takes."""
    return {key: value for key, value in arguments.items() if key != "image_size"}
