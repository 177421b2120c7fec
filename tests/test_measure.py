"""The harness: its statistics, its stand-ins for a GPU, its budget, and the CPU for real."""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dippm_lite.errors import InputError
from dippm_lite.execution import Precision
from training.__main__ import main
from training.measure import torch_backend
from training.measure.device import Device, open_device
from training.measure.energy import Energy, Unavailable, measure_energy
from training.measure.filled_weights import fill_weights
from training.measure.measuring import key_of, measure
from training.measure.nvml import CtypesNvml, PynvmlNvml
from training.measure.plan import NETWORKS, default_plan
from training.measure.prepared import Prepared
from training.measure.session import measured_keys, run_plan, start_worker
from training.measure.timing import WallTimer, measure_latency, median_interval
from training.measure.workloads import Workload, parse_plan, plan_line


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Board:
    """A GPU of 200 W whose counter moves every 50 ms, in simulated time."""

    clock: Clock
    watts: float = 200.0
    step_s: float = 0.05
    alive: bool = True

    def energy_j(self) -> float:
        if not self.alive:
            return 7.0
        return self.watts * (self.clock.now // self.step_s) * self.step_s


def passing(clock: Clock, seconds: float) -> Callable[[], None]:
    def call() -> None:
        clock.now += seconds

    return call


@pytest.mark.parametrize("pass_s", [0.0003, 0.004, 0.15, 0.7])
def test_energy_of_a_pass_is_power_times_its_time(pass_s: float) -> None:
    clock = Clock()
    board = Board(clock)
    found = measure_energy(
        passing(clock, pass_s), board, WallTimer(clock), pass_s * 1e3, clock=clock
    )
    assert isinstance(found, Energy)
    assert found.span_s >= 2.0
    # Both ends are known to a chunk of calls: 20 ms, or one call where that is longer.
    error = 2 * max(0.02, pass_s) / found.span_s
    assert found.energy_j == pytest.approx(200.0 * pass_s, rel=error)
    assert found.power_w == pytest.approx(200.0, rel=error)


def test_a_counter_that_stands_still_or_is_missing_is_a_reason_and_no_zero() -> None:
    clock = Clock()
    still = measure_energy(
        passing(clock, 0.01), Board(clock, alive=False), WallTimer(clock), 10.0, clock=clock
    )
    assert isinstance(still, Unavailable) and "stood still" in still.reason

    class Missing:
        def energy_j(self) -> float:
            raise OSError("nvmlDeviceGetTotalEnergyConsumption: Not Supported")

    missing = measure_energy(passing(clock, 0.01), Missing(), WallTimer(clock), 10.0, clock=clock)
    assert missing == Unavailable("nvmlDeviceGetTotalEnergyConsumption: Not Supported")


def test_latency_is_the_median_after_the_warm_up() -> None:
    clock = Clock()
    times = iter([9.0] * 1 + [0.5] * 3 + [0.010, 0.011, 0.050, 0.009, 0.010] * 100)
    found = measure_latency(
        lambda: setattr(clock, "now", clock.now + next(times)),
        WallTimer(clock),
        limit_s=20.0,
        relative_error=0.001,
        clock=clock,
    )
    assert found.median_ms == pytest.approx(10.0)
    assert found.maximum_ms == pytest.approx(50.0)
    assert found.minimum_ms == pytest.approx(9.0)
    assert found.settled and found.repeats >= 10
    assert found.low_ms <= found.median_ms <= found.high_ms


def test_time_that_runs_out_is_said() -> None:
    clock, draw = Clock(), random.Random(1)
    found = measure_latency(
        lambda: setattr(clock, "now", clock.now + draw.uniform(0.1, 1.0)),
        WallTimer(clock),
        limit_s=3.0,
        relative_error=1e-9,
        clock=clock,
    )
    assert not found.settled
    assert 3 <= found.repeats <= 31
    slow = measure_latency(passing(clock, 60.0), WallTimer(clock), limit_s=3.0, clock=clock)
    assert (slow.repeats, slow.median_ms) == (1, pytest.approx(60_000))


def test_the_interval_holds_the_true_median_in_95_of_100_samples() -> None:
    draw = random.Random(0)
    held = 0
    for _ in range(1000):
        values = sorted(draw.lognormvariate(0, 1) for _ in range(40))  # the true median is 1
        _, low, high = median_interval(values)
        held += low <= 1.0 <= high
    assert held / 1000 >= 0.93


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=200))
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    median, low, high = median_interval(sorted(values))
    assert low <= median <= high
    assert median == pytest.approx(float(np.median(values)))


