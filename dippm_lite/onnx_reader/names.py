"""Names out of a file as they may appear in a message: one line, no control characters, short."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["listed", "plain", "quoted", "shape_text"]

_MAX_CHARACTERS = 60
_MAX_DIMS = 12


def quoted(name: str, most: int = _MAX_CHARACTERS) -> str:
    """``name`` in quotes, escaped, shortened in the middle to about ``most`` characters."""
    if len(name) > most:
        half = most // 2
        name = f"{name[:half]}…{name[-half:]}"
    return ascii(name) if any(not c.isprintable() for c in name) else repr(name)


def listed(names: Iterable[str], most: int = 5) -> str:
    """``'a', 'b' and 3 more``."""
    every = list(names)
    shown = ", ".join(quoted(name) for name in every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def shape_text(dims: Iterable[int | str | None]) -> str:
    """``(N, 3, ?, 224)``: an unnamed dimension is ``?``; a one-element shape keeps its comma."""
    every = list(dims)
    parts = ["?" if dim is None else plain(str(dim)) for dim in every[:_MAX_DIMS]]
    if len(every) > _MAX_DIMS:
        parts.append(f"... {len(every) - _MAX_DIMS} more")
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def plain(name: str) -> str:
    """``name`` as it is where that is short and printable, else in quotes."""
    return name if name.isprintable() and len(name) <= _MAX_CHARACTERS else quoted(name)
