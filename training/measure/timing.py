"""How long a call takes: the median of repeats after a warm-up, with its own uncertainty.

The uncertainty is that of the median by order statistics, which assumes nothing of the shape of
the distribution: ranks ``n / 2 -+ 0.98 sqrt(n)`` bound the true median with 95% confidence
(binomial, normal approximation).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["CudaTimer", "Latency", "Timer", "WallTimer", "measure_latency", "median_interval"]

Call = Callable[[], object]

WARM_UP_CALLS = 3
WARM_UP_S = 0.3
"""A warm-up has both: clocks need time to rise, caches and autotuning need calls."""

MIN_REPEATS = 10
"""Fewer give no interval of the median at 95%."""

MAX_REPEATS = 5000


class Timer(Protocol):
    """Measures one call, its work on the device included."""

    def time_ms(self, call: Call) -> float:
        """Milliseconds from the start of ``call`` to the end of what it started."""
        ...

    def finish(self) -> None:
        """Wait until the device has done everything."""
        ...


@dataclass(frozen=True, slots=True)
class WallTimer:
    """The host's clock, for calls that return when their work is done."""

    clock: Callable[[], float] = time.perf_counter

    def time_ms(self, call: Call) -> float:
        start = self.clock()
        call()
        return (self.clock() - start) * 1e3

    def finish(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class CudaTimer:
    """CUDA events around a call on the current stream.

    The first event stands on an idle GPU, so that the time includes the host's share where
    launching takes longer than running: a pass that is bound by launches is as slow as that.
    """

    torch: Any

    def time_ms(self, call: Call) -> float:
        cuda = self.torch.cuda
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda.synchronize()
        start.record()
        call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end))

    def finish(self) -> None:
        self.torch.cuda.synchronize()


@dataclass(frozen=True, slots=True)
class Latency:
    """What the repeats say.

    Attributes:
        median_ms: of the repeats.
        low_ms, high_ms: the true median lies between with 95% confidence.
        minimum_ms, maximum_ms: of the repeats.
        repeats: after the warm-up.
        settled: False where time ran out before the interval was as narrow as asked for.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    minimum_ms: float
    maximum_ms: float
    repeats: int
    settled: bool


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and bounds of the true median at 95%; sorted values in, at least one."""
    count = len(values)
    middle = count // 2
    median = values[middle] if count % 2 else (values[middle - 1] + values[middle]) / 2
    reach = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach))
    return median, values[low], values[high]


def measure_latency(
    call: Call,
    timer: Timer,
    *,
    limit_s: float = 5.0,
    relative_error: float = 0.01,
    clock: Callable[[], float] = time.perf_counter,
) -> Latency:
    """Time ``call`` until the median is known to ``relative_error``, or ``limit_s`` is over.

    The limit holds for the warm-up and for the repeats, each; of either, one call is made however
    long it takes. The very first call, which may compile, counts for neither.
    """
    call()
    timer.finish()
    started, calls = clock(), 0
    while not calls or clock() - started <= limit_s:
        call()
        timer.finish()
        calls += 1
        if calls >= WARM_UP_CALLS and clock() - started >= WARM_UP_S:
            break
    values: list[float] = []
    started = clock()
    settled = False
    while len(values) < MAX_REPEATS:
        values.append(timer.time_ms(call))
        if len(values) >= MIN_REPEATS and len(values) % MIN_REPEATS == 0:
            median, low, high = median_interval(sorted(values))
            settled = max(high - median, median - low) <= relative_error * median
        if settled or clock() - started > limit_s:
            break
    values.sort()
    median, low, high = median_interval(values)
    return Latency(median, low, high, values[0], values[-1], len(values), settled)
