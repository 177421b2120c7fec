"""The device that is measured: its name, driver, clocks and memory, as far as they can be told."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.measure.energy import Unavailable
from training.measure.nvml import Nvml, open_nvml
from training.measure.timing import CudaTimer, Timer, WallTimer

__all__ = ["KINDS", "Device", "open_device"]

KINDS = ("cpu", "cuda")
_PACKAGES = ("torch", "onnxruntime", "onnxruntime-gpu", "timm", "torchvision", "transformers")


@dataclass(frozen=True)
class Device:
    """An open device.

    Attributes:
        kind: ``"cpu"`` or ``"cuda"``.
        name: of the product.
        nvml: the driver's figures, or why there are none.
    """

    kind: str
    name: str
    nvml: Nvml | Unavailable

    def timer(self) -> Timer:
        """For what torch runs on the device."""
        if self.kind == "cpu":
            return WallTimer()
        import torch

        return CudaTimer(torch)

    def environment(self) -> dict[str, Any]:
        """What a figure depends on besides the workload; None where it can't be told."""
        found: dict[str, Any] = {
            "device": self.name,
            "platform": platform.platform(),
            "python": platform.python_version(),
            "versions": _versions(),
        }
        if self.kind == "cpu":
            import torch

            return found | {"threads": torch.get_num_threads(), "cores": os.cpu_count()}
        import torch

        properties = torch.cuda.get_device_properties(0)
        clocks = self._figure(lambda nvml: nvml.clocks_mhz())
        return found | {
            "driver": self._figure(lambda nvml: nvml.driver()),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "sm_clock_mhz": clocks and clocks[0],
            "memory_clock_mhz": clocks and clocks[1],
            "power_limit_w": self._figure(lambda nvml: nvml.power_limit_w()),
            "sm_count": properties.multi_processor_count,
            "device_memory_mib": properties.total_memory / 2**20,
        }

    def _figure(self, read: Callable[[Nvml], Any]) -> Any:
        if isinstance(self.nvml, Unavailable):
            return None
        try:
            return read(self.nvml)
        except OSError:
            return None

    def reset_memory(self) -> None:
        """Forget earlier peaks, and give back what the allocator holds."""
        if self.kind == "cuda":
            import torch

            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def memory(self, *, of_torch: bool) -> dict[str, Any]:
        """Peaks since :meth:`reset_memory` in MiB, or None, with the reason beside it.

        The process's figure is read now, and counts the CUDA context and libraries too. It is the
        peak, since torch's and onnxruntime's allocators keep what they once took. In a container
        NVML may not know the process; the device's figure, all processes together, is then the
        best there is.

        Args:
            of_torch: whether torch's allocator served the passes.
        """
        found: dict[str, Any] = {
            "memory_process_mib": None,
            "memory_process_reason": None,
            "memory_device_mib": None,
            "memory_allocated_mib": None,
            "memory_reserved_mib": None,
        }
        if self.kind == "cpu":
            return found | {"memory_process_reason": "the CPU has no memory of its own"}
        import torch

        free, total = torch.cuda.mem_get_info()
        found["memory_device_mib"] = (total - free) / 2**20
        if of_torch:
            found["memory_allocated_mib"] = torch.cuda.max_memory_allocated() / 2**20
            found["memory_reserved_mib"] = torch.cuda.max_memory_reserved() / 2**20
        if isinstance(self.nvml, Unavailable):
            return found | {"memory_process_reason": self.nvml.reason}
        try:
            found["memory_process_mib"] = self.nvml.process_memory_bytes(os.getpid()) / 2**20
        except OSError as error:
            found["memory_process_reason"] = str(error)
        return found


def open_device(kind: str) -> Device:
    """The CPU, or the first CUDA device that torch sees.

    Raises:
        ValueError: there is no such device.
    """
    if kind == "cpu":
        return Device("cpu", _cpu_name(), Unavailable("NVML is of NVIDIA's GPUs"))
    import torch

    if kind != "cuda" or not torch.cuda.is_available():
        raise ValueError(f"torch {torch.__version__} sees no device {kind!r}")
    properties = torch.cuda.get_device_properties(0)
    try:
        nvml: Nvml | Unavailable = open_nvml(f"GPU-{properties.uuid}")
    except (OSError, AttributeError) as error:
        nvml = Unavailable(f"NVML can't be reached: {error}")
    return Device("cuda", properties.name, nvml)


def _cpu_name() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
