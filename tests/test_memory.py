"""Memory pools against their documented behaviour, and the process model built on them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.execution import MathMode, Runtime
from dippm_lite.kernels import ElementDims, Kernel, KernelKind, OpCost
from dippm_lite.memory import (
    CUBLAS_WORKSPACE_BYTES,
    FOOTPRINTS,
    BfcArena,
    CachingAllocator,
    process_memory,
    replay,
)

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Life:
    size_bytes: int
    first: int = 0
    last: int = 0
    held: bool = False


def reserved_mib(pool, *sizes):
    for size in sizes:
        pool.allocate(size)
    return pool.reserved_bytes / MIB


@pytest.mark.parametrize(
    ("sizes", "mib"),
    [
        ([], 0),
        ([1], 2),
        ([MIB], 2),
        ([MIB, MIB], 2),
        ([MIB, MIB, 1], 4),
        ([512] * 4096, 2),
        ([512] * 4097, 4),
        ([MIB + 1], 20),
        ([9 * MIB, 9 * MIB], 20),
        ([9 * MIB, 9 * MIB, 3 * MIB], 40),
        ([10 * MIB - 512], 20),
        ([10 * MIB], 10),
        ([10 * MIB + 1], 12),
        ([100 * MIB, 1], 102),
    ],
)
def test_segments_of_pytorchs_allocator(sizes, mib):
    """c10/cuda/CUDACachingAllocator.cpp: 2 MiB segments up to 1 MiB, 20 MiB ones below 10 MiB,
    then multiples of 2 MiB."""
    assert reserved_mib(CachingAllocator(), *sizes) == mib


def test_pytorch_rounds_to_512_bytes():
    pool = CachingAllocator()
    first, second, third = pool.allocate(1), pool.allocate(513), pool.allocate(512)
    assert (second - first, third - second) == (512, 1024)


def test_a_large_block_is_split_only_if_more_than_1_mib_remains():
    """After 21 MiB are released, 20 MiB take all of them (1 MiB would remain), 19 MiB don't."""
    whole, split = CachingAllocator(), CachingAllocator()
    for pool, size in [(whole, 21 * MIB), (split, 19 * MIB)]:
        pool.release(pool.allocate(22 * MIB))
        pool.allocate(size)
        pool.allocate(2 * MIB)
    assert whole.reserved_bytes == (22 + 20) * MIB
    assert split.reserved_bytes == 22 * MIB


def test_the_best_fit_is_taken_not_the_first():
    pool = CachingAllocator()
    big, small = pool.allocate(60 * MIB), pool.allocate(30 * MIB)
    pool.release(big)
    pool.release(small)
    assert pool.allocate(29 * MIB) == small


def test_neighbours_merge_but_not_across_segments():
    pool = CachingAllocator()
    parts = [pool.allocate(5 * MIB) for _ in range(4)]
    assert pool.reserved_bytes == 20 * MIB
    for part in (parts[0], parts[2], parts[1], parts[3]):
        pool.release(part)
    pool.release(pool.allocate(20 * MIB))
    assert pool.reserved_bytes == 20 * MIB
    pool.release(pool.allocate(12 * MIB))
    other = pool.allocate(12 * MIB)
    pool.allocate(15 * MIB)
    pool.release(other)
    assert pool.reserved_bytes == 36 * MIB


@pytest.mark.parametrize(
    ("sizes", "mib"),
    [
        ([1], 1),
        ([MIB], 1),
        ([MIB, 1], 1 + 2),
        ([MIB + 1], 2),
        ([3 * MIB], 4),
        ([900 * MIB, 900 * MIB], 1024 + 1024),
        ([1500 * MIB], 2048),
        ([700 * MIB] * 3, 3 * 1024),
    ],
)
def test_regions_of_onnxruntimes_arena(sizes, mib):
    """onnxruntime/core/framework/bfc_arena.cc: regions double, at most to 1 GiB unless one request
    needs more."""
    assert reserved_mib(BfcArena(), *sizes) == mib


