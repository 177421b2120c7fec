"""Every network that has a name: ``source/name``, with ``@size`` for a resolution or length."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from training.corpus.diffusion_networks import diffusion_network
from training.corpus.hollow import hollow
from training.corpus.image_networks import timm_network, torchvision_network
from training.corpus.modal_networks import modal_network
from training.corpus.network import Network
from training.corpus.neusight_networks import neusight_network
from training.corpus.plain_networks import plain_network
from training.corpus.published import published_network
from training.corpus.random_networks import random_network
from training.corpus.recommender_networks import recommender_network
from training.corpus.recurrent_networks import recurrent_network
from training.corpus.text_networks import step_network, text_network
from training.corpus.varied_networks import varied_network
from training.corpus.weightless import export

__all__ = ["EXAMPLE_BATCH", "export_network", "find_network"]

EXAMPLE_BATCH = 2
"""Batch of the example inputs: exporters take 0 and 1 for constants."""


def find_network(name: str) -> Network:
    """The network of that name, such as ``"timm/resnet50@288"`` or ``"neusight/gpt3-xl"``.

    Raises:
        KeyError: no such source, or no such network in it.
    """
    source, _, rest = name.partition("/")
    key, _, size = rest.partition("@")
    if source not in _SOURCES:
        raise KeyError(f"no source {source!r} in {name!r}: one of {', '.join(_SOURCES)}")
    try:
        return _SOURCES[source](key, int(size) if size else None)
    except (KeyError, ValueError, RuntimeError) as error:
        raise KeyError(f"no network {name!r}: {error}") from error


_SOURCES: Mapping[str, Callable[[str, int | None], Network]] = {
    "timm": timm_network,
    "torchvision": torchvision_network,
    "transformers": lambda key, size: text_network(key, size or 128),
    "modal": lambda key, _size: modal_network(key),
    "step": lambda key, size: step_network(key, size or 512),
    "neusight": lambda key, _size: neusight_network(key),
    "diffusion": lambda key, _size: diffusion_network(key),
    "recommender": lambda key, _size: recommender_network(key),
    "recurrent": lambda key, _size: recurrent_network(*_numbered(key)),
    "published": published_network,
    "varied": lambda key, _size: varied_network(*_numbered(key)),
    "random": lambda key, _size: random_network(*_numbered(key)),
    "plain": lambda key, _size: plain_network(key),
}


def _numbered(key: str) -> tuple[str, int]:
    family, _, number = key.rpartition("-")
    return family, int(number)


def export_network(network: Network, *, exporter: str, opset: int) -> tuple[onnx.ModelProto, int]:
    """The network as a weightless ONNX model with a free batch dimension, and its parameters.

    Parameters are counted on the torch module, a tied one once.

    Raises:
        ValueError: the exporter writes another opset than the one asked for.
        whatever torch raises where the network can't be built or exported.
    """
    module = hollow(network.build)
    batch = EXAMPLE_BATCH if network.batch else 1
    model = export(
        module,
        tuple(spec.example(batch) for spec in network.inputs),
        exporter=exporter,
        opset=opset,
        input_names=[spec.name for spec in network.inputs],
        dynamic=None if network.batch else {},
    )
    return model, sum(parameter.numel() for parameter in module.parameters())
