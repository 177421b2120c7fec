"""The operators that onnxruntime, qonnx and FINN add to ONNX, one row each.

Sources: onnxruntime's ContribOperators.md and its schemas (``get_all_operator_schema``); qonnx's
``custom_op`` packages. What isn't here is unknown, and is reported as such.
"""

from __future__ import annotations

from collections.abc import Iterator

from dippm_lite.kernels import KernelKind
from dippm_lite.op_costs.attention import ATTENTION_SIZES, attention_macs
from dippm_lite.op_costs.macs import (
    conv_macs,
    conv_transpose_macs,
    gemm_macs,
    matmul_macs,
    moe_macs,
    recurrent_macs,
    word_conv_macs,
)
from dippm_lite.op_costs.onnx_table import ONNX_RULES
from dippm_lite.op_costs.recurrences import causal_conv_macs, linear_attention_macs
from dippm_lite.op_costs.rules import OpKey, OpRule, Slots, Work

__all__ = ["CONTRIB_RULES"]

_MS = "com.microsoft"
_GEMM, _CONV, _NORM = KernelKind.GEMM, KernelKind.CONV, KernelKind.NORMALIZATION
_ELEM, _MOVE, _GATHER = KernelKind.ELEMENTWISE, KernelKind.DATA_MOVEMENT, KernelKind.GATHER
_POOL, _REDUCE = KernelKind.POOLING, KernelKind.REDUCTION
_PLAIN = Slots(0, -1, -1)

