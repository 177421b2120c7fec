"""Configurations of published transformer networks, by name; what isn't said is the class default.

Sizes: the papers and model cards of the networks that the rows are named after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DECODERS", "ENCODERS", "ENCODER_DECODERS", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """Family, stem of the class names in transformers, head, and what differs from the defaults.

    The configuration class is ``stem + "Config"``, the model class ``stem + head``.
    """

    family: str
    stem: str
    head: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def _bert(layers: int, hidden: int, heads: int | None = None, **more: Any) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden,
        "num_attention_heads": heads or hidden // 64, "intermediate_size": 4 * hidden, **more,
    }  # fmt: skip


_ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}

ENCODERS: Mapping[str, Row] = {
    "bert-tiny": Row("bert", "Bert", "Model", _bert(2, 128)),
    "bert-mini": Row("bert", "Bert", "Model", _bert(4, 256)),
    "bert-small": Row("bert", "Bert", "Model", _bert(4, 512)),
    "bert-medium": Row("bert", "Bert", "Model", _bert(8, 512)),
    "bert-base": Row("bert", "Bert", "Model"),
    "bert-large": Row("bert", "Bert", "Model", _bert(24, 1024)),
    "bert-base-classifier": Row("bert", "Bert", "ForSequenceClassification"),
    "bert-base-mlm": Row("bert", "Bert", "ForMaskedLM"),
    "bert-large-qa": Row("bert", "Bert", "ForQuestionAnswering", _bert(24, 1024)),
    "minilm-l6": Row("bert", "Bert", "Model", _bert(6, 384, 12)),
    "minilm-l12": Row("bert", "Bert", "Model", _bert(12, 384, 12)),
    "distilbert": Row("distilbert", "DistilBert", "Model"),
    "distilbert-classifier": Row("distilbert", "DistilBert", "ForSequenceClassification"),
    "roberta-base": Row("roberta", "Roberta", "Model", _ROBERTA),
    "roberta-large": Row("roberta", "Roberta", "Model", _bert(24, 1024, **_ROBERTA)),
    "roberta-base-classifier": Row("roberta", "Roberta", "ForSequenceClassification", _ROBERTA),
    "xlm-roberta-base": Row("roberta", "XLMRoberta", "Model", {**_ROBERTA, "vocab_size": 250002}),
    "xlm-roberta-large": Row(
        "roberta", "XLMRoberta", "Model", _bert(24, 1024, **{**_ROBERTA, "vocab_size": 250002})
    ),
    "albert-base": Row(
        "albert", "Albert", "Model",
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "albert-large": Row(
        "albert", "Albert", "Model",
        {"hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096,
         "num_hidden_layers": 24},
    ),
    "electra-small": Row("electra", "Electra", "Model"),
    "electra-base": Row("electra", "Electra", "Model", _bert(12, 768, embedding_size=768)),
    "electra-large": Row("electra", "Electra", "Model", _bert(24, 1024, embedding_size=1024)),
    "mobilebert": Row("mobilebert", "MobileBert", "Model"),
    "squeezebert": Row("squeezebert", "SqueezeBert", "Model"),
    "convbert-base": Row("convbert", "ConvBert", "Model"),
    "mpnet-base": Row("mpnet", "MPNet", "Model"),
    "deberta-base": Row(
        "deberta", "Deberta", "Model",
        {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0},
    ),
    "deberta-v3-small": Row(
        "deberta", "DebertaV2", "Model",
        {"num_hidden_layers": 6, "hidden_size": 768, "num_attention_heads": 12,
         "intermediate_size": 3072, "relative_attention": True, "position_buckets": 256,
         "pos_att_type": ["p2c", "c2p"], "share_att_key": True, "type_vocab_size": 0,
         "norm_rel_ebd": "layer_norm", "position_biased_input": False},
    ),
    "funnel-small": Row("funnel", "Funnel", "Model"),
    "fnet-base": Row("fnet", "FNet", "Model"),
    "nystromformer": Row("nystromformer", "Nystromformer", "Model"),
    "roformer": Row("roformer", "RoFormer", "Model"),
    "modernbert-base": Row("modernbert", "ModernBert", "Model"),
    "ernie-base": Row("ernie", "Ernie", "Model"),
    "camembert": Row("roberta", "Camembert", "Model", {**_ROBERTA, "vocab_size": 32005}),
    "layoutlm-base": Row("layoutlm", "LayoutLM", "Model"),
    "longformer-base": Row("longformer", "Longformer", "Model", _ROBERTA),
    "big-bird-base": Row("big_bird", "BigBird", "Model", {"attention_type": "original_full"}),
    "xlnet-base": Row(
        "xlnet", "XLNet", "Model", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}
    ),
    "rembert": Row("rembert", "RemBert", "Model"),
    "t5-encoder-base": Row(
        "t5", "T5", "EncoderModel",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    ),
}  # fmt: skip
"""One input of tokens, one pass."""


def _gpt2(layers: int, hidden: int, heads: int, positions: int = 1024) -> Mapping[str, Any]:
    return {"n_layer": layers, "n_embd": hidden, "n_head": heads, "n_positions": positions}


def _neox(layers: int, hidden: int, heads: int) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "intermediate_size": 4 * hidden, "vocab_size": 50304,
    }  # fmt: skip


def _opt(layers: int, hidden: int, heads: int, width: int | None = None) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "ffn_dim": 4 * hidden, "word_embed_proj_dim": width or hidden,
        "do_layer_norm_before": width is None,
    }  # fmt: skip


def _llama(
    layers: int, hidden: int, heads: int, inner: int, key_heads: int | None = None, **more: Any
) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": key_heads or heads, "intermediate_size": inner, **more,
    }  # fmt: skip


DECODERS: Mapping[str, Row] = {
    "gpt2": Row("gpt2", "GPT2", "LMHeadModel"),
    "distilgpt2": Row("gpt2", "GPT2", "LMHeadModel", _gpt2(6, 768, 12)),
    "gpt2-medium": Row("gpt2", "GPT2", "LMHeadModel", _gpt2(24, 1024, 16)),
    "gpt2-large": Row("gpt2", "GPT2", "LMHeadModel", _gpt2(36, 1280, 20)),
    "gpt2-xl": Row("gpt2", "GPT2", "LMHeadModel", _gpt2(48, 1600, 25)),
    "gpt-neo-125m": Row(
        "gpt_neo", "GPTNeo", "ForCausalLM",
        {"num_layers": 12, "hidden_size": 768, "num_heads": 12,
         "attention_types": [[["global", "local"], 6]]},
    ),
    "gpt-neo-1.3b": Row("gpt_neo", "GPTNeo", "ForCausalLM"),
    "pythia-70m": Row("gpt_neox", "GPTNeoX", "ForCausalLM", _neox(6, 512, 8)),
    "pythia-160m": Row("gpt_neox", "GPTNeoX", "ForCausalLM", _neox(12, 768, 12)),
    "pythia-410m": Row("gpt_neox", "GPTNeoX", "ForCausalLM", _neox(24, 1024, 16)),
    "pythia-1.4b": Row("gpt_neox", "GPTNeoX", "ForCausalLM", _neox(24, 2048, 16)),
    "pythia-6.9b": Row("gpt_neox", "GPTNeoX", "ForCausalLM", _neox(32, 4096, 32)),
    "gpt-j-6b": Row("gptj", "GPTJ", "ForCausalLM"),
    "codegen-350m": Row(
        "codegen", "CodeGen", "ForCausalLM",
        {"n_layer": 20, "n_embd": 1024, "n_head": 16, "rotary_dim": 32, "vocab_size": 51200},
    ),
    "opt-125m": Row("opt", "OPT", "ForCausalLM", _opt(12, 768, 12)),
    "opt-350m": Row("opt", "OPT", "ForCausalLM", _opt(24, 1024, 16, 512)),
    "opt-1.3b": Row("opt", "OPT", "ForCausalLM", _opt(24, 2048, 32)),
    "opt-2.7b": Row("opt", "OPT", "ForCausalLM", _opt(32, 2560, 32)),
    "opt-6.7b": Row("opt", "OPT", "ForCausalLM", _opt(32, 4096, 32)),
    "opt-13b": Row("opt", "OPT", "ForCausalLM", _opt(40, 5120, 40)),
    "bloom-560m": Row(
        "bloom", "Bloom", "ForCausalLM", {"n_layer": 24, "hidden_size": 1024, "n_head": 16}
    ),
    "bloom-1b7": Row(
        "bloom", "Bloom", "ForCausalLM", {"n_layer": 24, "hidden_size": 2048, "n_head": 16}
    ),
    "bloom-7b1": Row(
        "bloom", "Bloom", "ForCausalLM", {"n_layer": 30, "hidden_size": 4096, "n_head": 32}
    ),
    "falcon-7b": Row("falcon", "Falcon", "ForCausalLM"),
    "tinyllama-1.1b": Row(
        "llama", "Llama", "ForCausalLM", _llama(22, 2048, 32, 5632, 4, vocab_size=32000)
    ),
    "llama-2-7b": Row("llama", "Llama", "ForCausalLM", _llama(32, 4096, 32, 11008)),
    "llama-2-13b": Row("llama", "Llama", "ForCausalLM", _llama(40, 5120, 40, 13824)),
    "llama-2-70b": Row("llama", "Llama", "ForCausalLM", _llama(80, 8192, 64, 28672, 8)),
    "llama-3-8b": Row(
        "llama", "Llama", "ForCausalLM", _llama(32, 4096, 32, 14336, 8, vocab_size=128256)
    ),
    "llama-3.2-1b": Row(
        "llama", "Llama", "ForCausalLM",
        _llama(16, 2048, 32, 8192, 8, vocab_size=128256, head_dim=64),
    ),
    "mistral-7b": Row("mistral", "Mistral", "ForCausalLM", _llama(32, 4096, 32, 14336, 8)),
    "qwen2-0.5b": Row(
        "qwen2", "Qwen2", "ForCausalLM", _llama(24, 896, 14, 4864, 2, vocab_size=151936)
    ),
    "qwen2-1.5b": Row(
        "qwen2", "Qwen2", "ForCausalLM", _llama(28, 1536, 12, 8960, 2, vocab_size=151936)
    ),
    "qwen2-7b": Row(
        "qwen2", "Qwen2", "ForCausalLM", _llama(28, 3584, 28, 18944, 4, vocab_size=152064)
    ),
    "qwen3-0.6b": Row(
        "qwen3", "Qwen3", "ForCausalLM",
        _llama(28, 1024, 16, 3072, 8, vocab_size=151936, head_dim=128),
    ),
    "phi-1.5": Row("phi", "Phi", "ForCausalLM"),
    "phi-2": Row(
        "phi", "Phi", "ForCausalLM",
        {"num_hidden_layers": 32, "hidden_size": 2560, "intermediate_size": 10240,
         "partial_rotary_factor": 0.4},
    ),
    "phi-3-mini": Row("phi3", "Phi3", "ForCausalLM", {"pad_token_id": None}),
    "gemma-2b": Row(
        "gemma", "Gemma", "ForCausalLM", _llama(18, 2048, 8, 16384, 1, head_dim=256)
    ),
    "stablelm-3b": Row("stablelm", "StableLm", "ForCausalLM"),
    "starcoder2-3b": Row("starcoder2", "Starcoder2", "ForCausalLM"),
    "olmo-1b": Row("olmo", "Olmo", "ForCausalLM", _llama(16, 2048, 16, 8192)),
    "smollm-135m": Row(
        "llama", "Llama", "ForCausalLM", _llama(30, 576, 9, 1536, 3, vocab_size=49152)
    ),
    "smollm-360m": Row(
        "llama", "Llama", "ForCausalLM", _llama(32, 960, 15, 2560, 5, vocab_size=49152)
    ),
}  # fmt: skip
"""A pass over a whole prompt, or one step with a key-value cache; language-model head included."""


def _bart(layers: int, hidden: int, heads: int) -> Mapping[str, Any]:
    return {
        "d_model": hidden, "encoder_layers": layers, "decoder_layers": layers,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * hidden, "decoder_ffn_dim": 4 * hidden,
    }  # fmt: skip


def _t5(layers: int, hidden: int, heads: int, inner: int, **more: Any) -> Mapping[str, Any]:
    return {"num_layers": layers, "d_model": hidden, "num_heads": heads, "d_ff": inner, **more}


_FLAN = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

ENCODER_DECODERS: Mapping[str, Row] = {
    "t5-small": Row("t5", "T5", "ForConditionalGeneration"),
    "t5-base": Row("t5", "T5", "ForConditionalGeneration", _t5(12, 768, 12, 3072)),
    "t5-large": Row("t5", "T5", "ForConditionalGeneration", _t5(24, 1024, 16, 4096)),
    "flan-t5-small": Row("t5", "T5", "ForConditionalGeneration", _t5(8, 512, 6, 1024, **_FLAN)),
    "flan-t5-base": Row("t5", "T5", "ForConditionalGeneration", _t5(12, 768, 12, 2048, **_FLAN)),
    "bart-base": Row("bart", "Bart", "ForConditionalGeneration", _bart(6, 768, 12)),
    "bart-large": Row("bart", "Bart", "ForConditionalGeneration", _bart(12, 1024, 16)),
    "marian": Row("marian", "Marian", "MTModel", _bart(6, 512, 8)),
    "pegasus-large": Row("pegasus", "Pegasus", "ForConditionalGeneration", _bart(16, 1024, 16)),
    "mbart-large": Row("mbart", "MBart", "ForConditionalGeneration", _bart(12, 1024, 16)),
    "m2m100-418m": Row("m2m_100", "M2M100", "ForConditionalGeneration"),
    "blenderbot-small": Row("blenderbot", "BlenderbotSmall", "ForConditionalGeneration"),
    "led-base": Row("led", "LED", "ForConditionalGeneration", _bart(6, 768, 12)),
}
"""Source tokens and target tokens, one pass."""
