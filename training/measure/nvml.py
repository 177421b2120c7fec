"""The few figures that the driver's management library gives, by whatever reaches it.

``nvidia-ml-py`` (module ``pynvml``) where it is installed; else ``libnvidia-ml.so.1`` itself, which
comes with the driver. Names, units and error codes are NVML's: energy in mJ, clocks in MHz.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any, Protocol

__all__ = ["CtypesNvml", "Nvml", "PynvmlNvml", "open_nvml"]

NOT_AVAILABLE = 2**64 - 1
"""What NVML gives for the memory of a process that it can't see (``NVML_VALUE_NOT_AVAILABLE``)."""

_SM_CLOCK, _MEMORY_CLOCK = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
_SUCCESS, _TOO_SMALL = 0, 7  # NVML_SUCCESS, NVML_ERROR_INSUFFICIENT_SIZE


class Nvml(Protocol):
    """One GPU. Each method raises OSError where the driver doesn't give the figure."""

    def energy_j(self) -> float:
        """Since the driver was loaded."""
        ...

    def process_memory_bytes(self, pid: int) -> int:
        """What nvidia-smi shows for the process, the CUDA context included."""
        ...

    def driver(self) -> str: ...

    def clocks_mhz(self) -> tuple[int, int]:
        """Of the SMs and of the memory, now."""
        ...

    def power_limit_w(self) -> float: ...


def open_nvml(uuid: str) -> Nvml:
    """The GPU with that UUID (``GPU-...``).

    Raises:
        OSError: neither the module nor the library is there, or there is no such GPU.
    """
    try:
        module = importlib.import_module("pynvml")
    except ImportError:
        name = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
        return CtypesNvml(ctypes.CDLL(name), uuid)
    return PynvmlNvml(module, uuid)


class PynvmlNvml:
    """By ``pynvml``."""

    def __init__(self, module: Any, uuid: str) -> None:
        self._module = module
        self._call("nvmlInit")
        self._device = self._call("nvmlDeviceGetHandleByUUID", uuid)

    def _call(self, name: str, *arguments: object) -> Any:
        try:
            return getattr(self._module, name)(*arguments)
        except self._module.NVMLError as error:
            raise OSError(f"{name}: {error}") from error

    def energy_j(self) -> float:
        return float(self._call("nvmlDeviceGetTotalEnergyConsumption", self._device)) * 1e-3

    def process_memory_bytes(self, pid: int) -> int:
        for process in self._call("nvmlDeviceGetComputeRunningProcesses", self._device):
            if process.pid == pid and process.usedGpuMemory is not None:
                return int(process.usedGpuMemory)
        raise OSError(f"NVML doesn't show process {pid}: another PID namespace?")

    def driver(self) -> str:
        version = self._call("nvmlSystemGetDriverVersion")
        return version.decode() if isinstance(version, bytes) else str(version)

    def clocks_mhz(self) -> tuple[int, int]:
        return (
            int(self._call("nvmlDeviceGetClockInfo", self._device, _SM_CLOCK)),
            int(self._call("nvmlDeviceGetClockInfo", self._device, _MEMORY_CLOCK)),
        )

    def power_limit_w(self) -> float:
        return float(self._call("nvmlDeviceGetEnforcedPowerLimit", self._device)) * 1e-3


class _ProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_t`` of version 3 (and 2) of the call."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_gpu_memory", ctypes.c_ulonglong),
        ("gpu_instance_id", ctypes.c_uint),
        ("compute_instance_id", ctypes.c_uint),
    )


class CtypesNvml:
    """By the driver's library."""

    def __init__(self, library: Any, uuid: str) -> None:
        self._library = library
        self._call("nvmlInit_v2")
        device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(device))
        self._device = device

    def _call(self, name: str, *arguments: object, allowed: int = _SUCCESS) -> int:
        try:
            code = int(getattr(self._library, name)(*arguments))
        except AttributeError as error:
            raise OSError(f"the driver's library has no {name}") from error
        if code not in (_SUCCESS, allowed):
            raise OSError(f"{name} gives NVML error {code}")
        return code

    def _number(self, name: str, kind: Any, *arguments: object) -> int:
        result = kind()
        self._call(name, self._device, *arguments, ctypes.byref(result))
        return int(result.value)

    def energy_j(self) -> float:
        return self._number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong) * 1e-3

    def process_memory_bytes(self, pid: int) -> int:
        name, count = "nvmlDeviceGetComputeRunningProcesses_v3", ctypes.c_uint(0)
        self._call(name, self._device, ctypes.byref(count), None, allowed=_TOO_SMALL)
        count.value += 16  # processes that start meanwhile
        infos = (_ProcessInfo * count.value)()
        self._call(name, self._device, ctypes.byref(count), infos)
        for info in infos[: count.value]:
            if info.pid == pid and info.used_gpu_memory != NOT_AVAILABLE:
                return int(info.used_gpu_memory)
        raise OSError(f"NVML doesn't show process {pid}: another PID namespace?")

    def driver(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(96))
        return text.value.decode(errors="replace")

    def clocks_mhz(self) -> tuple[int, int]:
        return (
            self._number("nvmlDeviceGetClockInfo", ctypes.c_uint, ctypes.c_uint(_SM_CLOCK)),
            self._number("nvmlDeviceGetClockInfo", ctypes.c_uint, ctypes.c_uint(_MEMORY_CLOCK)),
        )

    def power_limit_w(self) -> float:
        return self._number("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint) * 1e-3
