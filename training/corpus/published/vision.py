"""Image networks of transformers that its own and others' benchmark tables name.

DETR and its kin see the one photograph of those tables, 640 x 480, at their 800 x 1066 pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network
from training.corpus.text_networks import transformers_network

__all__ = ["vision_network"]

_WIDE = {
    "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
    "intermediate_size": 4096,
}  # fmt: skip
_BEIT = {"use_relative_position_bias": True, "use_absolute_position_embeddings": False}


@dataclass(frozen=True, slots=True)
class VisionRow:
    """Family, model class, configuration class, image size and configuration."""

    family: str
    model: str
    config: str
    size: int = 224
    arguments: Mapping[str, Any] = field(default_factory=dict)


ROWS: Mapping[str, VisionRow] = {
    "vit-base-hf": VisionRow("vit", "ViTForImageClassification", "ViTConfig"),
    "vit-large-hf": VisionRow(
        "vit", "ViTForImageClassification", "ViTConfig", arguments={**_WIDE, "num_labels": 1000}
    ),
    "vit-msn-base-hf": VisionRow("vit", "ViTMSNForImageClassification", "ViTMSNConfig"),
    "deit-base-distilled-hf": VisionRow(
        "vit", "DeiTForImageClassificationWithTeacher", "DeiTConfig", arguments={"num_labels": 1000}
    ),
    "beit-base-hf": VisionRow(
        "beit", "BeitForImageClassification", "BeitConfig",
        arguments={**_BEIT, "num_labels": 21841},
    ),
    "beit-base-encoder": VisionRow("beit", "BeitModel", "BeitConfig", arguments=_BEIT),
    "deeplabv3-mobilenet-v2": VisionRow(
        "mobilenet", "MobileNetV2ForSemanticSegmentation", "MobileNetV2Config", 513,
        {"output_stride": 8, "num_labels": 21, "finegrained_output": False},
    ),
}  # fmt: skip


class FirstNamed(nn.Module):
    """Calls a model with named inputs and returns one of its outputs."""

    def __init__(self, network: nn.Module, names: tuple[str, ...], output: str) -> None:
        super().__init__()
        self.network, self.names, self.output = network, names, output

    def forward(self, *inputs: Tensor) -> Tensor:
        named = dict(zip(self.names, inputs, strict=True))
        result: Tensor = self.network(**named)[self.output]
        return result


def _detr(stem: str, depths: tuple[int, ...]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import transformers

        backbone = transformers.ResNetConfig(
            depths=list(depths), out_features=["stage1", "stage2", "stage3", "stage4"]
        )
        config = getattr(transformers, f"{stem}Config")(
            use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
            backbone_config=backbone, num_labels=91,
        )  # fmt: skip
        config._attn_implementation = "eager"
        network = getattr(transformers, f"{stem}ForObjectDetection")(config)
        return FirstNamed(network, ("pixel_values",), "logits")

    return build


def _sam() -> nn.Module:
    import transformers

    vision = transformers.SamVisionConfig(
        hidden_size=1280, num_hidden_layers=32, num_attention_heads=16, mlp_dim=5120,
        global_attn_indexes=[7, 15, 23, 31],
    )  # fmt: skip
    config = transformers.SamConfig(vision_config=vision.to_dict())
    config._attn_implementation = "eager"
    return FirstNamed(transformers.SamModel(config), ("pixel_values", "input_points"), "pred_masks")


def _owlvit() -> nn.Module:
    import transformers

    config = transformers.OwlViTConfig()
    config._attn_implementation = "eager"
    network = transformers.OwlViTForObjectDetection(config)
    return FirstNamed(network, ("input_ids", "pixel_values"), "logits")


def _image(height: int, width: int) -> InputSpec:
    return InputSpec("pixel_values", (3, height, width))


SPECIAL: Mapping[str, tuple[str, str, tuple[InputSpec, ...], Callable[[], nn.Module]]] = {
    # name: (family, builder, inputs, build)
    "detr-resnet50": (
        "detr", "transformers.DetrForObjectDetection", (_image(800, 1066),),
        _detr("Detr", (3, 4, 6, 3)),
    ),
    "detr-resnet101": (
        "detr", "transformers.DetrForObjectDetection", (_image(800, 1066),),
        _detr("Detr", (3, 4, 23, 3)),
    ),
    "conditional-detr-resnet50": (
        "detr", "transformers.ConditionalDetrForObjectDetection", (_image(800, 1066),),
        _detr("ConditionalDetr", (3, 4, 6, 3)),
    ),
    "sam-vit-huge": (
        "sam", "transformers.SamModel",
        (_image(1024, 1024), InputSpec("input_points", (1, 1, 2))), _sam,
    ),
    "owlvit-base-b32": (
        "owlvit", "transformers.OwlViTForObjectDetection",
        (InputSpec("input_ids", (16,), torch.int64), _image(768, 768)), _owlvit,
    ),
}  # fmt: skip


def vision_network(key: str, size: int | None) -> Network | None:
    """The network of that name, or ``None``."""
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    if key in SPECIAL:
        family, builder, inputs, build = SPECIAL[key]
        return Network(name, family, builder, {}, inputs, build)
    if key not in ROWS:
        return None
    row = ROWS[key]
    pixels = size or row.size
    arguments = {"image_size": pixels, **row.arguments}
    return transformers_network(
        name, row.family, row.model, row.config, arguments, (_image(pixels, pixels),)
    )
