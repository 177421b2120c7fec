"""Random operator calls, some well-formed, most not: what a hostile file may hold."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import onnx
from onnxruntime.capi import onnxruntime_pybind11_state as native

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules import TensorSequence
from dippm_lite.onnx_reader.shape_rules.storage import STORAGE
from dippm_lite.onnx_reader.shape_rules.table import RULES
from dippm_lite.onnx_reader.tensors import OpCall, Tensor

OPERATORS = sorted(RULES)
KINDS = ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS")
WILD_INTS = (-(2**63), -5, 0, 16, 2**31, 2**62, 2**63 - 1)
WILD_SIZES = (0, -1, 2**31, 2**62, 2**63 - 1, 2**70)
WILD_FLOATS = (0.0, -1.0, 1e30, -1e30, 1e-40, float("nan"), float("inf"), -float("inf"))
WORDS = (
    b"NOTSET", b"SAME_UPPER", b"VALID", b"reflect", b"edge", b"wrap", b"constant", b"sum",
    b"bidirectional", b"none", b"add", b"ij,jk->ik", b"...i,i...", b"i->", b"a\xff\n", b"",
    b"LEFT", b"not_larger", b"SPARSE", b"x" * 200, "text",
)  # fmt: skip


def _described() -> tuple[dict[Any, list[tuple[str, str]]], dict[Any, int]]:
    """Attribute names and kinds, and the most inputs, of every operator with a schema."""
    attributes: dict[Any, dict[str, str]] = defaultdict(dict)
    inputs: dict[Any, int] = {}
    for schema in [*onnx.defs.get_all_schemas_with_history(), *native.get_all_operator_schema()]:
        key = (schema.domain, schema.name)
        inputs[key] = max(inputs.get(key, 0), min(schema.max_input, 12))
        for attribute in schema.attributes.values():
            attributes[key][attribute.name] = str(attribute.type).rsplit(".", 1)[-1]
    return {key: sorted(found.items()) for key, found in attributes.items()}, inputs


ATTRIBUTES, MOST_INPUTS = _described()


class Generator:
    """Calls drawn with ``random``; half of them stay within plausible numbers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.hostile = self.random.random() < 0.5

    def call(self) -> OpCall:
        pick = self.random
        self.hostile = pick.random() < 0.5
        domain, op_type = pick.choice(OPERATORS)
        plain: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        for name, kind in ATTRIBUTES.get((domain, op_type), ()):
            if pick.random() < 0.5:
                continue
            if kind.endswith("TENSOR"):
                tensors[name] = self.tensor()
            elif kind in KINDS:
                plain[name] = self.attribute(kind)
        most = MOST_INPUTS.get((domain, op_type), 3)
        count = pick.randint(max(0, most - 2), most + 1)
        inputs = [None if pick.random() < 0.05 else self.value() for _ in range(count)]
        opset = pick.choice([0, 1, 6, 7, 9, 10, 11, 13, 18, 21, 24, 28])
        outputs = pick.choice([0, 1, 1, 2, 3, 4, 9])
        return OpCall(domain, op_type, opset, plain, tuple(inputs), outputs, tensors)

    def attribute(self, kind: str) -> Any:
        pick = self.random
        if self.hostile and pick.random() < 0.15:
            kind = pick.choice(KINDS)
        if kind.endswith("S"):
            count = pick.choice([0, 1, 2, 2, 3, 4, 8])
            return tuple(self.attribute(kind[:-1]) for _ in range(count))
        wild = self.hostile and pick.random() < 0.3
        if kind == "INT":
            return pick.choice(WILD_INTS) if wild else pick.randint(-2, 4)
        if kind == "FLOAT":
            return pick.choice(WILD_FLOATS) if wild else pick.choice([0.5, 1.0, 2.0])
        return pick.choice(WORDS)

    def value(self) -> Tensor:
        if self.random.random() < 0.05:
            elements = tuple(self.tensor() for _ in range(self.random.randint(0, 3)))
            return TensorSequence(self.dtype(), None, elements=elements)
        return self.tensor()

    def dtype(self) -> DType:
        return self.random.choice([DType.FLOAT] * 4 + [DType.INT64] * 4 + list(DType))

    def tensor(self) -> Tensor:
        pick, dtype = self.random, self.dtype()
        bounded = pick.random() < 0.1
        if pick.random() < 0.05:
            return Tensor(dtype, None)
        rank = pick.choice([0, 1, 1, 2, 2, 3, 4, 4, 5])
        if dtype in STORAGE and pick.random() < 0.5:
            shape = tuple(pick.choice([0, 1, 1, 2, 3]) for _ in range(min(rank, 3)))
            return Tensor(dtype, shape, self.content(dtype, shape), bounded)
        if self.hostile and pick.random() < 0.02:
            rank = pick.choice([70, 255, 257])
        shape = tuple(self.size() for _ in range(rank))
        return Tensor(dtype, shape, None, bounded)

    def size(self) -> int:
        if self.hostile and self.random.random() < 0.1:
            return self.random.choice(WILD_SIZES)
        return self.random.choice([1, 1, 2, 2, 3, 4, 4, 6, 8, 12])

    def content(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        storage, count = STORAGE[dtype], int(np.prod(shape))
        wild = WILD_INTS if storage.kind in "iu" else WILD_FLOATS
        values = [
            self.random.choice(wild) if self.hostile else self.random.randint(-2, 4)
            for _ in range(count)
        ]
        if storage.kind in "iu":
            limits = np.iinfo(storage)
            values = [min(max(value, limits.min), limits.max) for value in values]
        with np.errstate(all="ignore"):
            return np.array(values).astype(storage).reshape(shape)
