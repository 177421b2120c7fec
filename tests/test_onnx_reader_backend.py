"""ONNX's own test models: all are read, and their outputs have the shapes that onnx expects."""

from __future__ import annotations

import operator
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dippm_lite.caveats import AssumedTripCount, BoundedShapes, UnresolvedShapes
from dippm_lite.graph import DType
from dippm_lite.onnx_reader import ReadModel, read_graph

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"

UNKNOWN_BY_NATURE = ("test_affine_grid_", "test_string_split_", "test_image_decoder_")
"""Cases whose output shape is the content of an input, which a file doesn't have. So is the
length of a sequence."""

PUBLISHED_PARAMETERS = {
    "light_bvlc_alexnet": 60_965_224,
    "light_resnet50": 25_557_032 + 53_120,
    "light_squeezenet": 1_235_496,
    "light_vgg19": 143_667_240,
}
"""Parameters as torchvision documents them (AlexNet: as Caffe's model zoo has it, with groups);
ResNet-50 with its running means and variances, which a file stores like parameters."""


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in node.collect_testcases(None) if case.model is not None]


def differences(case: Any, model: ReadModel) -> list[str]:
    """Where the outputs of a case have another shape or content than was read."""
    graph, found = model.graph, []
    bounded_by_trips = any(isinstance(caveat, AssumedTripCount) for caveat in model.caveats)
    for index, expected in zip(graph.outputs, case.data_sets[0][1], strict=True):
        value = graph.values[index]
        if isinstance(expected, onnx.TensorProto):
            expected = onnx.numpy_helper.to_array(expected)
        if expected is None or isinstance(expected, dict) or bounded_by_trips:
            continue
        if value.spec is None:
            if not isinstance(expected, list) and not case.name.startswith(UNKNOWN_BY_NATURE):
                found.append(f"{case.name}: {value.name} is unknown")
        elif isinstance(expected, list):
            if not value.bounded and value.spec.elements != sum(np.size(e) for e in expected):
                found.append(f"{case.name}: {value.name} is {value.spec.shape}")
        elif value.bounded:
            bound, actual = value.spec.shape, np.shape(expected)
            if len(bound) != len(actual) or any(map(operator.lt, bound, actual)):
                found.append(f"{case.name}: {bound} is no bound of {actual}")
        elif value.spec.shape != np.shape(expected):
            found.append(f"{case.name}: {value.spec.shape}, not {np.shape(expected)}")
        elif value.constant is not None and value.spec.dtype is not DType.BFLOAT16:
            content = np.asarray(expected).astype(np.float64).ravel()
            if not np.allclose(value.constant, content, rtol=1e-4, equal_nan=True):
                found.append(f"{case.name}: content {value.constant}, not {content}")
    return found


def test_node_cases_are_read_with_the_shapes_that_onnx_expects(cases: list[Any]) -> None:
    compared, wrong = 0, []
    for case in cases:
        model = read_graph(case.model.SerializeToString())
        if case.data_sets:
            compared += 1
            wrong += differences(case, model)
    assert wrong == [], "\n".join(wrong)
    assert compared > 1500


def test_models_of_the_wheel_are_read_and_only_one_has_an_unknown_shape() -> None:
    paths = sorted(DATA.rglob("*.onnx"))
    assert len(paths) > 100
    unknown = {
        path.parent.name
        for path in paths
        if any(isinstance(caveat, UnresolvedShapes) for caveat in read_graph(path).caveats)
    }
    assert unknown == {"test_sequence_model8"}  # it splits into as many parts as an input says


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_networks_with_weights_made_by_constantofshape_have_their_published_parameters(
    name: str,
) -> None:
    graph = read_graph(DATA / "light" / f"{name}.onnx").graph
    specs = [graph.values[index].spec for index in graph.stored_weights]
    assert sum(spec.elements for spec in specs if spec) == PUBLISHED_PARAMETERS[name]


def test_resnet_is_176_operators_with_every_shape_known() -> None:
    """16 blocks of 3 convolutions, 4 shortcuts and the stem: 53 convolutions."""
    model = read_graph(DATA / "light" / "light_resnet50.onnx")
    counts = [node.op_type for node in model.graph.nodes]
    assert (counts.count("Conv"), counts.count("BatchNormalization")) == (53, 53)
    assert (counts.count("Sum"), counts.count("ConstantOfShape")) == (16, 0)
    assert all(value.spec is not None for value in model.graph.values)
    assert not any(isinstance(caveat, BoundedShapes) for caveat in model.caveats)
