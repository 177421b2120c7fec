"""Whole predictions: the same from every exporter, sane, and accurate where the truth is known."""

from __future__ import annotations

import io
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import dippm_lite
from benchmarks.neusight import NEUSIGHT_MEAN_APE_PERCENT, mean_ape_percent, rows
from dippm_lite import InputError, Prediction, Predictor
from dippm_lite.devices import DEVICES
from dippm_lite.report import FORMATS

NETWORKS = Path(__file__).parent / "data" / "networks"
RESNET = NETWORKS / "resnet50.torchscript18.onnx"


@cache
def _predictor(
    device: str = "a100-40gb", runtime: str = "pytorch", precision: str = "auto"
) -> Predictor:
    return Predictor.load(device, runtime, precision)


@cache
def _predict(
    file: str,
    batch_size: int = 1,
    device: str = "a100-40gb",
    runtime: str = "pytorch",
    precision: str = "auto",
) -> Prediction:
    predictor = _predictor(device, runtime, precision)
    return predictor.predict(NETWORKS / file, batch_size=batch_size)


@pytest.mark.parametrize("runtime", ["pytorch", "onnxruntime", "tensorrt"])
@pytest.mark.parametrize(
    "name", ["resnet50", "mobilenet_v2", "efficientnet_b0", "swin_tiny", "vit_b_16", "gpt2"]
)
def test_exporters_and_opsets_agree_within_one_percent(name: str, runtime: str) -> None:
    files = sorted(path.name for path in NETWORKS.glob(f"{name}.*.onnx"))
    assert len(files) == 3
    found = [_predict(file, 4, runtime=runtime) for file in files]
    for other in found[1:]:
        assert other.latency_ms.value == pytest.approx(found[0].latency_ms.value, rel=0.01)
        assert other.static.kernels == found[0].static.kernels
        if other.static.weight_bytes == found[0].static.weight_bytes:  # a tied weight stored once
            assert other.memory_mib.value == pytest.approx(found[0].memory_mib.value, rel=0.02)


def test_published_transformer_latencies_are_met_better_than_their_own_predictor_does() -> None:
    errors = [row.error_percent for row in rows()]
    assert len(errors) == 10
    assert mean_ape_percent(errors) < NEUSIGHT_MEAN_APE_PERCENT


def test_the_breakdown_adds_up_to_the_busy_time() -> None:
    p = _predict(RESNET.name, 64)
    assert sum(row.share for row in p.breakdown) == pytest.approx(1.0)
    busy_ms = sum(row.time_ms for row in p.breakdown)
    assert busy_ms == pytest.approx(p.latency_ms.value * (1 - p.launch_bound_share), rel=1e-6)
    assert sum(row.macs for row in p.breakdown) == p.static.macs


@pytest.mark.parametrize("precision", ["fp32", "auto", "fp16", "amp", "int8"])
@pytest.mark.parametrize("runtime", ["pytorch", "onnxruntime", "tensorrt"])
@pytest.mark.parametrize("name", ["resnet50.torchscript18", "bert_base.torchscript18"])
def test_a_larger_batch_takes_longer_and_more_memory(
    name: str, runtime: str, precision: str
) -> None:
    sweep = [
        _predict(f"{name}.onnx", batch, runtime=runtime, precision=precision)
        for batch in (1, 16, 256)
    ]
    for small, large in pairwise(sweep):
        assert large.latency_ms.value >= 0.98 * small.latency_ms.value
        assert large.energy_j.value > small.energy_j.value
        assert large.memory_mib.value > small.memory_mib.value
        # A small batch whose activations stay in L2 may be faster for each sample, not by much.
        assert large.throughput_per_s > 0.85 * small.throughput_per_s


def test_half_precision_is_faster_and_smaller_than_single_where_it_counts() -> None:
    full = _predict(RESNET.name, 128, precision="fp32")
    half = _predict(RESNET.name, 128, precision="fp16")
    assert half.latency_ms.value < 0.5 * full.latency_ms.value
    assert half.memory_mib.value < full.memory_mib.value


def test_an_engine_is_faster_than_eager_execution() -> None:
    eager = _predict(RESNET.name, 1, precision="fp16").latency_ms.value
    engine = _predict(RESNET.name, 1, runtime="tensorrt", precision="fp16").latency_ms.value
    assert engine < eager / 3


