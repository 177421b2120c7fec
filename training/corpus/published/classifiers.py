"""Image classifiers that differ from those of timm and torchvision in one respect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["classifier"]


def _resnet_v1(name: str) -> nn.Module:
    """ResNet as first published, and as Keras has it: strides in the first 1 x 1 convolutions."""
    from torchvision import models

    network = models.get_model(name, weights=None)
    for stage in (network.layer2, network.layer3, network.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    return network


class WideSqueeze(nn.Module):
    """Squeeze-and-excitation whose bottleneck is a quarter of the expanded width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = nn.functional.silu(self.reduce(x.mean((2, 3), keepdim=True)))
        return x * torch.sigmoid(self.expand(scale))


def _wide_squeeze(name: str) -> nn.Module:
    """NVIDIA's ``efficientnet-widese``: EfficientNet with :class:`WideSqueeze`."""
    import timm

    network: nn.Module = timm.create_model(name)
    for module in list(network.modules()):
        if isinstance(getattr(module, "se", None), nn.Module) and hasattr(module.se, "conv_reduce"):
            module.se = WideSqueeze(module.se.conv_reduce.in_channels)
    return network


def _dcgan_discriminator(width: int = 64) -> nn.Module:
    """The discriminator of DCGAN (Radford et al., 2015), which TorchBench times."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
    for level in range(3):
        inputs = width << level
        layers += [
            nn.Conv2d(inputs, 2 * inputs, 4, 2, 1, bias=False),
            nn.BatchNorm2d(2 * inputs),
            nn.LeakyReLU(0.2),
        ]
    return nn.Sequential(*layers, nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid())


ROWS: Mapping[str, tuple[str, int, Callable[[], nn.Module]]] = {
    # name: (family, image size, build)
    "resnet50-v1": ("resnet", 224, partial(_resnet_v1, "resnet50")),
    "resnet101-v1": ("resnet", 224, partial(_resnet_v1, "resnet101")),
    "efficientnet-widese-b0": ("efficientnet", 224, partial(_wide_squeeze, "efficientnet_b0")),
    "efficientnet-widese-b4": ("efficientnet", 380, partial(_wide_squeeze, "efficientnet_b4")),
    "dcgan-discriminator": ("gan", 64, _dcgan_discriminator),
}


def classifier(key: str, size: int | None) -> Network | None:
    """A classifier at ``size`` pixels square, or ``None``."""
    if key not in ROWS:
        return None
    family, default, build = ROWS[key]
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    inputs = (InputSpec("image", (3, size or default, size or default)),)
    return Network(name, family, f"{__name__}.{key}", {}, inputs, build)
