"""One published row at a time: device, precision, runtime, figure, network, or a reason."""

from __future__ import annotations

import pytest
from match_rows import INDEX, published

from dippm_lite.devices import find_device
from dippm_lite.execution import Precision, Runtime
from training.datasets.conversions import MIB_PER_MB
from training.datasets.left_out import LEFT_OUT, reason_to_leave_out
from training.datasets.match import match_row
from training.datasets.published_devices import ASSUMED, SOURCES, STATED, device_of
from training.datasets.published_precisions import MEANINGS, precision_of
from training.datasets.published_runtimes import runtime_of
from training.datasets.reasons import Flag, Reason


def matched(**fields):
    row = match_row(published(**fields), INDEX)
    assert row.reason is None, row.reason
    return row


def reason(**fields):
    return match_row(published(**fields), INDEX).reason


def test_a_plain_row_becomes_a_label():
    row = matched()
    assert row.workload == (
        "torchvision/resnet50", 8, "a100-sxm4-40gb", "tensorrt", "fp16", "latency_ms",
    )  # fmt: skip
    assert (row.value, row.flags, row.rule) == (5.0, (), "as published")


@pytest.mark.parametrize(
    ("text", "source", "device", "flags"),
    [
        ("A100-SXM4-80GB", "x", "a100-sxm4-80gb", ()),
        ("A100-SXM-80GB", "x", "a100-sxm4-80gb", ()),
        ("A100-80GB (DGX A100)", "x", "a100-sxm4-80gb", ()),
        ("A100-PCIe-40GB", "x", "a100-pcie-40gb", ()),
        ("A100-80GB", "x", "a100-sxm4-80gb", (Flag.DEVICE_ASSUMED,)),
        ("A100-40GB", "x", "a100-sxm4-40gb", (Flag.DEVICE_ASSUMED,)),
        ("A100", "x", "a100-sxm4-40gb", (Flag.DEVICE_ASSUMED,)),
        ("A100-unknown", "ft_bert", "a100-sxm4-80gb", (Flag.DEVICE_ASSUMED,)),
        ("A100-80GB (MIG 7g)", "x", "a100-sxm4-80gb:7g.80gb", (Flag.DEVICE_ASSUMED,)),
        (
            "A100-80GB (330W limit)", "x", "a100-sxm4-80gb",
            (Flag.DEVICE_ASSUMED, Flag.POWER_LIMITED),
        ),
        ("rtx4090", "x", "rtx4090", ()),
        ("A30", "x", "a30", ()),
    ],
)  # fmt: skip
def test_devices(text, source, device, flags):
    assert device_of(published(device=text, source=source)) == (device, flags)


def test_another_device_is_no_target():
    assert device_of(published(device="V100")) is None
    assert reason(device="V100") is Reason.NOT_A_TARGET


def test_every_named_device_exists():
    for _, name in (*STATED, *ASSUMED, *SOURCES):
        assert find_device(name).sm_count > 0


@pytest.mark.parametrize(
    ("source", "framework", "word", "precision", "assumed"),
    [
        ("some_paper", "tensorrt", "fp16", "fp16", False),
        ("dle_bert_tf2", "tensorflow", "fp16", "amp", False),
        ("dle_bert_tf1", "tensorflow", "fp16", "unknown", False),
        ("dle_bert_tf1", "tensorflow", "fp32", "fp32", False),
        ("dle_triton_bert_large", "tensorrt", "fp16", "fp16", False),
        ("parvagpu", "pytorch-eager", "unknown", "tf32", True),
        ("torchbench_v3_yaml", "pytorch-eager", "fp32", "auto", True),
        ("flagperf", "tensorrt", "fp32", "tf32", True),
        ("neusight", "pytorch-eager", "fp32", "fp32", False),
        ("hf_sdpa", "pytorch-eager", "fp32", "unknown", False),
        ("vmamba", "pytorch-eager", "unknown", "unknown", False),
        ("some_paper", "pytorch-eager", "default(tf32)", "unknown", False),
    ],
)
def test_precisions(source, framework, word, precision, assumed):
    row = published(source=source, framework=framework, precision=word)
    assert precision_of(row) == (precision, (Flag.PRECISION_ASSUMED,) if assumed else ())


def test_precisions_are_ours_or_unknown():
    assert {m.precision for m in MEANINGS} <= {p.value for p in Precision} | {"unknown"}


