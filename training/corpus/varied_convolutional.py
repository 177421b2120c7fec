"""Draws and builders of the convolutional ones among DIPPM's families."""

from __future__ import annotations

import random

from torch import nn

from training.corpus.varied_arguments import SIZES, Arguments, without_size

__all__ = [
    "build_densenet",
    "build_efficientnet",
    "build_mnasnet",
    "build_mobilenet",
    "build_resnet",
    "build_vgg",
    "draw_densenet",
    "draw_efficientnet",
    "draw_mnasnet",
    "draw_mobilenet",
    "draw_resnet",
    "draw_vgg",
]


def draw_resnet(draw: random.Random) -> Arguments:
    bottleneck = draw.random() < 0.6
    cardinality = draw.choice((1, 1, 1, 8, 16, 32)) if bottleneck else 1
    return {
        "image_size": draw.choice(SIZES),
        "block": "bottleneck" if bottleneck else "basic",
        "layers": [draw.randint(1, high) for high in (4, 6, 12, 4)],
        "cardinality": cardinality,
        "base_width": draw.choice((4, 8)) if cardinality > 1 else draw.choice((32, 64, 96, 128))
        if bottleneck else 64,
        "stem_width": draw.choice((16, 32, 64)),
        "stem_type": draw.choice(("", "", "deep", "deep_tiered")),
        "avg_down": draw.random() < 0.3,
        "act_layer": draw.choice(("relu", "relu", "silu", "gelu")),
        "squeeze_excite": draw.random() < 0.2,
    }  # fmt: skip


def build_resnet(arguments: Arguments) -> nn.Module:
    from timm.layers import get_act_layer
    from timm.models.resnet import BasicBlock, Bottleneck, ResNet

    keep = ("layers", "cardinality", "base_width", "stem_width", "stem_type", "avg_down")
    return ResNet(
        Bottleneck if arguments["block"] == "bottleneck" else BasicBlock,
        act_layer=get_act_layer(arguments["act_layer"]),
        block_args={"attn_layer": "se"} if arguments["squeeze_excite"] else None,
        **{key: arguments[key] for key in keep},
    )


def draw_vgg(draw: random.Random) -> Arguments:
    width = draw.choice((16, 24, 32, 48, 64, 80))
    layers: list[int | str] = []
    for stage in range(5):
        layers += [min(width << stage, width * 8)] * draw.randint(1, 4) + ["M"]
    return {
        "image_size": draw.choice(SIZES),
        "layers": layers,
        "batch_norm": draw.random() < 0.5,
    }


def build_vgg(arguments: Arguments) -> nn.Module:
    from torchvision.models.vgg import VGG, make_layers

    network = VGG(make_layers(arguments["layers"], arguments["batch_norm"]), init_weights=False)
    cells = (arguments["image_size"] // 32) ** 2
    network.avgpool = nn.Identity()
    network.classifier[0] = nn.Linear(arguments["layers"][-2] * cells, 4096)
    return network


def draw_densenet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(SIZES),
        "growth_rate": draw.choice((8, 12, 16, 24, 32, 40, 48)),
        "block_config": [draw.randint(2, high) for high in (8, 14, 28, 20)],
        "num_init_features": draw.choice((16, 32, 64, 96)),
        "bn_size": draw.choice((2, 4, 4)),
    }


def build_densenet(arguments: Arguments) -> nn.Module:
    from torchvision.models import DenseNet

    return DenseNet(**without_size(arguments))


def draw_efficientnet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(SIZES),
        "channel_multiplier": round(draw.uniform(0.5, 2.2), 2),
        "depth_multiplier": round(draw.uniform(0.5, 2.6), 2),
        "channel_divisor": draw.choice((8, 8, 16)),
    }


def build_efficientnet(arguments: Arguments) -> nn.Module:
    from timm.models.efficientnet import _gen_efficientnet

    module: nn.Module = _gen_efficientnet("efficientnet_b0", **without_size(arguments))
    return module


def draw_mnasnet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(SIZES),
        "form": draw.choice(("a1", "b1", "small")),
        "channel_multiplier": round(draw.uniform(0.35, 2.0), 2),
    }


def build_mnasnet(arguments: Arguments) -> nn.Module:
    from timm.models import efficientnet

    form, width = arguments["form"], arguments["channel_multiplier"]
    variant = {"a1": "semnasnet_100", "b1": "mnasnet_100", "small": "mnasnet_small"}[form]
    module: nn.Module = getattr(efficientnet, f"_gen_mnasnet_{form}")(variant, width)
    return module


def draw_mobilenet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(SIZES),
        "form": draw.choice(("v1", "v2", "v2", "v3")),
        "channel_multiplier": round(draw.uniform(0.25, 2.0), 2),
        "depth_multiplier": round(draw.uniform(0.6, 1.8), 2),
    }


def build_mobilenet(arguments: Arguments) -> nn.Module:
    from timm.models import efficientnet, mobilenetv3

    width, depth = arguments["channel_multiplier"], arguments["depth_multiplier"]
    module: nn.Module
    if arguments["form"] == "v1":
        module = efficientnet._gen_mobilenet_v1("mobilenetv1_100", width, depth)
    elif arguments["form"] == "v2":
        module = efficientnet._gen_mobilenet_v2("mobilenetv2_100", width, depth)
    else:
        module = mobilenetv3._gen_mobilenet_v3("mobilenetv3_large_100", width, depth)
    return module
