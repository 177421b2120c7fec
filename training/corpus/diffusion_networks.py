"""Denoisers and decoders of latent diffusion, at the sizes of their papers and model cards."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from training.corpus.dit import DiT
from training.corpus.latent_unet import LatentDecoder, LatentUNet
from training.corpus.network import InputSpec, Network

__all__ = ["DIFFUSION", "diffusion_network"]


def _unet_inputs(size: int, context: int, added: int = 0) -> tuple[InputSpec, ...]:
    inputs = (
        InputSpec("latent", (4, size, size)),
        InputSpec("time", ()),
        InputSpec("prompt", (77, context)),
    )
    return (*inputs, InputSpec("added", (added,))) if added else inputs


def _dit_inputs(size: int) -> tuple[InputSpec, ...]:
    return (
        InputSpec("latent", (4, size, size)),
        InputSpec("time", ()),
        InputSpec("label", (), torch.int64),
    )


_SD2 = {"context": 1024, "heads": (5, 10, 20, 20), "linear": True}
_SDXL = {
    "widths": (320, 640, 1280), "depths": (0, 2, 10), "middle": 10, "context": 2048,
    "heads": (5, 10, 20), "added": 2816, "linear": True,
}  # fmt: skip
_SIZES = {"s": (12, 384, 6), "b": (12, 768, 12), "l": (24, 1024, 16), "xl": (28, 1152, 16)}

DIFFUSION: Mapping[str, tuple[str, type[nn.Module], Mapping[str, object], tuple[InputSpec, ...]]]
DIFFUSION = {
    # name: (family, module, arguments, inputs)
    "sd15-unet": ("latent_unet", LatentUNet, {}, _unet_inputs(64, 768)),
    "sd15-unet-768px": ("latent_unet", LatentUNet, {}, _unet_inputs(96, 768)),
    "sd21-unet": ("latent_unet", LatentUNet, _SD2, _unet_inputs(64, 1024)),
    "sd21-unet-768px": ("latent_unet", LatentUNet, _SD2, _unet_inputs(96, 1024)),
    "sdxl-unet": ("latent_unet", LatentUNet, _SDXL, _unet_inputs(128, 2048, 2816)),
    "sd-decoder": ("latent_decoder", LatentDecoder, {}, (InputSpec("latent", (4, 64, 64)),)),
    "sd-decoder-1024px": (
        "latent_decoder", LatentDecoder, {}, (InputSpec("latent", (4, 128, 128)),)
    ),
    **{
        f"dit-{letter}-{patch}-{size * 8}px": (
            "dit",
            DiT,
            {"depth": depth, "width": width, "heads": heads, "patch": patch, "size": size},
            _dit_inputs(size),
        )
        for letter, (depth, width, heads) in _SIZES.items()
        for patch in (2, 4, 8)
        for size in (32, 64)
    },
}  # fmt: skip


def diffusion_network(key: str) -> Network:
    """A row of :data:`DIFFUSION`.

    Raises:
        KeyError: no such row.
    """
    family, module, arguments, inputs = DIFFUSION[key]
    return Network(
        name=f"diffusion/{key}",
        family=family,
        builder=f"{module.__module__}.{module.__name__}",
        arguments=arguments,
        inputs=inputs,
        build=lambda: module(**arguments),
    )
