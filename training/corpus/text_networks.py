"""Networks of transformers, from configurations: no hub, no weights.

Attention is built as separate matmul, softmax, matmul (``attn_implementation="eager"``) unless
asked otherwise. Decoders come in two forms: a pass over a whole prompt, and one step that reads a
key-value cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from training.corpus.network import InputSpec, Network
from training.corpus.text_configurations import DECODERS, ENCODER_DECODERS, ENCODERS, Row

__all__ = ["FirstOutput", "step_network", "text_network", "transformers_network"]


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


class CachedStep(torch.nn.Module):
    """One new token against a cache of keys and values, which it returns one token longer.

    Inputs: ``input_ids`` ``(batch, 1)``, then keys and values of each layer in turn, ``(batch,
    heads, tokens, head_dim)``. Outputs: logits, then the longer keys and values.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, input_ids: torch.Tensor, *cached: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        pairs = list(zip(cached[::2], cached[1::2], strict=True))
        cache = DynamicCache(pairs)
        with _one_sequence_per_row():
            logits = self.network(
                input_ids=input_ids, past_key_values=cache, use_cache=True, return_dict=False
            )[0]
        grown = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
        return (logits, *grown)


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
    """A model class of transformers with a configuration of its own, as one pass without cache."""

    def build() -> torch.nn.Module:
        model = _build(model_class, config_class, arguments, attention, use_cache=False)
        return FirstOutput(model, tuple(spec.name for spec in inputs))

    return Network(
        name=name,
        family=family,
        builder=f"transformers.{model_class}",
        arguments={"config": config_class, "attention": attention, **arguments},
        inputs=inputs,
        build=build,
    )


def _config(config_class: str, arguments: Mapping[str, Any], attention: str) -> Any:
    import transformers

    config = getattr(transformers, config_class)(**arguments)
    config._attn_implementation = attention
    return config


def _build(
    model_class: str,
    config_class: str,
    arguments: Mapping[str, Any],
    attention: str,
    use_cache: bool,
) -> torch.nn.Module:
    import transformers

    config = _config(config_class, arguments, attention)
    if hasattr(config, "use_cache"):
        config.use_cache = use_cache
    module: torch.nn.Module = getattr(transformers, model_class)(config)
    return module


def text_network(key: str, tokens: int) -> Network:
    """A row of the configurations over a fixed number of tokens.

    Encoder-decoders read that many source tokens and a quarter as many target tokens.

    Raises:
        KeyError: no such row.
    """
    inputs: tuple[InputSpec, ...] = (InputSpec("input_ids", (tokens,), torch.int64),)
    row = ENCODERS.get(key) or DECODERS.get(key)
    if row is None:
        row = ENCODER_DECODERS[key]
        inputs += (InputSpec("decoder_input_ids", (max(1, tokens // 4),), torch.int64),)
    return transformers_network(
        f"transformers/{key}@{tokens}",
        row.family,
        row.stem + row.head,
        row.stem + "Config",
        row.arguments,
        inputs,
    )


def step_network(key: str, cached: int) -> Network:
    """A decoder's step for one new token after ``cached`` ones.

    Raises:
        KeyError: no such decoder.
    """
    row: Row = DECODERS[key]
    config = _config(row.stem + "Config", row.arguments, "eager")
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    if getattr(config, "multi_query", False):
        key_heads = 1
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    inputs = [InputSpec("input_ids", (1,), torch.int64)]
    for layer in range(config.num_hidden_layers):
        shape = (key_heads, cached, head_dim)
        inputs += [InputSpec(f"past_{kind}_{layer}", shape) for kind in ("key", "value")]

    def build() -> torch.nn.Module:
        model_class, config_class = row.stem + row.head, row.stem + "Config"
        return CachedStep(_build(model_class, config_class, row.arguments, "eager", True))

    return Network(
        name=f"step/{key}@{cached}",
        family=row.family,
        builder=f"transformers.{row.stem}{row.head}",
        arguments={"config": row.stem + "Config", "attention": "eager", **row.arguments},
        inputs=tuple(inputs),
        build=build,
    )
