"""Which layouts kernels read as they are.

What ATen's CUDA operators take, from their sources:

- elementwise operators, reductions, concatenation and indexing take any strides; elementwise
  results keep the order of axes of their operands (TensorIterator);
- layer norm, group norm, softmax and cuDNN's recurrent layers make their input contiguous;
- convolution, pooling, resizing and batch norm take row-major or channels-last tensors, and give
  the same format back;
- ``matmul`` folds leading axes into the rows of one product, or merges them into the batch of
  ``bmm``, which takes matrices whose last two axes BLAS can address: splitting heads by
  ``transpose(1, 2)`` leaves axes that don't merge, so queries, keys and values are each copied;
- fused attention takes strided heads, and gives its result in (batch, length, head) order, so that
  merging the heads again is free.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from dippm_lite.execution import Runtime
from dippm_lite.kernels import KernelKind
from dippm_lite.lowering.steps import Step
from dippm_lite.lowering.strides import Layout

__all__ = [
    "CHANNELED",
    "TAKES",
    "Takes",
    "takes_any",
    "takes_channels",
    "takes_matrices",
    "takes_rows",
]

Takes = Callable[[Step, Layout], bool]


def takes_any(step: Step, layout: Layout) -> bool:
    return True


def _dense(step: Step, layout: Layout) -> bool:
    return layout.is_contiguous


def takes_channels(step: Step, layout: Layout) -> bool:
    return layout.is_contiguous or layout.is_channels_last


def takes_rows(step: Step, layout: Layout) -> bool:
    if len(layout.shape) > 2:
        matrix = layout.reshape((prod(layout.shape[:-1]), layout.shape[-1]))
        return matrix is not None and matrix.is_blas_matrix()
    return layout.is_blas_matrix()


def takes_matrices(step: Step, layout: Layout) -> bool:
    return layout.is_batch_of_matrices()


def _transposed(step: Step, layout: Layout) -> bool:
    """Row-major, or that with the last two axes swapped: FusedMatMul's transA and transB."""
    if layout.is_contiguous or len(layout.shape) < 2:
        return layout.is_contiguous
    rank = len(layout.shape)
    return layout.permute((*range(rank - 2), rank - 1, rank - 2)).is_contiguous


CHANNELED = dict.fromkeys(
    (KernelKind.CONV, KernelKind.DEPTHWISE_CONV, KernelKind.POOLING, KernelKind.RESIZE),
    takes_channels,
)

TAKES: dict[Runtime, tuple[Takes, dict[KernelKind, Takes]]] = {
    Runtime.PYTORCH: (
        takes_any,
        {
            **CHANNELED,
            KernelKind.NORMALIZATION: _dense,
            KernelKind.SOFTMAX: _dense,
            KernelKind.RECURRENT: _dense,
            KernelKind.GEMM: takes_rows,
            KernelKind.BATCHED_GEMM: takes_matrices,
        },
    ),
    Runtime.ONNXRUNTIME: (
        _dense,
        {
            KernelKind.ELEMENTWISE: takes_any,
            KernelKind.GEMM: _transposed,
            KernelKind.BATCHED_GEMM: _transposed,
        },
    ),
    Runtime.TENSORRT: (takes_any, {**CHANNELED, KernelKind.RECURRENT: _dense}),
}
"""By runtime: what kernels read as it is, in general and by kind. onnxruntime's transpose optimizer
pushes a Transpose behind the elementwise nodes that follow it, where it often meets its inverse."""
