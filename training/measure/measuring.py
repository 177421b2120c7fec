"""One workload to one row: whatever goes wrong is in the row."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from training.measure.device import Device
from training.measure.energy import Unavailable, measure_energy
from training.measure.prepared import Prepared
from training.measure.timing import measure_latency
from training.measure.workloads import Workload

__all__ = ["SCHEMA", "failure", "key_of", "measure", "prepare"]

SCHEMA = "dippm-lite-measurement/1"


def key_of(workload: Workload, device_name: str) -> str:
    """What a row is known by: the workload on that device."""
    parts = (
        device_name, workload.runtime, workload.precision.value, str(workload.batch_size),
        workload.network,
    )  # fmt: skip
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def prepare(workload: Workload, device: Device) -> Prepared:
    """By the runtime's backend."""
    if workload.runtime == "onnxruntime":
        from training.measure import onnxruntime_backend

        return onnxruntime_backend.prepare(workload, device)
    from training.measure import torch_backend

    return torch_backend.prepare(workload, device)


def measure(
    workload: Workload,
    device: Device,
    *,
    latency_s: float = 5.0,
    energy_s: float = 2.0,
    make_ready: Callable[[Workload, Device], Prepared] = prepare,
) -> dict[str, Any]:
    """The row of a workload; one with ``error`` where it can't be measured.

    Args:
        latency_s: most that the repeats take.
        energy_s: least that the passes for the energy take.
    """
    started = time.perf_counter()
    try:
        device.reset_memory()
        ready = make_ready(workload, device)
        device.reset_memory()  # building may take more than running: weights before a cast
        latency = measure_latency(ready.call, ready.timer, limit_s=latency_s)
        memory = device.memory(of_torch=workload.runtime != "onnxruntime")
        energy: Any
        if isinstance(device.nvml, Unavailable):
            energy = device.nvml
        else:
            energy = measure_energy(
                ready.call, device.nvml, ready.timer, latency.median_ms, span_s=energy_s
            )
        figures = {
            **ready.facts,
            "latency_ms": latency.median_ms,
            "latency": asdict(latency),
            "energy_j": None if isinstance(energy, Unavailable) else energy.energy_j,
            "energy": asdict(energy),
            **memory,
            "error": None,
        }
        # Read while the device is still warm: the clocks are those of the passes.
        environment = device.environment()
    except Exception as error:  # one failure is a row, and the next workload is measured
        return failure(workload, device.name, error, time.perf_counter() - started)
    finally:
        ready = None  # type: ignore[assignment]
        gc.collect()
    return _head(workload, device.name, time.perf_counter() - started) | figures | environment


def failure(
    workload: Workload, device_name: str, error: BaseException | str, seconds: float
) -> dict[str, Any]:
    """The row of a workload that can't be measured."""
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return _head(workload, device_name, seconds) | {"error": error}


def _head(workload: Workload, device_name: str, seconds: float) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "key": key_of(workload, device_name),
        "device": device_name,
        "runtime": workload.runtime,
        "precision": workload.precision.value,
        "batch_size": workload.batch_size,
        "network": workload.network,
        "measured_utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": round(seconds, 3),
    }
