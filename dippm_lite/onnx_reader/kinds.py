"""Where the content of a value comes from: the rules behind ``ValueKind``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dippm_lite.graph import MAX_CONSTANT_ELEMENTS, DType, ValueKind
from dippm_lite.onnx_reader.draft import DraftNode, DraftValue
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["Origin", "is_small", "origin_of", "refine_stored_kinds", "stored_kind"]

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial"}
    | {"Bernoulli"}
)

_RECURRENT = (1, 2, 3)
_WEIGHT_SLOTS: dict[tuple[str, str], tuple[int, ...]] = {
    ("", "Conv"): (1, 2),
    ("", "ConvTranspose"): (1, 2),
    ("", "DeformConv"): (1, 3),
    ("", "Gemm"): (0, 1, 2),
    ("", "MatMul"): (0, 1),
    ("", "Gather"): (0,),
    ("", "BatchNormalization"): (1, 2, 3, 4),
    ("", "InstanceNormalization"): (1, 2),
    ("", "LayerNormalization"): (1, 2),
    ("", "GroupNormalization"): (1, 2),
    ("", "RMSNormalization"): (1,),
    ("", "PRelu"): (1,),
    ("", "LSTM"): _RECURRENT,
    ("", "GRU"): _RECURRENT,
    ("", "RNN"): _RECURRENT,
    ("", "ConvInteger"): (1,),
    ("", "MatMulInteger"): (1,),
    ("", "QLinearConv"): (3, 8),
    ("", "QLinearMatMul"): (3,),
    ("", "DequantizeLinear"): (0,),
}
"""Inputs that hold a network's parameters, in ONNX order. What stands there is a weight even if
it is short and of integers (a quantised bias), or made on the spot by ConstantOfShape (the
"light" models of onnx's own tests)."""

_SETTING_SLOTS: dict[tuple[str, str], tuple[int, ...]] = {
    ("", "Resize"): (1, 2, 3),
    ("", "Upsample"): (1,),
}
"""Inputs that say how and not what: a short vector that is read nowhere else is no parameter."""


class Origin:
    """What the outputs of a call inherit from its inputs."""

    __slots__ = ("constant_only", "guessed", "on_device", "rooted")

    def __init__(self, constant_only: bool, rooted: bool, on_device: bool, guessed: bool) -> None:
        self.constant_only = constant_only
        self.rooted = rooted
        self.on_device = on_device
        self.guessed = guessed

    def kind(self, tensor: Tensor) -> ValueKind:
        """Small known contents stay on the host, unless they are arithmetic on stored weights;
        the rest is a weight if the file alone decides it, and an activation otherwise. Unknown
        integers that no device value goes into (a loop counter plus one) stay on the host too."""
        data = tensor.data
        small = data is not None and data.size <= MAX_CONSTANT_ELEMENTS
        if self.constant_only:
            derived = self.rooted and tensor.dtype.is_floating
            return ValueKind.HOST if small and not derived else ValueKind.WEIGHT
        if small or (not self.on_device and not tensor.dtype.is_floating and is_small(tensor)):
            return ValueKind.HOST
        return ValueKind.ACTIVATION


def origin_of(domain: str, op_type: str, inputs: Sequence[DraftValue]) -> Origin:
    """The origin of a call's outputs."""
    constant_only = bool(inputs) and op_type not in _RANDOM
    rooted = on_device = guessed = False
    for value in inputs:
        if not value.constant_only:
            constant_only = False
            if value.kind is not ValueKind.HOST:
                on_device = True
            if value.guessed:
                guessed = True
        elif value.rooted:
            rooted = True
    if not inputs or op_type in _RANDOM:
        on_device = True
    return Origin(constant_only, rooted, on_device, guessed)


def stored_kind(dtype: DType, shape: tuple[int, ...]) -> ValueKind:
    """The kind of an initializer or Constant: HOST for what says how to compute (axes, shapes,
    pads, indices, literals), WEIGHT for what is computed with.

    By form, since the file doesn't say: short vectors of integers or booleans, and scalar
    numbers, which no network learns one of; 8-bit and smaller integers are quantised weights.
    """
    if dtype is DType.STRING:
        return ValueKind.HOST
    if dtype.is_floating:
        return ValueKind.WEIGHT if shape else ValueKind.HOST
    short = len(shape) <= 1 and math.prod(shape) <= MAX_CONSTANT_ELEMENTS
    return ValueKind.HOST if short and not dtype.is_quantized else ValueKind.WEIGHT


def is_small(tensor: Tensor) -> bool:
    """True for a known shape of at most ``MAX_CONSTANT_ELEMENTS`` elements."""
    return tensor.shape is not None and math.prod(tensor.shape) <= MAX_CONSTANT_ELEMENTS


def refine_stored_kinds(values: Sequence[DraftValue], nodes: Sequence[DraftNode]) -> set[int]:
    """Correct the kinds of file contents by how ``nodes`` use them.

    Returns the values that a call makes and that stand for stored weights all the same: their
    producers are to be left out.
    """
    made: set[int] = set()
    elsewhere: set[int] = set()
    settings: set[int] = set()
    for node in nodes:
        key = (node.domain, node.op_type)
        weight_slots, setting_slots = _WEIGHT_SLOTS.get(key, ()), _SETTING_SLOTS.get(key, ())
        for slot, index in enumerate(node.inputs):
            if index < 0:
                continue
            value = values[index]
            (settings if slot in setting_slots else elsewhere).add(index)
            if slot not in weight_slots or not value.constant_only or not value.tensor.shape:
                continue
            if value.in_file:
                value.kind, value.rooted = ValueKind.WEIGHT, True
            elif not value.rooted and value.tensor.dtype.is_floating:
                value.kind = ValueKind.WEIGHT
                made.add(index)
    for index in settings - elsewhere:
        if values[index].in_file and is_small(values[index].tensor):
            values[index].kind = ValueKind.HOST
    return made
