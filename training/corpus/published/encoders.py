"""Text encoders as benchmarks run them: with a task's head, or as a bare stack of layers.

A bare stack takes embeddings: FasterTransformer, AITemplate and ByteTransformer time the layers
alone. Encoder-decoders here read as many target tokens as source tokens, as TorchBench does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network
from training.corpus.text_networks import transformers_network

__all__ = ["encoder"]


def _bert(layers: int, hidden: int, heads: int, **more: Any) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "intermediate_size": 4 * hidden, **more,
    }  # fmt: skip


def _deberta(layers: int, hidden: int, heads: int) -> Mapping[str, Any]:
    return _bert(
        layers, hidden, heads, relative_attention=True, position_buckets=256,
        pos_att_type=["p2c", "c2p"], share_att_key=True, type_vocab_size=0, vocab_size=128100,
        norm_rel_ebd="layer_norm", position_biased_input=False, max_position_embeddings=2048,
    )  # fmt: skip


def _t5(layers: int, hidden: int, heads: int, inner: int) -> Mapping[str, Any]:
    return {"num_layers": layers, "d_model": hidden, "num_heads": heads, "d_ff": inner}


_LONG = {
    "attention_window": 512, "vocab_size": 50265, "max_position_embeddings": 4098,
    "type_vocab_size": 1,
}  # fmt: skip
_ALBERT = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}

TASKS: Mapping[str, tuple[str, str, str, Mapping[str, Any]]] = {
    # name: (family, stem of the classes, head, configuration)
    "bert-base-qa": ("bert", "Bert", "ForQuestionAnswering", {}),
    "bert-4l-288-qa": ("bert", "Bert", "ForQuestionAnswering", _bert(4, 288, 12)),
    "bert-6l-768-qa": ("bert", "Bert", "ForQuestionAnswering", _bert(6, 768, 12)),
    "bert-large-mlm": ("bert", "Bert", "ForMaskedLM", _bert(24, 1024, 16)),
    "albert-base-mlm": ("albert", "Albert", "ForMaskedLM", _ALBERT),
    "distilbert-mlm": ("distilbert", "DistilBert", "ForMaskedLM", {}),
    "longformer-base-mlm": ("longformer", "Longformer", "ForMaskedLM", _LONG),
    "deberta-v3-small-like": (
        "deberta", "DebertaV2", "ForSequenceClassification", _deberta(12, 384, 6)
    ),
    "deberta-v3-xsmall": (
        "deberta", "DebertaV2", "ForSequenceClassification", _deberta(12, 384, 6)
    ),
    "deberta-v3-large": (
        "deberta", "DebertaV2", "ForSequenceClassification", _deberta(24, 1024, 16)
    ),
}  # fmt: skip

PAIRS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    # name: (family, stem, configuration)
    "t5-small-lm": ("t5", "T5", _t5(6, 512, 8, 2048)),
    "t5-base-lm": ("t5", "T5", _t5(12, 768, 12, 3072)),
    "t5-large-lm": ("t5", "T5", _t5(24, 1024, 16, 4096)),
    "bart-base-lm": (
        "bart", "Bart",
        {"d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12,
         "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072},
    ),
}  # fmt: skip

STACKS: Mapping[str, tuple[int, int, int]] = {
    # name: (layers, width, heads)
    "bert-base-encoder": (12, 768, 12),
    "bert-large-encoder": (24, 1024, 16),
}

CLIP_H = {
    "hidden_size": 1024, "num_hidden_layers": 23, "num_attention_heads": 16,
    "intermediate_size": 4096, "hidden_act": "gelu",
}  # fmt: skip


def _tokens(name: str, size: int) -> InputSpec:
    return InputSpec(name, (size,), torch.int64)


def encoder(key: str, size: int | None) -> Network | None:
    """A text encoder over ``size`` tokens (128 where not given), or ``None``."""
    tokens = size or 128
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    if key in TASKS:
        family, stem, head, arguments = TASKS[key]
        if "max_position_embeddings" not in arguments and stem == "Bert" and tokens > 512:
            arguments = {**arguments, "max_position_embeddings": tokens}
        inputs: tuple[InputSpec, ...] = (_tokens("input_ids", tokens),)
        return transformers_network(name, family, stem + head, f"{stem}Config", arguments, inputs)
    if key in PAIRS:
        family, stem, arguments = PAIRS[key]
        inputs = (_tokens("input_ids", tokens), _tokens("decoder_input_ids", tokens))
        model = f"{stem}ForConditionalGeneration"
        return transformers_network(name, family, model, f"{stem}Config", arguments, inputs)
    if key in STACKS:
        return _stack(name, tokens, *STACKS[key])
    if key == "longformer-large-encoder":
        arguments = _bert(24, 1024, 16, **_LONG)
        inputs = (InputSpec("inputs_embeds", (tokens, 1024)),)
        return transformers_network(
            name, "longformer", "LongformerModel", "LongformerConfig", arguments, inputs
        )
    if key == "openclip-h-text":
        inputs = (_tokens("input_ids", size or 77),)
        return transformers_network(name, "clip", "CLIPTextModel", "CLIPTextConfig", CLIP_H, inputs)
    return None


class BertStack(nn.Module):
    """The layers of BERT: embeddings ``(batch, tokens, width)`` in, the same shape out."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertEncoder

        config = BertConfig(**_bert(layers, width, heads))
        config._attn_implementation = "eager"
        self.encoder = BertEncoder(config)

    def forward(self, embeddings: Tensor) -> Tensor:
        result: Tensor = self.encoder(embeddings).last_hidden_state
        return result


def _stack(name: str, tokens: int, layers: int, width: int, heads: int) -> Network:
    return Network(
        name=name,
        family="bert",
        builder="transformers.models.bert.modeling_bert.BertEncoder",
        arguments={"layers": layers, "width": width, "heads": heads, "attention": "eager"},
        inputs=(InputSpec("embeddings", (tokens, width)),),
        build=lambda: BertStack(layers, width, heads),
    )
