"""GPUNet: classifiers found by a search for low latency on NVIDIA GPUs.

Sizes: Wang et al., "Searching the Deployable Convolution Neural Networks for GPUs", CVPR 2022, and
the configurations published with it. P0 and P1 are pruned.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["GpuNet", "gpunet"]

Layer = tuple[str, int, int, float, int, str, bool]
"""Kind, outputs, stride, expansion, kernel, activation, squeeze-and-excitation."""


def _act(name: str) -> nn.Module:
    return nn.SiLU() if name == "swish" else nn.ReLU()


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class _Squeeze(nn.Module):
    """Squeeze-and-excitation with a quarter of the block's inputs as bottleneck."""

    def __init__(self, width: int, inputs: int, act: str) -> None:
        super().__init__()
        middle = max(inputs // 4, 1)
        self.reduce, self.expand = nn.Conv2d(width, middle, 1), nn.Conv2d(middle, width, 1)
        self.act = _act(act)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.act(self.reduce(x.mean((2, 3), keepdim=True)))
        result: Tensor = x * self.expand(scale).sigmoid()
        return result


class _Block(nn.Module):
    """An inverted residual: depthwise in the middle, or one wide convolution where fused."""

    def __init__(self, inputs: int, layer: Layer) -> None:
        super().__init__()
        kind, outputs, stride, expansion, kernel, act, squeeze = layer
        middle = 8 * int(inputs * expansion / 8 + 0.5)
        layers: list[nn.Module] = []
        if kind == "conv":
            layers += [_conv(inputs, outputs, kernel, stride), _act(act)]
        elif kind == "fused":
            layers += [_conv(inputs, middle, kernel, stride), _act(act)]
        else:
            layers += [_conv(inputs, middle, 1), _act(act)]
            layers += [_conv(middle, middle, kernel, stride, groups=middle), _act(act)]
        if squeeze:
            layers.append(_Squeeze(middle, inputs, act))
        if kind != "conv":
            layers.append(_conv(middle, outputs, 1))
        self.layers = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs and kind != "conv"

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x)
        return x + result if self.shortcut else result


class GpuNet(nn.Module):
    """Images ``(batch, 3, size, size)`` to 1,000 classes."""

    def __init__(self, stem: int, layers: tuple[Layer, ...], last: int, act: str = "swish") -> None:
        super().__init__()
        widths = [stem, *(layer[1] for layer in layers)]
        self.stem = nn.Sequential(_conv(3, stem, 3, 2), _act(act))
        self.blocks = nn.Sequential(
            *(_Block(width, layer) for width, layer in zip(widths, layers, strict=False))
        )
        self.top = nn.Sequential(_conv(widths[-1], last, 1), _act(act))
        self.head = nn.Linear(last, 1000)

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = self.head(self.top(self.blocks(self.stem(image))).mean((2, 3)))
        return result


def _conv_layer(outputs: int, stride: int = 1, kernel: int = 3) -> Layer:
    return ("conv", outputs, stride, 1, kernel, "relu", False)


def _layers(
    kind: str, count: int, outputs: int, stride: int, expansion: float, kernel: int, act: str,
    squeeze: bool = False,
) -> tuple[Layer, ...]:  # fmt: skip
    """``count`` equal layers of which the first has the stride."""
    rest: Layer = (kind, outputs, 1, expansion, kernel, act, squeeze)
    return ((kind, outputs, stride, expansion, kernel, act, squeeze), *[rest] * (count - 1))


def _slim(*rows: tuple[int, int, float, int]) -> tuple[Layer, ...]:
    """Inverted residuals with ReLU: outputs, stride, expansion, kernel."""
    return tuple(("irb", o, s, e, k, "relu", False) for o, s, e, k in rows)


_RELU, _SWISH = "relu", "swish"

ROWS: Mapping[str, tuple[int, partial[GpuNet]]] = {
    # name: (image size, network)
    "GPUNet-0": (320, partial(GpuNet, 32, (
        _conv_layer(32), _conv_layer(32),
        *_layers("fused", 2, 32, 2, 5, 3, _RELU), *_layers("fused", 3, 64, 2, 5, 3, _RELU),
        *_layers("irb", 3, 256, 2, 5, 3, _SWISH), *_layers("irb", 2, 704, 2, 5, 3, _RELU, True),
    ), 1280)),
    "GPUNet-1": (288, partial(GpuNet, 24, (
        _conv_layer(24),
        *_layers("fused", 2, 64, 2, 4, 3, _SWISH), *_layers("fused", 2, 96, 2, 4, 3, _SWISH),
        *_layers("irb", 1, 160, 2, 2, 3, _SWISH, True), *_layers("irb", 4, 288, 1, 5, 3, _RELU),
        *_layers("irb", 4, 448, 2, 4, 3, _RELU, True),
    ), 1280)),
    "GPUNet-2": (384, partial(GpuNet, 32, (
        _conv_layer(32), _conv_layer(32), _conv_layer(32),
        *_layers("fused", 1, 32, 2, 6, 5, _SWISH, True), *_layers("fused", 3, 112, 2, 3, 3, _SWISH),
        *_layers("irb", 6, 144, 2, 6, 3, _SWISH), *_layers("irb", 4, 160, 1, 3, 5, _RELU),
        *_layers("irb", 8, 224, 2, 3, 3, _SWISH, True), *_layers("irb", 7, 832, 1, 2, 5, _RELU),
    ), 1280)),
    "GPUNet-P0": (224, partial(GpuNet, 32, (
        _conv_layer(32), _conv_layer(32), _conv_layer(64, 2),
        *_slim((96, 2, 8, 3), (96, 1, 7.67, 3), (96, 1, 7.67, 3), (256, 2, 7.67, 3),
               (256, 1, 4.25, 5), (256, 1, 4.75, 3), (704, 2, 8, 3), (704, 1, 3.82, 5),
               (704, 1, 3.36, 3), (704, 1, 2.55, 3), (704, 2, 5.73, 3)),
    ), 1984, _RELU)),
    "GPUNet-P1": (224, partial(GpuNet, 32, (
        _conv_layer(32), _conv_layer(32), _conv_layer(64, 2, 5),
        *_slim((64, 1, 8, 3), (64, 1, 8, 3), (96, 2, 8, 5), (96, 1, 8, 5), (256, 2, 8, 5),
               (256, 1, 7.5, 5), (256, 1, 7.88, 3), (704, 2, 7.88, 5), (704, 1, 8, 5),
               (704, 1, 7.41, 3), (704, 1, 8, 5), (704, 2, 7.95, 5)),
    ), 1984, _RELU)),
}  # fmt: skip


def gpunet(key: str, size: int | None) -> Network | None:
    """A GPUNet at ``size`` pixels square, or ``None``."""
    if key not in ROWS:
        return None
    default, build = ROWS[key]
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    inputs = (InputSpec("image", (3, size or default, size or default)),)
    return Network(name, "gpunet", f"{__name__}.{key}", {}, inputs, build)
