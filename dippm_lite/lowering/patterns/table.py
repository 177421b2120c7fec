"""The pattern table: what runtimes launch as one kernel and graphs write in several nodes.

Rows are tried from top to bottom; a node that a row has claimed is out of reach for those below.
Structure and known numbers decide, never names.
"""

from __future__ import annotations

from dippm_lite.execution import Runtime
from dippm_lite.lowering.patterns import attention, borders, gates, gelu, linear, movement, norms
from dippm_lite.lowering.patterns.found import ALL, ENGINES, PYTORCH, Pattern

__all__ = ["PATTERNS"]

_TENSORRT = frozenset({Runtime.TENSORRT})

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "sdpa",
        ("Softmax",),
        attention.sdpa,
        PYTORCH,
        "F.scaled_dot_product_attention: one flash or memory-efficient kernel",
    ),
    Pattern(
        "attention",
        ("Softmax",),
        attention.attention,
        _TENSORRT,
        "any attention, in half precision; onnxruntime's attention fusion only takes graphs of its "
        "own BERT and GPT-2 exports, so attention stays decomposed there",
    ),
    Pattern("layer_norm", ("Sqrt",), norms.layer_norm, ALL, "LayerNorm before opset 17"),
    Pattern(
        "rms_norm",
        ("Sqrt",),
        norms.rms_norm,
        ENGINES,
        "written by hand in every model; eager PyTorch launches its parts",
    ),
    Pattern(
        "group_norm", ("InstanceNormalization",), norms.group_norm, ALL, "GroupNorm before opset 21"
    ),
    Pattern("gelu", ("Erf",), gelu.gelu_erf, ALL, "F.gelu before opset 20"),
    Pattern(
        "gelu by hand",
        ("Erf",),
        gelu.gelu_erf_by_hand,
        ENGINES,
        "GeluFusion; eager PyTorch launches its parts",
    ),
    Pattern("gelu_tanh", ("Tanh",), gelu.gelu_tanh, ALL, "F.gelu(approximate='tanh')"),
    Pattern(
        "gelu_tanh by hand",
        ("Tanh",),
        gelu.gelu_tanh_by_hand,
        ENGINES,
        "gelu_new of GPT-2, FastGelu in onnxruntime; eager PyTorch launches its parts",
    ),
    Pattern("silu", ("Sigmoid",), gates.silu, ALL, "F.silu; QuickGelu in onnxruntime"),
    Pattern(
        "quick_gelu",
        ("Sigmoid",),
        gates.quick_gelu,
        ENGINES,
        "no operator of PyTorch: eager launches its parts",
    ),
    Pattern("hard_swish", ("HardSigmoid",), gates.hard_swish, ALL, "before opset 14"),
    Pattern("hard_swish (clip)", ("Clip",), gates.hard_swish_clip, ALL, "before opset 9"),
    Pattern("hard_sigmoid (clip)", ("Clip",), gates.hard_sigmoid, ALL, "before opset 9"),
    Pattern("mish", ("Softplus",), gates.mish, ALL, "before opset 18"),
    Pattern("softplus", ("Softplus",), gates.softplus, ALL, "as dynamo writes it"),
    Pattern(
        "batch_norm",
        ("BatchNormalization",),
        linear.batch_norm,
        ALL,
        "folded by engines; a kernel of its own in eager PyTorch",
    ),
    Pattern(
        "channel_affine",
        ("Conv", "ConvTranspose"),
        linear.channel_affine,
        ENGINES,
        "TensorFlow writes biases apart; eager PyTorch adds them apart anyway",
    ),
    Pattern("linear", ("MatMul",), linear.linear, ALL, "addmm, cuBLASLt's bias epilogue"),
    Pattern(
        "scaled_matmul",
        ("MatMul",),
        linear.scaled_matmul,
        ENGINES,
        "MatMulScaleFusion; a kernel of its own in eager PyTorch",
    ),
    Pattern("swapped_axes", ("Transpose",), movement.swapped_axes, ALL, "as dynamo writes it"),
    Pattern("as_strided", ("Gather",), movement.as_strided, ALL, "as dynamo writes it"),
    Pattern("roll", ("Concat",), movement.roll, ALL, "torch.roll along one axis"),
    Pattern("nested_cat", ("Concat",), movement.nested_cat, ALL, "flattened by TorchScript"),
    Pattern(
        "split",
        ("Slice", "Gather"),
        movement.split,
        frozenset({Runtime.ONNXRUNTIME}),
        "elsewhere the parts are views anyway",
    ),
    Pattern("padded_pool", ("AveragePool",), borders.padded_pool, ALL, "count_include_pad"),
    Pattern("empty_pad", ("Pad",), borders.empty_pad, ENGINES, "eager PyTorch copies"),
    Pattern(
        "fake_quantize",
        ("QuantizeLinear",),
        borders.fake_quantize,
        PYTORCH,
        "engines run the quantised operator itself",
    ),
)
"""One row a pattern."""
