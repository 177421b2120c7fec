"""The public sources that a script can get: where, which version, whose licence, what it becomes.

None of these addresses was tried: they were written on a machine without a way to the public hosts.
What is known of each layout is in the converter's module. Checksums are unknown (None) and go to
the lock file on the first download. Where ``commit`` is a branch, the lock file pins the content;
the others are the commits that the tables we fit on were gathered from.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from training.datasets.public import (
    dippm_release,
    mlperf,
    neusight,
    parvagpu,
    timm_tables,
    vidur,
)

__all__ = ["SOURCES", "RemoteFile", "Source"]

Converter = Callable[[Path, Path], tuple[Path, ...]]
"""From the folder of raw files and the data folder to the files or folders written."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One download.

    Attributes:
        name: path in the source's folder of raw files.
        url: where it is.
        sha256: of its content, where known.
        limit_bytes: a longer file is refused.
    """

    name: str
    url: str
    sha256: str | None = None
    limit_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One public body of measurements.

    Attributes:
        name: what is typed.
        title: what it holds.
        repository: on GitHub.
        commit: or a branch, or the tag of a release.
        licence: SPDX identifier, or words where the repository states none.
        files: what is downloaded.
        convert: what makes our columns of it.
        members: patterns of what is extracted, where ``files`` is one archive.
        strip: leading parts that the archive's names have too many.
        large: gigabytes; only fetched when named.
    """

    name: str
    title: str
    repository: str
    commit: str
    licence: str
    files: tuple[RemoteFile, ...]
    convert: Converter
    members: tuple[str, ...] = ()
    strip: int = 0
    large: bool = False


def _raw(
    repository: str, commit: str, folder: str, names: tuple[str, ...]
) -> tuple[RemoteFile, ...]:
    base = f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/"
    return tuple(RemoteFile(name, base + urllib.parse.quote(name)) for name in names)


def _archive(repository: str, commit: str) -> tuple[RemoteFile, ...]:
    url = f"https://codeload.github.com/{repository}/tar.gz/{commit}"
    return (RemoteFile("archive.tar.gz", url, limit_bytes=32 << 30),)


_MLPERF_COMMITS = {
    "v0.7": "31060d57b30c",
    "v1.0": "f7759baf2fdb9e17d97f07326db6d461d6dc1ef2",
    "v1.1": "7fc43356c4d7",
    "v2.0": "425a0d30c6e0cb9b65595881572cbba5f18572eb",
    "v2.1": "91f7859b8b58",
    "v3.0": "1948f9b5b93c5b4dcafe15de0faa08cdf1439fca",
}

SOURCES: tuple[Source, ...] = (
    Source(
        name="neusight",
        title="kernels in fp32 on A100, V100, T4, P4, P100 (ASPLOS 2025)",
        repository="sitar-lab/NeuSight",
        commit="main",
        licence="MIT",
        files=_raw("sitar-lab/NeuSight", "main", "scripts/asplos/data/dataset", neusight.FILES),
        convert=neusight.convert,
    ),
    Source(
        name="vidur",
        title="layers of LLMs in fp16 on A100, A40, H100",
        repository="microsoft/vidur",
        commit="main",
        licence="MIT",
        files=_raw("microsoft/vidur", "main", "data/profiling/compute", vidur.FILES),
        convert=vidur.convert,
    ),
    Source(
        name="timm",
        title="timm's inference benchmarks on RTX 3090 and RTX 4090",
        repository="huggingface/pytorch-image-models",
        commit="main",
        licence="Apache-2.0",
        files=_raw("huggingface/pytorch-image-models", "main", "results", timm_tables.FILES),
        convert=timm_tables.convert,
    ),
    Source(
        name="parvagpu",
        title="inference on MIG slices of an A100 80 GB (SC 2024)",
        repository=parvagpu.REPOSITORY,
        commit="5f3de1e18582b4c81896a1c3eb0e2915238dfee6",
        licence="MIT",
        files=_raw(
            parvagpu.REPOSITORY,
            "5f3de1e18582b4c81896a1c3eb0e2915238dfee6",
            "prof_data",
            parvagpu.FILES,
        ),
        convert=parvagpu.convert,
    ),
    *(
        Source(
            name=f"mlperf-{round_}",
            title=f"MLPerf inference {round_}: single A100 and A30, whole and MIG slices",
            repository=f"mlcommons/inference_results_{round_}",
            commit=_MLPERF_COMMITS[round_],
            licence="Apache-2.0 where the repository states one",
            files=_archive(f"mlcommons/inference_results_{round_}", _MLPERF_COMMITS[round_]),
            convert=mlperf.converter(round_),
            members=mlperf.MEMBERS,
            strip=1,
            large=True,
        )
        for round_ in mlperf.ROUNDS
    ),
    Source(
        name="dippm",
        title="DIPPM's 10,508 measured graphs (Euro-Par 2023)",
        repository="karthickai/deeplearning_inference",
        commit="v1.0.0",
        licence="none stated: ask the authors before shipping a model trained on it",
        files=(
            RemoteFile(
                "dataset_v1.tar",
                "https://github.com/karthickai/deeplearning_inference/releases/download/"
                "v1.0.0/dataset_v1.tar",
                limit_bytes=16 << 30,
            ),
        ),
        convert=dippm_release.convert,
        members=dippm_release.MEMBERS,
        large=True,
    ),
)
"""Everything that ``python -m training data fetch`` knows. The other tables under
``published_a100`` were read from prose and tables of many pages, which no script can follow."""
