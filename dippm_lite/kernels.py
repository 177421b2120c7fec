"""What a runtime launches on the device: the common currency of lowering, roofline and features."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dippm_lite.execution import MathMode
from dippm_lite.units import FLOPS_PER_MAC

__all__ = [
    "AttentionDims",
    "ConvDims",
    "Dims",
    "ElementDims",
    "GemmDims",
    "Kernel",
    "KernelKind",
    "OpCost",
    "RecurrentDims",
    "RowDims",
]


class KernelKind(str, Enum):
    """Classes of kernels that share a cost model."""

    CONV = "conv"
    DEPTHWISE_CONV = "depthwise_conv"
    GEMM = "gemm"
    BATCHED_GEMM = "batched_gemm"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    NORMALIZATION = "normalization"
    REDUCTION = "reduction"
    SOFTMAX = "softmax"
    POOLING = "pooling"
    DATA_MOVEMENT = "data_movement"
    GATHER = "gather"
    RESIZE = "resize"
    RECURRENT = "recurrent"
    OTHER = "other"

    @property
    def is_matrix(self) -> bool:
        """True where the MACs run at the peak rate of ``Kernel.math``. A depthwise convolution has
        no matrix product to put on tensor cores: it runs on the FMA units, as all others do."""
        return self in _MATRIX_KINDS


_MATRIX_KINDS = frozenset(
    {
        KernelKind.CONV,
        KernelKind.GEMM,
        KernelKind.BATCHED_GEMM,
        KernelKind.ATTENTION,
        KernelKind.RECURRENT,
    }
)


@dataclass(frozen=True, slots=True)
class OpCost:
    """Work of one operator or kernel, for one run of it.

    ``macs`` counts multiply-accumulates of matrix products, convolutions and recurrent cells
    (1 MAC = 2 FLOPs); ``flops_other`` counts the remaining arithmetic (bias, activations,
    normalisation). ``read_bytes`` excludes ``weight_bytes``.
    """

    macs: int = 0
    flops_other: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    weight_bytes: int = 0

    def __post_init__(self) -> None:
        if (
            min(self.macs, self.flops_other, self.read_bytes, self.write_bytes, self.weight_bytes)
            < 0
        ):
            raise ValueError(f"negative cost: {self}")

    @property
    def flops(self) -> int:
        return FLOPS_PER_MAC * self.macs + self.flops_other

    @property
    def total_bytes(self) -> int:
        """All traffic if every operand crosses DRAM once."""
        return self.read_bytes + self.write_bytes + self.weight_bytes


@dataclass(frozen=True, slots=True)
class ConvDims:
    """A convolution over ``spatial`` axes (1 to 3), transposed or not; channels are totals.

    ``input_size``, ``output_size``, ``kernel_size``, ``strides``, ``dilations`` have one entry an
    axis; ``pads`` holds begin then end, as in ONNX. For a transposed convolution input and output
    are still the operator's own.
    """

    batch: int
    in_channels: int
    out_channels: int
    groups: int
    input_size: tuple[int, ...]
    output_size: tuple[int, ...]
    kernel_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class GemmDims:
    """``batch`` products of an (m, k) by a (k, n) matrix. ``weight_b`` is True where the right
    operand is a weight, as in a linear layer."""

    batch: int
    m: int
    n: int
    k: int
    weight_b: bool = True


@dataclass(frozen=True, slots=True)
class AttentionDims:
    """Fused attention: query length ``q_len``, key length ``kv_len``, per-head sizes."""

    batch: int
    heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    qk_head_dim: int
    v_head_dim: int
    causal: bool = False


@dataclass(frozen=True, slots=True)
class ElementDims:
    """A kernel whose cost follows from the elements it writes and the operands it reads."""

    elements: int
    operands: int = 1


@dataclass(frozen=True, slots=True)
class RowDims:
    """A reduction, normalisation or softmax over ``cols`` elements in each of ``rows`` rows."""

    rows: int
    cols: int


@dataclass(frozen=True, slots=True)
class RecurrentDims:
    """An LSTM, GRU or RNN layer; ``gates`` is 4, 3 or 1."""

    batch: int
    steps: int
    input_size: int
    hidden_size: int
    gates: int
    directions: int


Dims = ConvDims | GemmDims | AttentionDims | ElementDims | RowDims | RecurrentDims


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch.

    Attributes:
        kind: the cost class.
        op: what it computes, in lower case: ``conv``, ``linear``, ``add``, ``gelu``,
            ``layer_norm``; fused epilogues follow with ``+`` (``conv+relu``).
        cost: work of one run, in the run-time precision.
        dims: the sizes that the cost class needs.
        math: arithmetic of the kernel.
        nodes: graph nodes it stands for, ascending; the last one gives it its name.
        inputs, outputs: graph values read from and written to device memory, weights among
            the inputs; for liveness and for kernel-level edges.
        repeat: runs of the kernel in one inference (loop trip counts).
        unknown: True where the operator has no cost rule and only its bytes are counted.
    """

    kind: KernelKind
    op: str
    cost: OpCost
    dims: Dims
    math: MathMode
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    repeat: int = 1
    unknown: bool = False
