"""What a process takes beside its tensors: contexts and scratch space, one table row a fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dippm_lite.execution import Runtime
from dippm_lite.kernels import Kernel, KernelKind

__all__ = ["CUBLAS_WORKSPACE_BYTES", "FOOTPRINTS", "Footprint", "conv_scratch_bytes", "uses_cublas"]

CUBLAS_WORKSPACE_BYTES = 8_519_680
"""What PyTorch gives each cuBLAS handle on Ampere, out of its caching allocator: the default
``CUBLAS_WORKSPACE_CONFIG`` ``:4096:2:16:8`` (PyTorch pull request 120925)."""

_CUBLAS_KINDS = frozenset({KernelKind.GEMM, KernelKind.BATCHED_GEMM})


@dataclass(frozen=True, slots=True)
class Footprint:
    """Device memory of a process that has loaded a model, beside weights and activations.

    ``context_*`` are MiB: the CUDA context, the kernels loaded into it, library handles.
    ``activation_slack`` is by how much the true activation peak may exceed the planned one;
    ``activation_slack_blind`` where the file doesn't tell which module calls hold what.
    """

    context_low_mib: float
    context_mib: float
    context_high_mib: float
    activation_slack: float
    activation_slack_blind: float
    source: str


FOOTPRINTS: Mapping[Runtime, Footprint] = MappingProxyType(
    {
        Runtime.PYTORCH: Footprint(
            475,
            600,
            850,
            0.31,
            0.9,
            "PyTorch 2 with lazy loading: bare context of 475 MiB on an A100 80 GB (milabench), "
            "100-300 MiB of kernels loaded on use (PyTorch pull request 86509, issues 107667, "
            "109888), 789 MiB between nvidia-smi and the allocator on an A100 80 GB (torchrec "
            "pull request 3580); slack covers each of 63 networks",
        ),
        Runtime.ONNXRUNTIME: Footprint(
            376,
            600,
            1000,
            0.1,
            0.1,
            "376 MiB for a session with a 70 KB model on a T4 (onnxruntime issue 15098); an A100's "
            "context is about 100 MiB larger, and cuBLAS and cuDNN load into it",
        ),
        Runtime.TENSORRT: Footprint(
            250,
            450,
            900,
            0.1,
            0.1,
            "283 MiB and 853 MiB for one model on a T4 with TensorRT 8.6 and 8.4 (TensorRT issue "
            "3743); cuBLAS 182 MiB and cuDNN 241 MiB where an engine uses them (issue 2217)",
        ),
    }
)
"""Contexts by runtime. The A100's context is larger than the T4's, hence the middle values."""


def uses_cublas(kernel: Kernel) -> bool:
    """True for kernels that PyTorch hands to cuBLAS."""
    return kernel.kind in _CUBLAS_KINDS


def conv_scratch_bytes(kernel: Kernel, pessimistic: bool = False) -> int:
    """Scratch space of a convolution while it runs; 0 for other kernels.

    cuDNN's choice isn't in the file. On tensor cores it lays out the filter anew, as is counted
    here; at worst also both tensors, from NCHW to NHWC and back. timm's ResNet-50 on an A100 shows
    that it usually doesn't: its peak of 9.95 MiB an image leaves no room for such copies.
    """
    if kernel.kind is not KernelKind.CONV or not kernel.math.uses_tensor_cores:
        return 0
    return kernel.cost.total_bytes if pessimistic else kernel.cost.weight_bytes
