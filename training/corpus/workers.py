"""Run tasks in processes that may die: a crash costs its own task and no other."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

__all__ = ["Died", "run_tasks"]

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Died:
    """In place of a result: the process ended first. A negative code is the signal's number."""

    exit_code: int | None


@dataclass(slots=True)
class _Worker(Generic[Task]):
    process: BaseProcess
    connection: Connection
    task: Task
    left: int


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int,
    tasks_per_worker: int,
) -> Iterator[tuple[Task, Result | Died]]:
    """Yield each task with its result, as they finish.

    ``function`` is importable and raises nothing; a task during which its process dies comes with
    :class:`Died`. A process ends after ``tasks_per_worker`` tasks, or when the caller's does.
    """
    context = multiprocessing.get_context("spawn")
    waiting = deque(tasks)
    busy: dict[Connection, _Worker[Task]] = {}

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(function, theirs), daemon=True)
        process.start()
        theirs.close()
        assign(_Worker(process, ours, waiting.popleft(), tasks_per_worker))

    def assign(worker: _Worker[Task]) -> None:
        worker.connection.send(worker.task)
        busy[worker.connection] = worker

    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                start()
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                worker = busy.pop(ready)
                finished = worker.task
                result: Any
                try:
                    result = ready.recv()
                except EOFError:
                    worker.process.join()
                    worker.left = 0
                    result = Died(worker.process.exitcode)
                worker.left -= 1
                if waiting and worker.left > 0:
                    worker.task = waiting.popleft()
                    assign(worker)
                else:
                    ready.close()
                    worker.process.join()
                yield finished, result
    finally:
        for worker in busy.values():
            worker.process.terminate()


def _serve(function: Callable[[Any], Any], connection: Connection) -> None:
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(function(task))
