"""The models of a kernel bundle: one row a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from dippm_lite.execution import MathMode

__all__ = ["PLANS", "Overhead", "Plan"]


class Overhead(str, Enum):
    """How a file's rows include host time."""

    NONE = "none"
    """Kernel times from a profiler."""
    PER_OP = "per_op"
    """The same for every row of an operator."""
    DRIFT = "drift"
    """Growing along the file."""


@dataclass(frozen=True)
class Plan:
    """One model: the rows that it is fitted on, and how.

    Attributes:
        name: the model's name in the bundle.
        table: name of its feature table.
        file: in the folder of measured kernels.
        device: the device of its rows.
        ops: the file's operators.
        test_file, test_devices: out-of-distribution rows, never fitted.
        target_mape: in percent, five-fold; None where no target was set.
        rounds, leaves, min_leaf_rows, learning_rate, feature_fraction: of the trees.
    """

    name: str
    table: str
    math: MathMode
    file: str
    device: str
    ops: tuple[str, ...]
    overhead: Overhead
    rounds: int
    leaves: int
    min_leaf_rows: int = 10
    learning_rate: float = 0.05
    feature_fraction: float = 0.5
    test_file: str | None = None
    test_devices: tuple[str, ...] = ()
    target_mape: float | None = None
    target_test_mape: float | None = None
    categorical: tuple[str, ...] = field(default=())


_GEMM, _GEMM_TEST = "neusight_gemm.csv.gz", "neusight_gemm_test.csv.gz"
_VECTOR, _VECTOR_TEST = "neusight_vector.csv.gz", "neusight_vector_test.csv.gz"
_VIDUR = "vidur_fp16.csv.gz"
_PCIE_40, _PCIE_80, _SXM_80 = "a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-80gb"
_TESTS = (_PCIE_40, _PCIE_80)

PLANS: tuple[Plan, ...] = (
    Plan(
        "linear_fp32", "product", MathMode.FP32, _GEMM, _PCIE_40, ("linear",), Overhead.PER_OP,
        rounds=600, leaves=31, feature_fraction=0.8, test_file=_GEMM_TEST, test_devices=_TESTS,
        target_mape=5.0, target_test_mape=10.0,
    ),
    Plan(
        "bmm_fp32", "product", MathMode.FP32, _GEMM, _PCIE_40, ("bmm",), Overhead.PER_OP,
        rounds=600, leaves=47, test_file=_GEMM_TEST, test_devices=_TESTS,
        target_mape=4.0, target_test_mape=10.0,
    ),
    Plan(
        "conv_fp32", "convolution", MathMode.FP32, "neusight_conv.csv.gz", _PCIE_80, ("conv",),
        Overhead.DRIFT, rounds=500, leaves=31, target_mape=14.0,
    ),
    Plan(
        "element_fp32", "elements", MathMode.FP32, _VECTOR, _PCIE_40,
        ("add", "addu", "mul", "mulu", "div", "divu", "pow", "powu", "relu", "gelu", "tanh"),
        Overhead.PER_OP, rounds=300, leaves=24, feature_fraction=0.8,
        test_file=_VECTOR_TEST, test_devices=_TESTS, categorical=("op",),
    ),
    Plan(
        "row_fp32", "rows", MathMode.FP32, _VECTOR, _PCIE_40, ("ln", "softmax"), Overhead.PER_OP,
        rounds=300, leaves=31, feature_fraction=1.0, test_file=_VECTOR_TEST, test_devices=_TESTS,
        categorical=("op",),
    ),
    Plan(
        "linear_fp16", "product", MathMode.FP16, _VIDUR, _SXM_80, ("linear",), Overhead.NONE,
        rounds=600, leaves=47,
    ),
    Plan(
        "element_fp16", "elements", MathMode.FP16, _VIDUR, _SXM_80,
        ("act", "act_gated", "add", "embedding", "rope"), Overhead.NONE,
        rounds=200, leaves=31, feature_fraction=1.0, categorical=("op",),
    ),
    Plan(
        "row_fp16", "rows", MathMode.FP16, _VIDUR, _SXM_80, ("layernorm",), Overhead.NONE,
        rounds=150, leaves=31, feature_fraction=1.0,
    ),
)  # fmt: skip
