"""Where a label comes from: measured by whom, or composed of kernel models."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

__all__ = ["Provenance", "Source", "read_sources", "source_of"]


class Provenance(str, Enum):
    """How a label was had; figures of the two kinds are never mixed."""

    MEASURED = "measured"
    COMPOSED = "composed"


@dataclass(frozen=True, slots=True)
class Source:
    """A publication: title, repository or paper, the part of it, revision, and its method."""

    name: str
    title: str
    repository: str
    path: str
    revision: str
    method: str


ONE_SOURCE = (
    (r"^mlperf_(?:inf_)?v(\d)[_.](\d)$", r"mlperf_v\1.\2"),
    (r"^mlcommons/inference_results_v(\d)\.(\d)$", r"mlperf_v\1.\2"),
    (r"^MunQ-Lee/ParvaGPU_SC24$|^parvagpu_bert$", "parvagpu"),
    (r"^hf_sdpa$", "hf_model_docs"),
    (r"^flagperf_.*$", "flagperf"),
    (r"^trt_demobert_.*$", "trt_demobert"),
)
"""Ids that stand for one publication, by table or revision, and the one id we give it."""


def source_of(identifier: str) -> str:
    """Our id of a publication that the tables call ``identifier``."""
    for pattern, name in ONE_SOURCE:
        if re.search(pattern, identifier):
            return re.sub(pattern, name, identifier)
    return identifier


def read_sources(data: Path) -> Mapping[str, Source]:
    """The publications that ``DATA/published_a100/sources_*.csv`` list, by our id.

    Of several revisions or parts of one publication the first listed describes it.
    """
    sources: dict[str, Source] = {}
    for path in sorted((data / "published_a100").glob("sources_*.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            for fields in csv.reader(lines):
                identifier, *rest = fields
                if identifier != "source_id":
                    name = source_of(identifier)
                    sources.setdefault(name, Source(name, *rest))
    return sources
