"""Times of kernels and their composition, against brute force, measurements and physics."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.devices import find_device
from dippm_lite.execution import MathMode, Runtime
from dippm_lite.kernel_latency import LAUNCH_US, KernelLatencyModel, queue_latency_s
from dippm_lite.kernels import (
    AttentionDims,
    ConvDims,
    ElementDims,
    GemmDims,
    Kernel,
    KernelKind,
    OpCost,
    RecurrentDims,
    RowDims,
)
from dippm_lite.roofline import bound

HELD_OUT = Path(__file__).parent / "data" / "neusight_kernels.csv"
CARD = find_device("a100-pcie-40gb")
_BYTES = {MathMode.FP64: 8, MathMode.FP16: 2, MathMode.BF16: 2, MathMode.INT8: 1}


@pytest.fixture(scope="module")
def model() -> KernelLatencyModel:
    return KernelLatencyModel.load()


def kernel(kind: KernelKind, op: str, cost: OpCost, dims, math=MathMode.FP32, repeat=1) -> Kernel:
    return Kernel(kind, op, cost, dims, math, (0,), (), (), repeat)


def gemm(m: int, n: int, k: int, batch: int = 1, math=MathMode.FP32, repeat: int = 1) -> Kernel:
    size = _BYTES.get(math, 4)
    cost = OpCost(
        macs=batch * m * n * k,
        read_bytes=size * batch * m * k,
        weight_bytes=size * batch * k * n,
        write_bytes=size * batch * m * n,
    )
    kind = KernelKind.GEMM if batch == 1 else KernelKind.BATCHED_GEMM
    op = "linear" if batch == 1 else "bmm"
    return kernel(kind, op, cost, GemmDims(batch, m, n, k), math, repeat)


def conv(channels: int, size: int, taps: int, stride: int = 1, groups: int = 1, math=MathMode.FP32):
    out, itemsize = size // stride, _BYTES.get(math, 4)
    dims = ConvDims(
        8, channels, channels, groups, (size, size), (out, out), (taps, taps),
        (stride, stride), (1, 1), (taps // 2,) * 4,
    )  # fmt: skip
    cost = OpCost(
        macs=8 * channels * channels // groups * out * out * taps * taps,
        read_bytes=itemsize * 8 * channels * size * size,
        write_bytes=itemsize * 8 * channels * out * out,
        weight_bytes=itemsize * channels * channels // groups * taps * taps,
    )
    kind = KernelKind.DEPTHWISE_CONV if groups == channels else KernelKind.CONV
    return kernel(kind, "conv", cost, dims, math)


def elementwise(elements: int, op: str = "relu", operands: int = 1, math=MathMode.FP32) -> Kernel:
    size = _BYTES.get(math, 4)
    cost = OpCost(read_bytes=size * operands * elements, write_bytes=size * elements)
    return kernel(KernelKind.ELEMENTWISE, op, cost, ElementDims(elements, operands), math)


def rows(op: str, count: int, cols: int, math=MathMode.FP32) -> Kernel:
    size = _BYTES.get(math, 4) * count * cols
    kind = KernelKind.SOFTMAX if op == "softmax" else KernelKind.NORMALIZATION
    return kernel(kind, op, OpCost(read_bytes=size, write_bytes=size), RowDims(count, cols), math)


# --- against measurements -------------------------------------------------------------------


def held_out() -> list[tuple[str, Kernel, float]]:
    """Operator, kernel, measured seconds."""
    result = []
    with HELD_OUT.open(encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            a, b, c, d = (int(row[name]) for name in "abcd")
            op = row["op"]
            if op in ("linear", "bmm"):
                made = gemm(b, d, c, batch=a)
            elif op in ("ln", "softmax"):
                made = rows("layer_norm" if op == "ln" else op, a, b)
            else:
                made = elementwise(a * b, op, 2 if op == "add" else 1)
            result.append((op, made, float(row["latency_ms"]) * 1e-3))
    return result


@pytest.mark.parametrize(
    ("ops", "model_name", "limit_percent"),
    [
        (("linear",), "linear_fp32", 10),
        (("bmm",), "bmm_fp32", 10),
        (("add", "gelu", "tanh"), "element_fp32", 5),
        (("softmax", "ln"), "row_fp32", 16),
    ],
)
def test_held_out_kernels_take_about_as_long_as_measured(model, ops, model_name, limit_percent):
    chosen = [row for row in held_out() if row[0] in ops]
    host_us = model.bundle.entry(model_name).constants
    host_s = np.array([host_us[f"host_time_us_{op}"] for op, _, _ in chosen]) * 1e-6
    measured_s = np.array([seconds for _, _, seconds in chosen])
    predicted_s = model.kernel_times_s([k for _, k, _ in chosen], CARD) + host_s
    assert 100 * np.abs(predicted_s / measured_s - 1).mean() < limit_percent


def test_the_manifest_meets_the_targets(model):
    figures = {(m.subject, m.split): m.mape_percent for m in model.bundle.manifest.metrics}
    assert figures["linear_fp32", "five-fold"] <= 5.0
    assert figures["bmm_fp32", "five-fold"] <= 4.0
    assert figures["conv_fp32", "five-fold"] <= 14.0
    assert figures["linear_fp32", "out of distribution"] <= 10.0
    assert figures["bmm_fp32", "out of distribution"] <= 10.0


# --- physics --------------------------------------------------------------------------------


def test_large_products_scale_with_their_work(model):
    one, double = model.kernel_times_s([gemm(8192, 4096, 4096), gemm(8192, 4096, 8192)], CARD)
    assert 1.8 < double / one < 2.2


def test_half_precision_products_run_near_the_tensor_core_peak(model):
    # cuBLAS reaches about 0.8 of 312 TFLOP/s on large fp16 products on an A100 (NVIDIA, "Matrix
    # Multiplication Background User's Guide"); a fp32 product is an order slower.
    seconds = model.kernel_times_s([gemm(8192, 8192, 8192, math=MathMode.FP16)], CARD)[0]
    assert 0.6 < 2 * 8192**3 / 312e12 / seconds < 0.95


kernels_of_every_route = [
    *(gemm(512, 768, 256, math=math) for math in MathMode),
    *(gemm(128, 64, 128, batch=96, math=math) for math in MathMode),
    *(conv(64, 28, taps, math=math) for math in MathMode for taps in (1, 3, 7)),
    conv(64, 28, 3, stride=2),
    conv(64, 28, 3, groups=8),
    conv(64, 28, 3, groups=64, math=MathMode.FP16),
    kernel(
        KernelKind.CONV, "conv_transpose", OpCost(macs=10**7, read_bytes=10**5, write_bytes=10**5),
        ConvDims(2, 16, 8, 1, (8,), (16,), (2,), (2,), (1,), (0, 0), transposed=True),
    ),
    kernel(
        KernelKind.ATTENTION, "attention",
        OpCost(macs=2 * 8 * 12 * 512 * 512 * 64, read_bytes=10**6),
        AttentionDims(8, 12, 12, 512, 512, 64, 64), MathMode.FP16,
    ),
    kernel(
        KernelKind.RECURRENT, "lstm", OpCost(macs=10**8, weight_bytes=10**6),
        RecurrentDims(8, 100, 256, 256, 4, 2),
    ),
    *(elementwise(10**6, op, math=math) for op in ("relu", "swiglu", "rotary_embedding", "what")
      for math in (MathMode.FP32, MathMode.FP16)),
    *(rows(op, 4096, 1000, math) for op in ("layer_norm", "softmax", "rms_norm", "group_norm")
      for math in (MathMode.FP32, MathMode.BF16)),
    *(kernel(kind, "x", OpCost(read_bytes=10**6, write_bytes=10**6), ElementDims(250_000))
      for kind in KernelKind),
]  # fmt: skip


@pytest.mark.parametrize("runtime", list(Runtime))
@pytest.mark.parametrize("device", ["a100-pcie-40gb", "a100-sxm4-80gb:1g.10gb"])
def test_every_kind_has_a_time_that_physics_allows(model, device, runtime):
    target = find_device(device)
    times = model.kernel_times_s(kernels_of_every_route, target, runtime)
    for one, seconds in zip(kernels_of_every_route, times.tolist(), strict=True):
        limits = bound(one, target)
        assert 1e-6 <= seconds < 0.1
        assert seconds >= limits.compute_s / 4  # what Winograd's F(4x4, 3x3) saves
        assert seconds >= limits.memory_s / 2.5  # all of it from L2


def test_empty_tensors_cost_a_launch(model):
    nothing = [gemm(0, 8, 8), rows("softmax", 0, 8), elementwise(0), conv(64, 0, 3)]
    times = model.kernel_times_s(nothing, CARD)
    assert ((times >= 1e-6) & (times < 5e-5)).all()


def test_times_don_t_depend_on_the_other_kernels(model):
    chosen = kernels_of_every_route[::5]
    together = model.kernel_times_s(chosen, CARD)
    alone = [model.kernel_times_s([one], CARD)[0] for one in chosen]
    np.testing.assert_array_equal(together, alone)


def test_an_instance_is_slower_by_about_its_share(model):
    big = [gemm(8192, 4096, 4096), elementwise(1 << 28)]
    card = model.kernel_times_s(big, find_device("a100-sxm4-40gb"))
    seventh = model.kernel_times_s(big, find_device("a100-sxm4-40gb:1g.5gb"))
    np.testing.assert_array_less(5.5, seventh / card)
    np.testing.assert_array_less(seventh / card, 10)


# --- where a time comes from ----------------------------------------------------------------


def test_measured_classes_are_told_from_carried_over_ones(model):
    measured = [
        gemm(512, 512, 512),
        gemm(64, 64, 64, batch=32),
        conv(64, 28, 3),
        elementwise(10**6),
        rows("layer_norm", 4096, 1024),
        gemm(512, 4096, 4096, math=MathMode.FP16),
    ]
    carried = [
        gemm(512, 512, 512, math=MathMode.TF32),
        conv(64, 28, 3, math=MathMode.TF32),
        conv(64, 28, 1),
        gemm(64, 64, 64, batch=32, math=MathMode.FP16),
    ]
    result = model.compose([*measured, *carried], CARD, Runtime.PYTORCH)
    assert result.bases == ("measured",) * len(measured) + ("extrapolated",) * len(carried)
    share = sum(result.kernel_s[len(measured) :]) / sum(result.kernel_s)
    assert result.extrapolated_share == pytest.approx(share)
    assert result.extrapolated_classes == (
        "gemm tf32", "conv tf32", "conv fp32", "batched_gemm fp16",
    )  # fmt: skip


def test_sizes_beyond_the_measured_ones_are_named(model):
    inside = model.compose([gemm(512, 512, 512)], CARD, Runtime.PYTORCH)
    assert inside.out_of_range_share == 0 and inside.out_of_range_features == ()
    outside = model.compose([gemm(512, 512, 1 << 20)], CARD, Runtime.PYTORCH)
    assert outside.out_of_range_share == 1
    assert outside.out_of_range_features == ("linear_fp32.k",)


def test_carried_over_kernels_widen_the_interval(model):
    def width(math: MathMode) -> float:
        result = model.compose([gemm(4096, 4096, 4096, math=math)], CARD, Runtime.TENSORRT)
        assert result.low_s < result.latency_s < result.high_s
        return result.high_s / result.low_s

    assert width(MathMode.TF32) > 1.5 * width(MathMode.FP32)


def test_tensor_core_convolutions_pay_for_channels_first(model):
    one = [conv(256, 56, 1, math=MathMode.FP16)]
    eager, engine = (
        model.kernel_times_s(one, CARD, runtime)[0]
        for runtime in (Runtime.PYTORCH, Runtime.TENSORRT)
    )
    moved = 2 * (one[0].cost.read_bytes + one[0].cost.write_bytes)
    assert eager - engine > 0.2 * moved / CARD.bandwidth_bytes_per_s


# --- the queue ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel_us", "repeats", "launch_us", "latency_us"),
    [
        ([], [], 5, 0),
        ([100], [1], 5, 105),  # the first launch, then the kernel
        ([100, 100], [1, 1], 5, 205),  # the second is issued while the first runs
        ([1, 1, 1], [1, 1, 1], 5, 16),  # the host is the bottleneck
        ([1], [3], 5, 16),
        ([100, 1, 1], [1, 1, 1], 60, 181),  # the queue drains: the last launch is waited for
        ([7], [0], 5, 0),
    ],
)
def test_queue_by_hand(kernel_us, repeats, launch_us, latency_us):
    seconds = queue_latency_s(np.array(kernel_us, dtype=float) * 1e-6, repeats, launch_us * 1e-6)
    assert seconds == pytest.approx(latency_us * 1e-6)


@given(st.lists(st.tuples(st.floats(0, 1e-3), st.integers(0, 6)), max_size=12), st.floats(0, 1e-4))
@settings(deadline=None)
def test_queue_is_what_a_step_by_step_simulation_gives(runs, launch_s):
    host_s = gpu_s = 0.0
    for run_s, repeat in runs:
        for _ in range(repeat):
            host_s += launch_s
            gpu_s = max(gpu_s, host_s) + run_s
    kernel_s = np.array([run_s for run_s, _ in runs])
    result = queue_latency_s(kernel_s, [repeat for _, repeat in runs], launch_s)
    assert result == pytest.approx(gpu_s, rel=1e-9, abs=1e-15)


def test_small_kernels_take_as_long_as_their_launches(model):
    chain = [elementwise(100)] * 200
    result = model.compose(chain, CARD, Runtime.PYTORCH)
    assert result.latency_s == pytest.approx(200 * LAUNCH_US[Runtime.PYTORCH] * 1e-6, rel=0.01)
    assert set(result.sides) == {"launch"}
    faster = model.compose(chain, CARD, Runtime.PYTORCH, launch_us=10.0)
    assert faster.latency_s == pytest.approx(200 * 10e-6, rel=0.02)


def test_repeats_are_runs(model):
    once = gemm(4096, 4096, 4096)
    loop = model.compose([replace(once, repeat=7)], CARD, Runtime.PYTORCH)
    unrolled = model.compose([once] * 7, CARD, Runtime.PYTORCH)
    assert loop.latency_s == pytest.approx(unrolled.latency_s)
    assert loop.busy_s == pytest.approx(unrolled.busy_s)


def test_nothing_to_run_takes_no_time(model):
    result = model.compose((), CARD, Runtime.PYTORCH)
    assert (result.latency_s, result.busy_s, result.kernel_s) == (0, 0, ())


def test_every_runtime_has_a_launch_time():
    assert LAUNCH_US.keys() == set(Runtime)
    assert LAUNCH_US[Runtime.TENSORRT] < LAUNCH_US[Runtime.ONNXRUNTIME] < LAUNCH_US[Runtime.PYTORCH]


def test_routes_cover_every_kind():
    assert {one.kind for one in kernels_of_every_route} == set(KernelKind)
