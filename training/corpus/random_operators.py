"""The operators that random networks are made of; each keeps the width of a feature map."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor, nn

__all__ = ["ACTIVATIONS", "OPERATORS", "Attention", "conv"]

ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU,
    "hardswish": nn.Hardswish, "leaky_relu": lambda: nn.LeakyReLU(0.1), "elu": nn.ELU,
}  # fmt: skip


def conv(inputs: int, outputs: int, act: str, kernel: int, stride: int, **more: int) -> nn.Module:
    """Convolution that keeps the size at stride 1, batch normalisation, activation."""
    padding = kernel // 2 * more.get("dilation", 1)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False, **more),
        nn.BatchNorm2d(outputs),
        ACTIVATIONS[act](),
    )


def _separable(width: int, act: str, kernel: int, stride: int) -> nn.Module:
    return nn.Sequential(
        conv(width, width, act, kernel, stride, groups=width), conv(width, width, act, 1, 1)
    )


def _inverted(width: int, act: str, kernel: int, stride: int, factor: int) -> nn.Module:
    wide = width * factor
    return nn.Sequential(
        conv(width, wide, act, 1, 1),
        conv(wide, wide, act, kernel, stride, groups=wide),
        _SqueezeExcite(wide),
        nn.Conv2d(wide, width, 1, bias=False),
        nn.BatchNorm2d(width),
    )


class _SqueezeExcite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        inner = max(8, width // 16)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(width, inner, 1), nn.ReLU(),
            nn.Conv2d(inner, width, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        gate: Tensor = self.gate(x)
        return x * gate


class Attention(nn.Module):
    """Self-attention over the cells of a feature map, with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 32)
        self.norm = nn.GroupNorm(1, width)
        self.queries_keys_values = nn.Conv2d(width, width * 3, 1)
        self.leave = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, width, height, length = x.shape
        parts = self.queries_keys_values(self.norm(x)).flatten(2)
        query, key, value = parts.unflatten(1, (3, self.heads, width // self.heads)).unbind(1)
        weights = (query.transpose(-2, -1) @ key * (width // self.heads) ** -0.5).softmax(-1)
        mixed = (value @ weights.transpose(-2, -1)).flatten(1, 2).unflatten(2, (height, length))
        result: Tensor = x + self.leave(mixed)
        return result


_Make = Callable[[int, str, int], nn.Module]
OPERATORS: Mapping[str, _Make] = {
    # name: (width, activation, stride) to a module that keeps the width
    "conv1": lambda w, a, s: conv(w, w, a, 1, s),
    "conv3": lambda w, a, s: conv(w, w, a, 3, s),
    "conv5": lambda w, a, s: conv(w, w, a, 5, s),
    "conv3_dilated": lambda w, a, s: conv(w, w, a, 3, s, dilation=2),
    "conv3_grouped": lambda w, a, s: conv(w, w, a, 3, s, groups=8),
    "conv1x7_7x1": lambda w, a, s: nn.Sequential(
        nn.Conv2d(w, w, (1, 7), (1, s), (0, 3), bias=False),
        nn.Conv2d(w, w, (7, 1), (s, 1), (3, 0), bias=False),
        nn.BatchNorm2d(w),
        ACTIVATIONS[a](),
    ),
    "separable3": lambda w, a, s: _separable(w, a, 3, s),
    "separable5": lambda w, a, s: _separable(w, a, 5, s),
    "separable7": lambda w, a, s: _separable(w, a, 7, s),
    "inverted3": lambda w, a, s: _inverted(w, a, 3, s, 4),
    "inverted5": lambda w, a, s: _inverted(w, a, 5, s, 6),
    "max_pool": lambda _w, _a, s: nn.MaxPool2d(3, s, 1),
    "average_pool": lambda _w, _a, s: nn.AvgPool2d(3, s, 1),
    "identity": lambda w, a, s: nn.Identity() if s == 1 else conv(w, w, a, 1, s),
}
