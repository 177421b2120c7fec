"""Writing bundles: the inverse of ``dippm_lite.bundle.load``."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dippm_lite.booster import Booster
from dippm_lite.bundle import (
    Bundle,
    FeatureColumn,
    FeatureSchema,
    Manifest,
    ModelEntry,
    ModelKind,
    Target,
    render_model_card,
)

__all__ = ["built_with", "created_utc", "describe_model", "feature_columns", "write_bundle"]


def feature_columns(
    columns: Sequence[tuple[str, str]], rows: NDArray[np.float64]
) -> tuple[FeatureColumn, ...]:
    """``(name, unit)`` pairs with the range that each has in the training rows.

    Shapes:
        rows: (n, len(columns)); missing values are NaN and don't count.

    Raises:
        ValueError: the widths differ, or a column has no value at all.
    """
    if rows.shape[1:] != (len(columns),):
        raise ValueError(f"rows of shape {rows.shape} for {len(columns)} columns")
    for (name, _), column in zip(columns, rows.T, strict=True):
        if not np.isfinite(column).any():
            raise ValueError(f"feature {name!r} has no value in the training rows")
    return tuple(
        FeatureColumn(name, unit, float(np.nanmin(column)), float(np.nanmax(column)))
        for (name, unit), column in zip(columns, rows.T, strict=True)
    )


def describe_model(
    text: str,
    *,
    name: str,
    kind: ModelKind,
    feature_table: str,
    target: Target,
    features: tuple[FeatureColumn, ...],
    residual_sigma: float | None = None,
    classes: tuple[str, ...] = (),
    constants: Mapping[str, float] | None = None,
) -> ModelEntry:
    """The manifest's row for a LightGBM model; hashes and counts are taken from its text."""
    return ModelEntry(
        name=name,
        kind=kind,
        feature_table=feature_table,
        target=target,
        features=features,
        schema_hash=FeatureSchema(tuple((c.name, c.unit) for c in features)).digest,
        file=f"{name}.txt",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        num_trees=Booster.from_text(text).num_trees,
        residual_sigma=residual_sigma,
        classes=classes,
        constants=dict(constants or {}),
    )


def created_utc() -> str:
    """Now, or ``SOURCE_DATE_EPOCH`` where it is set, in the manifest's format."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def built_with(*packages: str) -> dict[str, str]:
    """Versions of Python and of the named packages."""
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def write_bundle(
    parent: Path, manifest: Manifest, texts: Mapping[str, str], *, default: bool = False
) -> Bundle:
    """Write ``parent/<bundle_id>``: models, manifest, model card. Reads it back as a check.

    Args:
        parent: where bundles live, ``dippm_lite/bundles`` for those that ship.
        manifest: complete, its models described by :func:`describe_model`.
        texts: LightGBM text by model name.
        default: also make it the one that ``Bundle.load()`` opens.

    Raises:
        FileExistsError: the bundle exists: a released one never changes, so a new training takes
            a new id (or the old folder is deleted on purpose).
        ValueError: ``texts`` has other models than the manifest.
        BundleError: a text doesn't match the manifest.
    """
    if texts.keys() != {entry.name for entry in manifest.models}:
        raise ValueError(f"texts for {sorted(texts)}, which are not the manifest's models")
    folder = parent / manifest.bundle_id
    folder.mkdir(parents=True)
    for entry in manifest.models:
        (folder / entry.file).write_bytes(texts[entry.name].encode())
    (folder / "manifest.json").write_bytes(manifest.to_json().encode())
    (folder / "MODEL_CARD.md").write_bytes(render_model_card(manifest).encode())
    bundle = Bundle.load(folder)
    bundle.verify()
    if bundle.manifest != manifest:
        raise ValueError("the manifest doesn't survive being written and read")
    if default:
        (parent / "DEFAULT").write_bytes(f"{manifest.bundle_id}\n".encode())
    return bundle
