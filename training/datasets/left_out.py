"""Rows that no graph can explain, by written rules; the first rule that fits says why.

A rule names patterns for columns; a row fits where every one of them is found. Rules are about the
row alone: whether the catalog has the network is another question, asked later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from training.datasets.reasons import Reason
from training.datasets.tables import PublishedRow

__all__ = ["LEFT_OUT", "Rule", "reason_to_leave_out"]

TARGETS = ("latency_ms", "throughput", "memory_mb", "energy_j", "power_w")


@dataclass(frozen=True, slots=True)
class Rule:
    """Patterns (searched for, case matters) by column, and the reason that they give."""

    reason: Reason
    source: str = ""
    model: str = ""
    task: str = ""
    device: str = ""
    framework: str = ""
    metric: str = ""
    percentile: str = ""
    notes: str = ""

    def fits(self, row: PublishedRow) -> bool:
        """True where each pattern but the source's is found in its column."""
        return all(
            not pattern or re.search(pattern, text)
            for pattern, text in (
                (self.model, row.model),
                (self.task, row.task),
                (self.device, row.device),
                (self.framework, row.framework),
                (self.metric, row.metric),
                (self.percentile, row.percentile),
                (self.notes, row.notes),
            )
        )


_LLM_BITS = r"GPTQ|gptq|AWQ|awq|[Ii]nt4|4-bit|8-bit|bitsandbytes|int8 is weight-only|exllama|marlin"

