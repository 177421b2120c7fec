"""Finding, opening and checking bundles: nothing in one is used before it is proven intact."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dippm_lite.booster import Booster
from dippm_lite.bundle.manifest import Manifest, ModelEntry
from dippm_lite.bundle.schema import FeatureSchema
from dippm_lite.errors import BundleError

__all__ = ["BUNDLES_FOLDER", "MANIFEST_FILE", "Bundle", "available_bundles"]

BUNDLES_FOLDER = Path(__file__).parent.parent / "bundles"
"""The bundles that the package ships, one folder each, and ``DEFAULT``, which names one of them."""

MANIFEST_FILE = "manifest.json"

_MAX_MANIFEST_BYTES = 1 << 22
_MAX_MODEL_BYTES = 1 << 25
_PLAIN_OBJECTIVES = ("regression", "regression_l1", "huber", "fair", "quantile", "mape", "")
"""Objectives (the last is a custom one) whose raw score is the prediction, up to the transform."""

_REINSTALL = "reinstall dippm-lite, or get the bundle again"


def available_bundles() -> tuple[str, ...]:
    """Ids of the bundles that the package ships, sorted."""
    return tuple(sorted(path.parent.name for path in BUNDLES_FOLDER.glob(f"*/{MANIFEST_FILE}")))


@dataclass(frozen=True)
class Bundle:
    """A bundle whose manifest has been checked; its models are read when asked for.

    Attributes:
        folder: where its files are.
        manifest: what they are.
    """

    folder: Path
    manifest: Manifest
    _boosters: dict[str, Booster] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(
        cls,
        path: str | Path | None = None,
        expected: Mapping[str, FeatureSchema] | None = None,
    ) -> Bundle:
        """Open the bundle in folder ``path``, by default the one that the package ships.

        Checks the manifest, its version first, that every model file is there, and the models'
        columns. Hashes and trees are checked by :meth:`booster`, model by model.

        Args:
            path: the bundle's folder.
            expected: the package's feature tables by name; a model must have been trained on
                exactly the columns of the table that it names. None skips this check.

        Raises:
            BundleError: the bundle is missing, damaged, of another format version, or made for
                other features; the message names the first differing column.
        """
        given = _default_folder() if path is None else Path(path)
        manifest_path = given / MANIFEST_FILE
        text = _read(manifest_path, _MAX_MANIFEST_BYTES)
        try:
            manifest = Manifest.from_json(text.decode("utf-8"), where=str(manifest_path))
        except UnicodeDecodeError:
            raise BundleError(f"{manifest_path} is not UTF-8 text: {_REINSTALL}") from None
        # Where an installer links each file into its cache, the manifest's real place is the
        # bundle's, and the models have to be beside it.
        bundle = cls(manifest_path.resolve().parent, manifest)
        for entry in manifest.models:
            bundle._model_path(entry)
            if expected is not None:
                _check_schema(entry, expected, str(manifest_path))
        return bundle

    def entry(self, name: str) -> ModelEntry:
        """The manifest's row for model ``name``.

        Raises:
            BundleError: the bundle has no such model.
        """
        for entry in self.manifest.models:
            if entry.name == name:
                return entry
        raise BundleError(f"bundle {self.manifest.bundle_id} has no model {name!r}")

    def booster(self, name: str) -> Booster:
        """The trees of model ``name``, parsed on first use and kept.

        Raises:
            BundleError: no such model, its file doesn't match its sha256, or holds something else
                than the manifest says.
        """
        if name not in self._boosters:
            self._boosters[name] = self._read_booster(self.entry(name))
        return self._boosters[name]

    def verify(self) -> None:
        """Check every file, at once instead of on first use.

        Raises:
            BundleError: as :meth:`booster`.
        """
        for entry in self.manifest.models:
            self.booster(entry.name)

    def _read_booster(self, entry: ModelEntry) -> Booster:
        path = self._model_path(entry)
        text = _read(path, _MAX_MODEL_BYTES)
        if hashlib.sha256(text).hexdigest() != entry.sha256:
            raise BundleError(f"{path} doesn't match its sha256 in the manifest: {_REINSTALL}")
        try:
            booster = Booster.from_text(text)
        except BundleError as error:
            raise BundleError(f"{path}: {error}") from None
        names = tuple(column.name for column in entry.features)
        for number, (ours, theirs) in enumerate(
            zip(names, booster.feature_names, strict=False), start=1
        ):
            if ours != theirs:
                raise BundleError(f"{path}: column {number} is {theirs!r}, expected {ours!r}")
        if len(names) != len(booster.feature_names):
            raise BundleError(f"{path} has {len(booster.feature_names)} columns, not {len(names)}")
        if booster.num_trees != entry.num_trees:
            raise BundleError(f"{path} has {booster.num_trees} trees, not {entry.num_trees}")
        outputs = max(1, len(entry.classes))
        if booster.num_tree_per_iteration != outputs:
            raise BundleError(f"{path} has {booster.num_tree_per_iteration} outputs, not {outputs}")
        if booster.objective not in _PLAIN_OBJECTIVES and not entry.classes:
            raise BundleError(
                f"{path} was trained for {booster.objective!r}, whose score isn't the target"
            )
        return booster

    def _model_path(self, entry: ModelEntry) -> Path:
        path = self.folder / entry.file
        if not path.is_file():
            raise BundleError(f"{path} is missing, the file of model {entry.name!r}: {_REINSTALL}")
        if path.resolve().parent != self.folder:
            raise BundleError(f"{path} is a link out of the bundle's folder: {_REINSTALL}")
        return path


def _default_folder() -> Path:
    pointer = BUNDLES_FOLDER / "DEFAULT"
    if not pointer.is_file():
        raise BundleError(f"this installation has no bundle ({pointer} is missing): {_REINSTALL}")
    name = pointer.read_text(encoding="utf-8").strip()
    if name not in available_bundles():
        raise BundleError(f"{pointer} names {name[:80]!r}, which is not there: {_REINSTALL}")
    return BUNDLES_FOLDER / name


def _check_schema(entry: ModelEntry, expected: Mapping[str, FeatureSchema], where: str) -> None:
    schema = expected.get(entry.feature_table)
    if schema is None:
        raise BundleError(
            f"{where}: model {entry.name!r} needs the features {entry.feature_table!r}, which this "
            "dippm-lite doesn't have: use a bundle and a package of the same release"
        )
    if entry.schema_hash != schema.digest:
        raise BundleError(
            f"{where}: model {entry.name!r} was made for other features: "
            f"{schema.difference(entry.schema)}; use a bundle and a package of the same release"
        )


def _read(path: Path, limit: int) -> bytes:
    """The content of ``path``, at most ``limit`` bytes of it."""
    if not path.is_file():  # which also keeps a pipe or a device from being opened
        raise BundleError(f"{path} is missing: give the folder of a bundle")
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}") from None
    if len(content) > limit:
        raise BundleError(f"{path} is larger than {limit} bytes: it is no part of a bundle")
    return content
