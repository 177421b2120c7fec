"""Bundles: trained models with a manifest that explains and defends them."""

from __future__ import annotations

from dippm_lite.bundle.load import Bundle, available_bundles
from dippm_lite.bundle.manifest import (
    DataSource,
    DataUse,
    FeatureColumn,
    Manifest,
    MetricRow,
    ModelEntry,
    ModelKind,
    Provenance,
)
from dippm_lite.bundle.model_card import render_model_card
from dippm_lite.bundle.schema import FeatureSchema
from dippm_lite.bundle.target import Target, Transform

__all__ = [
    "Bundle",
    "DataSource",
    "DataUse",
    "FeatureColumn",
    "FeatureSchema",
    "Manifest",
    "MetricRow",
    "ModelEntry",
    "ModelKind",
    "Provenance",
    "Target",
    "Transform",
    "available_bundles",
    "render_model_card",
]
