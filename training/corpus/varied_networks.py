"""Variations of DIPPM's ten families: widths, depths, resolutions, kernel and patch sizes.

``varied/resnet-17`` is always the same network: number 17 of its family, drawn by a generator that
is seeded with the name. Families: those of DIPPM's dataset (Selvam and Brorsson, Euro-Par 2023).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from training.corpus import varied_attention as attention
from training.corpus import varied_convolutional as convolutional
from training.corpus.network import InputSpec, Network
from training.corpus.varied_arguments import Arguments

__all__ = ["FAMILIES", "varied_network"]


@dataclass(frozen=True, slots=True)
class Family:
    """``draw`` picks arguments (``image_size`` among them); ``build`` makes the module of them."""

    draw: Callable[[random.Random], Arguments]
    build: Callable[[Arguments], nn.Module]
    builder: str


def varied_network(family: str, number: int) -> Network:
    """Number ``number`` of a family.

    Raises:
        KeyError: no such family.
    """
    row = FAMILIES[family]
    name = f"varied/{family}-{number}"
    arguments = row.draw(random.Random(name))
    size = arguments["image_size"]
    return Network(
        name=name,
        family=family,
        builder=row.builder,
        arguments=arguments,
        inputs=(InputSpec("image", (3, size, size)),),
        build=lambda: row.build(arguments),
    )


FAMILIES: Mapping[str, Family] = {
    "densenet": Family(
        convolutional.draw_densenet, convolutional.build_densenet, "torchvision.models.DenseNet"
    ),
    "efficientnet": Family(
        convolutional.draw_efficientnet,
        convolutional.build_efficientnet,
        "timm.models.efficientnet._gen_efficientnet",
    ),
    "mnasnet": Family(
        convolutional.draw_mnasnet,
        convolutional.build_mnasnet,
        "timm.models.efficientnet._gen_mnasnet_*",
    ),
    "mobilenet": Family(
        convolutional.draw_mobilenet,
        convolutional.build_mobilenet,
        "timm.models.efficientnet._gen_mobilenet_*",
    ),
    "poolformer": Family(
        attention.draw_poolformer, attention.build_poolformer, "timm.models.metaformer.MetaFormer"
    ),
    "resnet": Family(
        convolutional.draw_resnet, convolutional.build_resnet, "timm.models.resnet.ResNet"
    ),
    "swin": Family(
        attention.draw_swin, attention.build_swin, "timm.models.swin_transformer.SwinTransformer"
    ),
    "vgg": Family(convolutional.draw_vgg, convolutional.build_vgg, "torchvision.models.vgg.VGG"),
    "visformer": Family(
        attention.draw_visformer, attention.build_visformer, "timm.models.visformer.Visformer"
    ),
    "vit": Family(
        attention.draw_vit, attention.build_vit, "timm.models.vision_transformer.VisionTransformer"
    ),
}