def test_smaller_instances_are_slower_and_hold_less() -> None:
    table = {row.profile: row for row in _predict(RESNET.name, 64).mig.alternatives}
    latencies = [table[name].latency_ms for name in ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb")]
    assert latencies == sorted(latencies, reverse=True)
    assert latencies[0] / latencies[-1] == pytest.approx(7, rel=0.25)


def test_what_outgrows_a_slice_gets_a_larger_one_and_then_none() -> None:
    profiles = []
    for batch in (1, 512, 2048, 32768):
        p = _predict("vgg16.torchscript17.onnx", batch)
        profiles.append(p.mig.profile.memory_mib if p.mig.profile else math.inf)
        fits = p.mig.profile is None or p.memory_mib.high <= p.mig.profile.memory_mib
        assert fits
    assert profiles == sorted(profiles) and profiles[0] < profiles[-1] == math.inf
    assert "DoesNotFit" in {
        caveat.code for caveat in _predict("vgg16.torchscript17.onnx", 32768).caveats
    }


def test_a_gpu_instance_as_device_equals_its_row_of_the_card() -> None:
    card = {row.profile: row for row in _predict(RESNET.name, 16).mig.alternatives}
    instance = _predict(RESNET.name, 16, device="a100-40gb:2g.10gb")
    assert instance.latency_ms.value == pytest.approx(card["2g.10gb"].latency_ms)
    assert instance.mig.alternatives == () and instance.mig.profile is None


def test_launch_cost_can_be_given() -> None:
    slow = Predictor.load(launch_us=100.0).predict(RESNET, batch_size=1)
    fast = Predictor.load(launch_us=0.0).predict(RESNET, batch_size=1)
    assert slow.latency_ms.value == pytest.approx(0.1 * slow.static.kernels, rel=0.05)
    assert fast.launch_bound_share == pytest.approx(0.0, abs=1e-9)
    assert fast.latency_ms.value < slow.latency_ms.value / 4


@pytest.mark.parametrize("device", sorted(DEVICES))
def test_every_device_predicts(device: str) -> None:
    p = _predict(RESNET.name, 8, device=device)
    assert 0 < p.latency_ms.low < p.latency_ms.value < p.latency_ms.high
    assert 0 < p.energy_j.value / (p.latency_ms.value / 1e3) <= DEVICES[device].tdp_w


def test_path_bytes_and_file_object_give_the_same_answer() -> None:
    data = RESNET.read_bytes()
    answers = [
        _predictor().predict(source, batch_size=2).to_dict()
        for source in (RESNET, str(RESNET), data, io.BytesIO(data))
    ]
    for answer in answers:
        del answer["model"]
    assert answers[0] == answers[1] == answers[2] == answers[3]


def test_threads_share_a_predictor() -> None:
    predictor = Predictor.load()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: predictor.predict(RESNET, batch_size=n), [1, 8] * 4))
    for batch, p in zip([1, 8] * 4, found, strict=True):
        assert p.to_dict() == predictor.predict(RESNET, batch_size=batch).to_dict()


def test_predicting_twice_gives_the_same() -> None:
    assert dippm_lite.predict(RESNET, batch_size=3) == dippm_lite.predict(RESNET, batch_size=3)


def _tiny(op_type: str, domain: str = "") -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], domain=domain)],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain or "ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def test_an_unknown_operator_is_named_and_widens_the_interval() -> None:
    known, unknown = (dippm_lite.predict(_tiny(*op)) for op in (("Relu",), ("Plugin", "com.acme")))
    caveats = {caveat.code: caveat for caveat in unknown.caveats}
    assert caveats["UnknownOps"].ops == (("com.acme::Plugin", 1),)  # type: ignore[attr-defined]
    assert "UnknownOps" not in {caveat.code for caveat in known.caveats}
    width = {p.model: p.latency_ms.high / p.latency_ms.low for p in (known, unknown)}
    assert unknown.latency_ms.high / unknown.latency_ms.low >= width[known.model]


def test_classical_machine_learning_is_said_not_to_run_on_a_gpu() -> None:
    p = dippm_lite.predict(_tiny("Normalizer", "ai.onnx.ml"))
    assert [caveat.code for caveat in p.caveats] == ["NothingOnGpu"]
    assert p.latency_ms.high == p.energy_j.high == p.memory_mib.high == 0
    assert p.mig.profile is None and p.mig.alternatives == ()
    assert "nothing in this model runs on a GPU" in FORMATS["text"]([p], 5)


def test_a_gpu_that_was_never_measured_is_said_and_widens_the_interval() -> None:
    known, unknown = (_predict(RESNET.name, 64, device=device) for device in ("a100", "rtx4090"))
    assert "UnmeasuredDevice" in {caveat.code for caveat in unknown.caveats}
    assert "UnmeasuredDevice" not in {caveat.code for caveat in known.caveats}
    width = [p.latency_ms.high / p.latency_ms.low for p in (known, unknown)]
    assert width[1] > 3 * width[0]


def test_an_instance_is_charged_its_share_of_the_cards_standing_power() -> None:
    """A launch-bound model draws little beyond standing power: a seventh of the card, about."""
    card = _predict(RESNET.name, 1, device="a100-40gb")
    slice_ = _predict(RESNET.name, 1, device="a100-40gb:1g.5gb")
    assert slice_.energy_j.value < 0.5 * card.energy_j.value


def test_autocast_keeps_a_second_copy_of_the_weights() -> None:
    plain, cast = (_predict("vgg16.torchscript17.onnx", 1, precision=p) for p in ("fp32", "amp"))
    copies_mib = 2 * plain.static.params / 2**20
    assert cast.memory_mib.value - plain.memory_mib.value == pytest.approx(copies_mib, rel=0.15)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("device", "b300"),
        ("runtime", "tvm"),
        ("precision", "fp4"),
        ("launch_us", -1.0),
        ("launch_us", math.nan),
    ],
)
def test_wrong_names_are_input_errors(argument: str, value: object) -> None:
    with pytest.raises(InputError, match=str(value)):
        dippm_lite.predict(RESNET, batch_size=1, **{argument: value})  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 512),
    width=st.integers(1, 600),
    size=st.integers(1, 64),
    kernel=st.sampled_from([1, 3, 5]),
    runtime=st.sampled_from(["pytorch", "onnxruntime", "tensorrt"]),
    precision=st.sampled_from(["auto", "fp32", "fp16", "int8", "amp", "bf16", "tf32"]),
)
def test_any_convolution_gets_finite_figures(
    batch: int, width: int, size: int, kernel: int, runtime: str, precision: str
) -> None:
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=(width, 3, kernel, kernel), raw_data=b""
    )
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[kernel // 2] * 4)],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 3, size, size))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    p = _predictor("a100-40gb", runtime, precision).predict(
        model.SerializeToString(), batch_size=batch
    )
    assert p.static.macs == batch * size * size * width * 3 * kernel * kernel
    for estimate in (p.latency_ms, p.energy_j, p.memory_mib):
        assert 0 < estimate.low <= estimate.value <= estimate.high < math.inf