NVML_FIGURES = {"energy_mj": 123_456, "sm": 1410, "memory": 1215, "limit_mw": 400_000}


def fake_pynvml(pids: dict[int, int | None]) -> Any:
    class NVMLError(Exception):
        pass

    def missing(*_: object) -> None:
        raise NVMLError("Not Supported")

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid if uuid == "GPU-1" else missing(),
        nvmlDeviceGetTotalEnergyConsumption=lambda device: NVML_FIGURES["energy_mj"],
        nvmlDeviceGetComputeRunningProcesses=lambda device: [
            SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in pids.items()
        ],
        nvmlSystemGetDriverVersion=lambda: b"550.54.15",
        nvmlDeviceGetClockInfo=lambda device, kind: NVML_FIGURES["sm" if kind == 1 else "memory"],
        nvmlDeviceGetEnforcedPowerLimit=lambda device: NVML_FIGURES["limit_mw"],
    )


class FakeLibrary:
    """The C functions: they fill what they are pointed to, and return NVML's codes."""

    def __init__(self, pids: dict[int, int | None]) -> None:
        self.pids = pids

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, device: Any) -> int:
        device._obj.value = 77
        return 0 if uuid == b"GPU-1" else 6  # NVML_ERROR_NOT_FOUND

    def nvmlDeviceGetTotalEnergyConsumption(self, device: Any, result: Any) -> int:
        assert device.value == 77
        result._obj.value = NVML_FIGURES["energy_mj"]
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, infos: Any) -> int:
        given, count._obj.value = count._obj.value, len(self.pids)
        if given < len(self.pids):
            return 7  # NVML_ERROR_INSUFFICIENT_SIZE
        for info, (pid, used) in zip(infos or (), self.pids.items(), strict=False):
            info.pid, info.used_gpu_memory = pid, 2**64 - 1 if used is None else used
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> int:
        assert size.value == len(text)
        text.value = b"550.54.15"
        return 0

    def nvmlDeviceGetClockInfo(self, device: Any, kind: Any, result: Any) -> int:
        result._obj.value = NVML_FIGURES["sm" if kind.value == 1 else "memory"]
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, device: Any, result: Any) -> int:
        result._obj.value = NVML_FIGURES["limit_mw"]
        return 0


@pytest.mark.parametrize("how", ["module", "library"])
def test_nvml_figures_are_in_our_units_by_either_way(how: str) -> None:
    def open_(uuid: str, pids: dict[int, int | None]) -> Any:
        if how == "module":
            return PynvmlNvml(fake_pynvml(pids), uuid)
        return CtypesNvml(FakeLibrary(pids), uuid)

    nvml = open_("GPU-1", {5: 1 << 30, 9: 3 << 20, 11: None})
    assert nvml.energy_j() == pytest.approx(123.456)
    assert nvml.driver() == "550.54.15"
    assert nvml.clocks_mhz() == (1410, 1215)
    assert nvml.power_limit_w() == 400.0
    assert nvml.process_memory_bytes(9) == 3 << 20
    for pid in (10, 11):  # not there; there without a figure
        with pytest.raises(OSError, match="doesn't show process"):
            nvml.process_memory_bytes(pid)
    assert open_("GPU-1", {9: 1}).process_memory_bytes(9) == 1
    with pytest.raises(OSError, match="nvmlDeviceGetHandleByUUID"):
        open_("GPU-2", {})


def test_a_function_that_an_old_driver_lacks_is_an_oserror() -> None:
    class Old(FakeLibrary):
        nvmlDeviceGetTotalEnergyConsumption = property()

    with pytest.raises(OSError, match="has no nvmlDeviceGetTotalEnergyConsumption"):
        CtypesNvml(Old({}), "GPU-1").energy_j()


def test_the_struct_of_a_process_is_laid_out_as_in_nvml_h() -> None:
    from training.measure.nvml import _ProcessInfo

    # unsigned int, padding, unsigned long long, two unsigned ints: 24 bytes on 64-bit machines.
    assert ctypes.sizeof(_ProcessInfo) == 24
    assert _ProcessInfo.used_gpu_memory.offset == 8
    assert _ProcessInfo.gpu_instance_id.offset == 16


WORKLOAD = Workload("pytorch", Precision.AUTO, 2, "plain/dcgan")


@dataclass
class FakeNvml(Board):
    """A board whose counter moves with the calls."""

    def process_memory_bytes(self, pid: int) -> int:
        assert pid == os.getpid()
        return 500 << 20

    def driver(self) -> str:
        return "550"

    def clocks_mhz(self) -> tuple[int, int]:
        raise OSError("no clocks")

    def power_limit_w(self) -> float:
        return 400.0


