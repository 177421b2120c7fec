"""Recommenders in plain torch: embedding tables, interactions of features, small dense layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["RECOMMENDERS", "recommender_network"]


def dense(sizes: Sequence[int], last: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with ReLU between them and ``last`` at the end."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1], last())


class Dlrm(nn.Module):
    """DLRM (Naumov et al., 2019): dot products of all pairs of feature vectors."""

    def __init__(
        self, tables: int, rows: int, width: int, bottom: Sequence[int], top: Sequence[int]
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = dense((13, *bottom, width))
        pairs = (tables + 1) * tables // 2
        self.top = dense((width + pairs, *top, 1), nn.Sigmoid)
        first, second = torch.tril_indices(tables + 1, tables + 1, -1, device="cpu")
        cells = (first * (tables + 1) + second).tolist()
        self.pairs: Tensor
        self.register_buffer("pairs", torch.tensor(cells, device="cpu"), persistent=False)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(numbers)
        vectors = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([x, *vectors], dim=1)
        products = (stacked @ stacked.transpose(1, 2)).flatten(1)[:, self.pairs]
        result: Tensor = self.top(torch.cat((x, products), dim=1))
        return result


class NeuMf(nn.Module):
    """Neural collaborative filtering (He et al., WWW 2017): a product beside dense layers."""

    def __init__(self, users: int, items: int, width: int, layers: Sequence[int]) -> None:
        super().__init__()
        self.user_product, self.item_product = (
            nn.Embedding(users, width),
            nn.Embedding(items, width),
        )
        half = layers[0] // 2
        self.user_dense, self.item_dense = nn.Embedding(users, half), nn.Embedding(items, half)
        self.dense = dense(layers)
        self.head = nn.Linear(width + layers[-1], 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        product = self.user_product(user) * self.item_product(item)
        deep = self.dense(torch.cat((self.user_dense(user), self.item_dense(item)), dim=1))
        return torch.sigmoid(self.head(torch.cat((product, deep), dim=1)))


class DeepFm(nn.Module):
    """DeepFM (Guo et al., IJCAI 2017): a factorisation machine beside dense layers."""

    def __init__(self, fields: int, rows: int, width: int, layers: Sequence[int]) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(rows, 1), nn.Embedding(rows, width)
        self.dense = dense((fields * width, *layers, 1), nn.Identity)

    def forward(self, categories: Tensor) -> Tensor:
        vectors = self.second(categories)
        pairs = (vectors.sum(1) ** 2 - (vectors**2).sum(1)).sum(1, keepdim=True) / 2
        linear = self.first(categories).sum(1)
        return torch.sigmoid(linear + pairs + self.dense(vectors.flatten(1)))


class CrossNetwork(nn.Module):
    """DCN v2 (Wang et al., WWW 2021): cross layers, then dense ones."""

    def __init__(
        self, fields: int, rows: int, width: int, crosses: int, layers: Sequence[int]
    ) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)
        inputs = fields * width
        self.crosses = nn.ModuleList(nn.Linear(inputs, inputs) for _ in range(crosses))
        self.dense = dense((inputs, *layers, 1), nn.Sigmoid)

    def forward(self, categories: Tensor) -> Tensor:
        first = self.table(categories).flatten(1)
        x = first
        for cross in self.crosses:
            x = first * cross(x) + x
        result: Tensor = self.dense(x)
        return result


_CATEGORIES = InputSpec("categories", (26,), torch.int64)
_CLICKS = (InputSpec("numbers", (13,)), _CATEGORIES)
_PAIR = (InputSpec("user", (), torch.int64), InputSpec("item", (), torch.int64))

RECOMMENDERS: Mapping[str, tuple[type[nn.Module], tuple[object, ...], tuple[InputSpec, ...]]] = {
    # name: (module, arguments, inputs)
    "dlrm-small": (Dlrm, (26, 100_000, 16, (512, 256, 64), (512, 256)), _CLICKS),
    "dlrm-kaggle": (Dlrm, (26, 1_300_000, 16, (512, 256, 64), (512, 256)), _CLICKS),
    "dlrm-terabyte": (Dlrm, (26, 7_000_000, 128, (512, 256), (1024, 1024, 512, 256)), _CLICKS),
    "dlrm-wide": (Dlrm, (26, 1_000_000, 256, (1024, 512), (2048, 1024, 512)), _CLICKS),
    "neumf-ml1m": (NeuMf, (6040, 3706, 8, (64, 32, 16, 8)), _PAIR),
    "neumf-ml20m": (NeuMf, (138_493, 26_744, 64, (256, 256, 128, 64)), _PAIR),
    "neumf-wide": (NeuMf, (1_000_000, 500_000, 128, (1024, 512, 256, 128)), _PAIR),
    "deepfm": (DeepFm, (26, 1_000_000, 10, (400, 400, 400)), (_CATEGORIES,)),
    "deepfm-wide": (DeepFm, (26, 5_000_000, 32, (1024, 1024, 512)), (_CATEGORIES,)),
    "dcn-v2": (CrossNetwork, (26, 1_000_000, 16, 3, (1024, 512)), (_CATEGORIES,)),
    "dcn-v2-deep": (CrossNetwork, (26, 1_000_000, 32, 6, (2048, 1024, 512)), (_CATEGORIES,)),
}


def recommender_network(key: str) -> Network:
    """A row of :data:`RECOMMENDERS`.

    Raises:
        KeyError: no such row.
    """
    module, arguments, inputs = RECOMMENDERS[key]
    return Network(
        name=f"recommender/{key}",
        family="recommender",
        builder=f"{module.__module__}.{module.__name__}",
        arguments={"arguments": [list(a) if isinstance(a, tuple) else a for a in arguments]},
        inputs=inputs,
        build=lambda: module(*arguments),
    )
