"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

from training.datasets.public.download import Progress

__all__ = ["bar"]

WIDTH = 24
EVERY_S = 0.1


def bar(name: str, stream: TextIO) -> Progress | None:
    """What shows the progress of ``name``; None where ``stream`` is no terminal."""
    if not stream.isatty():
        return None
    started, shown = time.monotonic(), 0.0

    def show(size: int, total: int | None) -> None:
        nonlocal shown
        now = time.monotonic()
        done = size == total
        if now - shown < EVERY_S and not done:
            return
        shown = now
        share = min(1.0, size / total) if total else 0.0
        filled = round(share * WIDTH)
        rate = size / max(now - started, 1e-6) / 1e6
        text = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {size / 1e6:8.1f} MB {rate:6.1f} MB/s"
        stream.write(f"\r\x1b[K{text} {name[:40]}" + ("\n" if done else ""))
        stream.flush()

    return show
