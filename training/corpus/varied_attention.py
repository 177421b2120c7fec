"""Draws and builders of those of DIPPM's families that mix tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from torch import nn

from training.corpus.varied_arguments import SIZES, Arguments, multiple, without_size

__all__ = [
    "build_poolformer",
    "build_swin",
    "build_visformer",
    "build_vit",
    "draw_poolformer",
    "draw_swin",
    "draw_visformer",
    "draw_vit",
]


def _increasing(
    draw: random.Random, first: Sequence[int], factor: tuple[float, float]
) -> list[int]:
    widths = [draw.choice(first)]
    for _ in range(3):
        widths.append(multiple(widths[-1] * draw.uniform(*factor), 8))
    return widths


def draw_swin(draw: random.Random) -> Arguments:
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


def build_swin(arguments: Arguments) -> nn.Module:
    from timm.models.swin_transformer import SwinTransformer

    return SwinTransformer(img_size=arguments["image_size"], **without_size(arguments))


def draw_vit(draw: random.Random) -> Arguments:
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


def build_vit(arguments: Arguments) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    pool = "token" if arguments["class_token"] else "avg"
    return VisionTransformer(
        img_size=arguments["image_size"], global_pool=pool, **without_size(arguments)
    )


def draw_visformer(draw: random.Random) -> Arguments:
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


def build_visformer(arguments: Arguments) -> nn.Module:
    from timm.models.visformer import Visformer

    return Visformer(
        img_size=arguments["image_size"],
        norm_layer=nn.BatchNorm2d,
        embed_norm=nn.BatchNorm2d,
        **without_size(arguments),
    )


def draw_poolformer(draw: random.Random) -> Arguments:
    return {
        "image_size": draw.choice(SIZES),
        "depths": [draw.randint(1, high) for high in (6, 6, 18, 6)],
        "dims": _increasing(draw, (32, 48, 64, 96), (1.4, 2.5)),
        "pool_size": draw.choice((3, 3, 5)),
    }


def build_poolformer(arguments: Arguments) -> nn.Module:
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
