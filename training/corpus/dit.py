"""The diffusion transformer of Peebles and Xie (ICCV 2023), in plain torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["DiT", "waves"]


def waves(time: Tensor, width: int) -> Tensor:
    """Sines and cosines of a step ``(batch,)`` at ``width / 2`` rates from 1 down to 1/10000."""
    rates = torch.exp(torch.arange(width // 2) * (-math.log(10_000) / (width // 2)))
    angles = time[:, None] * rates
    return torch.cat((angles.cos(), angles.sin()), dim=1)


class _DiTBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = (
            nn.LayerNorm(width, 1e-6, elementwise_affine=False) for _ in range(2)
        )
        self.qkv, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition)[:, None].chunk(
            6, dim=2
        )
        y = self.norm1(x) * (1 + scale1) + shift1
        heads = self.qkv(y).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads.unbind(0))
        x = x + gate1 * self.leave(mixed.transpose(1, 2).flatten(2))
        result: Tensor = x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)
        return result


class DiT(nn.Module):
    """Latent ``(batch, 4, size, size)``, time ``(batch,)``, class ``(batch,)`` to noise and its
    variance, ``(batch, 8, size, size)``."""

    def __init__(
        self, depth: int = 28, width: int = 1152, heads: int = 16, patch: int = 2, size: int = 32
    ) -> None:
        super().__init__()
        self.patch, self.cells = patch, size // patch
        self.enter = nn.Conv2d(4, width, patch, patch)
        self.positions = nn.Parameter(torch.zeros(1, self.cells**2, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.labels = nn.Embedding(1001, width)
        self.blocks = nn.ModuleList(_DiTBlock(width, heads) for _ in range(depth))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.norm = nn.LayerNorm(width, 1e-6, elementwise_affine=False)
        self.leave = nn.Linear(width, patch * patch * 8)

    def forward(self, latent: Tensor, time: Tensor, label: Tensor) -> Tensor:
        x = self.enter(latent).flatten(2).transpose(1, 2) + self.positions
        condition = self.time(waves(time, 256)) + self.labels(label)
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = self.modulation(condition)[:, None].chunk(2, dim=2)
        x = self.leave(self.norm(x) * (1 + scale) + shift)
        x = x.unflatten(2, (self.patch, self.patch, 8)).unflatten(1, (self.cells, self.cells))
        return x.permute(0, 5, 1, 3, 2, 4).flatten(4).flatten(2, 3)
