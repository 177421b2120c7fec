"""Networks that published measurements are of and that no other part of the catalog has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from training.corpus.network import Network
from training.corpus.published.classifiers import classifier
from training.corpus.published.decoders import decoder_pass
from training.corpus.published.detectors import detector
from training.corpus.published.encoders import encoder
from training.corpus.published.gpunet import gpunet
from training.corpus.published.segmenters import segmenter
from training.corpus.published.speech import speech_network
from training.corpus.published.vision import vision_network
from training.corpus.published.yolo_sizes import yolo_network

__all__ = ["published_names", "published_network"]

NAMES = Path(__file__).with_name("networks.txt")
"""Names that rows of the published tables mean and that the rest of the plan lacks, as
``python -m training corpus match --networks`` writes them."""

_PARTS: tuple[Callable[[str, int | None], Network | None], ...] = (
    classifier,
    decoder_pass,
    detector,
    encoder,
    gpunet,
    segmenter,
    speech_network,
    vision_network,
    yolo_network,
)


def published_network(key: str, size: int | None) -> Network:
    """The network of that name at ``size`` pixels, tokens or frames.

    Raises:
        KeyError: none of the parts has it.
    """
    for part in _PARTS:
        network = part(key, size)
        if network is not None:
            return network
    raise KeyError(key)


def published_names() -> list[str]:
    """The names in :data:`NAMES`: of this source, and of others at lengths of their own."""
    return NAMES.read_text(encoding="utf-8").split()
