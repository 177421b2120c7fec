"""Matrix products."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import broadcast, common_size
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    dtype_attribute,
    given,
    int_attribute,
    int_content,
    length_attribute,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "gemm_shape", "linear_shape", "matmul_shape"]

_MICROSOFT = "com.microsoft"


def matmul_shape(call: OpCall, a: Shape | None, b: Shape | None) -> Shape | None:
    """``numpy.matmul``'s shape: (..., m, k) by (..., k, n); a vector loses its dimension."""
    if a is None or b is None:
        return None
    if not a or not b:
        raise ShapeRuleError("a scalar has no matrix product")
    inner = b[0] if len(b) == 1 else b[-2]
    common_size(call, a[-1], inner, "inner sizes of the product")
    batch = broadcast(call, a[:-2], b[:-2]) or ()
    return batch + a[-2:-1] + (b[-1:] if len(b) > 1 else ())


def linear_shape(shape: Shape | None, out_features: int) -> Shape | None:
    """(..., k) to (..., out_features)."""
    if shape is None:
        return None
    if not shape:
        raise ShapeRuleError("a scalar has no matrix product")
    return (*shape[:-1], out_features)


def _matmul(call: OpCall) -> Outputs:
    a = given(call, 0)
    return (Tensor(a.dtype, matmul_shape(call, a.shape, given(call, 1).shape)),)


def _matmul_integer(call: OpCall) -> Outputs:
    """MatMulInteger: products of 8-bit integers are summed in 32; ...16 sums 16-bit ones so."""
    return (Tensor(DType.INT32, matmul_shape(call, given(call, 0).shape, given(call, 1).shape)),)


def gemm_shape(call: OpCall, a: Shape | None, b: Shape | None) -> Shape | None:
    """(m, k) by (k, n) under ``transA`` and ``transB``."""
    for shape in (a, b):
        if shape is not None:
            rank_is(shape, 2, "a matrix")
    if a is None or b is None:
        return None
    k, m = a if int_attribute(call, "transA", 0) else a[::-1]
    n, inner = b if int_attribute(call, "transB", 0) else b[::-1]
    common_size(call, k, inner, "inner sizes of the product")
    return (m, n)


def _gemm(call: OpCall) -> Outputs:
    a = given(call, 0)
    shape = gemm_shape(call, a.shape, given(call, 1).shape)
    addend = optional(call, 2)
    if shape is not None and addend is not None and addend.shape is not None:
        broadcast(call, shape, addend.shape)
        if len(addend.shape) > 2:
            raise ShapeRuleError(f"addend {addend.shape} does not fit into {shape}")
    return (Tensor(a.dtype, shape),)


def _gemm_float8(call: OpCall) -> Outputs:
    shape = gemm_shape(call, given(call, 0).shape, given(call, 1).shape)
    return (Tensor(dtype_attribute(call, "dtype", DType.FLOAT), shape),)


def _det(call: OpCall) -> Outputs:
    """The determinant of each (m, m) matrix of a batch."""
    x = given(call, 0)
    shape = x.shape
    if shape is None:
        return (Tensor(x.dtype, None),)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeRuleError(f"shape {shape} holds no square matrices")
    return (Tensor(x.dtype, shape[:-2]),)


def _transposed(shape: Shape | None, swap: int, swap_batch: int) -> Shape | None:
    """The matrices that FusedMatMul multiplies: ``swap_batch`` takes (m, batch..., k) to
    (batch..., m, k), then ``swap`` exchanges the last two; a vector is taken as it is."""
    if shape is None or len(shape) < 2:
        return shape
    if swap_batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if swap else shape


def _fused_matmul(call: OpCall) -> Outputs:
    a, b = given(call, 0), given(call, 1)
    shape_a = _transposed(
        a.shape, int_attribute(call, "transA", 0), int_attribute(call, "transBatchA", 0)
    )
    shape_b = _transposed(
        b.shape, int_attribute(call, "transB", 0), int_attribute(call, "transBatchB", 0)
    )
    return (Tensor(a.dtype, matmul_shape(call, shape_a, shape_b)),)


def _transpose_matmul(call: OpCall) -> Outputs:
    """TransposeMatMul and SparseToDenseMatMul: swapped operands, the second one's type."""
    a, b = given(call, 0), given(call, 1)
    shape_a = _transposed(a.shape, int_attribute(call, "transA", 0), 0)
    shape_b = _transposed(b.shape, int_attribute(call, "transB", 0), 0)
    return (Tensor(b.dtype, matmul_shape(call, shape_a, shape_b)),)


