"""Tasks in processes: a crash costs its own task, and no process outlives what it is for."""

from __future__ import annotations

import os
import signal

import pytest

from training.corpus.workers import Died, run_tasks


def square_or_crash(number: int) -> tuple[int, int]:
    if number % 7 == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number % 7 == 6:
        os._exit(3)
    return number * number, os.getpid()


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_comes_back_once_with_its_result_or_its_end(workers):
    results = dict(run_tasks(square_or_crash, range(14), workers=workers, tasks_per_worker=100))
    assert sorted(results) == list(range(14))
    for number, result in results.items():
        if number % 7 == 5:
            assert result == Died(-signal.SIGSEGV)
        elif number % 7 == 6:
            assert result == Died(3)
        else:
            assert result[0] == number * number


def test_a_process_does_as_many_tasks_as_it_is_given_and_no_more():
    results = list(run_tasks(square_or_crash, [1, 2, 3, 4, 7], workers=1, tasks_per_worker=2))
    processes = [result[1] for _, result in results]
    assert processes[0] == processes[1] != processes[2] == processes[3] != processes[4]
    for process in set(processes):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_no_task_is_no_process():
    assert list(run_tasks(square_or_crash, [], workers=2, tasks_per_worker=1)) == []
