"""Jasper and QuartzNet: speech recognition by one-dimensional convolutions alone.

Sizes: Li et al., "Jasper", Interspeech 2019, table 1 (DR 10x5); Kriman et al., "QuartzNet",
ICASSP 2020, table 1 (15x5). Input: 64 mel bands in frames of 10 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["Jasper", "QuartzNet", "speech_network"]

BANDS, LETTERS = 64, 29

JASPER = ((11, 256), (13, 384), (17, 512), (21, 640), (25, 768))
"""Kernel and width of each pair of blocks."""

QUARTZ = ((33, 256), (39, 256), (51, 512), (63, 512), (75, 512))
"""Kernel and width of each three blocks."""


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1) -> nn.Module:
    padding = dilation * (kernel - 1) // 2
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, stride, padding, dilation, bias=False),
        nn.BatchNorm1d(outputs),
    )


def _separable(
    inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1
) -> nn.Module:
    padding = dilation * (kernel - 1) // 2
    return nn.Sequential(
        nn.Conv1d(inputs, inputs, kernel, stride, padding, dilation, groups=inputs, bias=False),
        nn.Conv1d(inputs, outputs, 1, bias=False),
        nn.BatchNorm1d(outputs),
    )


class _Block(nn.Module):
    """Five convolutions; the outputs of earlier blocks are added before the last ReLU."""

    def __init__(self, sources: Sequence[int], width: int, kernel: int, separable: bool) -> None:
        super().__init__()
        make = _separable if separable else _conv
        self.layers = nn.ModuleList(
            make(sources[-1] if layer == 0 else width, width, kernel) for layer in range(5)
        )
        self.shortcuts = nn.ModuleList(_conv(source, width, 1) for source in sources)

    def forward(self, earlier: list[Tensor]) -> Tensor:
        x = earlier[-1]
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        x = self.layers[-1](x)
        for shortcut, source in zip(self.shortcuts, earlier, strict=True):
            x = x + shortcut(source)
        return torch.relu(x)


class Jasper(nn.Module):
    """Bands ``(batch, 64, frames)`` to log-probabilities of letters, with dense residuals."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = _conv(BANDS, 256, 11, 2)
        self.blocks = nn.ModuleList()
        widths = [256]
        for kernel, width in JASPER:
            for _ in range(2):
                self.blocks.append(_Block(widths, width, kernel, separable=False))
                widths = [*widths, width]
        self.leave = nn.Sequential(
            _conv(768, 896, 29, dilation=2), nn.ReLU(), _conv(896, 1024, 1), nn.ReLU()
        )
        self.letters = nn.Conv1d(1024, LETTERS, 1)

    def forward(self, bands: Tensor) -> Tensor:
        seen = [torch.relu(self.enter(bands))]
        for block in self.blocks:
            seen.append(block(seen))
        return torch.log_softmax(self.letters(self.leave(seen[-1])).transpose(1, 2), dim=-1)


class QuartzNet(nn.Module):
    """The same interface with separable convolutions, each block with its own input as residual."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = _separable(BANDS, 256, 33, 2)
        self.blocks = nn.ModuleList()
        before = 256
        for kernel, width in QUARTZ:
            for _ in range(3):
                self.blocks.append(_Block([before], width, kernel, separable=True))
                before = width
        self.leave = nn.Sequential(
            _separable(512, 512, 87, dilation=2), nn.ReLU(), _conv(512, 1024, 1), nn.ReLU()
        )
        self.letters = nn.Conv1d(1024, LETTERS, 1)

    def forward(self, bands: Tensor) -> Tensor:
        x = torch.relu(self.enter(bands))
        for block in self.blocks:
            x = block([x])
        return torch.log_softmax(self.letters(self.leave(x)).transpose(1, 2), dim=-1)


def speech_network(key: str, size: int | None) -> Network | None:
    """``jasper`` or ``quartznet`` over ``size`` frames (701), or ``None``."""
    modules = {"jasper": Jasper, "quartznet": QuartzNet}
    if key not in modules:
        return None
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    inputs = (InputSpec("bands", (BANDS, size or 701)),)
    return Network(name, "speech_convolutions", f"{__name__}.{key}", {}, inputs, modules[key])