def test_a_workspace_of_1_6_gb_makes_the_arena_grow_as_reported():
    """onnxruntime pull request 8181: "the workspace size requested is 1.6 GB and the BFC arena
    extends this to 3.2 GB" (decimal 1.6 GB exceed 2**30, so the region is 2 GiB; what was there
    before makes up the rest)."""
    pool = BfcArena()
    assert reserved_mib(pool, int(1.6e9)) == 2048
    assert reserved_mib(pool, int(1e9)) == 2048 + 2048


def test_the_arena_gives_a_whole_chunk_unless_half_of_it_would_be_wasted():
    pool = BfcArena()
    pool.release(pool.allocate(MIB))
    kept = pool.allocate(600 * KIB)
    pool.allocate(KIB)
    assert pool.reserved_bytes == 3 * MIB
    pool.release(kept)
    pool.allocate(500 * KIB)
    pool.allocate(KIB)
    assert pool.reserved_bytes == 3 * MIB


def test_nothing_costs_nothing():
    for pool in (CachingAllocator(), BfcArena()):
        pool.release(pool.allocate(0))
        assert pool.reserved_bytes == 0


@given(
    st.sampled_from([CachingAllocator, BfcArena]),
    st.lists(st.tuples(st.booleans(), st.integers(1, 30 * MIB), st.integers(0, 30)), max_size=40),
)
def test_live_allocations_never_overlap_and_memory_comes_back(pool_type, steps):
    pool = pool_type()
    live: list[tuple[int, int]] = []
    for release, size, which in steps:
        if release and live:
            pool.release(live.pop(which % len(live))[0])
        else:
            live.append((pool.allocate(size), size))
        spans = sorted(live)
        for (start, length), (following, _) in pairwise(spans):
            assert start + length <= following
        assert sum(length for _, length in live) <= pool.reserved_bytes
    for handle, _ in live:
        pool.release(handle)
    before = pool.reserved_bytes
    for size in sorted((size for _, size in live), reverse=True)[:1]:
        pool.allocate(size)
    assert pool.reserved_bytes == before


def test_a_second_inference_needs_no_more_in_a_plain_chain():
    lives = [Life(40 * MIB, i, i + 1) for i in range(5)]
    once = replay(CachingAllocator(), lives, inferences=1)
    assert once == replay(CachingAllocator(), lives, inferences=3) == 80 * MIB


def test_scratch_space_counts_only_while_its_kernel_runs():
    lives = [Life(40 * MIB, 0, 1), Life(40 * MIB, 1, 2)]
    assert replay(CachingAllocator(), lives, [0, 30 * MIB, 0]) == 110 * MIB
    assert replay(CachingAllocator(), lives, [30 * MIB, 0, 0]) == 40 * MIB + 30 * MIB + 40 * MIB


def kernel(kind=KernelKind.ELEMENTWISE, mode=MathMode.FP32, **cost):
    return Kernel(kind, "op", OpCost(**cost), ElementDims(1), mode, (0,), (0,), (1,))


CHAIN = [Life(4 * MIB, 0, 1, held=True), Life(64 * MIB, 0, 1), Life(32 * MIB, 1, 1)]
WEIGHTS = [40 * MIB, 8 * MIB, 100]


@pytest.mark.parametrize("runtime", Runtime)
def test_parts_are_what_they_say(runtime):
    memory = process_memory([kernel(), kernel()], CHAIN, WEIGHTS, runtime)
    assert memory.context_mib == FOOTPRINTS[runtime].context_mib
    assert memory.weights_mib == pytest.approx(48, abs=0.001)
    assert memory.activations_mib == 100
    assert memory.workspace_mib == 0
    assert memory.low_mib <= memory.total_mib <= memory.high_mib
    assert memory.basis


def test_pytorch_total_by_hand():
    """Weights: 40 in its own segment, 8 in a 20 MiB one, 100 B in a 2 MiB one; input 4 fits beside
    the 8; 64 and 32 have their own."""
    memory = process_memory([kernel(), kernel()], CHAIN, WEIGHTS, Runtime.PYTORCH)
    assert memory.total_mib == pytest.approx(600 + 40 + 20 + 2 + 64 + 32)


def test_tensorrt_total_by_hand():
    """One block of weights, the input, one pool for 64 + 32."""
    memory = process_memory([kernel(), kernel()], CHAIN, WEIGHTS, Runtime.TENSORRT)
    assert memory.total_mib == pytest.approx(450 + 50 + 4 + 96)


