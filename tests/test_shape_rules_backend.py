"""ONNX's own test cases: what the rules find equals the tensors that the cases expect."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_calls
import pytest

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules import TensorSequence, has_rule, infer
from dippm_lite.onnx_reader.tensors import ShapeRuleError, Tensor

UNKNOWN_BY_NATURE = {
    "ImageDecoder": "the size of an image is inside of its encoded stream",
    "StringSplit": "without maxsplit, nothing bounds the number of pieces",
}
"""Operators whose output shape may stay unknown although all inputs are known, and why."""

NOT_RULED = {"If", "Loop", "Scan", "SequenceMap"}
"""Operators with subgraphs, which the reader follows itself."""

NUMBERS_THAT_DECIDE_SHAPES = {"scales", "sizes", "start", "limit", "delta", "depth"}
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in node.collect_testcases(None) if case.data_sets]


def nothing(name: str, value: Any) -> bool:
    return False


def small_integers(name: str, value: Any) -> bool:
    """What a file would store: axes, shapes, pads, and the floats that decide a size."""
    if value is None or isinstance(value, (list, onnx.TensorProto)):
        return False
    array = np.asarray(value)
    return array.size <= 64 and (array.dtype.kind in "iub" or name in NUMBERS_THAT_DECIDE_SHAPES)


def everything(name: str, value: Any) -> bool:
    return True


def fed(model: onnx.ModelProto, inputs: Any, known: Any) -> dict[str, Tensor | None]:
    return {
        declared.name: onnx_calls.tensor_of_value(value, declared.type, known(declared.name, value))
        for declared, value in zip(model.graph.input, inputs, strict=False)
    }


def difference(found: Tensor | None, true: Tensor) -> str | None:
    """How ``found`` contradicts ``true``: None where it doesn't, "unknown" if it says nothing."""
    if found is None:
        return "unknown"
    if found.dtype is not true.dtype:
        return f"type {found.dtype.value}, not {true.dtype.value}"
    if isinstance(true, TensorSequence):
        elements = found.elements if isinstance(found, TensorSequence) else None
        if elements is None:
            return "unknown"
        shapes = [element.shape for element in elements]
        true_shapes = [element.shape for element in true.elements or ()]
        return None if shapes == true_shapes else f"elements {shapes}, not {true_shapes}"
    if found.shape is None:
        return "unknown"
    if not onnx_calls.fits(found, true.shape or ()):
        return f"shape {found.shape} (bounded: {found.bounded}), not {true.shape}"
    if found.data is not None:
        if found.data.shape != found.shape:
            return f"content of shape {found.data.shape} in {found.shape}"
        if not onnx_calls.same_content(found, true):
            return f"content {found.data}, not {true.data}"
    return None


@pytest.mark.parametrize("known", [nothing, small_integers, everything])
def test_single_operators_give_the_expected_shapes_types_and_contents(
    cases: list[Any], known: Any
) -> None:
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for case in cases:
        model = case.model
        if len(model.graph.node) != 1 or model.graph.node[0].op_type in NOT_RULED:
            continue
        node = model.graph.node[0]
        assert has_rule(node.domain, node.op_type), node.op_type
        for inputs, outputs in case.data_sets:
            try:
                values = fed(model, inputs, known)
                found = infer(onnx_calls.call_of(node, values, onnx_calls.opsets_of(model)))
            except ShapeRuleError as error:
                wrong.append(f"{case.name}: raised {error}")
                continue
            true = {
                declared.name: onnx_calls.tensor_of_value(value, declared.type, known=True)
                for declared, value in zip(model.graph.output, outputs, strict=True)
            }
            for name, tensor in zip(node.output, found, strict=True):
                if not name or true[name] is None:
                    continue
                problem = difference(tensor, true[name])
                if problem == "unknown":
                    seen["unknown"] += 1
                    if known is nothing or node.op_type in UNKNOWN_BY_NATURE:
                        continue
                if problem:
                    wrong.append(f"{case.name} {name}: {problem}")
                seen["compared"] += problem is None
                seen["content"] += tensor is not None and tensor.data is not None
    assert not wrong, "\n".join(wrong)
    assert seen["compared"] > 1400
    if known is everything:
        assert seen["content"] > 600


@pytest.mark.parametrize("known", [nothing, everything])
def test_decomposed_operators_give_the_expected_shapes_through_all_their_nodes(
    cases: list[Any], known: Any
) -> None:
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for case in cases:
        model = case.model
        if len(model.graph.node) == 1 or onnx_calls.has_subgraphs(model):
            continue
        for inputs, outputs in case.data_sets:
            values = onnx_calls.walk(model, fed(model, inputs, known))
            for declared, value in zip(model.graph.output, outputs, strict=True):
                true = onnx_calls.tensor_of_value(value, declared.type, known=True)
                if true is None:
                    continue
                problem = difference(values[declared.name], true)
                seen[problem or "equal"] += 1
                if problem and (problem != "unknown" or known is everything):
                    wrong.append(f"{case.name} {declared.name}: {problem}")
    assert not wrong, "\n".join(wrong)
    assert seen["equal"] > 400


def read_tensor(path: Path) -> onnx.TensorProto:
    return onnx.TensorProto.FromString(path.read_bytes())


def test_exported_networks_give_the_expected_output_shapes() -> None:
    seen = 0
    for folder in sorted(DATA.glob("pytorch-*/*")):
        model = onnx.load(folder / "model.onnx")
        for data_set in folder.glob("test_data_set_*"):
            inputs = [read_tensor(path) for path in sorted(data_set.glob("input_*.pb"))]
            feeds = {
                declared.name: Tensor(DType(onnx_calls.DTYPES[value.data_type]), tuple(value.dims))
                for declared, value in zip(model.graph.input, inputs, strict=False)
            }
            values = onnx_calls.walk(model, feeds)
            for i, declared in enumerate(model.graph.output):
                true = read_tensor(data_set / f"output_{i}.pb")
                found = values[declared.name]
                assert found is not None
                assert (found.shape, found.bounded) == (tuple(true.dims), False), folder.name
                assert found.dtype is onnx_calls.DTYPES[true.data_type], folder.name
                seen += 1
    assert seen > 80


def test_classic_networks_are_inferred_to_their_last_value() -> None:
    seen = 0
    for path in sorted(DATA.glob("light/light_*.onnx")):
        model = onnx.load(path)
        stored = {tensor.name for tensor in model.graph.initializer}
        feeds = {
            declared.name: Tensor(
                DType.FLOAT, tuple(d.dim_value for d in declared.type.tensor_type.shape.dim)
            )
            for declared in model.graph.input
            if declared.name not in stored
        }
        values = onnx_calls.walk(model, feeds)
        true = read_tensor(path.with_name(path.stem + "_output_0.pb"))
        found = values[model.graph.output[0].name]
        assert found is not None and found.shape == tuple(true.dims), path.name
        assert all(v is not None and v.shape is not None for v in values.values()), path.name
        seen += 1
    assert seen >= 5
