"""What the sources' own texts say against their figures."""

from __future__ import annotations

import re

from training.datasets.reasons import Flag
from training.datasets.tables import PublishedRow

__all__ = ["flags_of"]

SOURCES = (
    # source, what it does
    (r"^(parvagpu|MunQ-Lee|pt_gpu_bench|flagperf|efficientvit_|tally_bench)", Flag.HOST_COPY),
    (r"^(parvagpu|MunQ-Lee)", Flag.NO_WARM_STATE),  # no torch.no_grad: two autograd graphs alive
    (r"^keras_xla$", Flag.NO_WARM_STATE),  # wall clock without synchronisation
    (r"^nv_dle_(paddle_rn50|mxnet_rn50|pyt_|tf1_|tf2_)", Flag.DATA_LOADING),
    (r"^(diffusers_torch2|stable_fast|paddlemix_deploy|onediff)", Flag.HOST_OVERHEAD),
    (
        r"^(lmdeploy_a100|llm_inference_bench|vllm_|gpt_fast|dle_jasper|dle_quartz)",
        Flag.HOST_OVERHEAD,
    ),
    (r"_triton|^dle_triton", Flag.HOST_OVERHEAD),
    (r"^(hf_sdpa|hf_model_docs|lmdeploy_a100|trtllm_perf|depth_anything)$", Flag.ROUNDED),
)
"""Sources and the flag that their method earns."""

NOTES = ((r"rounded to 1 ms|1 ms resolution|integer ms", Flag.ROUNDED),)


def flags_of(row: PublishedRow) -> tuple[Flag, ...]:
    """Flags by source and notes, each once."""
    found = [flag for pattern, flag in SOURCES if re.search(pattern, row.source)]
    found += [flag for pattern, flag in NOTES if re.search(pattern, row.notes)]
    return tuple(dict.fromkeys(found))
