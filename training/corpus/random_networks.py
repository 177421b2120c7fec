"""Random networks as neural architecture search draws them: cells of random operators and wiring.

``random/cells-17`` is always the same network: its generator is seeded with the name. They need
torch alone, so that every stage can be tried on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network
from training.corpus.random_operators import ACTIVATIONS, OPERATORS, Attention, conv

__all__ = ["FORMS", "CellNetwork", "MixedNetwork", "random_network"]


class _Cell(nn.Module):
    """A directed acyclic graph: each vertex adds or concatenates what its edges bring."""

    def __init__(self, inputs: int, width: int, act: str, stride: int, cell: Mapping[str, Any]):
        super().__init__()
        self.enter = conv(inputs, width, act, 1, 1)
        self.edges = cell["edges"]
        self.operators = nn.ModuleList(
            OPERATORS[name](width, act, stride if source == 0 else 1)
            for source, _, name in self.edges
        )
        self.loose = [
            vertex
            for vertex in range(1, cell["vertices"])
            if all(source != vertex for source, _, _ in self.edges)
        ]
        self.concatenate = cell["concatenate"]
        count = len(self.loose) if self.concatenate else 1
        self.leave = conv(width * count, width, act, 1, 1) if count > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        values: dict[int, Tensor] = {0: self.enter(x)}
        for (source, target, _), operator in zip(self.edges, self.operators, strict=True):
            value = operator(values[source])
            values[target] = values[target] + value if target in values else value
        parts = [values[vertex] for vertex in self.loose]
        if self.concatenate:
            result: Tensor = self.leave(torch.cat(parts, dim=1) if len(parts) > 1 else parts[0])
            return result
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


class CellNetwork(nn.Module):
    """A stem, stages of one random cell each repeated, pooling, a classifier."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        act, width = arguments["activation"], arguments["width"]
        layers: list[nn.Module] = [conv(3, width, act, 3, arguments["stem_stride"])]
        inputs = width
        for stage, cell in enumerate(arguments["cells"]):
            outputs = width << stage
            for repeat in range(cell["repeats"]):
                layers.append(_Cell(inputs, outputs, act, 2 if repeat == 0 else 1, cell))
                inputs = outputs
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(inputs, arguments["classes"])

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = self.head(self.features(image).mean((2, 3)))
        return result


def _draw_cells(draw: random.Random) -> dict[str, Any]:
    cells = []
    for _ in range(draw.randint(2, 4)):
        vertices = draw.randint(2, 6)
        edges = []
        for target in range(1, vertices):
            sources = draw.sample(range(target), min(target, draw.randint(1, 2)))
            edges += [
                [source, target, draw.choice(sorted(OPERATORS))] for source in sorted(sources)
            ]
        cells.append(
            {
                "vertices": vertices,
                "edges": edges,
                "concatenate": draw.random() < 0.5,
                "repeats": draw.randint(1, 4),
            }
        )
    return {
        "image_size": draw.choice((64, 96, 128, 160, 192, 224, 256)),
        "width": draw.choice((16, 24, 32, 48, 64)),
        "activation": draw.choice(sorted(ACTIVATIONS)),
        "stem_stride": draw.choice((1, 2, 2)),
        "classes": draw.choice((10, 100, 1000)),
        "cells": cells,
    }


class MixedNetwork(nn.Module):
    """A chain of convolutional, attention and feed-forward blocks, narrowing the map by stages."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        act, inputs = arguments["activation"], 3
        layers: list[nn.Module] = []
        for stage in arguments["stages"]:
            layers.append(conv(inputs, stage["width"], act, stage["kernel"], stage["stride"]))
            for block in stage["blocks"]:
                if block == "attention":
                    layers.append(Attention(stage["width"]))
                else:
                    layers.append(OPERATORS[block](stage["width"], act, 1))
            inputs = stage["width"]
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.LayerNorm(inputs), nn.Linear(inputs, arguments["classes"]))

    def forward(self, image: Tensor) -> Tensor:
        result: Tensor = self.head(self.features(image).mean((2, 3)))
        return result


def _draw_mixed(draw: random.Random) -> dict[str, Any]:
    stages = []
    width = draw.choice((16, 32, 48, 64))
    size = draw.choice((96, 128, 160, 192, 224, 256))
    left = size
    for stage in range(draw.randint(3, 5)):
        left = -(-left // 2)
        names = sorted(OPERATORS) + (["attention"] * 5 if left <= 32 else [])
        stages.append(
            {
                "width": width,
                "kernel": draw.choice((3, 3, 5, 7)) if stage == 0 else 3,
                "stride": 2,
                "blocks": [draw.choice(names) for _ in range(draw.randint(1, 6))],
            }
        )
        width = min(1024, -(-int(width * draw.choice((1.5, 2, 2))) // 32) * 32)
    return {
        "image_size": size,
        "activation": draw.choice(sorted(ACTIVATIONS)),
        "classes": draw.choice((10, 100, 1000)),
        "stages": stages,
    }


FORMS: Mapping[str, tuple[Callable[[random.Random], dict[str, Any]], type[nn.Module]]] = {
    "cells": (_draw_cells, CellNetwork),
    "mixed": (_draw_mixed, MixedNetwork),
}


def random_network(form: str, number: int) -> Network:
    """Number ``number`` of a form.

    Raises:
        KeyError: no such form.
    """
    draw, module = FORMS[form]
    name = f"random/{form}-{number}"
    arguments = draw(random.Random(name))
    size = arguments["image_size"]
    return Network(
        name=name,
        family=f"random_{form}",
        builder=f"training.corpus.random_networks.{module.__name__}",
        arguments=arguments,
        inputs=(InputSpec("image", (3, size, size)),),
        build=lambda: module(arguments),
    )