@pytest.mark.parametrize(
    ("framework", "notes", "runtime"),
    [
        ("pytorch-eager", "", "pytorch"),
        ("pytorch-eager", "SDPA attention; PyTorch 2.3.0", "pytorch-sdpa"),
        ("pytorch-eager", "PyTorch 1.10, channels-last", "pytorch-channels-last"),
        ("pytorch-compile", "torch nightly reduce-overhead mode", "pytorch-compile-graphs"),
        ("TensorRT", "", "tensorrt"),
        ("tensorrt", "system X_TRT_Triton; SingleStream", "tensorrt-triton"),
        ("faster-transformer", "column trt plugin", "fastertransformer-tensorrt"),
        ("tensorrt", "FT TensorRT plugin", "fastertransformer-tensorrt"),
        ("tf-xla", "", "tensorflow-xla"),
        ("onnxruntime", "", "onnxruntime"),
    ],
)
def test_runtimes(framework, notes, runtime):
    assert runtime_of(published(framework=framework, notes=notes)) == runtime


def test_the_three_runtimes_have_their_own_labels():
    words = ("pytorch-eager", "onnxruntime", "tensorrt")
    assert {runtime_of(published(framework=word)) for word in words} == {r.value for r in Runtime}


def test_an_engine_inside_of_triton_is_that_engine():
    row = published(task="triton-serving", notes="Triton server; server compute-infer part")
    assert runtime_of(row) == "tensorrt"


def test_throughput_is_the_inverse_of_a_latency():
    """8 images at 1,600 a second: 5 ms."""
    row = matched(metric="throughput", value=1600.0, unit="samples/s", percentile="")
    assert (row.metric, row.value) == ("latency_ms", pytest.approx(5.0))
    assert row.flags == (Flag.FROM_THROUGHPUT,)
    row = matched(metric="throughput", value=0.0016, unit="million samples/s")
    assert row.value == pytest.approx(5.0)


def test_other_rates_than_samples_are_no_latency():
    assert reason(metric="throughput", unit="tokens/s") is Reason.NOT_A_TARGET
    assert reason(metric="throughput", unit="UNet steps x prompts/s") is Reason.OTHER_STATISTIC


@pytest.mark.parametrize(
    ("unit", "notes", "metric", "factor"),
    [
        ("MiB", "peak; process level", "memory_mib", 1.0),
        ("MB", "forward peak, device-wide used", "memory_mib", MIB_PER_MB),
        ("MB", "process level; in GB of the report times 1024", "memory_mib", 1.0),
        ("MB", "forward peak, torch allocated", "memory_allocated_mib", MIB_PER_MB),
        ("MB", "forward peak, torch reserved", "memory_reserved_mib", MIB_PER_MB),
    ],
)
def test_memory_by_unit_and_kind(unit, notes, metric, factor):
    row = matched(metric="memory_mb", value=1000.0, unit=unit, notes=notes, percentile="max")
    assert (row.metric, row.value) == (metric, pytest.approx(1000.0 * factor))


def test_a_decimal_megabyte_is_not_a_mebibyte():
    assert pytest.approx(1000 * 1000 / 1024 / 1024) == MIB_PER_MB


def test_memory_of_an_unsaid_kind_is_left_out():
    assert reason(metric="memory_mb", unit="MB", notes="peak") is Reason.MEMORY_METHOD


def test_the_mean_of_known_steps_is_a_step_at_the_mean_length():
    """100 new tokens: the first by the prompt's pass, 99 steps; 462 + 100 / 2 tokens cached."""
    row = matched(
        source="optimum_benchmark", model="NousResearch/Llama-2-7b-hf", hint="transformers:x",
        task="text-generation", notes="decode total (generate minus prefill)", value=1980.0,
        framework="pytorch-eager", batch="2", tokens=462, generated=100, height=None, width=None,
    )  # fmt: skip
    assert (row.graph, row.value) == ("step/llama-2-7b@512", pytest.approx(20.0))
    assert Flag.MEAN_OF_STEPS in row.flags


def test_guidance_runs_a_denoiser_on_two_samples_an_image():
    row = matched(
        source="stable_fast", model="stable-diffusion v1.5 step", hint="diffusers:x", batch="3"
    )
    assert (row.graph, row.batch) == ("diffusion/sd15-unet", 6)