class FakeGpu(Device):
    """A CUDA device without torch's part of it."""

    def reset_memory(self) -> None:
        pass

    def environment(self) -> dict[str, Any]:
        return {"driver": self._figure(lambda n: n.driver()),
                "clocks": self._figure(lambda n: n.clocks_mhz())}  # fmt: skip


def test_a_row_has_every_figure_or_the_reason_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 30, 3 << 30))
    clock = Clock()
    nvml = FakeNvml(clock)
    ready = Prepared(passing(clock, 0.01), WallTimer(clock), {"graph": "x"})
    # The harness's own clock runs for real; the simulated one must only move the counter.
    row = measure(
        Workload("onnxruntime", Precision.AUTO, 2, "x"),
        FakeGpu("cuda", "GPU", nvml),
        latency_s=0.2,
        energy_s=0.05,
        make_ready=lambda *_: ready,
    )
    assert row["error"] is None
    assert row["latency_ms"] == pytest.approx(10.0)
    assert row["memory_process_mib"] == 500.0
    assert row["memory_device_mib"] == 2048.0
    assert row["memory_allocated_mib"] is None
    assert row["energy_j"] == pytest.approx(2.0, rel=0.2)
    assert (row["driver"], row["clocks"]) == ("550", None)
    nvml.alive = False
    row = measure(
        WORKLOAD, FakeGpu("cpu", "GPU", nvml), latency_s=0.1, energy_s=0.05,
        make_ready=lambda *_: ready,
    )  # fmt: skip
    assert row["energy_j"] is None and "stood still" in row["energy"]["reason"]


def test_memory_of_torch_is_its_allocators_and_a_hidden_process_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (0, 1 << 30))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 100 << 20)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: 120 << 20)
    hidden = PynvmlNvml(fake_pynvml({1: 1}), "GPU-1")
    found = Device("cuda", "GPU", hidden).memory(of_torch=True)
    assert (found["memory_allocated_mib"], found["memory_reserved_mib"]) == (100.0, 120.0)
    assert found["memory_process_mib"] is None
    assert "another PID namespace" in found["memory_process_reason"]
    closed = Device("cuda", "GPU", Unavailable("no driver")).memory(of_torch=False)
    assert closed["memory_process_reason"] == "no driver"
    assert closed["memory_device_mib"] == 1024.0


def test_a_failure_is_a_row() -> None:
    def broken(*_: Any) -> Prepared:
        raise RuntimeError("CUDA out of memory.\nTried to allocate 1 TiB")

    row = measure(WORKLOAD, Device("cpu", "CPU", Unavailable("none")), make_ready=broken)
    assert row["error"] == "RuntimeError: CUDA out of memory. Tried to allocate 1 TiB"
    assert row["key"] == key_of(WORKLOAD, "CPU")
    json.dumps(row)


@dataclass
class FakeWorker:
    """Answers by the workload's network, in simulated time."""

    clock: Clock
    log: list[str]
    device_name: str = "GPU"
    closed: bool = False

    def measure(self, workload: Workload, limit_s: float) -> dict[str, Any]:
        assert not self.closed
        self.log.append(workload.network)
        if workload.network == "hangs":
            self.clock.now += limit_s
            raise TimeoutError(f"no answer after {limit_s:.0f} s")
        self.clock.now += 10.0
        if workload.network == "dies":
            raise EOFError("the process ended with code -11")
        return {
            "key": key_of(workload, self.device_name),
            "error": "ValueError: no" if workload.network == "fails" else None,
            "latency_ms": 1.0,
            "energy_j": None,
        }

    def close(self) -> None:
        self.closed = True


@dataclass
class Workers:
    clock: Clock = field(default_factory=Clock)
    log: list[str] = field(default_factory=list)
    started: list[FakeWorker] = field(default_factory=list)

    def __call__(self) -> FakeWorker:
        self.started.append(FakeWorker(self.clock, self.log))
        return self.started[-1]


def plan_of(*networks: str) -> tuple[Workload, ...]:
    return tuple(Workload("pytorch", Precision.AUTO, 1, network) for network in networks)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_failure_does_not_stop_the_rest(tmp_path: Path) -> None:
    workers, path, log = Workers(), tmp_path / "rows.jsonl", io.StringIO()
    plan = plan_of("a", "fails", "dies", "hangs", "b")
    done = run_plan(plan, path, 1000.0, workers, log=log, clock=workers.clock)
    assert (done.measured, done.failed, done.left) == (2, 3, 0)
    assert [row["error"] for row in rows_of(path)] == [
        None, "ValueError: no", "EOFError: the process ended with code -11",
        "TimeoutError: no answer after 180 s", None,
    ]  # fmt: skip
    assert len(workers.started) == 4 and all(worker.closed for worker in workers.started)
    assert "5 workloads, 0 measured already" in log.getvalue()
    assert "5/5 pytorch auto 1 b: 1.000 ms" in log.getvalue()