LEFT_OUT: tuple[Rule, ...] = (
    Rule(Reason.NOT_A_TARGET, metric=rf"^(?!({'|'.join(TARGETS)})$)(?!train_step)"),
    Rule(Reason.NOT_A_TARGET, model="GROMACS"),
    Rule(Reason.TRAINING, metric="^train_step"),
    Rule(Reason.TRAINING, model="QLoRA"),
    Rule(Reason.TRAINING, task="^training"),
    # 1,000 queries through a library pipeline, tokenising and post-processing included.
    Rule(Reason.HOST_BOUND_METHOD, source="^co2_inference$"),
    # A quarter of the card is as fast as the whole: the loop waits for its host.
    Rule(Reason.HOST_BOUND_METHOD, source="MunQ-Lee|^parvagpu_bert$", model="(?i)^bert-large"),
    Rule(Reason.MULTI_GPU, device=r" x\d+"),
    Rule(Reason.MULTI_GPU, notes=r"TP ([2-9]|\d\d)|tensor parallel [2-9]|[2-8]-way|_A30x\d\d|x10_"),
    Rule(Reason.MIG_SHARE, device="MIG.1g|MIG [1-4]g|MIG-1g|MPS"),
    Rule(Reason.MIG_SHARE, notes="^MIG instances column"),
    Rule(Reason.TAIL_STATISTIC, metric="latency_ms", percentile="^(p9[059]|max|min)$"),
    Rule(Reason.SPARSE, model="sparse"),
    Rule(Reason.SPARSE, notes=r"2:4 spars"),
    Rule(Reason.QUANTISED_WEIGHTS, model=_LLM_BITS),
    Rule(Reason.QUANTISED_WEIGHTS, source="optimum|gpt_fast|qwen|torchao", notes=_LLM_BITS),
    Rule(Reason.QUANTISED_WEIGHTS, source="torchao", notes="int[48]|fp6|sparse|auto"),
    Rule(Reason.QUANTISED_WEIGHTS, source="bigcode", notes="LLM.int8"),
    # A cached generation of known lengths is a mean of steps (see conversions), others aren't.
    Rule(Reason.TOKEN_LOOP, task="text-generation", notes=r"^(?!.*decode total)"),
    Rule(Reason.TOKEN_LOOP, task="^translation$|^image-captioning$|^summarisation$"),
    Rule(Reason.TOKEN_LOOP, source="whisper|fast_gpu_asr"),
    Rule(Reason.TOKEN_LOOP, source="^hf_bert_sdpa$"),  # the script writes tokens, or makes one pass
    Rule(Reason.TOKEN_LOOP, source="torchbench", model="^(tacotron2|llama)$"),
    Rule(Reason.PIPELINE_OF_MODELS, task="^(text|image|img)-?(to|2)-?(image|video|img)$"),
    Rule(Reason.PIPELINE_OF_MODELS, task="video-segmentation|^text-to-speech$|unet-40-steps"),
    Rule(Reason.PIPELINE_OF_MODELS, source="^sam_fast$|keras3_bench"),
    Rule(Reason.PIPELINE_OF_MODELS, model=r"end2end"),
    Rule(Reason.PIPELINE_OF_MODELS, source="torchbench", model="^(DALLE2_pytorch|drq|soft_actor)"),
    Rule(Reason.PIPELINE_OF_MODELS, source="torchbench", notes="one eval.. loops over"),
    Rule(
        Reason.PIPELINE_OF_MODELS,
        source="torchbench",
        model="^(maml|pytorch_stargan|speech_transformer|fastNLP_Bert|LearningToPaint)$",
    ),
    Rule(Reason.HOST_BOUND_METHOD, source="^nv_dle_(pyt_effdet|tf1_ssd320)$"),
    Rule(Reason.HOST_BOUND_METHOD, source="^dle_bert_(pyt|paddle)$"),
    Rule(Reason.HOST_BOUND_METHOD, source="^nv_dle_triton_", notes="through Triton"),
    Rule(Reason.HOST_BOUND_METHOD, source="_triton$", percentile="^(?!avg-server-compute)"),
    Rule(Reason.HOST_BOUND_METHOD, task="triton-serving", notes="^(?!.*compute-infer part)"),
    # The same 10 ms at batch 1 and 16: what the server times of TorchScript doesn't wait.
    Rule(Reason.HOST_BOUND_METHOD, task="triton-serving", framework="^torchscript$"),
    Rule(Reason.HOST_BOUND_METHOD, source="^keras_xla$", framework="^tf$"),
    Rule(Reason.PIPELINED, source="mlperf|mlcommons", notes="Offline"),
    # Before v2.0 this scenario sent as many samples as fitted into a fixed interval.
    Rule(Reason.PIPELINED, source="(mlperf|mlcommons).*v[01]", notes="MultiStream"),
    Rule(Reason.VARIABLE_LENGTH, source="mlperf|mlcommons", model="(?i)bert|rnn-?t|dlrm"),
    Rule(Reason.VARIABLE_LENGTH, source="mlperf|mlcommons", notes="KiTS19"),
    Rule(Reason.VARIABLE_LENGTH, source="mlcommons.*v[23]", model="3d-unet"),  # KiTS19 from v2.0 on
    Rule(Reason.VARIABLE_LENGTH, notes="padding removed|varying length|variable[- ]length"),
    Rule(Reason.VARIABLE_LENGTH, notes="variable size|size varies"),
    # 1.6 times the peak of the card if all tokens were real: the script's padding is skipped.
    Rule(Reason.VARIABLE_LENGTH, source="^ft_bert$", model="^bert-6b"),
    # These skip the padding of batches whose mean length is 0.6 of the maximum.
    Rule(Reason.VARIABLE_LENGTH, source="^bytetransformer$", framework="^bytetransformer$"),
    Rule(Reason.VARIABLE_LENGTH, source="^bytetransformer$", notes="remove padding"),
    Rule(Reason.VARIABLE_LENGTH, source="torchbench", model="detectron2|vision_maskrcnn|doctr_det"),
    Rule(Reason.VARIABLE_LENGTH, source="^nv_dle_tf2_maskrcnn$|^ait_rcnn$"),
    Rule(Reason.VARIABLE_LENGTH, task="^molecule$"),
    Rule(Reason.VARIABLE_LENGTH, source="lmdeploy", task="prefill", notes="includes queueing"),
    # Totals with what fine-tuning left behind; a run that held two engines; a pool of fixed size.
    Rule(Reason.MEMORY_METHOD, source="^wtf_benchmark$", metric="memory"),
    Rule(Reason.MEMORY_METHOD, source="flagperf", metric="memory"),
    Rule(Reason.MEMORY_METHOD, source="lmdeploy", metric="memory"),
    Rule(Reason.MEMORY_METHOD, source="bigvgan", metric="memory"),
    Rule(Reason.MISSING_SIZE, source="monai_zoo|depth_anything|pruna_base|vit_trt_issue"),
    Rule(Reason.MISSING_SIZE, source="torchao_quant|autogptq"),
)
"""In the order in which they are tried."""


def reason_to_leave_out(row: PublishedRow) -> Reason | None:
    """The reason of the first rule that fits, or ``None``."""
    return next((rule.reason for rule in _rules_of(row.source) if rule.fits(row)), None)


@cache
def _rules_of(source: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in LEFT_OUT if re.search(rule.source, source))
