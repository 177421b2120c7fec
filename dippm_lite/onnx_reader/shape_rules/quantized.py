"""Quantisation: to and from integers and small floats, and operators on quantised tensors."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast_all
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    dtype_attribute,
    given,
    int_attribute,
    int_content,
    like,
    optional,
)
from dippm_lite.onnx_reader.shape_rules.elementwise import keep
from dippm_lite.onnx_reader.shape_rules.matmul import gemm_shape, matmul_shape
from dippm_lite.onnx_reader.shape_rules.reduction import reduced_shape
from dippm_lite.onnx_reader.shape_rules.slicing import joined_shape
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_MICROSOFT = "com.microsoft"
_FLOAT = DType.FLOAT
_INT8 = DType.INT8
_UINT8 = DType.UINT8


def _quantize(call: OpCall) -> Outputs:
    """The type is the zero point's, else ``output_dtype``, else UINT8."""
    x, zero_point = given(call, 0), optional(call, 2)
    dtype = _UINT8 if zero_point is None else zero_point.dtype
    return (Tensor(dtype_attribute(call, "output_dtype", dtype), x.shape),)


def _dequantize(call: OpCall) -> Outputs:
    """The type is ``output_dtype``, else the scale's (FLOAT up to opset 18)."""
    x, scale = given(call, 0), given(call, 1)
    return (Tensor(dtype_attribute(call, "output_dtype", scale.dtype), x.shape),)


def _dynamic_quantize(call: OpCall) -> Outputs:
    return Tensor(_UINT8, given(call, 0).shape), Tensor(_FLOAT, ()), Tensor(_UINT8, ())


def _quant_matmul(call: OpCall) -> Outputs:
    """QLinearMatMul: each operand, the output last, comes with scale and zero point."""
    shape = matmul_shape(call, given(call, 0).shape, given(call, 3).shape)
    return (Tensor(given(call, 7).dtype, shape),)


def _matmul_to_float(call: OpCall) -> Outputs:
    """MatMulIntegerToFloat: the type is that of the scales."""
    shape = matmul_shape(call, given(call, 0).shape, given(call, 1).shape)
    return (Tensor(given(call, 2).dtype, shape),)


def _dynamic_quantize_matmul(call: OpCall) -> Outputs:
    a = given(call, 0)
    return (Tensor(a.dtype, matmul_shape(call, a.shape, given(call, 1).shape)),)


def _quant_gemm(call: OpCall) -> Outputs:
    """QGemm: quantised where the output has a zero point, FLOAT otherwise."""
    shape = gemm_shape(call, given(call, 0).shape, given(call, 3).shape)
    zero_point = optional(call, 8)
    return (Tensor(_FLOAT if zero_point is None else zero_point.dtype, shape),)


def _quant_binary(call: OpCall) -> Outputs:
    """QLinearAdd and QLinearMul: A and B are inputs 0 and 3."""
    a = given(call, 0)
    return (Tensor(a.dtype, broadcast_all(call, [a.shape, given(call, 3).shape])),)


def _quant_where(call: OpCall) -> Outputs:
    """QLinearWhere: condition, X with scale and zero point, Y likewise."""
    condition, x, y = given(call, 0), given(call, 1), given(call, 4)
    return (Tensor(x.dtype, broadcast_all(call, [condition.shape, x.shape, y.shape])),)


def _quant_concat(call: OpCall) -> Outputs:
    """QLinearConcat: the output's scale and zero point, then three inputs for each tensor."""
    parts = [given(call, i) for i in range(2, max(len(call.inputs), 3), 3)]
    shape = joined_shape(call, [part.shape for part in parts], int_attribute(call, "axis"))
    return (Tensor(given(call, 1).dtype, shape),)


def _quant_reduce(call: OpCall) -> Outputs:
    """QLinearReduceMean: axes are an attribute."""
    x = given(call, 0)
    if "axes" not in call.attributes:
        raise ShapeRuleError("attribute 'axes' is missing")
    return (Tensor(x.dtype, reduced_shape(call, x.shape)),)


def _mul_integer(call: OpCall) -> Outputs:
    """MulInteger: A and B are inputs 0 and 2."""
    return (Tensor(DType.INT32, broadcast_all(call, [given(call, 0).shape, given(call, 2).shape])),)


def _to_int8(call: OpCall) -> Outputs:
    return (Tensor(_INT8, given(call, 0).shape),)


def _from_order(call: OpCall) -> Outputs:
    return (Tensor(dtype_attribute(call, "to", _FLOAT), given(call, 0).shape),)


def _dequantize_blocks(call: OpCall) -> Outputs:
    """DequantizeBFP: the original shape is an input."""
    return (Tensor(dtype_attribute(call, "dtype", _FLOAT), int_content(given(call, 1))),)


def _fake_quantize(call: OpCall) -> Outputs:
    """QONNX's Quant, BipolarQuant and Trunc keep floats on a grid."""
    return (like(given(call, 0)),)


RULES: dict[tuple[str, str], Rule] = {
    **{
        (domain, name): rule
        for domain in ("", _MICROSOFT)
        for name, rule in (("DequantizeLinear", _dequantize), ("QuantizeLinear", _quantize))
    },
    **{
        (domain, name): _fake_quantize
        for domain in ("onnx.brevitas", "qonnx.custom_op.general", "finn.custom_op.general")
        for name in ("BipolarQuant", "FloatQuant", "IntQuant", "Quant", "Trunc")
    },
    **{
        (_MICROSOFT, name): keep
        for name in (
            "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QOrderedGelu",
            "QOrderedLayerNormalization",
        )
    },
    ("", "DynamicQuantizeLinear"): _dynamic_quantize,
    ("", "QLinearMatMul"): _quant_matmul,
    (_MICROSOFT, "DequantizeBFP"): _dequantize_blocks,
    (_MICROSOFT, "DequantizeWithOrder"): _from_order,
    (_MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_quantize_matmul,
    (_MICROSOFT, "MatMulIntegerToFloat"): _matmul_to_float,
    (_MICROSOFT, "MulInteger"): _mul_integer,
    (_MICROSOFT, "QGemm"): _quant_gemm,
    (_MICROSOFT, "QLinearAdd"): _quant_binary,
    (_MICROSOFT, "QLinearConcat"): _quant_concat,
    (_MICROSOFT, "QLinearMul"): _quant_binary,
    (_MICROSOFT, "QLinearReduceMean"): _quant_reduce,
    (_MICROSOFT, "QLinearWhere"): _quant_where,
    (_MICROSOFT, "QuantizeWithOrder"): _to_int8,
}  # fmt: skip
