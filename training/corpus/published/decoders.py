"""Passes of language models as servers run them.

``NAME-prefill`` reads a prompt and gives the logits of its last token alone, as an engine does
that goes on to write. ``NAME-step`` is one new token against a cache, for models that the
catalog's own steps lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network
from training.corpus.text_configurations import DECODERS, Row
from training.corpus.text_networks import CachedStep, FirstOutput

__all__ = ["decoder_pass"]

PROMPTS: Mapping[str, str] = {
    "llama-7b": "llama-2-7b",
    "llama-13b": "llama-2-13b",
    "llama-3-8b": "llama-3-8b",
    "mistral-7b": "mistral-7b",
    "gpt-j-6b": "gpt-j-6b",
}
"""Published names, and the configuration that has the same layers."""

STEPS: Mapping[str, Row] = {
    "qwen3-8b": Row(
        "qwen3", "Qwen3", "ForCausalLM",
        {"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 12288, "vocab_size": 151936,
         "head_dim": 128, "max_position_embeddings": 40960},
    ),
}  # fmt: skip


class PromptPass(nn.Module):
    """Tokens ``(batch, tokens)`` to the logits of the last, ``(batch, 1, vocabulary)``."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.inner = FirstOutput(network, ("input_ids", "logits_to_keep"))

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.inner(tokens, 1)
        return result


def _model(row: Row, use_cache: bool) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{row.stem}Config")(**row.arguments)
    config._attn_implementation = "eager"
    config.use_cache = use_cache
    module: nn.Module = getattr(transformers, row.stem + row.head)(config)
    return module


def decoder_pass(key: str, size: int | None) -> Network | None:
    """The pass of that name over ``size`` tokens or cached tokens (512), or ``None``."""
    tokens = size or 512
    model, _, kind = key.rpartition("-")
    if kind == "prefill" and model in PROMPTS:
        row = DECODERS[PROMPTS[model]]
        inputs = [InputSpec("input_ids", (tokens,), torch.int64)]
        return _network(key, tokens, row, inputs, lambda: PromptPass(_model(row, False)))
    if kind == "step" and model in STEPS:
        row = STEPS[model]
        arguments = row.arguments
        shape = (arguments["num_key_value_heads"], tokens, arguments["head_dim"])
        inputs = [InputSpec("input_ids", (1,), torch.int64)]
        for layer in range(arguments["num_hidden_layers"]):
            inputs += [InputSpec(f"past_{kind}_{layer}", shape) for kind in ("key", "value")]
        return _network(key, tokens, row, inputs, lambda: CachedStep(_model(row, True)))
    return None


def _network(key: str, tokens: int, row: Row, inputs: list[InputSpec], build: Any) -> Network:
    return Network(
        name=f"published/{key}@{tokens}",
        family=row.family,
        builder=f"transformers.{row.stem}{row.head}",
        arguments={"config": f"{row.stem}Config", "attention": "eager", **row.arguments},
        inputs=tuple(inputs),
        build=build,
    )
