"""Multiply-accumulates of the corpus's graphs, counted once and kept in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import read_graph
from dippm_lite.op_costs import graph_macs
from training.corpus.records import Corpus

__all__ = ["count_macs"]


def count_macs(
    corpus: Corpus, names: frozenset[str], cache: Path | None = None
) -> Mapping[str, int]:
    """Multiply-accumulates at batch 1 of the records of those names.

    Records that the reader refuses are left out. ``cache`` is a file of JSON lines, one a
    fingerprint, that is read before and appended to after counting.
    """
    counted = _read(cache)
    wanted = [record for record in corpus.records if record.name in names]
    missing = [record for record in wanted if record.fingerprint not in counted]
    fresh: dict[str, int] = {}
    if missing:
        for record, model in corpus.models(missing):
            try:
                graph = read_graph(model, batch_size=1 if record.batch else None).graph
            except InputError:
                continue
            fresh[record.fingerprint] = graph_macs(graph)
    if cache is not None and fresh:
        with cache.open("a", encoding="utf-8") as lines:
            for fingerprint, macs in fresh.items():
                lines.write(json.dumps({"fingerprint": fingerprint, "macs": macs}) + "\n")
    counted |= fresh
    return {
        record.name: counted[record.fingerprint]
        for record in wanted
        if record.fingerprint in counted
    }


def _read(cache: Path | None) -> dict[str, int]:
    if cache is None or not cache.exists():
        return {}
    lines = (json.loads(line) for line in cache.read_text(encoding="utf-8").splitlines())
    return {line["fingerprint"]: line["macs"] for line in lines}