_MICROSOFT: dict[str, OpRule] = {
    # matrix products
    "FusedConv": OpRule(_CONV, "conv", 2, conv_macs),
    "NhwcConv": OpRule(_CONV, "conv", 1, conv_macs),
    "NhwcFusedConv": OpRule(_CONV, "conv", 2, conv_macs),
    "QLinearConv": OpRule(_CONV, "conv", 4, conv_macs, Slots(0, 3, 8)),
    "ConvTransposeWithDynamicPads": OpRule(
        _CONV, "conv_transpose", 1, conv_transpose_macs, Slots(bias=3)
    ),
    "CausalConvWithState": OpRule(KernelKind.DEPTHWISE_CONV, "causal_conv", 2, causal_conv_macs),
    "WordConvEmbedding": OpRule(_CONV, "word_conv", 2, word_conv_macs),
    "FusedGemm": OpRule(_GEMM, "gemm", 2, gemm_macs),
    "GemmFastGelu": OpRule(_GEMM, "gemm", 15, matmul_macs),
    "GemmFloat8": OpRule(_GEMM, "gemm", 1, gemm_macs),
    "QGemm": OpRule(_GEMM, "gemm", 4, gemm_macs, Slots(0, 3, 6)),
    "FusedMatMul": OpRule(_GEMM, "matmul", 1, matmul_macs, Slots(bias=-1)),
    "FusedMatMulActivation": OpRule(_GEMM, "matmul", 10, matmul_macs, Slots(bias=-1)),
    "TransposeMatMul": OpRule(_GEMM, "matmul", 1, matmul_macs, Slots(bias=-1)),
    "MatMulNBits": OpRule(_GEMM, "matmul_nbits", 0, matmul_macs, Slots(bias=5)),
    "MatMulBnb4": OpRule(_GEMM, "matmul_nbits", 0, matmul_macs, Slots(bias=-1)),
    "MatMulFpQ4": OpRule(_GEMM, "matmul_nbits", 0, matmul_macs, Slots(bias=-1)),
    "MatMulInteger16": OpRule(_GEMM, "matmul", 0, matmul_macs, Slots(bias=-1)),
    "MatMulIntegerToFloat": OpRule(_GEMM, "matmul", 4, matmul_macs, Slots(bias=6)),
    "DynamicQuantizeMatMul": OpRule(_GEMM, "matmul", 10, matmul_macs, Slots(bias=4)),
    "QLinearMatMul": OpRule(_GEMM, "matmul", 4, matmul_macs, Slots(0, 3, -1)),
    "SparseToDenseMatMul": OpRule(_GEMM, "matmul", 0, matmul_macs, Slots(bias=-1)),
    "MoE": OpRule(KernelKind.BATCHED_GEMM, "moe", 10, moe_macs, Slots(0, 2, 3)),
    "QMoE": OpRule(KernelKind.BATCHED_GEMM, "moe", 10, moe_macs, Slots(0, 2, 4)),
    "DynamicQuantizeLSTM": OpRule(KernelKind.RECURRENT, "lstm", 50, recurrent_macs, Slots(bias=3)),
    "LinearAttention": OpRule(KernelKind.OTHER, "linear_attention", 4, linear_attention_macs),
    # normalisation
    "LayerNormalization": OpRule(_NORM, "layer_norm", 8),
    "SimplifiedLayerNormalization": OpRule(_NORM, "rms_norm", 6),
    "SkipLayerNormalization": OpRule(_NORM, "add+layer_norm", 10),
    "SkipSimplifiedLayerNormalization": OpRule(_NORM, "add+rms_norm", 8),
    "EmbedLayerNormalization": OpRule(_NORM, "embedding+layer_norm", 10, sparse=True),
    "QEmbedLayerNormalization": OpRule(_NORM, "embedding+layer_norm", 12, sparse=True),
    "GroupNorm": OpRule(_NORM, "group_norm", 10),
    "SkipGroupNorm": OpRule(_NORM, "add+group_norm", 12),
    "BiasSoftmax": OpRule(KernelKind.SOFTMAX, "add+softmax", 13, slots=_PLAIN),
    "QLinearSoftmax": OpRule(KernelKind.SOFTMAX, "softmax", 14, slots=_PLAIN),
    # elementwise
    "BiasAdd": OpRule(_ELEM, "add", 2),
    "BiasDropout": OpRule(_ELEM, "add", 2),
    "BiasGelu": OpRule(_ELEM, "add+gelu", 26),
    "BiasSplitGelu": OpRule(_ELEM, "add+geglu", 26),
    "ComplexMul": OpRule(_ELEM, "complex_mul", 3),
    "ComplexMulConj": OpRule(_ELEM, "complex_mul", 3),
    "DequantizeLinear": OpRule(_ELEM, "dequantize", 2),
    "FastGelu": OpRule(_ELEM, "gelu_tanh", 20),
    "Gelu": OpRule(_ELEM, "gelu", 25),
    "MulInteger": OpRule(_ELEM, "mul", 1),
    "QLinearAdd": OpRule(_ELEM, "add", 6),
    "QLinearLeakyRelu": OpRule(_ELEM, "leaky_relu", 6),
    "QLinearMul": OpRule(_ELEM, "mul", 6),
    "QLinearSigmoid": OpRule(_ELEM, "sigmoid", 16),
    "QLinearWhere": OpRule(_ELEM, "where", 5),
    "QuantizeLinear": OpRule(_ELEM, "quantize", 4),
    "QuickGelu": OpRule(_ELEM, "quick_gelu", 14),
    "RotaryEmbedding": OpRule(_ELEM, "rotary_embedding", 4),
    "SwiGLU": OpRule(_ELEM, "swiglu", 14),
    "Trilu": OpRule(_ELEM, "trilu", 1, slots=_PLAIN),
    "Range": OpRule(_ELEM, "fill", 1, slots=_PLAIN),
    # reductions and pooling
    "CDist": OpRule(_REDUCE, "cdist", 6, slots=_PLAIN),
    "IsAllFinite": OpRule(_REDUCE, "all_finite", 1, slots=_PLAIN),
    "QLinearReduceMean": OpRule(_REDUCE, "mean", 4, slots=_PLAIN),
    "QLinearGlobalAveragePool": OpRule(_REDUCE, "mean", 4, slots=_PLAIN),
    "ReduceSumInteger": OpRule(_REDUCE, "sum", 1, slots=_PLAIN),
    "MaxpoolWithMask": OpRule(_POOL, "max_pool", 1, slots=_PLAIN),
    "NhwcMaxPool": OpRule(_POOL, "max_pool", 1, slots=_PLAIN),
    "QLinearAveragePool": OpRule(_POOL, "avg_pool", 4, slots=_PLAIN),
    # movement
    "CropAndResize": OpRule(KernelKind.RESIZE, "crop_and_resize", 8, slots=_PLAIN),
    "GridSample": OpRule(KernelKind.RESIZE, "grid_sample", 20, slots=_PLAIN),
    "GatherND": OpRule(_GATHER, "gather_nd", slots=_PLAIN, sparse=True),
    "GatherBlockQuantized": OpRule(_GATHER, "embedding", 2, slots=_PLAIN, sparse=True),
    "TorchEmbedding": OpRule(_GATHER, "embedding", slots=_PLAIN, sparse=True),
    "Pad": OpRule(_MOVE, "pad", slots=_PLAIN),
    "QLinearConcat": OpRule(_MOVE, "cat", 4, slots=_PLAIN),
    "RemovePadding": OpRule(_MOVE, "pack", slots=_PLAIN),
    "RestorePadding": OpRule(_MOVE, "unpack", slots=_PLAIN),
    "UnfoldTensor": OpRule(_MOVE, "unfold", slots=_PLAIN),
    "Unique": OpRule(_MOVE, "unique", slots=_PLAIN),
    # the rest
    "Inverse": OpRule(KernelKind.OTHER, "inverse", 100, slots=_PLAIN),
    "Irfft": OpRule(KernelKind.OTHER, "fft", 60, slots=_PLAIN),
    "Rfft": OpRule(KernelKind.OTHER, "fft", 60, slots=_PLAIN),
    # no GPU kernel
    "BitmaskDropout": OpRule(KernelKind.OTHER, "dropout", work=Work.FREE),
    "ExpandDims": OpRule(KernelKind.OTHER, "unsqueeze", work=Work.FREE),
    "MurmurHash3": OpRule(KernelKind.OTHER, "murmurhash3", work=Work.HOST),
    "Tokenizer": OpRule(KernelKind.OTHER, "tokenizer", work=Work.HOST),
}

