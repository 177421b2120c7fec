"""What to say about a dimension that can't be bound: what is wrong, where, and what to type."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from dippm_lite.onnx_reader.dimensions import is_batch_like
from dippm_lite.onnx_reader.names import listed, plain, quoted, shape_text
from dippm_lite.onnx_reader.proto import Dim

__all__ = [
    "bad_batch",
    "bad_dim",
    "bad_shape",
    "bound",
    "fixed_batch",
    "free_dimensions",
    "impossible",
    "no_shape",
    "unknown_dim",
    "unknown_input",
    "unnamed",
    "wrong_rank",
    "wrong_size",
]

_MOST_SHOWN = 4  # inputs, names or flags in one line
_LONGEST_COMPARED = 100  # characters of a name; comparing takes their product

_EXAMPLE_SIZES = (
    (re.compile(r"(h|w|height|width|.*height|.*width|ih|iw)", re.IGNORECASE), 224),
    (re.compile(r".*(seq|len|token|ctx|context|past|time|frame|t\b).*", re.IGNORECASE), 128),
)
"""Sizes to suggest in a flag, by the name of the dimension; 8 for any other."""


def free_dimensions(
    dims: Mapping[str, tuple[Dim, ...] | None], free: Sequence[tuple[str, int]]
) -> str:
    """``input 'image' has free dimension 'N' in (N, 3, H, W): bind it with --batch or --dim N=8``:
    all inputs and all flags in one line."""
    by_input: dict[str, list[int]] = {}
    for name, axis in free:
        by_input.setdefault(name, []).append(axis)
    parts = []
    flags: dict[str, None] = {}
    for name, axes in by_input.items():
        shape = dims[name] or ()
        labels = list(dict.fromkeys(_label(shape[axis], axis) for axis in axes))
        plural = "s" if len(labels) > 1 else ""
        parts.append(
            f"input {quoted(name)} has free dimension{plural} {', '.join(labels)} "
            f"in {shape_text(shape)}"
        )
        for axis in axes:
            flags.setdefault(_flag(name, shape, axis, axes))
    where = "; ".join(parts[:_MOST_SHOWN])
    if len(parts) > _MOST_SHOWN:
        where += f"; and {len(parts) - _MOST_SHOWN} more inputs"
    them = "it" if len(free) == 1 else "them"
    shown = list(flags)[: 2 * _MOST_SHOWN]
    more = " ..." if len(flags) > len(shown) else ""
    alternative = "--batch or " if _has_batch(dims, free) else ""
    return f"{where}: bind {them} with {alternative}{' '.join(shown)}{more}"


def no_shape(names: Sequence[str]) -> str:
    plural = "s" if len(names) > 1 else ""
    return (
        f"input{plural} {listed(names)} of unknown rank: give the shape, "
        f"--shape {_word(names[0])}=1x3x224x224 for example"
    )


def impossible(name: str, dims: tuple[Dim, ...] | None, symbols: Mapping[str, int]) -> str:
    bound = ", ".join(f"{plain(key)}={value}" for key, value in list(symbols.items())[:_MOST_SHOWN])
    return (
        f"input {quoted(name)} of shape {shape_text(dims or ())} comes to no size with {bound}: "
        "give other --dim values"
    )


def unknown_input(name: str, inputs: Iterable[str]) -> str:
    known = list(inputs)
    return f"there is no input {quoted(name)}{_did_you_mean(name, known)}: --shape takes " + (
        f"one of {listed(known)}" if known else "nothing here, the model has no inputs"
    )


def unknown_dim(name: str, names: Iterable[str]) -> str:
    known = sorted(names)
    has = f"the free dimensions are {listed(known)}" if known else "no dimension has a name"
    return f"there is no dimension {quoted(name)}{_did_you_mean(name, known)}: {has}"


def bad_shape(name: str, shape: Sequence[int]) -> str:
    return f"--shape {_word(name)}={_crosses(shape)}: a size can't be negative"


def bad_dim(name: str, size: int) -> str:
    what = "can't be negative" if size < 0 else "can't be 0 for a batch"
    return f"dimension {quoted(name)} is bound to {size}: it {what}, give a positive size"


def bad_batch(size: int) -> str:
    return f"batch size {size} is not positive: give --batch 1 or more"


def wrong_rank(name: str, dims: Sequence[Dim], shape: Sequence[int]) -> str:
    return (
        f"input {quoted(name)} is {shape_text(dims)} in the file, with {len(dims)} dimensions: "
        f"--shape {_word(name)}={_crosses(shape)} has {len(shape)}"
    )


def wrong_size(name: str, dims: Sequence[Dim], shape: Sequence[int], axis: int, before: int) -> str:
    reason = "fixed in the file" if isinstance(dims[axis], int) else "bound already"
    return (
        f"--shape {_word(name)}={_crosses(shape)} contradicts input {quoted(name)} "
        f"{shape_text(dims)}: dimension {axis} is {before}, {reason}, not {shape[axis]}"
    )


def fixed_batch(
    size: int, dims: Mapping[str, tuple[Dim, ...] | None], first: Mapping[str, int | None]
) -> str:
    """No leading dimension is free, and none is ``size``."""
    for name, before in first.items():
        shape = dims[name] or ()
        if isinstance(shape[0], int):
            return (
                f"the batch is fixed at {before} in the file (input {quoted(name)} is "
                f"{shape_text(shape)}): leave --batch {size} out, or export the model with a "
                "free batch dimension"
            )
        return f"--batch {size} contradicts dimension {_label(shape[0], 0)}, bound to {before}"
    return f"the model has no input with a batch dimension: leave --batch {size} out"


def unnamed(name: str, axis: int) -> str:
    """How to call a dimension without a name."""
    return f"dimension {axis} of {quoted(name)}"


def bound(shapes: Mapping[str, tuple[int, ...]], symbols: Mapping[str, int]) -> str:
    """``N=1 and input 'x' of (1, 3, 8, 8)``: names where there are some, else the first input."""
    named = [f"{plain(key)}={value}" for key, value in list(symbols.items())[:_MOST_SHOWN]]
    name, shape = next(iter(shapes.items()), ("", ()))
    first = f"input {quoted(name)} of {shape_text(shape)}" if shapes else ""
    return " and ".join(filter(None, [", ".join(named), first]))


def _label(dim: Dim, axis: int) -> str:
    return quoted(dim) if isinstance(dim, str) else f"{axis} (unnamed)"


def _flag(name: str, shape: tuple[Dim, ...], axis: int, axes: Sequence[int]) -> str:
    """``--dim H=224``; an unnamed dimension can only be given with the whole shape."""
    if any(shape[other] is None for other in axes):
        sizes = [dim if isinstance(dim, int) else _example(dim, i) for i, dim in enumerate(shape)]
        return f"--shape {_word(name)}={_crosses(sizes)}"
    dim = shape[axis]
    return f"--dim {_word(f'{dim}={_example(dim, axis)}')}"


def _example(dim: Dim, axis: int) -> int:
    if dim is None:
        return 224 if axis else 8
    return next((n for pattern, n in _EXAMPLE_SIZES if pattern.fullmatch(str(dim))), 8)


def _has_batch(dims: Mapping[str, tuple[Dim, ...] | None], free: Sequence[tuple[str, int]]) -> bool:
    symbols = [(dims[name] or ())[axis] for name, axis in free]
    return any(isinstance(symbol, str) and is_batch_like(symbol) for symbol in symbols)


def _crosses(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))


def _word(text: str) -> str:
    """``text`` as one word of a shell command, without line breaks."""
    return shlex.quote(text) if text.isprintable() else ascii(text)


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    short = [candidate for candidate in known[:1000] if len(candidate) <= _LONGEST_COMPARED]
    close = difflib.get_close_matches(name[:_LONGEST_COMPARED], short, n=1)
    return f" (did you mean {quoted(close[0])}?)" if close else ""
