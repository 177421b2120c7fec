"""From measured kernels to a bundle: fit every plan, describe it, write it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dippm_lite.bundle import (
    Bundle,
    DataSource,
    DataUse,
    Manifest,
    MetricRow,
    ModelEntry,
    ModelKind,
    Target,
    Transform,
)
from dippm_lite.kernel_features import LAUNCH_FLOOR_S, TABLES
from training.export import built_with, created_utc, describe_model, feature_columns, write_bundle
from training.kernels.evaluation import cross_validation, out_of_distribution
from training.kernels.fixtures import feature_digest
from training.kernels.learning import SEED, Fitted, fit, folds
from training.kernels.plans import Plan
from training.kernels.sources import Measured, data_source, fingerprint, read
from training.shorten import shorten_model_text

__all__ = ["TARGET", "fit_bundle"]

TARGET = Target("kernel_s", "s", Transform.LOG_RATIO, "(roofline_s + launch_floor_s)")

_LIMITS = (
    "Kernels were measured one at a time on an idle A100, PyTorch 2.1 with TF32 off (fp32) and "
    "vLLM's kernels (fp16): the newest libraries may be faster.",
    "Convolutions were measured with cudnn.benchmark on, 3x3, stride 1, padding 1, square: other "
    "shapes are carried over from matrix products and marked as extrapolated.",
    "There are no measured TF32 products, and no measured fp16 or TF32 convolutions.",
    "Rows of convolutions hold a host time that grows along the file; the figure with the position "
    "unknown is what a model of sizes alone can reach on that column.",
)


def fit_bundle(
    data: Path,
    parent: Path,
    bundle_id: str,
    plans: Sequence[Plan],
    *,
    threads: int = 1,
    default: bool = False,
) -> Bundle:
    """Fit ``plans`` on the measured kernels in ``data/kernels`` and write ``parent/bundle_id``.

    Raises:
        FileExistsError: the bundle exists.
    """
    folder = data / "kernels"
    entries: list[ModelEntry] = []
    texts: dict[str, str] = {}
    metrics: list[MetricRow] = []
    sources: list[DataSource] = []
    split = hashlib.sha256()
    for plan in plans:
        rows = read(folder / plan.file, plan.device, plan.math, plan.ops)
        checked = cross_validation(plan, rows, threads)
        fitted = fit(plan, rows, threads)
        tested = out_of_distribution(plan, fitted, folder)
        text = shorten_model_text(fitted.booster.model_to_string(), digits=6)
        entries.append(_describe(plan, rows, fitted, text, checked.residual_sigma))
        texts[plan.name] = text
        metrics += (*checked.metrics, *tested)
        sources.append(data_source(plan.file, len(rows), DataUse.FIT))
        if tested and plan.test_file is not None:
            sources.append(data_source(plan.test_file, tested[0].n, DataUse.TEST))
        split.update(np.ascontiguousarray(folds(len(rows))).tobytes())
    manifest = Manifest(
        format_version=Manifest.FORMAT_VERSION,
        bundle_id=bundle_id,
        description="Latency of single GPU kernels on an NVIDIA A100, from measured kernels.",
        created_utc=created_utc(),
        devices=tuple(dict.fromkeys(plan.device for plan in plans)),
        built_with=built_with("lightgbm", "numpy", "pandas"),
        models=tuple(entries),
        constants={"launch_floor_us": LAUNCH_FLOOR_S * 1e6, "seed": float(SEED)},
        data=_merged(sources),
        fingerprints={
            "data": fingerprint(
                {folder / f for plan in plans for f in (plan.file, plan.test_file) if f}
            ),
            "split": split.hexdigest(),
        },
        feature_digest=feature_digest(),
        metrics=tuple(metrics),
        limits=_LIMITS,
        teacher=None,
        student=None,
    )
    return write_bundle(parent, manifest, texts, default=default)


def _describe(
    plan: Plan, rows: Measured, fitted: Fitted, text: str, residual_sigma: float
) -> ModelEntry:
    table = TABLES[plan.table]
    constants = {
        f"host_time_us_{op}": round(seconds * 1e6, 3)
        for op, seconds in fitted.op_overhead_s.items()
        if seconds
    }
    if fitted.drift is not None:
        first, last = fitted.drift.overhead_s[[0, -1]] * 1e6
        constants |= {"host_time_us_first": float(first), "host_time_us_last": float(last)}
    return describe_model(
        text,
        name=plan.name,
        kind=ModelKind.KERNEL_LATENCY,
        feature_table=plan.table,
        target=TARGET,
        features=feature_columns(table.schema, table.matrix(rows.batch)),
        residual_sigma=residual_sigma,
        constants=constants,
    )


def _merged(sources: Sequence[DataSource]) -> tuple[DataSource, ...]:
    """One line a file and use: rows added up."""
    total: dict[tuple[str, DataUse], DataSource] = {}
    for source in sources:
        key = (source.name, source.used_for)
        rows = source.rows + (total[key].rows if key in total else 0)
        total[key] = DataSource(
            source.name, source.licence, rows, source.provenance, source.used_for, source.url
        )
    return tuple(total.values())
