"""What the corpus holds: records, composed labels and measured labels, each counted apart."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from training.corpus.labels import Label
from training.corpus.records import Corpus
from training.datasets.groups import short
from training.datasets.measured import MeasuredRow
from training.datasets.reasons import Reason

__all__ = ["composed_counts", "corpus_digest", "measured_counts", "record_counts", "render_counts"]


MOST_MISSING = 25
"""Networks that the records lack and that are named: those of most rows."""


def record_counts(corpus: Corpus) -> dict[str, Any]:
    """Counts over the records: graphs, names merged, architectures, sizes, by family and source."""
    records = corpus.records
    return {
        "graphs": len(records),
        "names": sum(1 + len(record.aliases) for record in records),
        "architectures": len({record.architecture for record in records}),
        "families": len({record.family for record in records}),
        "nodes": sum(record.nodes for record in records),
        "packed_bytes": sum(path.stat().st_size for path in corpus.folder.glob("*.onnx.zst")),
        "by_source": _by(record.name.split("/")[0] for record in records),
        "by_family": _by(record.family for record in records),
        "by_exporter": _by(f"{record.exporter} opset {record.opset}" for record in records),
    }


def corpus_digest(corpus: Corpus) -> str:
    """Twelve hex digits over the records: equal for corpora of the same graphs."""
    text = "\n".join(sorted(record.fingerprint for record in corpus.records))
    return short(hashlib.sha256(text.encode()).hexdigest())


def composed_counts(labels: Sequence[Label], corpus: Corpus) -> dict[str, Any]:
    """Counts over composed labels of the corpus's records; each label is a workload."""
    families = {short(record.fingerprint): record.family for record in corpus.records}
    labels = [label for label in labels if label.fingerprint in families]
    return {
        "provenance": "composed",
        "workloads": len(labels),
        "graphs": len({label.fingerprint for label in labels}),
        "fewest_per_graph": min(Counter(label.fingerprint for label in labels).values(), default=0),
        "by_source": _by(label.name.split("/")[0] for label in labels),
        "by_family": _by(families[label.fingerprint] for label in labels),
        "by_device": _by(label.device for label in labels),
        "by_runtime": _by(label.runtime for label in labels),
        "by_precision": _by(label.precision for label in labels),
        "by_batch": _by(str(label.batch) for label in labels),
        "by_resolution": _by(f"{label.size} pixels" if label.size else "own" for label in labels),
        "by_caveat": _by(code for label in labels for code in label.caveats.split(";") if code),
        "by_engine": _by(f"{label.bundle_id}, engine {label.engine}" for label in labels),
    }


def measured_counts(rows: Iterable[MeasuredRow], corpus: Corpus) -> dict[str, Any]:
    """Counts over measured labels. Several labels (metrics, sources) may be of one workload."""
    families = {record.name: record.family for record in corpus.records}
    rows = list(rows)
    labels = [row for row in rows if row.reason is None]
    missing = _by(row.graph for row in rows if row.reason is Reason.NOT_EXPORTED)
    return {
        "provenance": "measured",
        "labels": len(labels),
        "workloads": len({row.workload[:5] for row in labels}),
        "graphs": len({row.graph for row in labels}),
        "by_source": _by(row.source for row in labels),
        "by_family": _by(families[row.graph] for row in labels),
        "by_device": _by(row.device for row in labels),
        "by_runtime": _by(row.runtime for row in labels),
        "by_precision": _by(row.precision for row in labels),
        "by_batch": _by(str(row.batch) for row in labels),
        "by_metric": _by(row.metric for row in labels),
        "by_flag": _by(flag.value for row in labels for flag in row.flags),
        "left_out": _by(row.reason.value for row in rows if row.reason),
        "missing_networks": len(missing),
        "most_missing": dict(list(missing.items())[:MOST_MISSING]),
    }


def _by(keys: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(keys).items(), key=lambda item: (-item[1], item[0])))


def render_counts(counts: Mapping[str, Any], indent: str = "") -> str:
    """The counts as indented lines for a terminal."""
    lines = []
    for key, value in counts.items():
        if not isinstance(value, Mapping):
            lines.append(f"{indent}{key}: {value}")
        elif all(isinstance(count, int) for count in value.values()):
            lines.append(f"{indent}{key}:")
            lines += [f"{indent}  {count:6} {name}" for name, count in value.items()]
        else:
            lines += [f"{indent}{key}:", render_counts(value, f"{indent}  ")]
    return "\n".join(lines)
