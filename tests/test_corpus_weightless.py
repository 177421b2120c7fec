"""Weightless export: what torch would export, without its weights and without their memory."""

from __future__ import annotations

import contextlib
import resource

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from training.corpus import exporters, weightless
from training.corpus.hollow import hollow
from training.corpus.stripping import WEIGHTS_FILE, strip_weights
from training.corpus.weightless import export


def small_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 40, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(40, 40, 3, groups=4), nn.ReLU(inplace=True),
        nn.Flatten(), nn.Linear(40 * 36, 10),
    )  # fmt: skip


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.enter, self.leave = nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        heads = self.enter(self.norm(x)).reshape(batch, tokens, 3, 4, 16).permute(2, 0, 3, 1, 4)
        # A flag of a shape, as timm's rotary attention has it.
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=tokens > 1000)
        result: torch.Tensor = x + self.leave(mixed.transpose(1, 2).reshape(batch, tokens, 64))
        return result


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(48, 64, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.lstm(x)[0][:, -1]
        return result


class Rms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(96, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(x)
        return result


NETWORKS = {
    "convolutions": (small_network, (3, 16, 16)),
    "folded_norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 64, 5, 2, 2, bias=False), nn.BatchNorm2d(64)),
        (3, 32, 32),
    ),
    "transposed": (lambda: nn.ConvTranspose2d(16, 32, 4, 2, 1, output_padding=1), (16, 20, 20)),
    "one_dimension": (lambda: nn.Conv1d(8, 64, 9, padding="same"), (8, 500)),
    "three_dimensions": (lambda: nn.Conv3d(3, 32, (1, 3, 3), dilation=(1, 2, 2)), (3, 4, 20, 20)),
    "attention": (Attention, (50, 64)),
    "recurrent": (Recurrent, (30, 48)),
    "rms_norm": (Rms, (70, 96)),
}


def exported(build, shape, *, opset: int = 17, exporter: str = "torchscript") -> onnx.ModelProto:
    arguments = (torch.zeros(2, *shape),)
    return export(hollow(build), arguments, exporter=exporter, opset=opset, input_names=["x"])


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("name", NETWORKS)
def test_running_for_shapes_alone_exports_the_same_bytes_as_computing(name, opset, monkeypatch):
    build, shape = NETWORKS[name]
    quick = exported(build, shape, opset=opset).SerializeToString(deterministic=True)
    monkeypatch.setattr(exporters, "_shapes_only", lambda module: contextlib.nullcontext())
    assert quick == exported(build, shape, opset=opset).SerializeToString(deterministic=True)


@pytest.mark.parametrize(("exporter", "opset"), [("torchscript", 13), ("dynamo", 18)])
def test_a_stripped_file_given_its_weights_back_computes_what_torch_computes(exporter, opset):
    torch.manual_seed(0)
    module = small_network().eval()
    model = exported(small_network, (3, 16, 16), exporter=exporter, opset=opset)
    weights = module.state_dict()
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            values = weights[tensor.name].numpy()
            assert tuple(tensor.dims) == values.shape
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    image = torch.randn(5, 3, 16, 16)
    expected = module(image).detach().numpy()
    np.testing.assert_allclose(session.run(None, {"x": image.numpy()})[0], expected, atol=1e-5)


@pytest.mark.parametrize(("exporter", "opset"), [("torchscript", 17), ("dynamo", 18)])
def test_large_weights_keep_dimensions_and_type_but_no_data(exporter, opset):
    model = exported(small_network, (3, 16, 16), exporter=exporter, opset=opset)
    large = [tensor for tensor in model.graph.initializer if np.prod(tensor.dims) > 1024]
    assert sorted(tuple(tensor.dims) for tensor in large) == [
        (10, 1440), (40, 3, 3, 3), (40, 10, 3, 3),
    ]  # fmt: skip
    for tensor in large:
        assert tensor.data_type == onnx.TensorProto.FLOAT
        assert tensor.data_location == onnx.TensorProto.EXTERNAL
        assert [(entry.key, entry.value) for entry in tensor.external_data] == [
            ("location", WEIGHTS_FILE)
        ]
        assert not tensor.raw_data
        assert not tensor.float_data
    assert model.ByteSize() < 6000


def test_the_batch_dimension_is_free_and_the_others_are_fixed():
    model = exported(small_network, (3, 16, 16))
    dims = model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 3, 16, 16]


def test_ten_gigabytes_of_weights_need_no_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = exported(lambda: nn.Linear(50_000, 50_000, bias=False), (50_000,))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    (weight,) = model.graph.initializer
    assert sorted(weight.dims) == [50_000, 50_000]
    assert grown_kib < 500_000


def test_equal_weights_of_different_layers_stay_apart_and_tied_ones_together():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = (nn.Conv2d(64, 64, 1) for _ in range(3))
            self.third.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.third(self.second(self.first(x)))
            return result

    model = exported(Tied, (64, 8, 8))
    first, second, third = (node.input[1] for node in model.graph.node)
    assert first == third
    assert first != second
    assert len(model.graph.initializer) == 5


def test_a_shape_that_depends_on_content_is_computed_after_all():
    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[(x + 1 > 0).nonzero()[:, 0]] * 2

    model = exported(Chosen, (5000,))
    assert "NonZero" in {node.op_type for node in model.graph.node}


def test_a_hollow_module_holds_one_number_a_parameter_and_says_its_shapes():
    module = hollow(lambda: nn.Linear(30_000, 30_000))
    assert [tuple(p.shape) for p in module.parameters()] == [(30_000, 30_000), (30_000,)]
    assert all(p.untyped_storage().nbytes() == 4 for p in module.parameters())
    assert not module.training


def test_a_constructor_that_needs_numbers_is_run_on_the_cpu():
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            steps = [step.item() for step in torch.linspace(1, 3, 3)]
            self.layers = nn.ModuleList(nn.Linear(4, int(step)) for step in steps)

    assert [layer.out_features for layer in hollow(Counting).layers] == [1, 2, 3]


def test_another_opset_than_asked_for_is_an_error(monkeypatch):
    def stubborn(module, arguments, opset, names, dynamic):
        graph = onnx.helper.make_graph([], "empty", [], [])
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])

    monkeypatch.setattr(weightless, "EXPORTERS", {"stubborn": stubborn})
    with pytest.raises(ValueError, match="writes opset 18, not 13"):
        export(nn.Identity(), (torch.zeros(1),), exporter="stubborn", opset=13, input_names=["x"])


def test_small_integers_and_scalars_keep_their_values():
    shape = onnx.numpy_helper.from_array(np.array([2, -1], np.int64), "shape")
    scale = onnx.numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    table = onnx.numpy_helper.from_array(np.zeros(5000, np.int64), "table")
    node = onnx.helper.make_node(
        "Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.ones(900, np.float32))
    )
    graph = onnx.helper.make_graph([node], "g", [], [], [shape, scale, table])
    model = strip_weights(onnx.helper.make_model(graph))
    by_name = {tensor.name: tensor for tensor in model.graph.initializer}
    assert onnx.numpy_helper.to_array(by_name["shape"]).tolist() == [2, -1]
    assert onnx.numpy_helper.to_array(by_name["scale"]) == 0.5
    assert not by_name["table"].raw_data
    assert not model.graph.node, "a large Constant becomes an initializer"
    assert list(by_name["c"].dims) == [900]
    assert not by_name["c"].raw_data
