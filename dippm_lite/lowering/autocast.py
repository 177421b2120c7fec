"""Mixed precision as ``torch.autocast("cuda")`` does it: which tensors are half, and the casts.

The lists are ATen's (``autocast_mode.h``): matrix products, convolutions, attention and recurrent
layers run in fp16 and have every fp32 operand cast, weights at every forward pass (autocast caches
a cast only for weights that require gradients, and only until it is left); norms, softmax, powers
and sums run in fp32; concatenation goes to the widest operand; all else takes what it gets, and an
elementwise operator of mixed operands gives fp32 without a cast of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from dippm_lite.kernels import ElementDims, KernelKind
from dippm_lite.lowering.index import GraphIndex
from dippm_lite.lowering.steps import Step

__all__ = ["autocast"]

_HALF_KINDS = frozenset(
    {
        KernelKind.CONV,
        KernelKind.DEPTHWISE_CONV,
        KernelKind.GEMM,
        KernelKind.BATCHED_GEMM,
        KernelKind.ATTENTION,
        KernelKind.RECURRENT,
    }
)
_HALF_OPS = frozenset({"prelu"})
_FULL_OPS = frozenset(
    {"layer_norm", "group_norm", "lp_norm", "pow", "exp", "log", "softplus", "reciprocal"}
    | {"acos", "asin", "cosh", "sinh", "tan", "reduce_l1", "reduce_l2", "cdist"}
)
_FULL_OPS_THAT_CAST_INSIDE = frozenset(
    {"softmax", "log_softmax", "sum", "reduce_prod", "cumsum", "cumprod"}
)
_FULL, _HALF = 32, 16


def autocast(index: GraphIndex, steps: Iterable[Step]) -> tuple[list[Step], dict[int, int]]:
    """The steps with the casts between them, and the bits of every floating-point activation."""
    cast = _Autocast(index)
    for step in steps:
        cast.add(step)
    return cast.out, cast.bits


class _Autocast:
    def __init__(self, index: GraphIndex) -> None:
        self.index = index
        self.bits: dict[int, int] = {}
        self.out: list[Step] = []

    def bits_of(self, value: int) -> int:
        """Bits of a floating-point value; 0 for any other."""
        spec = self.index.spec(value)
        if spec is None or not spec.dtype.is_floating or spec.dtype.itemsize_bits < _HALF:
            return 0
        return self.bits.get(value, _FULL)

    def add(self, step: Step) -> None:
        target, casts = self._treatment(step)
        seen: dict[int, int] = {}
        for value in step.inputs if casts else ():
            bits = self.bits_of(value)
            if bits and bits != target:
                self._cast(step, value, bits, target)
                seen[value] = target
        self.bits.update((v, target) for v in step.outputs if self.bits_of(v))
        self.out.append(replace(step, bits=seen) if seen else step)

    def _treatment(self, step: Step) -> tuple[int, bool]:
        """Bits of the result, and whether operands are cast to them first."""
        in_place = bool(step.outputs) and step.outputs[0] in step.inputs
        if step.view:
            return self.bits_of(step.inputs[0]), False
        if step.op == "batch_norm":
            return self.bits_of(step.inputs[0]), False
        if step.kind in _HALF_KINDS or step.op in _HALF_OPS or in_place:
            return _HALF, True
        if step.op in _FULL_OPS or step.op in _FULL_OPS_THAT_CAST_INSIDE:
            return _FULL, step.op in _FULL_OPS
        operands = [bits for v in step.inputs if (bits := self.bits_of(v))]
        if step.op == "cat":
            return max(operands, default=_FULL), True
        if step.kind is KernelKind.ELEMENTWISE:
            return max(operands, default=_FULL), False
        return operands[0] if operands else _FULL, False

    def _cast(self, step: Step, value: int, old: int, new: int) -> None:
        elements = prod(self.index.shape(value) or ())
        self.out.append(
            Step(
                KernelKind.ELEMENTWISE,
                "cast",
                step.nodes[-1:],
                (value,),
                (),
                ElementDims(elements, 1),
                repeat=step.repeat,
                bits={value: old},
                temp_elements=elements,
                temp_bits=new,
            )
        )
