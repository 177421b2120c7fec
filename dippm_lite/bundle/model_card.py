"""The model card of a bundle, rendered from its manifest and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dippm_lite.bundle.manifest import DataSource, Manifest, MetricRow, ModelEntry, Provenance
from dippm_lite.units import format_significant

__all__ = ["render_model_card"]

_PROVENANCE = {
    Provenance.MEASURED: "Measured: published or own measurements.",
    Provenance.COMPOSED: "Composed: summed from models that were fitted on measured kernels.",
}


def render_model_card(manifest: Manifest) -> str:
    """Markdown that says what the bundle predicts, from which data, how well, and its limits.

    The same manifest always gives the same text, which a test holds against the committed file.
    """
    sections = [
        f"# {manifest.bundle_id}\n\n{manifest.description}\n\n"
        f"- Devices: {', '.join(manifest.devices)}\n"
        f"- Created: {manifest.created_utc}\n"
        f"- Built with: {_pairs(manifest.built_with.items())}",
        f"## What it predicts\n\n{_models(manifest.models)}",
        f"## Data\n\n{_data(manifest.data)}",
        f"## How well\n\n{_metrics(manifest.metrics)}",
    ]
    if manifest.teacher is not None or manifest.student is not None:
        origin = [
            f"- {title}: {_pairs(facts.items())}"
            for title, facts in (("Teacher", manifest.teacher), ("Student", manifest.student))
            if facts is not None
        ]
        sections.append("## Distillation\n\n" + "\n".join(origin))
    if manifest.limits:
        sections.append("## Limits\n\n" + "\n".join(f"- {limit}" for limit in manifest.limits))
    constants = [
        (f"{owner}{name}", format(value, ".6g"))
        for owner, facts in (
            ("", manifest.constants),
            *((f"{model.name}: ", model.constants) for model in manifest.models),
        )
        for name, value in facts.items()
    ]
    if constants:
        sections.append("## Fitted constants\n\n" + _table(("Constant", "Value"), constants))
    sections.append("## Ranges of the training data\n\n" + _ranges(manifest.models))
    identity = [*manifest.fingerprints.items()]
    if manifest.feature_digest is not None:
        identity.append(("feature_digest", manifest.feature_digest))
    identity += [(model.file, model.sha256) for model in manifest.models]
    rows = [(f"`{name}`", f"`{digest}`") for name, digest in identity]
    sections.append("## Fingerprints\n\n" + _table(("Of", "sha256"), rows))
    return "\n\n".join(sections) + "\n"


def _models(models: Sequence[ModelEntry]) -> str:
    return _table(
        ("Model", "Kind", "Score", "Unit of the target", "Features", "Trees", "Residual sigma"),
        [
            (
                model.name,
                model.kind.value,
                f"`{model.target.formula}`",
                model.target.unit,
                str(len(model.features)),
                str(model.num_trees),
                "" if model.residual_sigma is None else format_significant(model.residual_sigma),
            )
            for model in models
        ],
    )


def _data(sources: Sequence[DataSource]) -> str:
    head = ("Source", "Used for", "Rows", "Licence", "Where")
    return _by_provenance(
        head,
        [
            (s.provenance, (s.name, s.used_for.value, f"{s.rows:,}", s.licence, s.url or ""))
            for s in sources
        ],
    )


def _metrics(metrics: Sequence[MetricRow]) -> str:
    head = ("Of", "Split", "MAPE %", "Median APE %", "Within 10 % (% of rows)", "Spearman", "Rows")
    return _by_provenance(
        head,
        [
            (
                m.provenance,
                (
                    m.subject,
                    m.split,
                    f"{m.mape_percent:.2f}",
                    f"{m.median_ape_percent:.2f}",
                    f"{m.within_10_percent:.1f}",
                    "" if m.spearman is None else f"{m.spearman:.4f}",
                    f"{m.n:,}",
                ),
            )
            for m in metrics
        ],
    )


def _by_provenance(head: Sequence[str], rows: Sequence[tuple[Provenance, Sequence[str]]]) -> str:
    """A table for each provenance, so that the two are never read as one."""
    parts = []
    for provenance, title in _PROVENANCE.items():
        chosen = [cells for row_provenance, cells in rows if row_provenance is provenance]
        if chosen:
            parts.append(f"{title}\n\n{_table(head, chosen)}")
    return "\n\n".join(parts) if parts else "None."


def _ranges(models: Sequence[ModelEntry]) -> str:
    return _table(
        ("Model", "Feature", "Unit", "Least", "Greatest"),
        [
            (
                model.name,
                f"`{column.name}`",
                column.unit,
                format(column.train_min, ".6g"),
                format(column.train_max, ".6g"),
            )
            for model in models
            for column in model.features
        ],
    )


def _pairs(items: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key} {value}" for key, value in items)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
