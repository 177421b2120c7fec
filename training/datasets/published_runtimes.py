"""What executed a published run: one label for each engine, never one for two.

Labels that equal a value of ``dippm_lite.execution.Runtime`` are that runtime; all others stand
for engines that have no model of their own.
"""

from __future__ import annotations

import re

from training.datasets.tables import PublishedRow

__all__ = ["runtime_of"]

LABELS = {
    "pytorch-eager": "pytorch",
    "pytorch(ngc21.11)": "pytorch",
    "TensorRT": "tensorrt",
    "tf": "tensorflow",
    "tf-xla": "tensorflow-xla",
    "tf-trt": "tensorflow-tensorrt",
    "ait": "aitemplate",
    "faster-transformer": "fastertransformer",
    "vllm-derived": "vllm",
}
"""Words of the tables that differ from ours."""

REFINED = (
    # column, pattern, label before, label after
    ("notes", r"(?i)trt plugin|FT TensorRT plugin", "", "fastertransformer-tensorrt"),
    ("notes", r"Triton", "tensorrt", "tensorrt-triton"),
    ("notes", r"(?i)\bsdpa attention|fp16\+(bt|fa2)|flash-attention 2", "pytorch", "pytorch-sdpa"),
    ("notes", r"(?i)channels-last", "pytorch", "pytorch-channels-last"),
    ("notes", r"reduce-overhead", "pytorch-compile", "pytorch-compile-graphs"),
    ("notes", r"attention kernel: Unfused", "onnxruntime", "onnxruntime-unfused-attention"),
    # The examples' own scripts, which run eagerly.
    ("source", r"^dle_(jasper|quartznet)$", "unknown", "pytorch"),
)
"""Notes that name another engine, or another way to run it."""


def runtime_of(row: PublishedRow) -> str:
    """The label of the engine."""
    label = LABELS.get(row.framework, row.framework)
    for column, pattern, before, after in REFINED:
        if (not before or label == before) and re.search(pattern, getattr(row, column)):
            # Triton's own rows time the engine inside of the server.
            if after == "tensorrt-triton" and row.task == "triton-serving":
                continue
            return after
    return label
