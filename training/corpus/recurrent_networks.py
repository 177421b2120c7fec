"""Recurrent networks: drawn by number, as ``recurrent/lstm-17``, in plain torch."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["CELLS", "recurrent_network"]

CELLS: Mapping[str, type[nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}

VOCABULARY = 10_000


class Recurrent(nn.Module):
    """Tokens, features or a spectrogram, into recurrent layers, into a head.

    ``front``: ``tokens`` through an embedding, ``features`` as they are, ``convolutions`` over a
    spectrogram as in Deep Speech 2 (Amodei et al., 2016). ``head``: ``last`` classifies the last
    step, ``every`` each step.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        hidden, front = arguments["hidden"], arguments["front"]
        inputs = arguments["features"]
        if front == "tokens":
            self.front: nn.Module = nn.Embedding(VOCABULARY, inputs)
        elif front == "convolutions":
            self.front = nn.Sequential(
                nn.Conv1d(inputs, hidden, 11, 2, 5, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
                nn.Conv1d(hidden, hidden, 11, 1, 5, bias=False), nn.BatchNorm1d(hidden), nn.ReLU(),
            )  # fmt: skip
            inputs = hidden
        else:
            self.front = nn.Identity()
        both = arguments["bidirectional"]
        self.recurrent = CELLS[arguments["cell"]](
            inputs, hidden, arguments["layers"], batch_first=True, bidirectional=both
        )
        self.transposed, self.last = front == "convolutions", arguments["head"] == "last"
        self.head = nn.Linear(hidden * (2 if both else 1), arguments["classes"])

    def forward(self, sequence: Tensor) -> Tensor:
        x = self.front(sequence)
        x = self.recurrent(x.transpose(1, 2) if self.transposed else x)[0]
        result: Tensor = self.head(x[:, -1] if self.last else x)
        return result


def _draw(draw: random.Random, cell: str) -> dict[str, Any]:
    front = draw.choice(("tokens", "features", "convolutions"))
    head = draw.choice(("last", "every"))
    return {
        "cell": cell,
        "front": front,
        "features": draw.choice((64, 128, 256, 512)) if front != "convolutions" else 80,
        "steps": draw.choice((16, 32, 64, 100, 200, 400)),
        "hidden": draw.choice((64, 128, 256, 512, 768, 1024, 1536, 2048)),
        "layers": draw.randint(1, 6),
        "bidirectional": draw.random() < 0.4,
        "head": head,
        "classes": draw.choice((2, 10, 1000)) if head == "last" else draw.choice((29, VOCABULARY)),
    }


def recurrent_network(cell: str, number: int) -> Network:
    """Number ``number`` of a kind of cell.

    Raises:
        KeyError: no such cell.
    """
    if cell not in CELLS:
        raise KeyError(cell)
    name = f"recurrent/{cell}-{number}"
    arguments = _draw(random.Random(name), cell)
    steps, features = arguments["steps"], arguments["features"]
    inputs = {
        "tokens": InputSpec("sequence", (steps,), torch.int64),
        "features": InputSpec("sequence", (steps, features)),
        "convolutions": InputSpec("sequence", (features, steps)),
    }[arguments["front"]]
    return Network(
        name=name,
        family=cell,
        builder=f"{Recurrent.__module__}.Recurrent",
        arguments=arguments,
        inputs=(inputs,),
        build=lambda: Recurrent(arguments),
    )