@pytest.mark.parametrize(
    ("fields", "graph"),
    [
        ({"hint": "timm:resnet50"}, "timm/resnet50"),
        ({"hint": "timm:resnet50", "height": 288, "width": 288}, "timm/resnet50@288"),
        ({"hint": "timm:resnet50", "height": None, "width": None}, "timm/resnet50"),
        ({"hint": "timm:resnet50_clip"}, "timm/resnet50"),
        (
            {"source": "trt_demobert_147005ff", "hint": "transformers:bert-large-uncased",
             "tokens": 384},
            "transformers/bert-large-qa@384",
        ),
        (
            {"source": "dle_jasper", "hint": "", "notes": "audio 2.0 s per item"},
            "published/jasper@201",
        ),
    ],
)  # fmt: skip
def test_names(fields, graph):
    assert matched(**fields).graph == graph


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        (Reason.NOT_A_TARGET, {"metric": "peak_gemm"}),
        (Reason.NOT_A_TARGET, {"value": 0.0}),
        (Reason.TRAINING, {"metric": "train_step_time_mean"}),
        (Reason.TRAINING, {"task": "training-forward"}),
        (Reason.MULTI_GPU, {"device": "A100-80GB x2"}),
        (Reason.MULTI_GPU, {"notes": "TP 4; v0.5 figures"}),
        (Reason.MIG_SHARE, {"device": "A100-80GB (MIG 3g)"}),
        (Reason.MIG_SHARE, {"device": "A100-80GB (MPS 40% of SMs)"}),
        (Reason.TAIL_STATISTIC, {"percentile": "p99"}),
        (Reason.SPARSE, {"notes": "QAT int8 + 2:4 sparsity"}),
        (Reason.QUANTISED_WEIGHTS, {"model": "TheBloke/Llama-2-7B-GPTQ"}),
        (Reason.TOKEN_LOOP, {"task": "text-generation"}),
        (Reason.PIPELINE_OF_MODELS, {"task": "text-to-image"}),
        (Reason.HOST_BOUND_METHOD, {"source": "co2_inference"}),
        (Reason.HOST_BOUND_METHOD, {"task": "triton-serving", "notes": "client total"}),
        (
            Reason.HOST_BOUND_METHOD,
            {"task": "triton-serving", "framework": "torchscript", "notes": "compute-infer part"},
        ),
        (Reason.PIPELINED, {"source": "mlperf_v2_0", "notes": "Offline; batch not in summary"}),
        (Reason.PIPELINED, {"source": "mlcommons/inference_results_v1.1", "notes": "MultiStream"}),
        (Reason.VARIABLE_LENGTH, {"source": "mlperf_inf_v2.0", "model": "bert-large (MLPerf)"}),
        (Reason.VARIABLE_LENGTH, {"notes": "padding removed; FP16"}),
        (
            Reason.MEMORY_METHOD,
            {"source": "wtf_benchmark", "metric": "memory_mb", "percentile": "max"},
        ),
        (Reason.MISSING_BATCH, {"batch": ""}),
        (Reason.MISSING_BATCH, {"batch": "127.7"}),
        (Reason.MISSING_SIZE, {"source": "monai_zoo"}),
        (
            Reason.MISSING_SIZE,
            {"source": "trt_demobert_x", "hint": "transformers:bert-large-uncased"},
        ),
        (Reason.NO_BUILDER, {"hint": "fastervit:faster_vit_0_224"}),
        (Reason.NO_BUILDER, {"hint": ""}),
        (
            Reason.AMBIGUOUS_NAME,
            {"source": "diffusers_torch2", "hint": "", "model": "stable-diffusion inpaint step"},
        ),
        (Reason.NOT_EXPORTED, {"hint": "timm:resnet101"}),
    ],
)
def test_reasons(expected, fields):
    assert reason(**fields) is expected


def test_a_memory_peak_called_max_is_no_tail():
    assert reason_to_leave_out(published(metric="memory_mb", percentile="max")) is None


def test_rules_are_about_rows_alone():
    assert all(rule.reason.is_of_the_row for rule in LEFT_OUT)


def test_reasons_fall_into_three_groups():
    ours = {Reason.NO_BUILDER, Reason.AMBIGUOUS_NAME, Reason.NOT_EXPORTED}
    aside = {Reason.DUPLICATE, Reason.OTHER_STATISTIC, Reason.OUTLIER}
    assert {r for r in Reason if r.is_set_aside} == aside
    assert {r for r in Reason if not r.is_of_the_row and not r.is_set_aside} == ours