def _packed_weight(call: OpCall) -> Outputs:
    """MatMulNBits and its kin: the packed weight's logical size is in ``K`` and ``N``."""
    a = given(call, 0)
    features = length_attribute(call, "N")
    if a.shape:
        common_size(call, a.shape[-1], length_attribute(call, "K"), "inner sizes of the product")
    return (Tensor(a.dtype, linear_shape(a.shape, features)),)


def _row_weight(call: OpCall) -> Outputs:
    """(..., k) by a block-quantised weight stored as (n, ...)."""
    a, b = given(call, 0), given(call, 1)
    if b.shape is None:
        return (Tensor(a.dtype, None),)
    rank_is(b.shape, 2, "the weight")
    return (Tensor(a.dtype, linear_shape(a.shape, b.shape[0])),)


def _blob_weight(call: OpCall) -> Outputs:
    """MatMulFpQ4: the weight's (k, n) is the content of an input."""
    a, size = given(call, 0), int_content(given(call, 2))
    if size is None:
        return (Tensor(a.dtype, None),)
    return (Tensor(a.dtype, matmul_shape(call, a.shape, size)),)


def _gated_mlp(call: OpCall) -> Outputs:
    """MatMulNBitsMlp: the product and, where asked for, the residual sum."""
    a = given(call, 0)
    features = length_attribute(call, "N")
    return Tensor(a.dtype, linear_shape(a.shape, features)), Tensor(a.dtype, a.shape)


def _packed_qkv(call: OpCall) -> Outputs:
    """MatMulNBitsQkv: three products and, where asked for, the residual sum."""
    a = given(call, 0)
    q = Tensor(a.dtype, linear_shape(a.shape, length_attribute(call, "Nq")))
    kv = Tensor(a.dtype, linear_shape(a.shape, length_attribute(call, "Nkv")))
    return q, kv, kv, Tensor(a.dtype, a.shape)


def _router(call: OpCall) -> Outputs:
    """RouterGateUpProj: (k, router_size + 2 * inter) columns in two results."""
    x, w = given(call, 0), given(call, 1)
    if w.shape is None:
        return Tensor(x.dtype, None), Tensor(x.dtype, None)
    rank_is(w.shape, 2, "the weight")
    size = length_attribute(call, "router_size")
    inner = (w.shape[1] - size) // 2
    return Tensor(x.dtype, linear_shape(x.shape, size)), Tensor(
        x.dtype, linear_shape(x.shape, inner)
    )


def _pairwise_distance(call: OpCall) -> Outputs:
    """CDist: (m, n) and (k, n) to (m, k)."""
    a, b = given(call, 0), given(call, 1)
    if a.shape is None or b.shape is None:
        return (Tensor(a.dtype, None),)
    rank_is(a.shape, 2, "a set of points")
    rank_is(b.shape, 2, "a set of points")
    common_size(call, a.shape[1], b.shape[1], "coordinates")
    return (Tensor(a.dtype, (a.shape[0], b.shape[0])),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "Det"): _det,
    ("", "Gemm"): _gemm,
    ("", "MatMul"): _matmul,
    ("", "MatMulInteger"): _matmul_integer,
    (_MICROSOFT, "CDist"): _pairwise_distance,
    (_MICROSOFT, "FusedGemm"): _gemm,
    (_MICROSOFT, "FusedMatMul"): _fused_matmul,
    (_MICROSOFT, "FusedMatMulActivation"): _fused_matmul,
    (_MICROSOFT, "GemmFastGelu"): _matmul,
    (_MICROSOFT, "GemmFloat8"): _gemm_float8,
    (_MICROSOFT, "MatMulBlockQuantizedFp4Weight"): _row_weight,
    (_MICROSOFT, "MatMulBlockQuantizedFp8Weight"): _row_weight,
    (_MICROSOFT, "MatMulBnb4"): _packed_weight,
    (_MICROSOFT, "MatMulFpQ4"): _blob_weight,
    (_MICROSOFT, "MatMulInteger16"): _matmul_integer,
    (_MICROSOFT, "MatMulNBits"): _packed_weight,
    (_MICROSOFT, "MatMulNBitsMlp"): _gated_mlp,
    (_MICROSOFT, "MatMulNBitsQLoRA"): _packed_weight,
    (_MICROSOFT, "MatMulNBitsQkv"): _packed_qkv,
    (_MICROSOFT, "MatMulPacked"): _packed_weight,
    (_MICROSOFT, "RouterGateUpProj"): _router,
    (_MICROSOFT, "SparseToDenseMatMul"): _transpose_matmul,
    (_MICROSOFT, "TransposeMatMul"): _transpose_matmul,
}
