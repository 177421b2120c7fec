"""What the host adds: it launches kernels one by one, ahead of the GPU as long as it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dippm_lite.execution import Runtime

__all__ = ["LAUNCH_US", "queue_latency_s"]

LAUNCH_US: Mapping[Runtime, float] = MappingProxyType(
    {Runtime.PYTORCH: 28.0, Runtime.ONNXRUNTIME: 6.0, Runtime.TENSORRT: 2.5}
)
"""Host time of one launch in microseconds.

pytorch: ParvaGPU's batch-1 latencies on an A100 are the same on every MIG slice, so they are the
host's: DenseNet-121, -169, -201 and MobileNetV2 take 12, 17, 20 and 5 ms for about 430, 595, 705
and 150 kernels, 28 to 33 us each. onnxruntime: its CUDA provider calls cuDNN and cuBLAS without
Python in between. tensorrt: about the least that cudaLaunchKernel takes (2 to 3 us).
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
