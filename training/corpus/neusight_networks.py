"""The language networks behind NeuSight's published A100 latencies.

Sizes: the model configurations of NeuSight (Lee et al., "Forecasting GPU Performance for Deep
Learning Training and Inference", ASPLOS 2025, public artifact). One forward pass, IEEE fp32,
attention as separate matmul, softmax, matmul; BERT with pooler and a two-label classifier, the
others with their language-model head over all tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from training.corpus.network import InputSpec, Network
from training.corpus.text_networks import transformers_network

__all__ = ["NEUSIGHT", "neusight_network"]


def _gpt(layers: int, hidden: int, heads: int, positions: int) -> Mapping[str, Any]:
    return {
        "n_layer": layers, "n_embd": hidden, "n_head": heads, "n_positions": positions,
        "vocab_size": 50257, "activation_function": "gelu_new",
    }  # fmt: skip


NEUSIGHT: Mapping[str, tuple[str, str, str, int, Mapping[str, Any]]] = {
    # name: (family, model class, configuration class, tokens, configuration)
    "bert-large": (
        "bert", "BertForSequenceClassification", "BertConfig", 512,
        {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
         "intermediate_size": 4096, "hidden_act": "gelu", "vocab_size": 30522,
         "max_position_embeddings": 512, "num_labels": 2},
    ),
    "gpt2-large": ("gpt2", "GPT2LMHeadModel", "GPT2Config", 1024, _gpt(36, 1280, 20, 1024)),
    "gpt3-xl": ("gpt2", "GPT2LMHeadModel", "GPT2Config", 2048, _gpt(24, 3072, 24, 2048)),
    "gpt3-2.7b": ("gpt2", "GPT2LMHeadModel", "GPT2Config", 2048, _gpt(32, 2560, 32, 2048)),
    "opt-1.3b": (
        "opt", "OPTForCausalLM", "OPTConfig", 2048,
        {"num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32, "ffn_dim": 8192,
         "activation_function": "relu", "vocab_size": 50272, "max_position_embeddings": 2048,
         "word_embed_proj_dim": 2048},
    ),
}  # fmt: skip


def neusight_network(name: str) -> Network:
    """One of the five networks at its number of tokens.

    Raises:
        KeyError: no such network.
    """
    family, model_class, config_class, tokens, arguments = NEUSIGHT[name]
    return transformers_network(
        f"neusight/{name}",
        family,
        model_class,
        config_class,
        arguments,
        (InputSpec("input_ids", (tokens,), torch.int64),),
    )
