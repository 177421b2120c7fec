"""One network, several exporters and opsets, one list of kernels: the one that PyTorch launches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from exported_networks import NETWORKS, exported, network
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dippm_lite.execution import Precision, Runtime
from dippm_lite.kernels import Kernel
from dippm_lite.lowering import Lowering, lower
from dippm_lite.onnx_reader import read_graph

EXPORTS = [("torchscript", 13), ("torchscript", 17), ("torchscript", 18), ("dynamo", 18)]
NETWORK_FILES = Path(__file__).parent / "data" / "networks"


def substance(kernel: Kernel) -> tuple[object, ...]:
    return kernel.kind, kernel.op, kernel.dims, kernel.cost, kernel.math, kernel.repeat


def kernels(lowering: Lowering) -> Counter[tuple[object, ...]]:
    return Counter(map(substance, lowering))


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "untrained vgg"])
def test_exporters_and_opsets_agree(name: str, runtime: Runtime) -> None:
    expected = kernels(lower(exported(name, "torchscript", 17), runtime))
    for exporter, opset in EXPORTS:
        if name == "transformer" and opset < 14:
            continue  # the exporter knows scaled_dot_product_attention from opset 14 on
        for precision in (Precision.AUTO, Precision.AMP):
            found = kernels(lower(exported(name, exporter, opset), runtime, precision))
            if precision is Precision.AUTO:
                assert found == expected, (exporter, opset)
            else:
                reference = exported(name, "torchscript", 17)
                assert found == kernels(lower(reference, runtime, precision)), (exporter, opset)


@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize(
    "name", ["resnet50", "mobilenet_v2", "efficientnet_b0", "swin_tiny", "vit_b_16", "gpt2"]
)
def test_exporters_and_opsets_agree_on_whole_networks(name: str, runtime: Runtime) -> None:
    found = [
        kernels(lower(read_graph(file, batch_size=2).graph, runtime))
        for file in sorted(NETWORK_FILES.glob(f"{name}.*.onnx"))
    ]
    assert len(found) == 3
    assert found[0] == found[1] == found[2]


class Operators(TorchDispatchMode):
    """Names of the ATen operators that make a tensor, views left out."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        storages = {
            t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if torch.is_tensor(t)
        }
        made = [t for t in tree_leaves(result) if torch.is_tensor(t)]
        name = func._schema.name.removeprefix("aten::")
        if name == "empty":  # memory without content
            return result
        if name.endswith("_") or any(t.untyped_storage()._cdata not in storages for t in made):
            self.names.append(name)
        return result


ATEN = {
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
    "_softmax": "softmax",
    "addmm": "linear",
    "avg_pool2d": "avg_pool",
    "clone": "copy",
    "constant_pad_nd": "copy",
    "convolution": "conv",
    "hardsigmoid": "hard_sigmoid",
    "hardswish": "hard_swish",
    "hardtanh": "clip",
    "max_pool2d_with_indices": "max_pool",
    "mm": "linear",
    "native_batch_norm": "batch_norm",
    "native_group_norm": "group_norm",
    "native_layer_norm": "layer_norm",
}


def launched_by_torch(name: str) -> Counter[str]:
    model, x = network(name)
    with torch.no_grad(), Operators() as seen:
        model(x)
    return Counter(ATEN.get(op.rstrip("_"), op.rstrip("_")) for op in seen.names)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("name", NETWORKS)
def test_eager_kernels_are_the_operators_that_torch_dispatches(name: str, exporter: str) -> None:
    expected = launched_by_torch(name)
    opset = 18 if exporter == "dynamo" else 17
    lowering = lower(exported(name, exporter, opset), Runtime.PYTORCH)
    # On a GPU the bias of a convolution is added in place by a kernel of its own; the operator
    # that dispatch shows includes it.
    biases = [k for k in lowering if k.op == "add" and set(k.outputs) <= set(k.inputs)]
    found = Counter(k.op for k in lowering if k not in biases)
    found["conv"] += found.pop("conv_transpose", 0)
    # exact gelu and its tanh form are one operator
    found["gelu"] += found.pop("gelu_tanh", 0)
    assert +found == expected


def test_folded_batch_norm_is_seen_in_any_export() -> None:
    ways = [
        exported("resnet", "torchscript", 17),
        exported("resnet", "torchscript", 13),
        exported("resnet", "dynamo", 18),
        exported("resnet", "torchscript", 17, keep_batch_norm=True),
    ]
    assert [sum(n.op_type == "BatchNormalization" for n in way.nodes) for way in ways] == [
        0,
        0,
        0,
        3,
    ]
    for way in ways:
        found = Counter(kernel.op for kernel in lower(way, Runtime.PYTORCH))
        assert (found["conv"], found["batch_norm"], found["add"]) == (3, 3, 1)
        assert kernels(lower(way, Runtime.PYTORCH)) == kernels(lower(ways[0], Runtime.PYTORCH))
        for engine in (Runtime.ONNXRUNTIME, Runtime.TENSORRT):
            assert "batch_norm" not in {kernel.op for kernel in lower(way, engine)}


@pytest.mark.parametrize(("exporter", "opset"), EXPORTS)
def test_a_bias_of_its_own_is_no_batch_norm(exporter: str, opset: int) -> None:
    found = Counter(k.op for k in lower(exported("vgg", exporter, opset), Runtime.PYTORCH))
    assert "batch_norm" not in found
    assert (found["conv"], found["add"]) == (2, 2)


def test_a_bias_of_zeros_that_an_exporter_drops_is_still_added_by_pytorch() -> None:
    dropped = exported("untrained vgg", "dynamo", 18)
    convolutions = [n for n in dropped.nodes if n.op_type == "Conv"]
    assert [len(n.inputs) for n in convolutions] == [2, 2]
    assert Counter(k.op for k in lower(dropped, Runtime.PYTORCH))["add"] == 2
    kept = exported("untrained vgg", "torchscript", 17)
    for runtime in Runtime:  # the bytes of the bias itself are gone from the file
        pairs = zip(lower(dropped, runtime), lower(kept, runtime), strict=True)
        assert all((a.op, a.dims, a.math) == (b.op, b.dims, b.math) for a, b in pairs)


def test_a_file_without_telling_names_is_taken_at_its_word() -> None:
    read = exported("resnet", "torchscript", 17)
    values = tuple(replace(value, name=f"t{i}") for i, value in enumerate(read.values))
    renamed = replace(read, values=values)
    found = Counter(kernel.op for kernel in lower(renamed, Runtime.PYTORCH))
    # the sums: one of each bias, one of the residual
    assert (found["conv"], found["batch_norm"], found["add"]) == (3, 0, 3 + 1)
