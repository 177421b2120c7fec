"""``python -m training measure``: what would be measured, and measuring it."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.measure.device import KINDS
from training.measure.workloads import RUNTIMES, Workload, parse_plan, plan_line

__all__ = ["add_parser"]


def add_parser(verbs: Any) -> None:
    """Add the verb ``measure`` to the subparsers of ``python -m training``."""
    measure = verbs.add_parser("measure", help="latency, energy and memory on this machine")
    commands = measure.add_subparsers(dest="command", required=True, metavar="COMMAND")

    plan = commands.add_parser("plan", help="print the workloads, the most informative first")
    _add_plan(plan)
    plan.set_defaults(handler=_plan)

    run = commands.add_parser("run", help="measure the plan's workloads within a budget")
    run.add_argument("--device", choices=KINDS, required=True)
    run.add_argument("--budget", type=_seconds, required=True, metavar="SECONDS")
    run.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON lines")
    run.add_argument("--latency-seconds", type=_seconds, default=5.0, help="of repeats, at most")
    run.add_argument("--energy-seconds", type=_seconds, default=2.0, help="of passes, at least")
    run.add_argument("--retry", action="store_true", help="measure again what failed")
    run.add_argument("--fresh", action="store_true", help="a new process for each workload")
    _add_plan(run)
    run.set_defaults(handler=_run)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plan",
        type=Path,
        metavar="FILE",
        help="lines 'RUNTIME PRECISION BATCH NETWORK', as plan prints them (default: our own)",
    )
    parser.add_argument("--runtime", choices=RUNTIMES, action="append", help="only these")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return value


def _chosen(options: argparse.Namespace) -> tuple[Workload, ...]:
    if options.plan is None:
        from training.measure.plan import default_plan

        plan = default_plan()
    else:
        try:
            lines = options.plan.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{options.plan} can't be read: {error}") from error
        plan = parse_plan(lines, str(options.plan))
    kept = tuple(w for w in plan if not options.runtime or w.runtime in options.runtime)
    return kept[: options.limit]


def _plan(options: argparse.Namespace) -> int:
    for workload in _chosen(options):
        print(plan_line(workload))
    return 0


def _run(options: argparse.Namespace) -> int:
    from training.measure.session import run_plan, start_worker

    start = partial(
        start_worker,
        options.device,
        latency_s=options.latency_seconds,
        energy_s=options.energy_seconds,
    )
    try:
        done = run_plan(
            _chosen(options),
            options.output,
            options.budget,
            start,
            retry=options.retry,
            fresh=options.fresh,
        )
    except (ValueError, TimeoutError, EOFError) as error:
        raise InputError(f"measuring on {options.device} can't start: {error}") from error
    print(
        f"{options.output}: {done.measured} measured, {done.failed} failed, {done.skipped} were "
        f"there, {done.left} left",
        file=sys.stderr,
    )
    return 0
