"""From kernels to latency: a model for each class of kernels, and the queue that runs them."""

from dippm_lite.kernel_latency.composition import ComposedLatency, KernelTimes
from dippm_lite.kernel_latency.launch import LAUNCH_US, queue_latency_s
from dippm_lite.kernel_latency.model import KernelLatencyModel

__all__ = ["LAUNCH_US", "ComposedLatency", "KernelLatencyModel", "KernelTimes", "queue_latency_s"]
