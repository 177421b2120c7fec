"""The manifest of a bundle: what its models predict, from what, how well, and proof of identity."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from dippm_lite.bundle.schema import FeatureSchema
from dippm_lite.bundle.strict_json import decode, encode, parse
from dippm_lite.bundle.target import Target
from dippm_lite.errors import BundleError

__all__ = [
    "DataSource",
    "DataUse",
    "FeatureColumn",
    "Manifest",
    "MetricRow",
    "ModelEntry",
    "ModelKind",
    "Provenance",
]

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_COLUMN = re.compile(r"[A-Za-z0-9_.]{1,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class ModelKind(str, Enum):
    """What a model is asked for."""

    KERNEL_LATENCY = "kernel_latency"
    """Time of one kernel on the device, launch overhead excluded."""
    KERNEL_ALGORITHM = "kernel_algorithm"
    """Which algorithm a library picks for a kernel: one score a class."""
    GRAPH = "graph"
    """A whole network's latency, energy or memory."""


class Provenance(str, Enum):
    """Where labels come from; figures of the two are never mixed."""

    MEASURED = "measured"
    """A published or own measurement."""
    COMPOSED = "composed"
    """Summed from models that were fitted on measured kernels."""


class DataUse(str, Enum):
    """What a data set was used for."""

    FIT = "fit"
    CALIBRATE = "calibrate"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """One input of a model; the range is that of its training rows (missing values apart)."""

    name: str
    unit: str
    train_min: float
    train_max: float

    def __post_init__(self) -> None:
        _match(_COLUMN, self.name, "feature name")
        if self.train_min > self.train_max:
            raise ValueError(f"feature {self.name!r} ranges from high to low")


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of a bundle.

    Attributes:
        name: unique in the bundle, such as ``linear_fp32``.
        kind: what it is asked for.
        feature_table: the table of the package that computes its features.
        target: what it predicts.
        features: its columns, in order.
        schema_hash: :attr:`FeatureSchema.digest` of the columns.
        file: LightGBM text beside the manifest, a plain file name.
        sha256: of that file.
        num_trees: trees in it.
        residual_sigma: standard deviation of the raw score's error on held-out rows; None for a
            classifier.
        classes: names of the outputs of a classifier; empty for a regressor.
        constants: other fitted numbers, their unit in the name (``overhead_us``).
    """

    name: str
    kind: ModelKind
    feature_table: str
    target: Target
    features: tuple[FeatureColumn, ...]
    schema_hash: str
    file: str
    sha256: str
    num_trees: int
    residual_sigma: float | None
    classes: tuple[str, ...]
    constants: Mapping[str, float]

    def __post_init__(self) -> None:
        _match(_IDENTIFIER, self.name, "model name")
        _match(_IDENTIFIER, self.file, "file name")
        _match(_SHA256, self.sha256, "sha256")
        if not self.file.endswith(".txt"):
            raise ValueError(f"file {self.file!r} is no LightGBM text (.txt)")
        if self.num_trees < 1:
            raise ValueError(f"model {self.name!r} has {self.num_trees} trees")
        if self.residual_sigma is not None and self.residual_sigma < 0:
            raise ValueError(f"model {self.name!r} has a negative residual_sigma")
        if self.schema_hash != self.schema.digest:
            raise ValueError(f"model {self.name!r}: schema_hash is not that of its features")

    @property
    def schema(self) -> FeatureSchema:
        return FeatureSchema(tuple((column.name, column.unit) for column in self.features))


@dataclass(frozen=True, slots=True)
class DataSource:
    """Rows of one origin. ``licence`` is the source's own word, ``url`` where it is published."""

    name: str
    licence: str
    rows: int
    provenance: Provenance
    used_for: DataUse
    url: str | None

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"data source {self.name!r} has {self.rows} rows")


@dataclass(frozen=True, slots=True)
class MetricRow:
    """How well a model, or a whole prediction, does on one split.

    ``subject`` is a model's name, or a target such as ``latency_ms`` for whole networks.
    ``within_10_percent`` is a percentage of the ``n`` rows.
    """

    subject: str
    split: str
    provenance: Provenance
    mape_percent: float
    median_ape_percent: float
    within_10_percent: float
    spearman: float | None
    n: int

    def __post_init__(self) -> None:
        if self.n < 1 or min(self.mape_percent, self.median_ape_percent) < 0:
            raise ValueError(f"impossible metrics for {self.subject!r}")
        if not 0 <= self.within_10_percent <= 100 or not -1 <= (self.spearman or 0) <= 1:
            raise ValueError(f"impossible metrics for {self.subject!r}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that is known about a bundle.

    Attributes:
        format_version: layout of this file.
        bundle_id: new for every training; a released one never changes.
        description: one sentence for the model card and ``info``.
        created_utc: ISO 8601 with seconds and ``Z``.
        devices: GPUs that its labels were taken on.
        built_with: package versions of the training environment.
        models: in the order in which they are shown.
        constants: fitted numbers of the bundle as a whole, their unit in the name.
        data: what it was fitted, calibrated and tested on.
        fingerprints: sha256 by what it is of (data, split).
        feature_digest: sha256 of rounded feature values of fixture inputs: sees a changed meaning
            behind an unchanged name.
        metrics: how well it does.
        limits: sentences for the model card: where not to trust it.
        teacher, student: how a distilled model came about; None where nothing was distilled.
    """

    FORMAT_VERSION: ClassVar[int] = 1

    format_version: int
    bundle_id: str
    description: str
    created_utc: str
    devices: tuple[str, ...]
    built_with: Mapping[str, str]
    models: tuple[ModelEntry, ...]
    constants: Mapping[str, float]
    data: tuple[DataSource, ...]
    fingerprints: Mapping[str, str]
    feature_digest: str | None
    metrics: tuple[MetricRow, ...]
    limits: tuple[str, ...]
    teacher: Mapping[str, str] | None
    student: Mapping[str, str] | None

    def __post_init__(self) -> None:
        _match(_IDENTIFIER, self.bundle_id, "bundle_id")
        _match(_TIMESTAMP, self.created_utc, "created_utc")
        for digest in (*self.fingerprints.values(), self.feature_digest):
            if digest is not None:
                _match(_SHA256, digest, "fingerprint")
        for what, names in (
            ("model name", [model.name for model in self.models]),
            ("model file", [model.file for model in self.models]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"a {what} occurs twice")
        if not self.models:
            raise ValueError("no models")

    def to_json(self) -> str:
        """The text of ``manifest.json``: field order, two spaces, full precision, final newline."""
        return json.dumps(encode(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "manifest.json") -> Manifest:
        """The inverse of :meth:`to_json`.

        Raises:
            BundleError: not JSON, of another format version, or not as declared here.
        """
        data = parse(text, where)
        # Before the rest: another version may well have other keys.
        version = data.get("format_version") if isinstance(data, dict) else None
        if version != cls.FORMAT_VERSION or isinstance(version, bool):
            raise BundleError(
                f"{where} has format version {repr(version)[:20]}, this dippm-lite reads "
                f"{cls.FORMAT_VERSION}: use a bundle and a package of the same release"
            )
        return decode(cls, data, where)


def _match(pattern: re.Pattern[str], text: str, what: str) -> None:
    if not pattern.fullmatch(text):
        raise ValueError(f"{what} {text[:80]!r} is not allowed")
