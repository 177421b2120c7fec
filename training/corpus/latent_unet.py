"""The U-Net and the decoder of latent diffusion, in plain torch.

``LatentUNet`` is the U-Net of Stable Diffusion (Rombach et al., CVPR 2022) and, with other
widths, of SDXL (Podell et al., 2023): residual blocks with a time embedding, and transformers that
attend to the prompt. ``LatentDecoder`` is the decoder of their autoencoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.corpus.dit import waves

__all__ = ["LatentDecoder", "LatentUNet"]


class _Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int = 0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inputs, eps), nn.Conv2d(inputs, outputs, 3, 1, 1)
        self.norm2, self.conv2 = (
            nn.GroupNorm(32, outputs, eps),
            nn.Conv2d(outputs, outputs, 3, 1, 1),
        )
        self.time = nn.Linear(time, outputs) if time else None
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        y = self.conv1(functional.silu(self.norm1(x)))
        if self.time is not None and time is not None:
            y = y + self.time(functional.silu(time))[:, :, None, None]
        y = self.conv2(functional.silu(self.norm2(y)))
        result: Tensor = self.skip(x) + y
        return result


class _Attention(nn.Module):
    def __init__(self, width: int, context: int, heads: int, bias: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=bias)
        self.key, self.value = (nn.Linear(context, width, bias=bias) for _ in range(2))
        self.leave = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        parts = (self.query(x), self.key(context), self.value(context))
        query, key, value = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = self.leave(mixed.transpose(1, 2).flatten(2))
        return result


class _Block(nn.Module):
    """Self-attention, attention to the prompt, a gated feed-forward layer."""

    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.own = _Attention(width, width, heads)
        self.cross = _Attention(width, context, heads)
        self.grow, self.shrink = nn.Linear(width, width * 8), nn.Linear(width * 4, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        normed = self.norm1(x)
        x = x + self.own(normed, normed)
        x = x + self.cross(self.norm2(x), context)
        value, gate = self.grow(self.norm3(x)).chunk(2, dim=-1)
        result: Tensor = x + self.shrink(value * functional.gelu(gate))
        return result


class _Transformer(nn.Module):
    """Blocks over the cells of a map; entered by 1 x 1 convolutions, or by linear layers."""

    def __init__(self, width: int, context: int, heads: int, depth: int, linear: bool) -> None:
        super().__init__()
        self.linear = linear
        make: Callable[[], nn.Module] = (
            (lambda: nn.Linear(width, width)) if linear else (lambda: nn.Conv2d(width, width, 1))
        )
        self.norm, self.enter, self.leave = nn.GroupNorm(32, width, 1e-6), make(), make()
        self.blocks = nn.ModuleList(_Block(width, context, heads) for _ in range(depth))

    def forward(self, image: Tensor, context: Tensor) -> Tensor:
        height = image.shape[2]
        x = self.norm(image)
        x = x if self.linear else self.enter(x)
        x = x.flatten(2).transpose(1, 2)
        x = self.enter(x) if self.linear else x
        for block in self.blocks:
            x = block(x, context)
        x = self.leave(x) if self.linear else x
        x = x.transpose(1, 2).unflatten(2, (height, -1))
        return image + (x if self.linear else self.leave(x))


class LatentUNet(nn.Module):
    """Latent ``(batch, 4, h, w)``, time ``(batch,)``, prompt ``(batch, tokens, context)``.

    ``added`` is the width of SDXL's extra conditioning vector, a fourth input.
    """

    def __init__(
        self,
        widths: Sequence[int] = (320, 640, 1280, 1280),
        depths: Sequence[int] = (1, 1, 1, 0),
        middle: int = 1,
        context: int = 768,
        heads: Sequence[int] = (8, 8, 8, 8),
        added: int = 0,
        linear: bool = False,
    ) -> None:
        super().__init__()
        first, time = widths[0], widths[0] * 4
        self.first = first
        self.time = nn.Sequential(nn.Linear(first, time), nn.SiLU(), nn.Linear(time, time))
        self.added = (
            nn.Sequential(nn.Linear(added, time), nn.SiLU(), nn.Linear(time, time))
            if added
            else None
        )
        self.enter = nn.Conv2d(4, first, 3, 1, 1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        skips, inputs = [first], first

        def level(stage: int, inputs: int) -> nn.Module:
            width = widths[stage]
            transformer = (
                _Transformer(width, context, heads[stage], depths[stage], linear)
                if depths[stage]
                else None
            )
            return nn.ModuleList(
                [_Residual(inputs, width, time), *([transformer] if transformer else [])]
            )

        for stage, width in enumerate(widths):
            for _ in range(2):
                self.down.append(level(stage, inputs))
                inputs = width
                skips.append(width)
            if stage + 1 < len(widths):
                self.down.append(nn.Conv2d(width, width, 3, 2, 1))
                skips.append(width)
        self.middle = nn.ModuleList([_Residual(inputs, inputs, time)])
        if middle:
            self.middle.append(_Transformer(inputs, context, heads[-1], middle, linear))
        self.middle.append(_Residual(inputs, inputs, time))
        for stage in reversed(range(len(widths))):
            for _ in range(3):
                self.up.append(level(stage, inputs + skips.pop()))
                inputs = widths[stage]
            if stage:
                self.up.append(
                    nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(inputs, inputs, 3, 1, 1))
                )
        self.leave = nn.Sequential(nn.GroupNorm(32, first), nn.SiLU(), nn.Conv2d(first, 4, 3, 1, 1))

    def forward(
        self, latent: Tensor, time: Tensor, prompt: Tensor, added: Tensor | None = None
    ) -> Tensor:
        step = self.time(waves(time, self.first))
        if self.added is not None:
            step = step + self.added(added)
        x = self.enter(latent)
        skips = [x]
        for part in self.down:
            x = _apply(part, x, step, prompt)
            skips.append(x)
        x = _apply(self.middle, x, step, prompt)
        for part in self.up:
            if isinstance(part, nn.ModuleList):
                x = torch.cat((x, skips.pop()), dim=1)
            x = _apply(part, x, step, prompt)
        result: Tensor = self.leave(x)
        return result


def _apply(part: nn.Module, x: Tensor, step: Tensor, prompt: Tensor) -> Tensor:
    if not isinstance(part, nn.ModuleList):
        result: Tensor = part(x)
        return result
    for layer in part:
        x = layer(x, step) if isinstance(layer, _Residual) else layer(x, prompt)
    return x


class _CellAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, width, 1e-6)
        self.attention = _Attention(width, width, 1, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        cells = self.norm(x).flatten(2).transpose(1, 2)
        mixed = self.attention(cells, cells).transpose(1, 2)
        return x + mixed.unflatten(2, (x.shape[2], -1))


class LatentDecoder(nn.Module):
    """Latent ``(batch, 4, h, w)`` to an image ``(batch, 3, 8 h, 8 w)``."""

    def __init__(self, widths: Sequence[int] = (512, 512, 256, 128)) -> None:
        super().__init__()
        width = widths[0]
        layers: list[nn.Module] = [
            nn.Conv2d(4, 4, 1), nn.Conv2d(4, width, 3, 1, 1), _Residual(width, width, eps=1e-6),
            _CellAttention(width), _Residual(width, width, eps=1e-6),
        ]  # fmt: skip
        for stage, outputs in enumerate(widths):
            for _ in range(3):
                layers.append(_Residual(width, outputs, eps=1e-6))
                width = outputs
            if stage + 1 < len(widths):
                layers += [nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, 1, 1)]
        layers += [nn.GroupNorm(32, width, 1e-6), nn.SiLU(), nn.Conv2d(width, 3, 3, 1, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, latent: Tensor) -> Tensor:
        result: Tensor = self.layers(latent)
        return result
