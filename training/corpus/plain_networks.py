"""Networks written out in plain torch: what the model libraries lack, or what tests need small.

Each is its paper's architecture; the docstring names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["PLAIN", "plain_network"]


class Lstm(nn.Module):
    """Two LSTM layers and a classifier on the last step."""

    def __init__(self, features: int = 128, hidden: int = 512, bidirectional: bool = False) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(hidden * (2 if bidirectional else 1), 10)

    def forward(self, sequence: Tensor) -> Tensor:
        result: Tensor = self.head(self.lstm(sequence)[0][:, -1])
        return result


class Gru(nn.Module):
    """One GRU layer over embedded tokens, with a vocabulary head on every step."""

    def __init__(self, vocabulary: int = 10000, hidden: int = 512) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.head(self.gru(self.embedding(tokens))[0])
        return result


def dcgan_generator(latent: int = 100, width: int = 64) -> nn.Module:
    """The generator of DCGAN (Radford et al., 2015): five transposed convolutions to 64 x 64."""
    layers: list[nn.Module] = [
        nn.ConvTranspose2d(latent, width * 8, 4, 1, 0, bias=False),
        nn.BatchNorm2d(width * 8),
        nn.ReLU(),
    ]
    for factor in (8, 4, 2):
        layers += [
            nn.ConvTranspose2d(width * factor, width * factor // 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * factor // 2),
            nn.ReLU(),
        ]
    layers += [nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """U-Net (Ronneberger et al., 2015) with padded convolutions and batch normalisation."""

    def __init__(self, width: int = 64, depth: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            _double(3 if level == 0 else widths[level - 1], widths[level])
            for level in range(depth + 1)
        )
        self.grow = nn.ModuleList(
            nn.ConvTranspose2d(widths[level + 1], widths[level], 2, 2)
            for level in reversed(range(depth))
        )
        self.up = nn.ModuleList(
            _double(widths[level + 1], widths[level]) for level in reversed(range(depth))
        )
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat((skips.pop(), grow(x)), dim=1))
        result: Tensor = self.head(x)
        return result


def _double(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class SpeechEncoder(nn.Module):
    """The 1-D convolutions of wav2vec 2.0 (Baevski et al., 2020): 16 kHz sound to 50 frames/s."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        kernels, strides = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
        layers: list[nn.Module] = []
        for index, (kernel, stride) in enumerate(zip(kernels, strides, strict=True)):
            layers.append(nn.Conv1d(width if index else 1, width, kernel, stride, bias=False))
            if index == 0:
                layers.append(nn.GroupNorm(width, width))
            layers.append(nn.GELU())
        self.layers = nn.Sequential(*layers)

    def forward(self, sound: Tensor) -> Tensor:
        result: Tensor = self.layers(sound)
        return result


_Row = tuple[str, Callable[[], nn.Module], tuple[InputSpec, ...]]


def _yolov8n() -> nn.Module:
    from training.corpus.yolo import YoloV8

    return YoloV8()


PLAIN: Mapping[str, _Row] = {
    # name: (family, builder, inputs)
    "lstm": ("lstm", Lstm, (InputSpec("sequence", (100, 128)),)),
    "bilstm": ("lstm", lambda: Lstm(bidirectional=True), (InputSpec("sequence", (100, 128)),)),
    "gru": ("gru", Gru, (InputSpec("tokens", (64,), torch.int64),)),
    "dcgan": ("gan", dcgan_generator, (InputSpec("latent", (100, 1, 1)),)),
    "unet": ("unet", UNet, (InputSpec("image", (3, 256, 256)),)),
    "speech_encoder": ("speech", SpeechEncoder, (InputSpec("sound", (1, 16000)),)),
    "yolov8n": ("yolo", _yolov8n, (InputSpec("image", (3, 640, 640)),)),
}


def plain_network(name: str) -> Network:
    """A row of :data:`PLAIN`.

    Raises:
        KeyError: no such row.
    """
    family, build, inputs = PLAIN[name]
    return Network(f"plain/{name}", family, f"plain.{name}", {}, inputs, build)
