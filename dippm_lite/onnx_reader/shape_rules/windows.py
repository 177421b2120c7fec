"""Sliding windows: the arithmetic that convolutions and poolings share."""

from __future__ import annotations

from collections.abc import Sequence

from dippm_lite.onnx_reader.shape_rules.calls import (
    Shape,
    ints_attribute,
    quoted,
    text_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError

__all__ = ["padding", "per_axis", "swapped_layout", "window_counts"]

_AUTO_PADS = ("", "NOTSET", "SAME_LOWER", "SAME_UPPER", "VALID")


def per_axis(call: OpCall, name: str, rank: int) -> Shape:
    """A positive integer for each of ``rank`` spatial axes; 1 where the attribute is not set."""
    values = ints_attribute(call, name)
    if not values:
        return (1,) * rank
    if len(values) != rank:
        raise ShapeRuleError(f"attribute '{name}' has {len(values)} entries, not {rank}")
    if min(values) < 1:
        raise ShapeRuleError(f"attribute '{name}' has an entry below 1")
    return values


def padding(call: OpCall, rank: int) -> tuple[str, Shape]:
    """``auto_pad`` without its synonyms (``""``, ``"SAME"``, ``"VALID"``), and the sum of begin
    and end padding of each axis. ``pads`` counts only where ``auto_pad`` doesn't decide."""
    auto_pad = text_attribute(call, "auto_pad", "")
    if auto_pad not in _AUTO_PADS:
        raise ShapeRuleError(f"auto_pad {quoted(auto_pad)} is not known")
    if auto_pad.startswith("SAME"):
        return "SAME", (0,) * rank
    pads = ints_attribute(call, "pads")
    if auto_pad == "VALID" or not pads:
        return ("VALID" if auto_pad == "VALID" else ""), (0,) * rank
    if len(pads) != 2 * rank:
        raise ShapeRuleError(f"attribute 'pads' has {len(pads)} entries, not {2 * rank}")
    return "", tuple([pads[i] + pads[i + rank] for i in range(rank)])


def window_counts(
    call: OpCall, spatial: Shape, kernel: Sequence[int], ceil_mode: bool = False
) -> Shape:
    """How many windows fit along each axis.

    With ``ceil_mode`` a last, partial window counts too, unless it would start in the padding
    behind the data: opset 22 says so, and runtimes have always done it.
    """
    rank = len(spatial)
    strides = per_axis(call, "strides", rank)
    auto_pad, pads = padding(call, rank)
    if auto_pad == "SAME":
        return tuple([-(-size // stride) for size, stride in zip(spatial, strides, strict=True)])
    dilations = per_axis(call, "dilations", rank)
    begins = () if auto_pad else (ints_attribute(call, "pads") or ())
    counts = []
    for i, size in enumerate(spatial):
        stride = strides[i]
        slack = size + pads[i] - (dilations[i] * (kernel[i] - 1) + 1)
        if slack < 0 and size:
            raise ShapeRuleError(
                f"a window of {kernel[i]} (dilation {dilations[i]}) exceeds size {size} "
                f"with padding {pads[i]}"
            )
        count = slack // stride + 1
        if ceil_mode:
            count = -(-slack // stride) + 1
            if (count - 1) * stride >= size + (begins[i] if begins else 0):
                count -= 1
        counts.append(max(count, 0))
    return tuple(counts)


def swapped_layout(shape: Shape | None, to_channels_last: bool) -> Shape | None:
    """(N, C, spatial...) as (N, spatial..., C), or back."""
    if shape is None or len(shape) < 2:
        return shape
    if to_channels_last:
        return (shape[0], *shape[2:], shape[1])
    return (shape[0], shape[-1], *shape[1:-1])
