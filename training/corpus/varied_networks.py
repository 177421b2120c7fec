"""Variations of DIPPM's ten families: widths, depths, resolutions, kernel and patch sizes.

``varied/resnet-17`` is always the same network: number 17 of its family, drawn by a generator that
is seeded with the name. Families: those of DIPPM's dataset (Selvam and Brorsson, Euro-Par 2023).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from training.corpus.network import InputSpec, Network

__all__ = ["FAMILIES", "varied_network"]

Arguments = dict[str, Any]


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


def _multiple(value: float, of: int) -> int:
    return max(of, round(value / of) * of)


def _increasing(
    draw: random.Random, first: Sequence[int], factor: tuple[float, float]
) -> list[int]:
    widths = [draw.choice(first)]
    for _ in range(3):
        widths.append(_multiple(widths[-1] * draw.uniform(*factor), 8))
    return widths


_SIZES = (96, 128, 160, 192, 224, 256, 288, 320, 384)


def _draw_resnet(draw: random.Random) -> Arguments:
    bottleneck = draw.random() < 0.6
    cardinality = draw.choice((1, 1, 1, 8, 16, 32)) if bottleneck else 1
    return {
        "image_size": draw.choice(_SIZES),
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


def _build_resnet(arguments: Arguments) -> nn.Module:
    from timm.layers import get_act_layer
    from timm.models.resnet import BasicBlock, Bottleneck, ResNet

    keep = ("layers", "cardinality", "base_width", "stem_width", "stem_type", "avg_down")
    return ResNet(
        Bottleneck if arguments["block"] == "bottleneck" else BasicBlock,
        act_layer=get_act_layer(arguments["act_layer"]),
        block_args={"attn_layer": "se"} if arguments["squeeze_excite"] else None,
        **{key: arguments[key] for key in keep},
    )


def _draw_vgg(draw: random.Random) -> Arguments:
    width = draw.choice((16, 24, 32, 48, 64, 80))
    layers: list[int | str] = []
    for stage in range(5):
        layers += [min(width << stage, width * 8)] * draw.randint(1, 4) + ["M"]
    return {
        "image_size": draw.choice(_SIZES),
        "layers": layers,
        "batch_norm": draw.random() < 0.5,
    }


def _build_vgg(arguments: Arguments) -> nn.Module:
    from torchvision.models.vgg import VGG, make_layers

    network = VGG(make_layers(arguments["layers"], arguments["batch_norm"]), init_weights=False)
    cells = (arguments["image_size"] // 32) ** 2
    network.avgpool = nn.Identity()
    network.classifier[0] = nn.Linear(arguments["layers"][-2] * cells, 4096)
    return network


def _draw_densenet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(_SIZES),
        "growth_rate": draw.choice((8, 12, 16, 24, 32, 40, 48)),
        "block_config": [draw.randint(2, high) for high in (8, 14, 28, 20)],
        "num_init_features": draw.choice((16, 32, 64, 96)),
        "bn_size": draw.choice((2, 4, 4)),
    }


def _build_densenet(arguments: Arguments) -> nn.Module:
    from torchvision.models import DenseNet

    return DenseNet(**_without_size(arguments))


def _draw_efficientnet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(_SIZES),
        "channel_multiplier": round(draw.uniform(0.5, 2.2), 2),
        "depth_multiplier": round(draw.uniform(0.5, 2.6), 2),
        "channel_divisor": draw.choice((8, 8, 16)),
    }


def _build_efficientnet(arguments: Arguments) -> nn.Module:
    from timm.models.efficientnet import _gen_efficientnet

    module: nn.Module = _gen_efficientnet("efficientnet_b0", **_without_size(arguments))
    return module


def _draw_mnasnet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(_SIZES),
        "form": draw.choice(("a1", "b1", "small")),
        "channel_multiplier": round(draw.uniform(0.35, 2.0), 2),
    }


def _build_mnasnet(arguments: Arguments) -> nn.Module:
    from timm.models import efficientnet

    form, width = arguments["form"], arguments["channel_multiplier"]
    variant = {"a1": "semnasnet_100", "b1": "mnasnet_100", "small": "mnasnet_small"}[form]
    module: nn.Module = getattr(efficientnet, f"_gen_mnasnet_{form}")(variant, width)
    return module


def _draw_mobilenet(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(_SIZES),
        "form": draw.choice(("v1", "v2", "v2", "v3")),
        "channel_multiplier": round(draw.uniform(0.25, 2.0), 2),
        "depth_multiplier": round(draw.uniform(0.6, 1.8), 2),
    }


def _build_mobilenet(arguments: Arguments) -> nn.Module:
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


def _draw_swin(draw: random.Random) -> Arguments:
    heads = draw.choice((2, 3, 4, 6))
    window = draw.choice((6, 7, 7, 8))
    return {
        "image_size": window * 32 * draw.choice((1, 1, 2) if window < 8 else (1, 1)),
        "window_size": window,
        "embed_dim": heads * draw.choice((16, 24, 32)),
        "num_heads": [heads << stage for stage in range(4)],
        "depths": [2, 2, 2 * draw.randint(1, 9), 2],
        "mlp_ratio": draw.choice((2.0, 3.0, 4.0, 4.0)),
    }


def _build_swin(arguments: Arguments) -> nn.Module:
    from timm.models.swin_transformer import SwinTransformer

    return SwinTransformer(img_size=arguments["image_size"], **_without_size(arguments))


def _draw_vit(draw: random.Random) -> Arguments:
    patch = draw.choice((8, 14, 16, 16, 32))
    heads = draw.choice((3, 4, 6, 8, 12, 16))
    return {
        "image_size": patch * draw.randint(7, 18 if patch < 32 else 12),
        "patch_size": patch,
        "embed_dim": heads * draw.choice((32, 48, 64, 64, 80)),
        "depth": draw.randint(2, 24),
        "num_heads": heads,
        "mlp_ratio": draw.choice((2.0, 3.0, 4.0, 4.0)),
        "class_token": draw.random() < 0.7,
    }


def _build_vit(arguments: Arguments) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    pool = "token" if arguments["class_token"] else "avg"
    return VisionTransformer(
        img_size=arguments["image_size"], global_pool=pool, **_without_size(arguments)
    )


def _draw_visformer(draw: random.Random) -> Arguments:
    heads = draw.choice((2, 3, 4, 6, 8))
    return {
        "image_size": draw.choice((128, 160, 192, 224, 256, 320)),
        "init_channels": draw.choice((16, 24, 32)),
        "embed_dim": heads * 64,
        "depth": [draw.randint(2, 8), draw.randint(1, 6), draw.randint(1, 6)],
        "num_heads": heads,
        "mlp_ratio": draw.choice((2.0, 3.0, 4.0)),
        "group": draw.choice((1, 4, 8)),
        "attn_stage": draw.choice(("011", "011", "111", "001")),
        "spatial_conv": draw.choice(("100", "111", "110")),
    }


def _build_visformer(arguments: Arguments) -> nn.Module:
    from timm.models.visformer import Visformer

    return Visformer(
        img_size=arguments["image_size"],
        norm_layer=nn.BatchNorm2d,
        embed_norm=nn.BatchNorm2d,
        **_without_size(arguments),
    )


def _draw_poolformer(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(_SIZES),
        "depths": [draw.randint(1, high) for high in (6, 6, 18, 6)],
        "dims": _increasing(draw, (32, 48, 64, 96), (1.4, 2.5)),
        "pool_size": draw.choice((3, 3, 5)),
    }


def _build_poolformer(arguments: Arguments) -> nn.Module:
    from timm.models.metaformer import GroupNorm1, MetaFormer, Pooling

    class SizedPooling(Pooling):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "pool_size": arguments["pool_size"]})

    return MetaFormer(
        depths=arguments["depths"],
        dims=arguments["dims"],
        token_mixers=SizedPooling,
        downsample_norm=None,
        mlp_act=nn.GELU,
        mlp_bias=True,
        norm_layers=GroupNorm1,
        layer_scale_init_values=1e-5,
        res_scale_init_values=None,
        use_mlp_head=False,
    )


def _without_size(arguments: Arguments) -> Arguments:
    return {key: value for key, value in arguments.items() if key != "image_size"}


FAMILIES: Mapping[str, Family] = {
    "densenet": Family(_draw_densenet, _build_densenet, "torchvision.models.DenseNet"),
    "efficientnet": Family(
        _draw_efficientnet, _build_efficientnet, "timm.models.efficientnet._gen_efficientnet"
    ),
    "mnasnet": Family(_draw_mnasnet, _build_mnasnet, "timm.models.efficientnet._gen_mnasnet_*"),
    "mobilenet": Family(
        _draw_mobilenet, _build_mobilenet, "timm.models.efficientnet._gen_mobilenet_*"
    ),
    "poolformer": Family(_draw_poolformer, _build_poolformer, "timm.models.metaformer.MetaFormer"),
    "resnet": Family(_draw_resnet, _build_resnet, "timm.models.resnet.ResNet"),
    "swin": Family(_draw_swin, _build_swin, "timm.models.swin_transformer.SwinTransformer"),
    "vgg": Family(_draw_vgg, _build_vgg, "torchvision.models.vgg.VGG"),
    "visformer": Family(_draw_visformer, _build_visformer, "timm.models.visformer.Visformer"),
    "vit": Family(_draw_vit, _build_vit, "timm.models.vision_transformer.VisionTransformer"),
}
