"""Names out of a file as they may appear in a message: one line, no control characters, short."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["listed", "quoted", "shape_text"]

_MAX_CHARACTERS = 60


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
    parts = ["?" if dim is None else _dim_text(dim) for dim in dims]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _dim_text(dim: int | str) -> str:
    if isinstance(dim, int):
        return str(dim)
    return dim if dim.isprintable() and len(dim) <= _MAX_CHARACTERS else quoted(dim)
