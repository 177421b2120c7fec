"""Segmentation networks of NVIDIA's examples, MLPerf and TorchBench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["NnUnet", "UNetBilinear", "UNetValid", "segmenter"]


class NnUnet(nn.Module):
    """nnU-Net (Isensee et al., 2021): pairs of convolutions, instance norm, strides of two.

    Images ``(batch, inputs, *size)`` to ``(batch, classes, *size)``, in 2 or 3 dimensions.
    """

    def __init__(self, dimensions: int, inputs: int, classes: int, widths: Sequence[int]) -> None:
        super().__init__()
        flat = dimensions == 2
        self._conv = nn.Conv2d if flat else nn.Conv3d
        self._norm = nn.InstanceNorm2d if flat else nn.InstanceNorm3d
        grow = nn.ConvTranspose2d if flat else nn.ConvTranspose3d
        before = (inputs, *widths)
        self.down = nn.ModuleList(
            self._pair(before[level], width, stride=2 if level else 1)
            for level, width in enumerate(widths)
        )
        steps = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.grow = nn.ModuleList(grow(a, b, 2, 2, bias=False) for a, b in steps)
        self.up = nn.ModuleList(self._pair(2 * b, b) for _, b in steps)
        self.head = self._conv(widths[0], classes, 1)

    def _pair(self, inputs: int, outputs: int, stride: int = 1) -> nn.Module:
        return nn.Sequential(
            self._conv(inputs, outputs, 3, stride, 1, bias=False),
            self._norm(outputs, affine=True), nn.LeakyReLU(0.01),
            self._conv(outputs, outputs, 3, 1, 1, bias=False),
            self._norm(outputs, affine=True), nn.LeakyReLU(0.01),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
        skips.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat((grow(x), skips.pop()), dim=1))
        result: Tensor = self.head(x)
        return result


def _double(inputs: int, outputs: int, padding: int, norm: bool, middle: int = 0) -> nn.Module:
    layers: list[nn.Module] = []
    for a, b in ((inputs, middle or outputs), (middle or outputs, outputs)):
        layers.append(nn.Conv2d(a, b, 3, padding=padding, bias=not norm))
        layers += [nn.BatchNorm2d(b)] if norm else []
        layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class UNetValid(nn.Module):
    """The U-Net of 2015: unpadded convolutions, so 572 pixels in and 388 out; grey images."""

    def __init__(self, width: int = 64, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        before = [1, *widths]
        self.down = nn.ModuleList(_double(before[i], w, 0, False) for i, w in enumerate(widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(w, w // 2, 2, 2) for w in widths[:0:-1])
        self.up = nn.ModuleList(_double(w, w // 2, 0, False) for w in widths[:0:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x, skip = grow(x), skips.pop()
            edge = (skip.shape[-1] - x.shape[-1]) // 2
            skip = skip[:, :, edge : edge + x.shape[-2], edge : edge + x.shape[-1]]
            x = block(torch.cat((skip, x), dim=1))
        result: Tensor = self.head(x)
        return result


class UNetBilinear(nn.Module):
    """A U-Net with padding, batch norm and bilinear growth, as TorchBench runs it."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        widths = (64, 128, 256, 512, 512)
        before = (3, *widths)
        self.down = nn.ModuleList(_double(before[i], w, 1, True) for i, w in enumerate(widths))
        rows = ((1024, 256), (512, 128), (256, 64), (128, 64))
        self.up = nn.ModuleList(_double(a, b, 1, True, middle=a // 2) for a, b in rows)
        self.head = nn.Conv2d(64, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for block in self.up:
            skip = skips.pop()
            grown = nn.functional.interpolate(
                x, scale_factor=2, mode="bilinear", align_corners=True
            )
            high, wide = skip.shape[-2] - grown.shape[-2], skip.shape[-1] - grown.shape[-1]
            edges = (wide // 2, wide - wide // 2, high // 2, high - high // 2)
            x = block(torch.cat((skip, nn.functional.pad(grown, edges)), dim=1))
        result: Tensor = self.head(x)
        return result


_FLAT = (32, 64, 128, 256, 512, 512)
_SOLID = (32, 64, 128, 256, 320, 320)
_BRATS = (30, 60, 120, 240, 320, 320)

ROWS: Mapping[str, tuple[str, tuple[int, ...], Callable[[], nn.Module]]] = {
    # name: (family, input, build); brain scans have four modalities and four classes
    "nnunet-2d": ("nnunet", (4, 192, 160), partial(NnUnet, 2, 4, 4, _FLAT)),
    "nnunet-3d": ("nnunet", (4, 128, 128, 128), partial(NnUnet, 3, 4, 4, _SOLID)),
    "unet3d-brats": ("nnunet", (4, 224, 224, 160), partial(NnUnet, 3, 4, 4, _BRATS)),
    "unet3d-medical": ("nnunet", (4, 224, 224, 160), partial(NnUnet, 3, 4, 4, _SOLID)),
    "unet-valid": ("unet", (1, 572, 572), UNetValid),
    "unet-bilinear": ("unet", (3, 640, 959), UNetBilinear),
}


def segmenter(key: str, size: int | None) -> Network | None:
    """A segmentation network, at ``size`` pixels square where given, or ``None``."""
    if key not in ROWS:
        return None
    family, shape, build = ROWS[key]
    if size is not None:
        shape = (shape[0], *(size for _ in shape[1:]))
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    return Network(name, family, f"{__name__}.{key}", {}, (InputSpec("image", shape),), build)
