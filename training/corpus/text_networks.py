"""Networks of transformers, from configurations: no hub, no weights.

Attention is built as separate matmul, softmax, matmul (``attn_implementation="eager"``) unless
asked otherwise, without a key-value cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from training.corpus.network import InputSpec, Network

__all__ = ["CONFIGURATIONS", "FirstOutput", "text_network", "transformers_network"]


class FirstOutput(torch.nn.Module):
    """Calls a transformers model with named inputs and returns its first output alone."""

    def __init__(self, network: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.network = network
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        with _one_sequence_per_row():
            result = self.network(**dict(zip(self.names, inputs, strict=True)), return_dict=False)
        first: torch.Tensor = result[0]
        return first


@contextlib.contextmanager
def _one_sequence_per_row() -> Iterator[None]:
    """Skip the search for several sequences packed in one row, which no exporter needs to see."""
    from transformers import masking_utils

    before = masking_utils.find_packed_sequence_indices
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    try:
        yield
    finally:
        masking_utils.find_packed_sequence_indices = before


def transformers_network(
    name: str,
    family: str,
    model_class: str,
    config_class: str,
    arguments: Mapping[str, Any],
    inputs: tuple[InputSpec, ...],
    attention: str = "eager",
) -> Network:
    """A model class of transformers with a configuration of its own."""

    def build() -> torch.nn.Module:
        import transformers

        config = getattr(transformers, config_class)(**arguments)
        config._attn_implementation = attention
        if hasattr(config, "use_cache"):
            config.use_cache = False
        model = getattr(transformers, model_class)(config)
        return FirstOutput(model, tuple(spec.name for spec in inputs))

    return Network(
        name=name,
        family=family,
        builder=f"transformers.{model_class}",
        arguments={"config": config_class, "attention": attention, **arguments},
        inputs=inputs,
        build=build,
    )


def text_network(key: str, tokens: int) -> Network:
    """A row of :data:`CONFIGURATIONS` at a fixed number of tokens.

    Raises:
        KeyError: no such row.
    """
    family, model_class, config_class, arguments = CONFIGURATIONS[key]
    return transformers_network(
        f"transformers/{key}@{tokens}",
        family,
        model_class,
        config_class,
        arguments,
        (InputSpec("input_ids", (tokens,), torch.int64),),
    )


_Row = tuple[str, str, str, Mapping[str, Any]]

CONFIGURATIONS: Mapping[str, _Row] = {
    # name: (family, model class, configuration class, what differs from its defaults)
    "bert-base": ("bert", "BertModel", "BertConfig", {}),
    "distilbert": ("distilbert", "DistilBertModel", "DistilBertConfig", {}),
    "roberta-base": (
        "roberta", "RobertaModel", "RobertaConfig",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1},
    ),
    "gpt2": ("gpt2", "GPT2LMHeadModel", "GPT2Config", {}),
}  # fmt: skip
"""The defaults of a configuration class are the base model's published sizes."""

Builder = Callable[[], torch.nn.Module]
