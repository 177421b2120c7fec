"""Image networks of timm and torchvision, by the names that these libraries give them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from training.corpus.network import InputSpec, Network

__all__ = ["timm_network", "torchvision_network"]


def timm_network(name: str, image_size: int | None = None) -> Network:
    """A classifier of timm at its default resolution, or at ``image_size`` pixels square.

    Raises:
        RuntimeError: timm knows no such model.
    """
    import timm

    channels, height, width = 3, 224, 224
    config = timm.get_pretrained_cfg(name) if timm.is_model(name) else None
    if config is not None and config.input_size:
        channels, height, width = config.input_size
    arguments: dict[str, object] = {"model_name": name}
    label = f"timm/{name}"
    if image_size is not None and (height, width) != (image_size, image_size):
        height = width = image_size
        label += f"@{image_size}"
        if config is not None and config.fixed_input_size:
            arguments["img_size"] = image_size
    return Network(
        name=label,
        family=timm_family(name),
        builder="timm.create_model",
        arguments=arguments,
        inputs=(InputSpec("image", (channels, height, width)),),
        build=partial(timm.create_model, **arguments),
    )


def timm_family(name: str) -> str:
    """The module of timm that defines the model: one file is one family of architectures."""
    import timm

    architecture = name.split(".")[0]
    entry = timm.models._registry._model_to_module.get(architecture)
    return entry if entry is not None else re.split(r"[_\d]", architecture)[0]


class _Segmentation(torch.nn.Module):
    """The main output of a torchvision segmentation network."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.network(image)["out"]
        return result


class _Detection(torch.nn.Module):
    """A torchvision detector on one image, its boxes, labels and scores as a tuple."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(self.network([image[0]])[0].values())


def torchvision_network(name: str, image_size: int | None = None) -> Network:
    """A classifier, segmentation network or detector of torchvision.

    Raises:
        ValueError: torchvision knows no such model.
    """
    from torchvision import models

    make = models.get_model_builder(name)
    module = make.__module__
    size = image_size or (299 if name == "inception_v3" else 224)
    batch = True
    arguments: dict[str, Any] = {"weights": None}
    build: Callable[[], torch.nn.Module] = partial(make, **arguments)
    if ".segmentation." in module:
        arguments["weights_backbone"] = None
        size = image_size or 520
        build = _wrapped(_Segmentation, make, arguments)
    elif ".detection." in module:
        arguments["weights_backbone"] = None
        size = image_size or (300 if name.startswith("ssd300") else 320 if "320" in name else 800)
        batch = False
        build = _wrapped(_Detection, make, arguments)
    elif name in ("googlenet", "inception_v3"):
        arguments |= {"aux_logits": False, "init_weights": False}
        build = partial(make, **arguments)
    label = f"torchvision/{name}" if image_size is None else f"torchvision/{name}@{image_size}"
    shape: tuple[int, ...] = (3, size, size)
    if ".video." in module:
        size = 224 if name.startswith(("mvit", "swin3d", "s3d")) else image_size or 112
        shape = (3, 16, size, size)
    inputs: tuple[InputSpec, ...] = (InputSpec("image", shape),)
    if ".optical_flow." in module:
        inputs = tuple(InputSpec(name, (3, 368, 496)) for name in ("before", "after"))
    return Network(
        name=label,
        family=module.rsplit(".", 1)[-1],
        builder=f"{module}.{name}",
        arguments=arguments,
        inputs=inputs,
        build=build,
        batch=batch,
    )


def _wrapped(
    wrapper: Callable[[torch.nn.Module], torch.nn.Module],
    make: Callable[..., torch.nn.Module],
    arguments: dict[str, Any],
) -> Callable[[], torch.nn.Module]:
    return lambda: wrapper(make(**arguments))