def test_a_run_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    workers, path = Workers(), tmp_path / "rows.jsonl"
    plan = plan_of("a", "fails", "b", "c")
    first = run_plan(plan, path, 25.0, workers, log=io.StringIO(), clock=workers.clock)
    assert (first.measured, first.failed, first.left) == (1, 1, 2)
    with path.open("a") as file:
        file.write('{"key": "cut o')  # a run that was killed while writing
    second = run_plan(plan, path, 1000.0, workers, log=io.StringIO(), clock=workers.clock)
    assert (second.measured, second.skipped) == (2, 2)
    assert workers.log == ["a", "fails", "b", "c"]
    assert len(measured_keys(path)) == 4
    third = run_plan(
        plan, path, 1000.0, workers, retry=True, log=io.StringIO(), clock=workers.clock
    )
    assert (third.failed, third.skipped) == (1, 3)


def test_the_budget_is_kept_even_by_what_hangs(tmp_path: Path) -> None:
    workers, path = Workers(), tmp_path / "rows.jsonl"
    start = workers.clock.now
    done = run_plan(
        plan_of("a", "hangs", "b"), path, 60.0, workers, log=io.StringIO(), clock=workers.clock
    )
    assert workers.clock.now - start == 60.0
    assert (done.measured, done.failed, done.left) == (1, 0, 2)  # it may be tried again
    assert len(rows_of(path)) == 1


def test_fresh_processes_on_demand(tmp_path: Path) -> None:
    workers = Workers()
    run_plan(
        plan_of("a", "b", "c"), tmp_path / "r", 1000.0, workers, fresh=True, log=io.StringIO(),
        clock=workers.clock,
    )  # fmt: skip
    assert len(workers.started) == 3


def test_plans_are_read_as_they_are_printed(tmp_path: Path, capsys: Any) -> None:
    plan = default_plan()
    assert len(set(plan)) == len(plan) > 300
    assert parse_plan([plan_line(w) for w in plan]) == plan
    assert {w.network for w in plan[: 2 * len(NETWORKS)]} == set(NETWORKS)
    text = "# mine\n\npytorch fp16 8 plain/lstm\nonnxruntime auto 1 /a b/model.onnx\n" * 2
    assert parse_plan(text.splitlines()) == (
        Workload("pytorch", Precision.FP16, 8, "plain/lstm"),
        Workload("onnxruntime", Precision.AUTO, 1, "/a b/model.onnx"),
    )
    (tmp_path / "plan.txt").write_text(text)
    assert main(["measure", "plan", "--plan", str(tmp_path / "plan.txt"), "--limit", "1"]) == 0
    assert capsys.readouterr().out == "pytorch fp16 8 plain/lstm\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pytorch auto 1", "is no 'RUNTIME"),
        ("caffe auto 1 x", "no runtime 'caffe'"),
        ("pytorch fp12 1 x", "fp12"),
        ("pytorch auto 0 x", "batch 0"),
        ("pytorch auto one x", "is no 'RUNTIME"),
        ("pytorch auto 1 x.onnx", "needs the runtime onnxruntime"),
    ],
)
def test_a_line_that_is_no_workload_is_named(line: str, message: str) -> None:
    with pytest.raises(InputError, match=f"line 2: .*{message}"):
        parse_plan(["# first", line])


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_other_line_raises_an_input_error_alone(line: str) -> None:
    try:
        (workload,) = parse_plan([line]) or (WORKLOAD,)
    except InputError:
        return
    assert parse_plan([plan_line(workload)]) == (workload,)


def test_precisions_reach_torch_and_impossible_ones_are_refused() -> None:
    import torch

    device = open_device("cpu")
    half = torch_backend.prepare(Workload("pytorch", Precision.BF16, 2, "plain/dcgan"), device)
    assert half.call().dtype is torch.bfloat16
    mixed = torch_backend.prepare(Workload("pytorch", Precision.AMP, 2, "plain/dcgan"), device)
    assert mixed.call().dtype is torch.bfloat16
    full = torch_backend.prepare(Workload("pytorch", Precision.FP32, 2, "plain/dcgan"), device)
    assert full.call().dtype is torch.float32
    assert full.call().shape == (2, 3, 64, 64)
    assert full.facts["parameters"] == 3_576_704  # DCGAN's generator at width 64
    assert not torch.backends.cudnn.allow_tf32
    torch_backend.prepare(WORKLOAD, device)
    assert torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
    for precision in (Precision.INT8, Precision.TF32):
        with pytest.raises(ValueError, match="no precision"):
            torch_backend.prepare(Workload("pytorch", precision, 1, "plain/dcgan"), device)


