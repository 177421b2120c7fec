"""The operators of the ONNX standard, one row each.

Every operator of the newest schema of ``ai.onnx`` has a row, deprecated ones included, and those of
``ai.onnx.ml``; a test compares with the schemas of the onnx package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dippm_lite.kernels import KernelKind
from dippm_lite.op_costs.attention import attention_macs
from dippm_lite.op_costs.einsum import einsum_macs
from dippm_lite.op_costs.elementwise_table import ELEMENTWISE
from dippm_lite.op_costs.macs import (
    conv_macs,
    conv_transpose_macs,
    gemm_macs,
    matmul_macs,
    recurrent_macs,
)
from dippm_lite.op_costs.recurrences import causal_conv_macs, linear_attention_macs
from dippm_lite.op_costs.rules import OpKey, OpRule, Slots, Work

__all__ = ["ONNX_RULES"]

_REDUCTIONS: dict[str, tuple[str, int]] = {
    "ArgMax": ("argmax", 1),
    "ArgMin": ("argmin", 1),
    "CumProd": ("cumprod", 1),
    "CumSum": ("cumsum", 1),
    "DynamicQuantizeLinear": ("dynamic_quantize", 6),
    "GlobalAveragePool": ("mean", 1),
    "GlobalLpPool": ("reduce_lp", 2),
    "GlobalMaxPool": ("reduce_max", 1),
    "NegativeLogLikelihoodLoss": ("nll_loss", 2),
    "ReduceL1": ("reduce_l1", 2),
    "ReduceL2": ("reduce_l2", 2),
    "ReduceLogSum": ("reduce_log_sum", 2),
    "ReduceLogSumExp": ("reduce_log_sum_exp", 10),
    "ReduceMax": ("reduce_max", 1),
    "ReduceMean": ("mean", 1),
    "ReduceMin": ("reduce_min", 1),
    "ReduceProd": ("reduce_prod", 1),
    "ReduceSum": ("sum", 1),
    "ReduceSumSquare": ("reduce_sum_square", 2),
    "TopK": ("topk", 20),
}

_NORMALIZATIONS: dict[str, tuple[str, int]] = {
    "GroupNormalization": ("group_norm", 8),
    "InstanceNormalization": ("instance_norm", 8),
    "LRN": ("lrn", 12),
    "LayerNormalization": ("layer_norm", 8),
    "LpNormalization": ("lp_norm", 5),
    "MeanVarianceNormalization": ("mean_variance_norm", 6),
    "RMSNormalization": ("rms_norm", 6),
}

_SOFTMAXES: dict[str, tuple[str, int]] = {
    "Hardmax": ("hardmax", 2),
    "LogSoftmax": ("log_softmax", 12),
    "Softmax": ("softmax", 12),
    "SoftmaxCrossEntropyLoss": ("cross_entropy", 14),
}

_POOLINGS: dict[str, tuple[str, int]] = {
    "AveragePool": ("avg_pool", 1),
    "LpPool": ("lp_pool", 2),
    "MaxPool": ("max_pool", 1),
    "MaxRoiPool": ("roi_pool", 1),
    "RoiAlign": ("roi_align", 40),
}

_MOVEMENTS: dict[str, str] = {
    "CenterCropPad": "pad",
    "Col2Im": "col2im",
    "Compress": "compress",
    "Concat": "cat",
    "ConcatFromSequence": "cat",
    "DepthToSpace": "pixel_shuffle",
    "Expand": "expand",
    "MaxUnpool": "max_unpool",
    "NonZero": "nonzero",
    "Pad": "pad",
    "ReverseSequence": "reverse_sequence",
    "SpaceToDepth": "pixel_unshuffle",
    "Split": "split",
    "SplitToSequence": "split",
    "Tile": "tile",
    "Transpose": "transpose",
    "Unique": "unique",
}

_GATHERS: dict[str, str] = {
    "Gather": "gather",
    "GatherElements": "gather_elements",
    "GatherND": "gather_nd",
    "OneHot": "one_hot",
}

_SCATTERS: dict[str, str] = {
    "Scatter": "scatter",
    "ScatterElements": "scatter",
    "ScatterND": "scatter_nd",
    "TensorScatter": "scatter",
}

_RESIZES: dict[str, tuple[str, int]] = {
    "GridSample": ("grid_sample", 20),
    "Resize": ("resize", 8),
    "Upsample": ("resize", 8),
}

_MATRIX: dict[str, OpRule] = {
    "Attention": OpRule(KernelKind.ATTENTION, "attention", 12, attention_macs),
    "CausalConvWithState": OpRule(KernelKind.DEPTHWISE_CONV, "causal_conv", 2, causal_conv_macs),
    "Conv": OpRule(KernelKind.CONV, "conv", 1, conv_macs),
    "ConvInteger": OpRule(KernelKind.CONV, "conv", 1, conv_macs, Slots(bias=-1)),
    "ConvTranspose": OpRule(KernelKind.CONV, "conv_transpose", 1, conv_transpose_macs),
    "DeformConv": OpRule(KernelKind.CONV, "deform_conv", 40, conv_macs, Slots(bias=3)),
    "Einsum": OpRule(KernelKind.BATCHED_GEMM, "einsum", 0, einsum_macs, Slots(bias=-1)),
    "GRU": OpRule(KernelKind.RECURRENT, "gru", 40, recurrent_macs, Slots(bias=3)),
    "Gemm": OpRule(KernelKind.GEMM, "gemm", 1, gemm_macs),
    "LSTM": OpRule(KernelKind.RECURRENT, "lstm", 50, recurrent_macs, Slots(bias=3)),
    "LinearAttention": OpRule(KernelKind.OTHER, "linear_attention", 4, linear_attention_macs),
    "MatMul": OpRule(KernelKind.GEMM, "matmul", 0, matmul_macs, Slots(bias=-1)),
    "MatMulInteger": OpRule(KernelKind.GEMM, "matmul", 0, matmul_macs, Slots(bias=-1)),
    "QLinearConv": OpRule(KernelKind.CONV, "conv", 4, conv_macs, Slots(0, 3, 8)),
    "QLinearMatMul": OpRule(KernelKind.GEMM, "matmul", 4, matmul_macs, Slots(0, 3, -1)),
    "RNN": OpRule(KernelKind.RECURRENT, "rnn", 15, recurrent_macs, Slots(bias=3)),
}

_OTHERS: dict[str, tuple[str, int]] = {
    "DFT": ("fft", 60),  # 5 log2(N), at N = 4096
    "Det": ("det", 100),
    "NonMaxSuppression": ("non_max_suppression", 100),
    "STFT": ("fft", 60),
}

_FREE = (
    "Constant",
    "Dropout",
    "Flatten",
    "Identity",
    "Reshape",
    "Shape",
    "Size",
    "Squeeze",
    "Unsqueeze",
)

_HOST = (
    "ImageDecoder",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "RegexFullMatch",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "StringConcat",
    "StringNormalizer",
    "StringSplit",
    "TfIdfVectorizer",
)

_CONTROL = ("If", "Loop", "Scan", "SequenceMap")

_ML = (
    "ArrayFeatureExtractor",
    "Binarizer",
    "CastMap",
    "CategoryMapper",
    "DictVectorizer",
    "FeatureVectorizer",
    "Imputer",
    "LabelEncoder",
    "LinearClassifier",
    "LinearRegressor",
    "Normalizer",
    "OneHotEncoder",
    "SVMClassifier",
    "SVMRegressor",
    "Scaler",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "ZipMap",
)


def _rows(
    kind: KernelKind, table: dict[str, tuple[str, int]], slots: Slots
) -> Iterator[tuple[OpKey, OpRule]]:
    for op_type, (name, flops) in table.items():
        yield ("", op_type), OpRule(kind, name, flops, slots=slots)


def _moves(kind: KernelKind, table: dict[str, str], sparse: bool) -> Iterator[tuple[OpKey, OpRule]]:
    for op_type, name in table.items():
        yield ("", op_type), OpRule(kind, name, slots=_PLAIN, sparse=sparse)


def _unlaunched(domain: str, op_types: Iterable[str], work: Work) -> Iterator[tuple[OpKey, OpRule]]:
    for op_type in op_types:
        yield (domain, op_type), OpRule(KernelKind.OTHER, op_type.lower(), work=work)


_PLAIN = Slots(0, -1, -1)
_AFFINE = Slots(0, 1, 2)

ONNX_RULES: dict[OpKey, OpRule] = dict(
    [
        *_rows(KernelKind.ELEMENTWISE, ELEMENTWISE, _PLAIN),
        *_rows(KernelKind.REDUCTION, _REDUCTIONS, _PLAIN),
        *_rows(KernelKind.NORMALIZATION, _NORMALIZATIONS, _AFFINE),
        *_rows(KernelKind.SOFTMAX, _SOFTMAXES, _PLAIN),
        *_rows(KernelKind.POOLING, _POOLINGS, _PLAIN),
        *_rows(KernelKind.RESIZE, _RESIZES, _PLAIN),
        *_rows(KernelKind.OTHER, _OTHERS, _PLAIN),
        *_moves(KernelKind.DATA_MOVEMENT, _MOVEMENTS, sparse=False),
        *_moves(KernelKind.DATA_MOVEMENT, {"Slice": "slice"}, sparse=True),
        *_moves(KernelKind.GATHER, _GATHERS, sparse=True),
        *_moves(KernelKind.GATHER, _SCATTERS, sparse=False),
        *((("", op_type), rule) for op_type, rule in _MATRIX.items()),
        *_unlaunched("", _FREE, Work.FREE),
        *_unlaunched("", _HOST, Work.HOST),
        *_unlaunched("", _CONTROL, Work.CONTROL),
        *_unlaunched("ai.onnx.ml", _ML, Work.HOST),
    ]
)
"""``(domain, op_type)`` to rule, for the standard's own domains."""
