"""YOLOv8 in plain torch: backbone, neck and the decoupled head, without the final suppression.

Structure: the published architecture of YOLOv8 (Jocher et al., 2023). Size "n" has depth factor
0.33, width factor 0.25 and 80 classes: 3,157,200 parameters with batch normalisation, 8.7 GFLOPs
at 640 pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["YoloV8"]

BINS = 16
"""Bins of the distribution that a box side is predicted as."""


class Conv(nn.Module):
    """Convolution, batch normalisation, SiLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.act(self.norm(self.conv(x)))
        return result


class Bottleneck(nn.Module):
    """Two 3 x 3 convolutions, with a shortcut in the backbone."""

    def __init__(self, width: int, shortcut: bool) -> None:
        super().__init__()
        self.first, self.second = Conv(width, width, 3), Conv(width, width, 3)
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.second(self.first(x))
        return x + result if self.shortcut else result


class C2f(nn.Module):
    """Cross-stage block that concatenates the output of every bottleneck."""

    def __init__(self, inputs: int, outputs: int, depth: int, shortcut: bool = False) -> None:
        super().__init__()
        half = outputs // 2
        self.enter = Conv(inputs, 2 * half)
        self.blocks = nn.ModuleList(Bottleneck(half, shortcut) for _ in range(depth))
        self.leave = Conv((2 + depth) * half, outputs)

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.enter(x).chunk(2, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        result: Tensor = self.leave(torch.cat(parts, dim=1))
        return result


class Sppf(nn.Module):
    """Spatial pyramid pooling by three 5 x 5 poolings in a row."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.enter, self.leave = Conv(inputs, inputs // 2), Conv(inputs * 2, outputs)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        result: Tensor = self.leave(torch.cat(parts, dim=1))
        return result


class YoloV8(nn.Module):
    """Image ``(batch, 3, h, w)`` to ``(batch, 4 + classes, cells)``; h and w multiples of 32."""

    def __init__(
        self, width: float = 0.25, depth: float = 1 / 3, top: int = 1024, classes: int = 80
    ) -> None:
        super().__init__()
        c = [max(int(min(base, top) * width), 8) for base in (64, 128, 256, 512, 1024)]
        few, many = max(round(3 * depth), 1), max(round(6 * depth), 1)
        self.stem = nn.Sequential(Conv(3, c[0], 3, 2), Conv(c[0], c[1], 3, 2))
        self.stage2 = C2f(c[1], c[1], few, shortcut=True)
        self.stage3 = nn.Sequential(Conv(c[1], c[2], 3, 2), C2f(c[2], c[2], many, shortcut=True))
        self.stage4 = nn.Sequential(Conv(c[2], c[3], 3, 2), C2f(c[3], c[3], many, shortcut=True))
        self.stage5 = nn.Sequential(
            Conv(c[3], c[4], 3, 2), C2f(c[4], c[4], few, shortcut=True), Sppf(c[4], c[4])
        )
        self.grow = nn.Upsample(scale_factor=2)
        self.top_down4, self.top_down3 = C2f(c[4] + c[3], c[3], few), C2f(c[3] + c[2], c[2], few)
        self.shrink3, self.bottom_up4 = Conv(c[2], c[2], 3, 2), C2f(c[2] + c[3], c[3], few)
        self.shrink4, self.bottom_up5 = Conv(c[3], c[3], 3, 2), C2f(c[3] + c[4], c[4], few)
        box, label = max(16, c[2] // 4, BINS * 4), max(c[2], min(classes, 100))
        self.boxes = nn.ModuleList(self._branch(n, box, 4 * BINS) for n in c[2:])
        self.labels = nn.ModuleList(self._branch(n, label, classes) for n in c[2:])
        self.integral = nn.Conv2d(BINS, 1, 1, bias=False)
        self.classes = classes

    @staticmethod
    def _branch(inputs: int, width: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            Conv(inputs, width, 3), Conv(width, width, 3), nn.Conv2d(width, outputs, 1)
        )

    def forward(self, image: Tensor) -> Tensor:
        stage3 = self.stage3(self.stage2(self.stem(image)))
        stage4 = self.stage4(stage3)
        stage5 = self.stage5(stage4)
        middle = self.top_down4(torch.cat((self.grow(stage5), stage4), dim=1))
        fine = self.top_down3(torch.cat((self.grow(middle), stage3), dim=1))
        middle = self.bottom_up4(torch.cat((self.shrink3(fine), middle), dim=1))
        coarse = self.bottom_up5(torch.cat((self.shrink4(middle), stage5), dim=1))
        levels = (fine, middle, coarse)
        boxes = torch.cat([b(x).flatten(2) for b, x in zip(self.boxes, levels, strict=True)], dim=2)
        labels = torch.cat(
            [b(x).flatten(2) for b, x in zip(self.labels, levels, strict=True)], dim=2
        )
        bins = boxes.unflatten(1, (4, BINS)).transpose(1, 2).softmax(1)
        sides = self.integral(bins).squeeze(1)
        start, end = sides.chunk(2, dim=1)
        corners = torch.cat((end - start, end + start), dim=1)
        return torch.cat((corners, labels.sigmoid()), dim=1)