def test_compiled_networks_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = []
    monkeypatch.setattr(torch, "compile", lambda module: seen.append(module) or module)
    monkeypatch.setattr(torch.compiler, "reset", lambda: seen.append("reset"))
    ready = torch_backend.prepare(
        Workload("pytorch-compile", Precision.AUTO, 2, "plain/dcgan"), open_device("cpu")
    )
    assert ready.call().shape == (2, 3, 64, 64)
    assert seen[0] == "reset" and len(seen) == 2


def weightless_file(path: Path, *, free: str | None = None) -> Path:
    """y = relu(x @ w), w missing, the batch free."""
    shape: list[Any] = ["batch", free or 8]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[8, 4])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    graph.initializer.append(weight)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_missing_weights_are_filled_with_numbers_that_any_operator_takes(tmp_path: Path) -> None:
    model = onnx.load(weightless_file(tmp_path / "m.onnx"), load_external_data=False)
    path = fill_weights(model, tmp_path)
    weights = onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    assert weights.shape == (8, 4)
    assert 0 < weights.min() <= weights.max() < 0.1


def test_an_onnx_file_is_measured_and_free_dimensions_are_named(tmp_path: Path) -> None:
    device = open_device("cpu")
    path = weightless_file(tmp_path / "m.onnx")
    row = measure(Workload("onnxruntime", Precision.AUTO, 3, str(path)), device, latency_s=0.1)
    assert row["error"] is None
    assert row["graph"] == "m.onnx" and row["opset"] == 17
    assert row["providers"] == ["CPUExecutionProvider"]
    path = weightless_file(tmp_path / "free.onnx", free="tokens")
    row = measure(Workload("onnxruntime", Precision.AUTO, 3, str(path)), device, latency_s=0.1)
    assert "'tokens' besides the batch" in row["error"]
    row = measure(Workload("onnxruntime", Precision.FP16, 3, str(path)), device, latency_s=0.1)
    assert "no fp16" in row["error"]
    row = measure(Workload("onnxruntime", Precision.AUTO, 1, str(tmp_path / "none.onnx")), device)
    assert row["error"].startswith("FileNotFoundError")


def test_the_cpu_is_measured_in_a_process_of_its_own(tmp_path: Path, capsys: Any) -> None:
    plan, output = tmp_path / "plan.txt", tmp_path / "rows.jsonl"
    lines = ["pytorch auto 2 plain/dcgan", "onnxruntime auto 2 plain/dcgan",
             "pytorch auto 1 plain/unheard"]  # fmt: skip
    plan.write_text("\n".join(lines))
    arguments = ["measure", "run", "--device", "cpu", "--budget", "120", "--plan", str(plan),
                 "--output", str(output), "--latency-seconds", "0.3"]  # fmt: skip
    assert main(arguments) == 0
    eager, ort, failed = rows_of(output)
    for row in (eager, ort):
        assert row["error"] is None
        assert 0.05 < row["latency_ms"] < 5000
        assert row["latency"]["low_ms"] <= row["latency_ms"] <= row["latency"]["high_ms"]
        assert row["energy_j"] is None and "NVIDIA" in row["energy"]["reason"]
        assert row["memory_process_mib"] is None
        assert row["versions"]["torch"] and row["device"] and row["threads"] >= 1
        assert (row["graph"], row["family"]) == ("plain/dcgan", "gan")
    assert (eager["workloads_before_in_process"], ort["workloads_before_in_process"]) == (0, 1)
    assert eager["parameters"] == ort["parameters"]
    assert "no network" in failed["error"]
    assert "2 measured, 1 failed, 0 were there, 0 left" in capsys.readouterr().err


def test_a_process_that_is_killed_or_hangs_is_told_apart() -> None:
    worker: Any = start_worker("cpu", latency_s=30.0, energy_s=1.0)
    try:
        with pytest.raises(TimeoutError, match="no answer"):
            worker.measure(WORKLOAD, 0.2)
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(EOFError, match="ended with code -9"):
            worker._receive(30.0)
    finally:
        worker.close()
    with pytest.raises(ValueError, match="sees no device"):
        start_worker("cuda", latency_s=1.0, energy_s=1.0)
