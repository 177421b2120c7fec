"""What to measure first: a prefix of the plan, as long as the budget allows, covers the most.

Networks are ordered so that kinds of kernels come before depth of one kind: DIPPM's ten families,
then attention with and without a cache, convolutions of other kinds, recurrence, recommenders.
Settings are ordered by what the published labels lack: eager PyTorch at small and large batches
tells launch overhead from throughput; then half precision, then the other runtimes.
"""

from __future__ import annotations

from dippm_lite.execution import Precision
from training.measure.workloads import Workload

__all__ = ["NETWORKS", "SETTINGS", "default_plan"]

NETWORKS = (
    # DIPPM's families
    "timm/resnet50", "timm/mobilenetv3_large_100", "timm/vit_base_patch16_224",
    "timm/efficientnet_b0", "timm/swin_tiny_patch4_window7_224", "timm/densenet121",
    "timm/vgg16", "timm/mnasnet_100", "timm/visformer_small", "timm/poolformer_s12",
    # what they lack
    "transformers/bert-base@128", "transformers/gpt2@128", "step/gpt2@512", "plain/unet",
    "timm/convnext_tiny", "transformers/bert-large@512", "plain/lstm", "timm/mixer_b16_224",
    "plain/dcgan", "timm/regnety_032", "plain/yolov8n", "plain/gru", "plain/speech_encoder",
    "timm/resnext50_32x4d", "timm/xcit_small_12_p8_224", "timm/efficientnetv2_rw_s",
    # sizes of what is there
    "timm/resnet18", "timm/resnet152", "timm/vit_tiny_patch16_224", "timm/vit_large_patch16_224",
    "transformers/gpt2-medium@128", "neusight/gpt2-large",
)  # fmt: skip
"""Names of the corpus catalog."""

SETTINGS: tuple[tuple[str, Precision, tuple[int, ...]], ...] = (
    # runtime, precision, batches
    ("pytorch", Precision.AUTO, (1, 32)),
    ("pytorch", Precision.FP16, (1, 32)),
    ("onnxruntime", Precision.AUTO, (1, 32)),
    ("pytorch-compile", Precision.AUTO, (1, 32)),
    ("pytorch", Precision.AUTO, (8, 128)),
    ("pytorch", Precision.FP32, (32,)),
    ("pytorch", Precision.AMP, (32,)),
    ("pytorch", Precision.FP16, (128,)),
)
"""Rounds over all networks, in turn."""


def default_plan() -> tuple[Workload, ...]:
    """The workloads of every round, the most informative first."""
    return tuple(
        Workload(runtime, precision, batch, network)
        for runtime, precision, batches in SETTINGS
        for network in NETWORKS
        for batch in batches
    )
