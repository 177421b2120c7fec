"""What the host adds: it launches kernels one by one, ahead of the GPU as long as it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dippm_lite.execution import Runtime

__all__ = ["LAUNCH_US", "queue_latency_s"]

LAUNCH_US: Mapping[Runtime, float] = MappingProxyType(
    {Runtime.PYTORCH: 38.0, Runtime.ONNXRUNTIME: 6.0, Runtime.TENSORRT: 2.5}
)
"""Host time of one launch in microseconds.

pytorch: latencies of small eager workloads on A100 machines over the kernels that they launch:
ParvaGPU's DenseNets and MobileNetV2 at batch 1, the same on every MIG slice and so the host's, 28
to 33; NVIDIA's EfficientNet-B0 at batch 1, 33; AITemplate's ResNets beside its own at batch 1, 44
to 51; pytorch-gpu-benchmark's DenseNet-121, MobileNetV2, ShuffleNetV2 at batch 12, 46 to 52. The
geometric mean; hosts differ by a factor of two. onnxruntime: its CUDA provider calls cuDNN and
cuBLAS without Python in between. tensorrt: about the least that cudaLaunchKernel takes (2 to 3 us).
"""


def queue_latency_s(
    kernel_s: NDArray[np.float64], repeats: Sequence[int], launch_s: float
) -> float:
    """Time from the first launch to the end of the last kernel, by two clocks.

    The host issues a kernel every ``launch_s``; the GPU starts it when it is issued and the one
    before has ended. A kernel of ``r`` runs ends at the latest of: ``r`` runs after the GPU was
    free, ``r`` runs after the first was issued, one run after the last was issued.

    Shapes:
        kernel_s: (n,), one run of each kernel; repeats: its runs.
    """
    host_s = gpu_s = 0.0
    for run_s, runs in zip(kernel_s.tolist(), repeats, strict=True):
        if runs < 1:
            continue
        first_s = host_s + launch_s
        host_s += runs * launch_s
        gpu_s = max(gpu_s + runs * run_s, first_s + runs * run_s, host_s + run_s)
    return gpu_s
