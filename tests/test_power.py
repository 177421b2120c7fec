"""The power model against the published measurements it is derived from, and its laws.

Each anchor states the work from outside the package: published FLOPs, sizes and times.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dippm_lite.devices import DEVICES
from dippm_lite.execution import MathMode
from dippm_lite.kernels import ElementDims, Kernel, KernelKind, OpCost
from dippm_lite.power import COEFFICIENTS, Work, energy, work_of

SXM40 = DEVICES["a100-sxm4-40gb"]
SXM80 = DEVICES["a100-sxm4-80gb"]
PCIE40 = DEVICES["a100-pcie-40gb"]


def rates(tera_flops_per_s=0.0, math=MathMode.FP16, bytes_per_s=0.0) -> Work:
    """Work of one second."""
    return Work({math: tera_flops_per_s * 1e12}, bytes_per_s)


def test_idle_at_boost_clock():
    """GPU_Power_Benchmark: two A100s that idle at 1410 MHz draw 56 and 79 W."""
    assert 56 <= energy(rates(), 1.0, 0.0, SXM40).power_w <= 79
    assert 56 <= energy(rates(), 1.0, 0.0, SXM80).power_w <= 79


def test_batch_1_eager_resnet50_draws_77_w():
    """co2_inference: 77 W on an SXM4-80GB, 30 ms a query with the host's part. 4.09 GMACs; fp32
    weights of 102 MB and about twice as much in activations; 3.5 ms of kernels."""
    work = Work({MathMode.TF32: 2 * 4.09e9}, 0.3e9)
    assert energy(work, 0.030, 0.0035, SXM80).power_w == pytest.approx(77, rel=0.10)


def test_batch_1_eager_vit_draws_90_w():
    """co2_inference: 78 to 115 W, 90 typical, 21 ms a query; 17.6 GMACs of IEEE fp32, 345 MB of
    weights."""
    work = Work({MathMode.FP32: 2 * 17.6e9}, 0.5e9)
    assert energy(work, 0.021, 0.006, SXM80).power_w == pytest.approx(90, rel=0.15)


def test_batch_1_bert_large_draws_175_w():
    """co2_inference, question answering: 172 to 178 W in 18.4 ms; 303 M parameters in the layers,
    about 170 tokens, IEEE fp32."""
    work = Work({MathMode.FP32: 2 * 303e6 * 170}, 4 * 335e6 * 1.3)
    assert energy(work, 0.0184, 0.0184, SXM80).power_w == pytest.approx(175, rel=0.10)


def test_saturated_dram_draws_328_w():
    """Ethash on an SXM4-40GB: 174 MH/s, 64 reads of 128 bytes a hash."""
    power = energy(rates(bytes_per_s=174e6 * 64 * 128), 1.0, 1.0, SXM40)
    assert power.power_w == pytest.approx(328, rel=0.05)
    assert not power.governed


@pytest.mark.parametrize(
    ("parameters", "cache_bytes_per_token", "step_s", "batch", "answer_tokens", "watts"),
    [
        (2.61e9, 106_496, 0.030190, 31.94, 488.4, 155.5),  # Gemma-2-2B
        (9.24e9, 344_064, 0.048411, 31.92, 380.2, 216.2),  # Gemma-2-9B
        (8.03e9, 131_072, 0.033822, 31.94, 485.8, 198.3),  # Llama-3.1-8B
        (13.96e9, 204_800, 0.044258, 31.94, 468.5, 272.2),  # Phi-3-medium
        (3.82e9, 393_216, 0.029024, 31.94, 473.6, 179.7),  # Phi-3-mini
        (7.39e9, 131_072, 0.036340, 31.93, 408.0, 191.6),  # Phi-3-small
        (7.25e9, 131_072, 0.033714, 31.93, 424.5, 218.8),  # Mistral-7B
        (12.25e9, 163_840, 0.042737, 31.93, 436.2, 242.3),  # Mistral-Nemo
    ],
)
def test_batched_decoding(parameters, cache_bytes_per_token, step_s, batch, answer_tokens, watts):
    """ML.ENERGY leaderboard v2, vLLM on one SXM4-40GB: every chat model at batch 32. A step reads
    the fp16 weights and the key-value cache of all sequences, taken as 300 tokens of prompt and
    half of the answer; prompts are worked off in between."""
    context = 300 + answer_tokens / 2
    total_bytes = 2 * parameters + batch * context * cache_bytes_per_token
    flops = 2 * parameters * batch * (1 + 300 / answer_tokens)
    power = energy(Work({MathMode.FP16: flops}, total_bytes), step_s, step_s, SXM40)
    assert power.power_w == pytest.approx(watts, rel=0.12)
    assert power.power_low_w <= watts <= power.power_high_w


@pytest.mark.parametrize("tera_flops", [150, 200, 250])
def test_saturated_fp16_sits_just_below_the_limit(tera_flops):
    """Diffusion at batch 4 and more: 380 to 391 W (ML.ENERGY leaderboard v2)."""
    power = energy(rates(tera_flops, bytes_per_s=0.5e12), 1.0, 1.0, SXM40)
    assert 380 <= power.power_w <= 391
    assert power.governed


def test_saturated_training_on_a_250_w_card():
    """MISO: 239 to 247 W where utilisation is above 94 %."""
    power = energy(rates(80, MathMode.TF32, 0.8e12), 1.0, 1.0, PCIE40)
    assert 239 <= power.power_w <= 250


def test_energy_is_power_times_time():
    estimate = energy(rates(50, bytes_per_s=0.4e12), 0.25, 0.2, SXM80)
    assert estimate.energy_j == pytest.approx(estimate.power_w * 0.25)
    assert estimate.energy_low_j == pytest.approx(estimate.power_low_w * 0.25)
    assert estimate.energy_high_j == pytest.approx(estimate.power_high_w * 0.25)


def test_traffic_beyond_the_memory_s_bandwidth_is_free():
    full = energy(rates(bytes_per_s=1555e9), 1.0, 1.0, SXM40)
    assert energy(rates(bytes_per_s=9e12), 1.0, 1.0, SXM40) == full


def test_a_sharer_pays_its_part_of_the_standing_power():
    alone = energy(rates(), 1.0, 1.0, SXM40)
    seventh = energy(rates(), 1.0, 1.0, SXM40, card_share=1 / 7)
    assert seventh.power_w == pytest.approx(alone.power_w / 7)


def _kernel(kind, mode, repeat=1, **cost):
    return Kernel(kind, "op", OpCost(**cost), ElementDims(1), mode, (0,), (0,), (1,), repeat)


def test_work_adds_up_kernels_repeats_and_arithmetic():
    work = work_of(
        [
            _kernel(KernelKind.GEMM, MathMode.FP16, 3, macs=5, flops_other=2, write_bytes=7),
            _kernel(KernelKind.DEPTHWISE_CONV, MathMode.FP16, macs=11, weight_bytes=1),
            _kernel(KernelKind.CONV, MathMode.TF32, macs=1, read_bytes=4),
        ]
    )
    assert work.flops == {MathMode.FP16: 30, MathMode.FP32: 6 + 22, MathMode.TF32: 2}
    assert work.total_bytes == 21 + 1 + 4


@pytest.mark.parametrize(
    ("latency_s", "busy_s", "share", "total_bytes"),
    [
        (0, 0, 1, 0),
        (-1, 0, 1, 0),
        (float("nan"), 0, 1, 0),
        (1, -1, 1, 0),
        (1, 0, -1, 0),
        (1, 0, 1, -1),
    ],
)
def test_impossible_arguments_are_refused(latency_s, busy_s, share, total_bytes):
    with pytest.raises(ValueError):
        energy(Work({}, total_bytes), latency_s, busy_s, SXM40, share)


works = st.builds(
    Work,
    st.dictionaries(st.sampled_from(MathMode), st.floats(0, 1e18)),
    st.floats(0, 1e15),
)
cards = st.sampled_from([*DEVICES.values()])


@given(works, st.floats(1e-6, 1e3), st.floats(0, 2), cards)
def test_power_stays_between_idle_and_the_limit(work, latency_s, busy, card):
    power = energy(work, latency_s, busy * latency_s, card)
    assert card.idle_w <= power.power_low_w <= power.power_w <= power.power_high_w <= card.tdp_w
    assert power.energy_low_j <= power.energy_j <= power.energy_high_j


@given(works, st.floats(1e-6, 1e3), cards, st.sampled_from(MathMode), st.floats(0, 1e18))
def test_more_work_in_the_same_time_never_costs_less(work, latency_s, card, math, extra):
    flops = {**work.flops, math: work.flops.get(math, 0.0) + extra}
    more = dataclasses.replace(work, flops=flops, total_bytes=work.total_bytes + extra)
    before = energy(work, latency_s, latency_s, card).energy_j
    assert energy(more, latency_s, latency_s, card).energy_j >= before * (1 - 1e-12)


@given(works, st.floats(1e-6, 1e3), st.floats(1, 100), cards)
def test_waiting_never_saves_energy(work, latency_s, longer, card):
    before = energy(work, latency_s, latency_s, card)
    after = energy(work, latency_s * longer, latency_s, card)
    assert after.energy_j >= before.energy_j * (1 - 1e-9)


def test_every_arithmetic_has_a_price():
    assert set(COEFFICIENTS.joule_per_flop) == set(MathMode)
    assert min(COEFFICIENTS.joule_per_flop.values()) > 0
