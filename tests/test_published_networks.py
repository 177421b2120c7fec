"""Networks of published measurements against the sizes that their publications print."""

from __future__ import annotations

import pytest
import torch

from training.corpus.catalog import find_network
from training.corpus.plan import PLANS
from training.corpus.published import published_names, published_network


def built(key, size=None):
    network = published_network(key, size)
    with torch.device("meta"):
        return network, network.build().eval()


def million_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters()) / 1e6


@pytest.mark.parametrize(
    ("key", "millions", "tolerance"),
    [
        # Jasper DR 10x5: 333 M (Li et al., 2019, table 3); QuartzNet 15x5: 18.9 M (Kriman et al.).
        ("jasper", 333, 0.002),
        ("quartznet", 18.9, 0.005),
        # Ultralytics' tables of YOLOv8 and YOLOv5u, and of YOLOv5 with masks.
        ("yolov8s", 11.2, 0.01),
        ("yolov8m", 25.9, 0.01),
        ("yolov8l", 43.7, 0.01),
        ("yolov8x", 68.2, 0.01),
        ("yolov8n-seg", 3.4, 0.02),
        ("yolov8s-seg", 11.8, 0.02),
        ("yolov8n-pose", 3.3, 0.02),
        ("yolov8n-obb", 3.1, 0.02),
        ("yolov8n-cls", 2.7, 0.02),
        ("yolov8x-cls", 57.4, 0.02),
        ("yolov5nu", 2.6, 0.03),
        ("yolov5xu", 97.2, 0.01),
        ("yolov5n-seg", 2.0, 0.02),
        ("yolov5l-seg", 47.9, 0.01),
        ("yolov5l", 46.5, 0.01),
        # GPUNet (Wang et al., CVPR 2022).
        ("GPUNet-0", 11.9, 0.005),
        ("GPUNet-1", 12.7, 0.005),
        ("GPUNet-2", 25.8, 0.005),
        # nnU-Net on brain scans (31 M), the U-Net of 2015 (31.0 M), its bilinear form (17.3 M).
        ("nnunet-3d", 31.2, 0.01),
        ("unet-valid", 31.0, 0.005),
        ("unet-bilinear", 17.3, 0.005),
        # DCGAN's discriminator: 3*64*16 + 16*64*64*(2 + 8 + 32) + 16*512 weights, and batch norms.
        ("dcgan-discriminator", 2.7656, 0.001),
    ],
)
def test_parameters_are_those_of_the_publication(key, millions, tolerance):
    assert million_parameters(built(key)[1]) == pytest.approx(millions, rel=tolerance)


@pytest.mark.parametrize(
    ("key", "shapes"),
    [
        ("unet-valid", [(2, 2, 388, 388)]),  # Ronneberger et al., figure 1
        ("unet-bilinear", [(2, 2, 640, 959)]),
        ("nnunet-2d", [(2, 4, 192, 160)]),
        ("GPUNet-P0", [(2, 1000)]),
        ("jasper", [(2, 351, 29)]),
        ("quartznet", [(2, 351, 29)]),
        # 640 pixels: 80 + 40 + 20 cells squared = 8,400 places; 4 sides and 80 classes.
        ("yolov8n", [(2, 84, 8400)]),
        ("yolov8n-seg", [(2, 84, 8400), (2, 32, 8400), (2, 32, 160, 160)]),
        ("yolov8n-pose", [(2, 5, 8400), (2, 51, 8400)]),
        ("yolov8n-cls", [(2, 1000)]),
        ("yolov5nu", [(2, 84, 8400)]),
        ("yolov5n-seg", [(2, 351, 8400), (2, 32, 160, 160)]),
        ("dcgan-discriminator", [(2, 1, 1, 1)]),
    ],
)
def test_a_pass_gives_the_shapes_of_the_publication(key, shapes):
    network, module = built(key)
    with torch.device("meta"):
        outputs = module(*(spec.example(2).to("meta") for spec in network.inputs))
    found = outputs if isinstance(outputs, tuple) else (outputs,)
    assert [tuple(output.shape) for output in found] == shapes


def test_a_size_is_part_of_the_name_and_of_the_input():
    network = find_network("published/yolov8n@320")
    assert (network.name, network.inputs[0].shape) == ("published/yolov8n@320", (3, 320, 320))
    assert find_network("published/jasper@201").inputs[0].shape == (64, 201)


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError, match="published/yolov99"):
        find_network("published/yolov99")


def test_the_plan_holds_the_listed_names_once():
    names = published_names()
    assert PLANS["published"]() == names == sorted(set(names))


def test_every_listed_network_of_this_source_is_known():
    for name in published_names():
        source, _, rest = name.partition("/")
        if source == "published":
            key, _, size = rest.partition("@")
            assert published_network(key, int(size) if size else None).name == name
