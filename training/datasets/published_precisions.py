"""What a source's word for its precision means in ours.

Ours are those of ``dippm_lite.execution.Precision``, and ``unknown``. ``auto`` is what PyTorch
does by itself with fp32 weights since 1.12: TF32 convolutions, IEEE matrix products.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from training.datasets.reasons import Flag
from training.datasets.tables import PublishedRow

__all__ = ["UNKNOWN", "precision_of"]

UNKNOWN = "unknown"
PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "amp", "int8", UNKNOWN)


@dataclass(frozen=True, slots=True)
class Meaning:
    """Patterns for source, word and framework; the precision they mean; and whether the source
    says so, if not in the column itself."""

    source: str
    word: str
    framework: str
    precision: str
    stated: bool = False


MEANINGS: tuple[Meaning, ...] = (
    # Its fp16 and tf32 tables agree to 4 % in every setting: one is a copy of the other.
    Meaning(r"^dle_bert_tf1$", "^(fp16|tf32)$", "", UNKNOWN),
    # NVIDIA's examples call automatic mixed precision FP16; what they serve is converted whole.
    Meaning(r"^dle_(?!triton|moflow)", "^fp16$", "", "amp", stated=True),
    # Before 1.12 PyTorch allowed TF32 in matrix products too.
    Meaning(r"^pt_gpu_bench$|^parvagpu|^MunQ-Lee", "^(unknown|tf32-default)$", "", "tf32"),
    Meaning(r"^torchbench|^hf_torch_compile$|^bigvgan", "^fp32$", "^pytorch", "auto"),
    Meaning(r"^torchbench_issues$", "^unknown$", "", "auto"),
    # 512 x 256 tokens in 1,580 ms are 15 TFLOP/s: IEEE matrix products.
    Meaning(r"^optimum_benchmark$", "^unknown$", "^pytorch", "auto"),
    # Defaults of the runtimes: TF32 for fp32 networks.
    Meaning(r"^flagperf", "^fp32$", "", "tf32"),
    Meaning(r"^keras_xla$|^dle_triton", "^fp32$", "", "tf32"),
    Meaning(r"^nv_trt_tfquant$|^nv_dle_tf2_unet3p$", "^unknown$", "^tf", "tf32"),
    Meaning(r"^trt_demo_deberta$", "^unknown$", "", "tf32"),
    # Rates above the IEEE peak without autocast.
    Meaning(r"^wtf_benchmark$", "^unknown$", "", "tf32"),
    # The script behind the paper's table runs under autocast.
    Meaning(r"^mambavision_paper$", "^unknown$", "", "amp"),
    # 1,066 GFLOP in 10 ms at batch 1 are two thirds of the TF32 peak, for a whole network.
    Meaning(r"^ultralytics", "^unknown$", "^tensorrt$", "fp16"),
    # Reading 7 billion weights takes 14 ms in fp32, the whole pass 12; TF32 peaks are exceeded.
    Meaning(r"^ort_(mistral|falcon)_card$|^llm_inference_bench$", "^unknown$", "", "fp16"),
    # 178 TFLOP/s are above the TF32 peak; other figures of the table say float16.
    Meaning(r"^optimum_gptq$", "^unknown$", "", "fp16"),
    # ConvNeXt-S: 1,182 images/s; its authors measured 1,275 in TF32; IEEE peaks are exceeded twice.
    Meaning(r"^unireplknet_paper$", "^unknown$", "", "tf32"),
    Meaning(r"^ft_longformer$", "^fp32$", "", UNKNOWN),  # the guide leaves TF32 open
    Meaning(r"^hf_(sdpa|model_docs)$", "^fp32$", "", UNKNOWN),  # faster than IEEE fp32 can be
)
"""The first that fits counts; without one, the word itself."""


def precision_of(row: PublishedRow) -> tuple[str, tuple[Flag, ...]]:
    """Our word, and a flag where it follows from more than the source's words."""
    for meaning in MEANINGS:
        if (
            re.search(meaning.source, row.source)
            and re.search(meaning.word, row.precision)
            and re.search(meaning.framework, row.framework)
        ):
            assumed = not meaning.stated and meaning.precision != UNKNOWN
            return meaning.precision, (Flag.PRECISION_ASSUMED,) if assumed else ()
    return row.precision if row.precision in PRECISIONS else UNKNOWN, ()