def test_onnxruntime_total_by_hand():
    """Weights reserved apart. First inference: 64 makes a region of 64, 32 one of 64 (64 isn't
    outgrown); the second asks for one block of 96: a region of 128."""
    memory = process_memory([kernel(), kernel()], CHAIN, WEIGHTS, Runtime.ONNXRUNTIME)
    assert memory.total_mib == pytest.approx(600 + 50 + 4 + 64 + 64 + 128)


def test_cublas_keeps_a_workspace_in_pytorch():
    """Taken from a 20 MiB segment, where the 8 MiB weight is already: it doesn't fit beside it and
    the input (8 + 8.1 + 4 > 20)."""
    gemm = [kernel(KernelKind.GEMM), kernel()]
    memory = process_memory(gemm, CHAIN, WEIGHTS, Runtime.PYTORCH)
    assert memory.workspace_mib == CUBLAS_WORKSPACE_BYTES / MIB
    assert memory.total_mib == pytest.approx(600 + 40 + 20 + 2 + 64 + 32 + 20)


def test_convolution_scratch_widens_the_upper_bound():
    conv = kernel(KernelKind.CONV, MathMode.FP16, read_bytes=200 * MIB, write_bytes=100 * MIB)
    plain = process_memory([kernel(), kernel()], CHAIN, WEIGHTS, Runtime.PYTORCH)
    memory = process_memory([kernel(), conv], CHAIN, WEIGHTS, Runtime.PYTORCH)
    assert memory.total_mib == plain.total_mib
    assert memory.high_mib == pytest.approx(plain.high_mib + 300)
    ieee = kernel(KernelKind.CONV, MathMode.FP32, read_bytes=200 * MIB, write_bytes=100 * MIB)
    assert process_memory([kernel(), ieee], CHAIN, WEIGHTS, Runtime.PYTORCH) == plain


def test_unknown_module_calls_widen_the_upper_bound_of_pytorch_only():
    for runtime, wider in [(Runtime.PYTORCH, True), (Runtime.TENSORRT, False)]:
        known = process_memory([kernel()] * 2, CHAIN, WEIGHTS, runtime)
        blind = process_memory([kernel()] * 2, CHAIN, WEIGHTS, runtime, calls_known=False)
        assert (blind.high_mib > known.high_mib) is wider
        assert blind.total_mib == known.total_mib


def test_a_model_without_kernels_is_its_context_and_weights():
    memory = process_memory([], [], [], Runtime.PYTORCH)
    assert memory.total_mib == 600
    assert process_memory([], [Life(2 * MIB, held=True)], [], Runtime.TENSORRT).total_mib == 452


sizes = st.integers(0, 64 * MIB)


@st.composite
def schedules(draw):
    steps = draw(st.integers(1, 6))
    lives = []
    for _ in range(draw(st.integers(0, 8))):
        first = draw(st.integers(0, steps - 1))
        lives.append(Life(draw(sizes), first, draw(st.integers(first, steps - 1))))
    lives.append(Life(draw(sizes), 0, steps - 1, held=True))
    return [kernel()] * steps, lives


@given(schedules(), st.lists(sizes, max_size=4), st.sampled_from(Runtime))
def test_the_estimate_lies_in_its_interval_and_holds_its_parts(schedule, weights, runtime):
    kernels, lives = schedule
    memory = process_memory(kernels, lives, weights, runtime)
    live = max(
        sum(x.size_bytes for x in lives if x.first <= step <= x.last)
        for step in range(len(kernels))
    )
    assert memory.activations_mib == pytest.approx(live / MIB)
    assert 0 < memory.low_mib <= memory.total_mib + 1e-6
    assert memory.total_mib <= memory.high_mib + 1e-6
    assert memory.rounding_mib >= 0


@given(schedules(), st.lists(sizes, max_size=4), st.sampled_from(Runtime), sizes)
def test_more_weights_never_take_less_memory(schedule, weights, runtime, extra):
    before = process_memory(*schedule, weights, runtime)
    after = process_memory(*schedule, [*weights, extra], runtime)
    assert after.low_mib >= before.low_mib
    assert after.weights_mib >= before.weights_mib
