"""The roofline against hand-computed kernels and its own laws."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.devices import DEVICES, find_device
from dippm_lite.execution import MathMode
from dippm_lite.kernels import ElementDims, Kernel, KernelKind, OpCost
from dippm_lite.roofline import (
    arithmetic_intensity,
    bound,
    kernel_bounds,
    ridge_point,
    roofline_time_s,
)

SXM40 = DEVICES["a100-sxm4-40gb"]


def kernel(kind=KernelKind.GEMM, mode=MathMode.FP32, **cost) -> Kernel:
    return Kernel(kind, "op", OpCost(**cost), ElementDims(1), mode, (0,), (0,), (1,))


amounts = st.integers(0, 10**18)
kernels = st.builds(
    kernel,
    kind=st.sampled_from(KernelKind),
    mode=st.sampled_from(MathMode),
    macs=amounts,
    flops_other=amounts,
    read_bytes=amounts,
    write_bytes=amounts,
    weight_bytes=amounts,
)
devices = st.sampled_from(
    [*DEVICES.values(), *(d.instance(p) for d in DEVICES.values() for p in d.mig_profiles)]
)


def test_a_large_fp16_gemm_is_compute_bound():
    """4096 cubed: 2 * 4096**3 FLOP at 312 TFLOP/s = 440.5 us; 3 * 32 MiB at 1555 GB/s = 64.7 us."""
    side = 4096 * 4096 * 2
    gemm = kernel(
        mode=MathMode.FP16, macs=4096**3, read_bytes=side, write_bytes=side, weight_bytes=side
    )
    result = bound(gemm, SXM40)
    assert result.compute_s * 1e6 == pytest.approx(440.5, rel=1e-3)
    assert result.memory_s * 1e6 == pytest.approx(64.74, rel=1e-3)
    assert result.time_s == result.compute_s
    assert result.side() == "compute"


def test_an_elementwise_add_is_memory_bound():
    """2**24 fp32 elements, two operands read: 192 MiB at 1555 GB/s = 129.5 us."""
    n = 2**24
    add = kernel(KernelKind.ELEMENTWISE, flops_other=n, read_bytes=8 * n, write_bytes=4 * n)
    assert roofline_time_s(add, SXM40) * 1e6 == pytest.approx(129.5, rel=1e-3)
    assert bound(add, SXM40).side() == "memory"


def test_a_depthwise_convolution_gets_no_tensor_cores():
    conv = kernel(KernelKind.CONV, MathMode.FP16, macs=10**9)
    depthwise = kernel(KernelKind.DEPTHWISE_CONV, MathMode.FP16, macs=10**9)
    assert bound(conv, SXM40).compute_s == pytest.approx(2e9 / 312e12)
    assert bound(depthwise, SXM40).compute_s == pytest.approx(2e9 / 19.5e12)


def test_double_precision_arithmetic_runs_at_half_rate_outside_tensor_cores():
    """9.7 TFLOP/s of fp64 FMA, 19.5 on tensor cores (A100 data sheet)."""
    vector = kernel(KernelKind.ELEMENTWISE, MathMode.FP64, flops_other=10**12)
    matrix = kernel(KernelKind.GEMM, MathMode.FP64, macs=10**12)
    assert 1e12 / bound(vector, SXM40).compute_s == pytest.approx(9.7e12, rel=0.01)
    assert 2e12 / bound(matrix, SXM40).compute_s == pytest.approx(19.5e12, rel=0.01)


def test_a_kernel_shorter_than_the_floor_is_launch_bound():
    tiny = kernel(KernelKind.ELEMENTWISE, flops_other=10, read_bytes=40, write_bytes=40)
    assert bound(tiny, SXM40).side(floor_s=2e-6) == "launch"
    assert roofline_time_s(tiny, SXM40, floor_s=2e-6) == 2e-6


def test_the_ridge_point_separates_the_sides():
    """312e12 / 1555e9 = 200.6 FLOP per byte."""
    ridge = ridge_point(SXM40, MathMode.FP16)
    assert ridge == pytest.approx(200.6, rel=1e-3)
    for factor, side in [(0.99, "memory"), (1.01, "compute")]:
        gemm = kernel(mode=MathMode.FP16, macs=int(ridge * factor * 10**9 / 2), read_bytes=10**9)
        assert arithmetic_intensity(gemm) == pytest.approx(ridge * factor, rel=1e-6)
        assert bound(gemm, SXM40).side() == side


def test_intensity_without_traffic():
    assert arithmetic_intensity(kernel()) == 0
    assert arithmetic_intensity(kernel(macs=1)) == math.inf


@given(kernels, devices)
def test_bounds_are_finite_and_never_negative(one, device):
    result = bound(one, device)
    assert 0 <= result.compute_s < math.inf
    assert 0 <= result.memory_s < math.inf
    assert result.time_s in (result.compute_s, result.memory_s)


@given(kernels, devices, st.sampled_from([f.name for f in dataclasses.fields(OpCost)]), amounts)
def test_more_work_never_takes_less_time(one, device, field, extra):
    cost = dataclasses.replace(one.cost, **{field: getattr(one.cost, field) + extra})
    assert roofline_time_s(dataclasses.replace(one, cost=cost), device) >= roofline_time_s(
        one, device
    )


@given(kernels, st.sampled_from([*DEVICES.values()]))
def test_an_instance_is_never_faster_than_its_card(one, device):
    times = [
        roofline_time_s(one, device.instance(p))
        for p in sorted(device.mig_profiles, key=lambda p: (p.sm_count, p.memory_slices))
    ]
    assert all(t >= roofline_time_s(one, device) for t in times)


@given(st.lists(kernels, max_size=5))
def test_the_array_form_agrees_with_the_scalar_one(many):
    device = find_device("a100-80gb:2g.20gb")
    compute_s, memory_s = kernel_bounds(many, device)
    assert compute_s.dtype == memory_s.dtype == np.float64
    assert compute_s.tolist() == [bound(k, device).compute_s for k in many]
    assert memory_s.tolist() == [bound(k, device).memory_s for k in many]
