"""The catalog's networks that need torch alone, and the committed files made of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import onnx
import pytest
import torch

from training.corpus.canonical import fingerprint
from training.corpus.catalog import export_network, find_network
from training.corpus.hollow import hollow
from training.corpus.random_networks import FORMS
from training.corpus.shapes_only import ShapesOnly
from training.corpus.varied_networks import FAMILIES

DATA = Path(__file__).parent / "data"
PUBLISHED = json.loads((DATA / "published.json").read_text())
PLAIN = ["yolov8n", "lstm", "gru", "dcgan", "unet", "speech_encoder"]


@pytest.mark.parametrize("name", PLAIN)
def test_parameters_are_those_published(name):
    module = hollow(find_network(f"plain/{name}").build)
    assert sum(p.numel() for p in module.parameters()) == PUBLISHED[name]["params"]


@pytest.mark.parametrize("name", PLAIN)
def test_a_committed_file_is_what_the_exporter_writes(name):
    committed = onnx.load(
        str(DATA / "networks" / f"{name}.torchscript17.onnx"), load_external_data=False
    )
    model, _ = export_network(find_network(f"plain/{name}"), exporter="torchscript", opset=17)
    assert fingerprint(model) == fingerprint(committed)


@pytest.mark.parametrize("form", FORMS)
def test_random_networks_classify_and_repeat_themselves(form):
    seen = set()
    for number in range(25):
        network = find_network(f"random/{form}-{number}")
        assert network == find_network(f"random/{form}-{number}")
        seen.add(json.dumps(network.arguments, sort_keys=True))
        with torch.no_grad(), ShapesOnly():
            result = hollow(network.build)(network.inputs[0].example(2))
        assert tuple(result.shape) == (2, network.arguments["classes"])
    assert len(seen) == 25


@pytest.mark.parametrize("family", FAMILIES)
def test_variations_are_drawn_from_their_name_alone(family):
    random.seed(1)
    first = [find_network(f"varied/{family}-{number}").arguments for number in range(40)]
    random.seed(2)
    assert first == [find_network(f"varied/{family}-{number}").arguments for number in range(40)]
    assert len({json.dumps(arguments, sort_keys=True) for arguments in first}) > 30
    assert json.loads(json.dumps(first)) == first


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("elsewhere/resnet50", "no source 'elsewhere'"),
        ("plain/resnet50", "no network 'plain/resnet50'"),
        ("random/cells-x", "no network 'random/cells-x'"),
        ("random/other-1", "no network 'random/other-1'"),
    ],
)
def test_an_unknown_name_is_an_error_that_says_so(name, message):
    with pytest.raises(KeyError, match=message):
        find_network(name)
