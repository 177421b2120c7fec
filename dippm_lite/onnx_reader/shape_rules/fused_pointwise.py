"""Pointwise operators that a runtime's optimiser fuses, of domain ``com.microsoft``."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    given,
    int_attribute,
    length_attribute,
    like,
    optional,
)
from dippm_lite.onnx_reader.shape_rules.elementwise import arithmetic, keep
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"

_KEEPING = (
    "BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "GatedAdd", "Gelu", "HyperConnectionPostMix",
    "QuickGelu", "SampleOp", "ScaledSiLU",
)  # fmt: skip


def _keep_twice(call: OpCall) -> Outputs:
    """Two outputs of the first input's type and shape."""
    x = like(given(call, 0))
    return x, x


def _split_gelu(call: OpCall) -> Outputs:
    """BiasSplitGelu: (N, S, D) to (N, S, D / 2)."""
    x = given(call, 0)
    if not x.shape:
        return (Tensor(x.dtype, None),)
    return (Tensor(x.dtype, (*x.shape[:-1], x.shape[-1] // 2)),)


def _swiglu(call: OpCall) -> Outputs:
    """com.microsoft's SwiGLU: two halves, or one tensor that holds both."""
    gate = given(call, 0)
    return keep(call) if optional(call, 1) is not None or not gate.shape else _split_gelu(call)


def _bias_dropout(call: OpCall) -> Outputs:
    x = given(call, 0)
    return like(x), Tensor(DType.BOOL, x.shape)


def _pre_mix(call: OpCall) -> Outputs:
    """HyperConnectionPreMix: (..., C, H), or flattened with ``num_branches``, to (..., H)."""
    x = given(call, 0)
    if x.shape is None:
        return (Tensor(x.dtype, None),)
    branches = int_attribute(call, "num_branches", 0)
    if len(x.shape) < (1 if branches > 0 else 2):
        raise ShapeRuleError(f"shape {x.shape} holds no streams")
    if branches > 0:
        return (Tensor(x.dtype, (*x.shape[:-1], x.shape[-1] // branches)),)
    return (Tensor(x.dtype, (*x.shape[:-2], x.shape[-1])),)


def _low_rank_mix(call: OpCall) -> Outputs:
    """HyperConnectionLowRankMix: (..., C * H) to (..., H), (..., C) and the streams."""
    x = given(call, 0)
    branches = length_attribute(call, "num_branches")
    if not x.shape:
        return Tensor(x.dtype, None), Tensor(x.dtype, None), Tensor(x.dtype, None)
    lead, width = x.shape[:-1], x.shape[-1]
    return (
        Tensor(x.dtype, (*lead, width // branches)),
        Tensor(x.dtype, (*lead, branches)),
        Tensor(x.dtype, x.shape),
    )


RULES: dict[tuple[str, str], Rule] = {
    **{(_MICROSOFT, name): keep for name in _KEEPING},
    **{(_MICROSOFT, name): arithmetic for name in ("ComplexMul", "ComplexMulConj")},
    **{(_MICROSOFT, name): _keep_twice for name in ("EngramGate", "LinearAttentionGate")},
    (_MICROSOFT, "BiasDropout"): _bias_dropout,
    (_MICROSOFT, "BiasSplitGelu"): _split_gelu,
    (_MICROSOFT, "HyperConnectionLowRankMix"): _low_rank_mix,
    (_MICROSOFT, "HyperConnectionPreMix"): _pre_mix,
    (_MICROSOFT, "SwiGLU"): _swiglu,
}
