"""``python -m training kernels fit|evaluate``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from dippm_lite.bundle import MetricRow
from dippm_lite.bundle.load import BUNDLES_FOLDER
from training.data_folder import add_data_option, data_folder
from training.kernels.bundling import fit_bundle
from training.kernels.evaluation import cross_validation, find, out_of_distribution
from training.kernels.learning import fit
from training.kernels.plans import PLANS, Plan
from training.kernels.sources import read

__all__ = ["add_parser"]

_REPOSITORY = Path(__file__).resolve().parents[2]
_HEAD = ("model", "rows", "MAPE %", "median %", "target %", "OOD MAPE %", "OOD rows", "OOD target")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb ``kernels``."""
    verb = verbs.add_parser("kernels", help="kernel latency models from measured kernels")
    actions = verb.add_subparsers(required=True, metavar="ACTION")

    fitting = actions.add_parser("fit", help="fit every model and write a bundle")
    _add_common(fitting)
    fitting.add_argument("--bundle-id", required=True, help="a new one for every training")
    fitting.add_argument("--out", type=Path, default=BUNDLES_FOLDER, help="folder of bundles")
    fitting.add_argument("--default", action="store_true", help="make it the bundle that ships")
    fitting.set_defaults(handler=_fit)

    evaluating = actions.add_parser("evaluate", help="five-fold and out-of-distribution errors")
    _add_common(evaluating)
    evaluating.add_argument("--format", choices=("text", "json"), default="text")
    evaluating.add_argument(
        "--artifacts", type=Path, help="also write kernels.json and kernels.md into this folder"
    )
    evaluating.set_defaults(handler=_evaluate)


def _add_common(parser: argparse.ArgumentParser) -> None:
    add_data_option(parser)
    parser.add_argument("--threads", type=int, default=1, help="of LightGBM; changes no result")
    parser.add_argument(
        "--only", nargs="+", choices=[plan.name for plan in PLANS], help="some of the models"
    )


def _chosen(arguments: argparse.Namespace) -> tuple[Plan, ...]:
    return tuple(p for p in PLANS if arguments.only is None or p.name in arguments.only)


def _fit(arguments: argparse.Namespace) -> int:
    bundle = fit_bundle(
        data_folder(arguments.data),
        arguments.out,
        arguments.bundle_id,
        _chosen(arguments),
        threads=arguments.threads,
        default=arguments.default,
    )
    _write_artifacts(_REPOSITORY / "artifacts" / bundle.manifest.bundle_id, bundle.manifest.metrics)
    size = sum(path.stat().st_size for path in bundle.folder.iterdir())
    print(f"{bundle.folder}: {len(bundle.manifest.models)} models, {size / 1e6:.2f} MB")
    print(_table(bundle.manifest.metrics))
    return 0


def _evaluate(arguments: argparse.Namespace) -> int:
    metrics: list[MetricRow] = []
    for plan in _chosen(arguments):
        folder = data_folder(arguments.data) / "kernels"
        rows = read(folder / plan.file, plan.device, plan.math, plan.ops)
        metrics += cross_validation(plan, rows, arguments.threads).metrics
        metrics += out_of_distribution(plan, fit(plan, rows, arguments.threads), folder)
        print(f"{plan.name} done", file=sys.stderr)
    if arguments.artifacts is not None:
        _write_artifacts(arguments.artifacts, metrics)
    print(_json(metrics) if arguments.format == "json" else _table(metrics))
    return 0


def _write_artifacts(folder: Path, metrics: Sequence[MetricRow]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.json").write_text(_json(metrics) + "\n", encoding="utf-8")
    text = f"# Kernel latency models\n\n{_table(metrics)}\n\n{_all(metrics)}\n"
    (folder / "kernels.md").write_text(text, encoding="utf-8")


def _json(metrics: Sequence[MetricRow]) -> str:
    rows = [{k: getattr(v, "value", v) for k, v in asdict(row).items()} for row in metrics]
    return json.dumps({"metrics": rows}, indent=2)


def _table(metrics: Sequence[MetricRow]) -> str:
    """One line a model, beside its targets; a second one where the host time of its rows drifts and
    the first takes it from a row's position in the file."""
    lines = []
    for plan in PLANS:
        five_fold = find(metrics, plan.name, "five-fold")
        if five_fold is None:
            continue
        tested = find(metrics, plan.name, "out of distribution")
        lines.append(
            (
                plan.name,
                f"{five_fold.n:,}",
                f"{five_fold.mape_percent:.2f}",
                f"{five_fold.median_ape_percent:.2f}",
                _number(plan.target_mape),
                "" if tested is None else f"{tested.mape_percent:.2f}",
                "" if tested is None else f"{tested.n:,}",
                _number(plan.target_test_mape),
            )
        )
        blind = find(metrics, plan.name, "five-fold, position unknown")
        if blind is not None:
            figures = (f"{blind.mape_percent:.2f}", f"{blind.median_ape_percent:.2f}")
            lines.append((f"{plan.name}, blind", f"{blind.n:,}", *figures, "", "", "", ""))
    return _markdown(_HEAD, lines)


def _all(metrics: Sequence[MetricRow]) -> str:
    head = ("model", "split", "rows", "MAPE %", "median %", "within 10 %", "Spearman")
    lines = [
        (
            m.subject, m.split, f"{m.n:,}", f"{m.mape_percent:.2f}", f"{m.median_ape_percent:.2f}",
            f"{m.within_10_percent:.1f}", "" if m.spearman is None else f"{m.spearman:.4f}",
        )
        for m in metrics
    ]  # fmt: skip
    return _markdown(head, lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"<= {value:g}"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *lines)) for i in range(len(head))]
    rows = [head, ["-" * width for width in widths], *lines]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    )
