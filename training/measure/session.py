"""A plan against a budget: resumable, in a process that may die, one JSON line a workload."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

from training.measure.measuring import failure, key_of, measure
from training.measure.workloads import Workload, plan_line

__all__ = ["GUESS_S", "Done", "Worker", "measured_keys", "run_plan", "start_worker"]

GUESS_S = 12.0
"""A workload's time before any was measured: build, warm-up, 5 s of repeats, 2 s for the energy."""

LIMIT_S = 180.0
"""A workload that takes longer is given up; compilers take a minute or two."""

START_S = 120.0
"""Importing torch and starting CUDA, at most."""


class Worker(Protocol):
    """What measures: another process, or a stand-in."""

    device_name: str

    def measure(self, workload: Workload, limit_s: float) -> dict[str, Any]:
        """The row; TimeoutError or EOFError where there is none, and the worker is gone then."""
        ...

    def close(self) -> None: ...


@dataclass
class Done:
    """What a run did."""

    measured: int = 0
    failed: int = 0
    skipped: int = 0
    left: int = 0
    seconds: list[float] = field(default_factory=list)


def measured_keys(path: Path, *, retry: bool = False) -> set[str]:
    """Keys of the rows in ``path``; without those of failures where ``retry`` is set.

    A line that is no row (a run that was cut off while writing) doesn't count.
    """
    if not path.exists():
        return set()
    keys = set()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            if not (retry and row["error"]):
                keys.add(str(row["key"]))
        except (ValueError, KeyError, TypeError):
            continue
    return keys


def run_plan(
    plan: Sequence[Workload],
    output: Path,
    budget_s: float,
    start: Callable[[], Worker],
    *,
    retry: bool = False,
    fresh: bool = False,
    log: TextIO = sys.stderr,
    clock: Callable[[], float] = time.monotonic,
) -> Done:
    """Measure what ``output`` lacks, in order, until the budget is spent.

    A workload is begun only if the mean time of those before it is left. One that fails, hangs or
    takes its process with it is a row with an error, and a new process goes on.

    Args:
        output: JSON lines, appended one by one.
        start: makes a worker.
        retry: measure again what failed.
        fresh: a new process for each workload, so that no memory is left of the one before.
    """
    started = clock()
    first = start()
    worker: Worker | None = first
    name = first.device_name
    have = measured_keys(output, retry=retry)
    todo = [workload for workload in plan if key_of(workload, name) not in have]
    done = Done(skipped=len(plan) - len(todo))
    print(_estimate(name, len(plan), len(todo), budget_s), file=log, flush=True)
    try:
        for number, workload in enumerate(todo, 1):
            left_s = budget_s - (clock() - started)
            expected = sum(done.seconds) / len(done.seconds) if done.seconds else 0.0
            if left_s <= expected:
                done.left = len(todo) - number + 1
                break
            began = clock()
            if worker is None:
                worker = start()
            try:
                row = worker.measure(workload, min(LIMIT_S, left_s))
            except (TimeoutError, EOFError) as error:
                worker.close()
                worker = None
                if isinstance(error, TimeoutError) and left_s < LIMIT_S:
                    done.left = len(todo) - number + 1  # the budget ended, not the workload
                    break
                row = failure(workload, name, error, clock() - began)
            _append(output, row)
            done.seconds.append(clock() - began)
            if row["error"]:
                done.failed += 1
            else:
                done.measured += 1
            print(_progress(number, len(todo), workload, row, done, left_s), file=log, flush=True)
            # A failed pass can leave the CUDA context unusable for all that follow.
            if worker is not None and (fresh or row["error"]):
                worker.close()
                worker = None
    finally:
        if worker is not None:
            worker.close()
    return done


def _estimate(device: str, plan: int, todo: int, budget_s: float) -> str:
    room = int(budget_s / GUESS_S)
    text = f"{device}: {plan} workloads, {plan - todo} measured already"
    if todo:
        text += (
            f"; at about {GUESS_S:g} s each, {todo} take {todo * GUESS_S / 60:.0f} min, and the "
            f"budget of {budget_s:g} s has room for about {min(room, todo)}"
        )
    return text


def _progress(
    number: int, todo: int, workload: Workload, row: dict[str, Any], done: Done, left_s: float
) -> str:
    each = sum(done.seconds) / len(done.seconds)
    if row["error"]:
        figure = row["error"][:100]
    else:
        energy = row["energy_j"]
        figure = f"{row['latency_ms']:.3f} ms"
        figure += "" if energy is None else f", {energy:.3f} J"
    left = max(0.0, left_s - done.seconds[-1])
    return (
        f"{number}/{todo} {plan_line(workload)}: {figure} "
        f"({each:.1f} s each, {left:.0f} s left for about {int(left / max(each, 1e-9))} more)"
    )


def _append(path: Path, row: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, sort_keys=True) + "\n"
    # What a run that was cut off left of its last line must not swallow the next one.
    cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if cut else "") + line)


class _Process:
    """A worker in another process."""

    def __init__(self, kind: str, latency_s: float, energy_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, kind, latency_s, energy_s), daemon=True
        )
        self._process.start()
        theirs.close()
        self.device_name = ""
        try:
            answer = self._receive(START_S)
        except (TimeoutError, EOFError):
            self.close()
            raise
        if "error" in answer:
            self.close()
            raise ValueError(answer["error"])
        self.device_name = str(answer["device"])

    def _receive(self, limit_s: float) -> dict[str, Any]:
        if not self._pipe.poll(limit_s):
            raise TimeoutError(f"no answer after {limit_s:.0f} s")
        try:
            answer: dict[str, Any] = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(10)
            raise EOFError(f"the process ended with code {self._process.exitcode}") from error
        return answer

    def measure(self, workload: Workload, limit_s: float) -> dict[str, Any]:
        try:
            self._pipe.send(workload)
        except OSError as error:
            raise EOFError(f"the process is gone: {error}") from error
        return self._receive(limit_s)

    def close(self) -> None:
        self._pipe.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def start_worker(kind: str, *, latency_s: float, energy_s: float) -> Worker:
    """A process that measures on ``kind`` (``"cpu"`` or ``"cuda"``).

    Raises:
        ValueError: there is no such device.
        TimeoutError, EOFError: the process doesn't start.
    """
    return _Process(kind, latency_s, energy_s)


def _serve(pipe: Any, kind: str, latency_s: float, energy_s: float) -> None:
    """The other process: device once, then a row for each workload, until the pipe closes."""
    from training.measure.device import open_device

    sys.setrecursionlimit(10_000)
    try:
        device = open_device(kind)
    except Exception as error:  # told to the parent, which decides
        pipe.send({"error": f"{type(error).__name__}: {error}"})
        return
    pipe.send({"device": device.name})
    before = 0
    while True:
        try:
            workload = pipe.recv()
        except (EOFError, OSError):
            return
        row = measure(workload, device, latency_s=latency_s, energy_s=energy_s)
        pipe.send(row | {"workloads_before_in_process": before})
        before += 1