_QONNX_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
_QONNX: dict[str, tuple[str, int]] = {
    "BipolarQuant": ("fake_quantize", 3),
    "FloatQuant": ("fake_quantize", 10),
    "IntQuant": ("fake_quantize", 6),
    "MultiThreshold": ("multi_threshold", 8),
    "Quant": ("fake_quantize", 6),
    "Trunc": ("fake_quantize", 6),
}

_STANDARD_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "com.microsoft.nchwc": (
        "AveragePool",
        "Conv",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "MaxPool",
        "Upsample",
    ),
    "com.ms.internal.nhwc": (
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalLpPool",
        "GlobalMaxPool",
        "GridSample",
        "InstanceNormalization",
        "LRN",
        "LpPool",
        "MaxPool",
        "MaxUnpool",
        "QLinearConv",
        "Resize",
        "SpaceToDepth",
    ),
}
"""Standard operators in another memory layout: the same work."""

_MORE: dict[OpKey, OpRule] = {
    ("com.microsoft.nchwc", "ReorderInput"): OpRule(_MOVE, "reorder", slots=_PLAIN),
    ("com.microsoft.nchwc", "ReorderOutput"): OpRule(_MOVE, "reorder", slots=_PLAIN),
    # onnxruntime registers its own RMS norm in the standard's domain
    ("", "SimplifiedLayerNormalization"): OpRule(_NORM, "rms_norm", 6),
}


def _rows() -> Iterator[tuple[OpKey, OpRule]]:
    for op_type, rule in _MICROSOFT.items():
        yield (_MS, op_type), rule
    for key in ATTENTION_SIZES:
        if key not in ONNX_RULES:
            yield key, OpRule(KernelKind.ATTENTION, "attention", 12, attention_macs, Slots(0, 1, 2))
    for domain in _QONNX_DOMAINS:
        for op_type, (name, flops) in _QONNX.items():
            yield (domain, op_type), OpRule(_ELEM, name, flops, slots=_PLAIN)
    for domain, op_types in _STANDARD_ELSEWHERE.items():
        for op_type in op_types:
            yield (domain, op_type), ONNX_RULES[("", op_type)]
    yield from _MORE.items()


CONTRIB_RULES: dict[OpKey, OpRule] = dict(_rows())
"""``(domain, op_type)`` to rule, for domains outside the standard."""
