"""How a graph is run: runtimes, precisions, and what a precision means for a kernel."""

from __future__ import annotations

from enum import Enum

from dippm_lite.graph import DType

__all__ = ["MathMode", "Precision", "Runtime", "resolve_precision"]


class Runtime(str, Enum):
    """What executes the model."""

    PYTORCH = "pytorch"
    """Eager PyTorch: one kernel per framework operator."""
    ONNXRUNTIME = "onnxruntime"
    """onnxruntime's CUDA execution provider at its default optimisation level."""
    TENSORRT = "tensorrt"
    """A TensorRT engine built for these shapes."""


class Precision(str, Enum):
    """What the user asks for; ``auto`` is what the runtime does by itself."""

    AUTO = "auto"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    AMP = "amp"
    INT8 = "int8"


class MathMode(str, Enum):
    """The arithmetic of one kernel, which decides the peak rate it is held against."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"

    @property
    def uses_tensor_cores(self) -> bool:
        """True where matrix products of this mode run on tensor cores (Ampere and later)."""
        return self in (MathMode.TF32, MathMode.FP16, MathMode.BF16, MathMode.INT8)


def resolve_precision(
    precision: Precision, runtime: Runtime, weights: DType
) -> tuple[MathMode, MathMode]:
    """The ``(convolution, matmul)`` arithmetic of a workload whose weights have type ``weights``.

    ``auto`` on fp32 weights: PyTorch allows TF32 in cuDNN but not in cuBLAS since 1.12
    (``torch.backends.cuda.matmul.allow_tf32`` is False); onnxruntime's ``use_tf32`` and
    TensorRT's ``kTF32`` flag are on by default.
    """
    if precision is Precision.AUTO:
        if weights is DType.FLOAT16:
            return MathMode.FP16, MathMode.FP16
        if weights is DType.BFLOAT16:
            return MathMode.BF16, MathMode.BF16
        if weights is DType.DOUBLE:
            return MathMode.FP64, MathMode.FP64
        if runtime is Runtime.PYTORCH:
            return MathMode.TF32, MathMode.FP32
        return MathMode.TF32, MathMode.TF32
    mode = MathMode.FP16 if precision is Precision.AMP else MathMode(precision.value)
    return mode, mode
