"""Networks of transformers that hear or see: speech, images, video, and text beside them.

Sizes: the papers and model cards of the networks that the rows are named after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from training.corpus.network import InputSpec, Network
from training.corpus.text_networks import transformers_network

__all__ = ["MODAL", "modal_network"]


@dataclass(frozen=True, slots=True)
class ModalRow:
    """Family, stem and head of the class names, inputs, and what differs from the defaults.

    The configuration class is ``stem + "Config"`` unless ``config`` says otherwise.
    """

    family: str
    stem: str
    head: str
    inputs: tuple[InputSpec, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    config: str = ""


def _sound(seconds: int) -> tuple[InputSpec, ...]:
    return (InputSpec("input_values", (16_000 * seconds,)),)


def _image(size: int, channels: int = 3) -> tuple[InputSpec, ...]:
    return (InputSpec("pixel_values", (channels, size, size)),)


def _text(tokens: int) -> tuple[InputSpec, ...]:
    return (InputSpec("input_ids", (tokens,), torch.int64),)


def _video(frames: int, size: int) -> tuple[InputSpec, ...]:
    return (InputSpec("pixel_values", (frames, 3, size, size)),)


def _wide(layers: int, hidden: int, heads: int, **more: Any) -> Mapping[str, Any]:
    return {
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "intermediate_size": 4 * hidden, **more,
    }  # fmt: skip


_LARGE_SOUND = _wide(
    24, 1024, 16, do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True
)


def _whisper(layers: int, hidden: int, heads: int, mels: int = 80) -> ModalRow:
    arguments = {
        "d_model": hidden, "encoder_layers": layers, "decoder_layers": layers,
        "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * hidden, "decoder_ffn_dim": 4 * hidden, "num_mel_bins": mels,
        "vocab_size": 51865,
    }  # fmt: skip
    inputs = (
        InputSpec("input_features", (mels, 3000)),
        InputSpec("decoder_input_ids", (64,), torch.int64),
    )
    return ModalRow("whisper", "Whisper", "ForConditionalGeneration", inputs, arguments)


def _segformer(depths: list[int], widths: list[int], decoder: int, size: int = 512) -> ModalRow:
    arguments = {"depths": depths, "hidden_sizes": widths, "decoder_hidden_size": decoder}
    return ModalRow("segformer", "Segformer", "ForSemanticSegmentation", _image(size), arguments)


def _yolos(layers: int, hidden: int, heads: int, height: int, width: int) -> ModalRow:
    arguments = _wide(layers, hidden, heads, image_size=[height, width])
    inputs = (InputSpec("pixel_values", (3, height, width)),)
    return ModalRow("yolos", "Yolos", "ForObjectDetection", inputs, arguments)


_CLIP_B16 = {"vision_config": {"patch_size": 16}}
_CLIP_L14 = {
    "projection_dim": 768,
    "text_config": _wide(12, 768, 12),
    "vision_config": _wide(24, 1024, 16, patch_size=14),
}
_WIDE_B = [64, 128, 320, 512]

MODAL: Mapping[str, ModalRow] = {
    "wav2vec2-base": ModalRow("wav2vec2", "Wav2Vec2", "Model", _sound(10)),
    "wav2vec2-base-ctc": ModalRow("wav2vec2", "Wav2Vec2", "ForCTC", _sound(5)),
    "wav2vec2-large": ModalRow("wav2vec2", "Wav2Vec2", "Model", _sound(10), _LARGE_SOUND),
    "hubert-base": ModalRow("hubert", "Hubert", "Model", _sound(10)),
    "hubert-large": ModalRow("hubert", "Hubert", "Model", _sound(10), _LARGE_SOUND),
    "wavlm-base": ModalRow("wavlm", "WavLM", "Model", _sound(5)),
    "unispeech": ModalRow("unispeech", "UniSpeech", "Model", _sound(5)),
    "sew": ModalRow("sew", "SEW", "Model", _sound(10)),
    "data2vec-audio": ModalRow("data2vec", "Data2VecAudio", "Model", _sound(5)),
    "ast": ModalRow(
        "audio_spectrogram", "AST", "ForAudioClassification",
        (InputSpec("input_values", (1024, 128)),),
    ),
    "whisper-tiny": _whisper(4, 384, 6),
    "whisper-base": _whisper(6, 512, 8),
    "whisper-small": _whisper(12, 768, 12),
    "whisper-medium": _whisper(24, 1024, 16),
    "whisper-large": _whisper(32, 1280, 20),
    "segformer-b0": _segformer([2, 2, 2, 2], [32, 64, 160, 256], 256),
    "segformer-b1": _segformer([2, 2, 2, 2], _WIDE_B, 256),
    "segformer-b2": _segformer([3, 4, 6, 3], _WIDE_B, 768),
    "segformer-b3": _segformer([3, 4, 18, 3], _WIDE_B, 768),
    "segformer-b4": _segformer([3, 8, 27, 3], _WIDE_B, 768),
    "segformer-b5": _segformer([3, 6, 40, 3], _WIDE_B, 768, 640),
    "yolos-tiny": _yolos(12, 192, 3, 512, 864),
    "yolos-small": _yolos(12, 384, 6, 512, 864),
    "yolos-base": _yolos(12, 768, 12, 800, 1344),
    "mobilevit-deeplab": ModalRow("mobilevit", "MobileViT", "ForSemanticSegmentation", _image(512)),
    "dpt-large": ModalRow(
        "dpt", "DPT", "ForDepthEstimation", _image(384), _wide(24, 1024, 16, image_size=384)
    ),
    "glpn": ModalRow("glpn", "GLPN", "ForDepthEstimation", _image(480)),
    "swin2sr": ModalRow("swin2sr", "Swin2SR", "ForImageSuperResolution", _image(64)),
    "videomae-base": ModalRow(
        "videomae", "VideoMAE", "ForVideoClassification", _video(16, 224)
    ),
    "timesformer-base": ModalRow(
        "timesformer", "Timesformer", "ForVideoClassification", _video(8, 224)
    ),
    "vivit-base": ModalRow("vivit", "Vivit", "ForVideoClassification", _video(32, 224)),
    "clip-vit-b32": ModalRow("clip", "CLIP", "Model", _text(77) + _image(224)),
    "clip-vit-b16": ModalRow("clip", "CLIP", "Model", _text(77) + _image(224), _CLIP_B16),
    "clip-vit-l14": ModalRow("clip", "CLIP", "Model", _text(77) + _image(224), _CLIP_L14),
    "clip-text-b": ModalRow("clip", "CLIPText", "Model", _text(77)),
    "siglip-base": ModalRow("siglip", "Siglip", "Model", _text(64) + _image(224)),
    "sam-vit-b-encoder": ModalRow(
        "sam", "SamVision", "Model", _image(1024), {}, "SamVisionConfig"
    ),
    "beit-segmentation": ModalRow(
        "beit", "Beit", "ForSemanticSegmentation", _image(640),
        {"image_size": 640, "out_indices": [3, 5, 7, 11], "use_relative_position_bias": True,
         "use_absolute_position_embeddings": False},
    ),
    "vit-mae": ModalRow("vit_mae", "ViTMAE", "Model", _image(224)),
    "donut-swin": ModalRow("donut", "DonutSwin", "Model", _image(896), {"image_size": 896}),
    "layoutlmv3-base": ModalRow("layoutlm", "LayoutLMv3", "Model", _text(128),
                                {"visual_embed": False}),
    "trocr-decoder": ModalRow("trocr", "TrOCR", "ForCausalLM", _text(64)),
    "speech2text": ModalRow(
        "speech_to_text", "Speech2Text", "ForConditionalGeneration",
        (InputSpec("input_features", (584, 80)),
         InputSpec("decoder_input_ids", (64,), torch.int64)),
    ),
    "patchtst": ModalRow(
        "time_series", "PatchTST", "ForPrediction", (InputSpec("past_values", (512, 7)),),
        {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 8,
         "prediction_length": 96, "scaling": None},
    ),
    "patchtsmixer": ModalRow(
        "time_series", "PatchTSMixer", "ForPrediction", (InputSpec("past_values", (512, 7)),),
        {"num_input_channels": 7, "context_length": 512, "patch_length": 16, "patch_stride": 16,
         "prediction_length": 96, "scaling": None},
    ),
}  # fmt: skip


def modal_network(key: str) -> Network:
    """A row of :data:`MODAL`.

    Raises:
        KeyError: no such row.
    """
    row = MODAL[key]
    return transformers_network(
        f"modal/{key}",
        row.family,
        row.stem + row.head,
        row.config or row.stem + "Config",
        row.arguments,
        row.inputs,
    )
