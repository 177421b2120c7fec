"""MACs and parameters of known networks against figures published elsewhere, or worked out by hand.

The hand counts start from the architecture as its paper gives it, never from the file. Exporters
fold batch normalisation: a file then has one bias a channel in place of a scale and a shift.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from dippm_lite.analysis import Analysis, analyse

DATA = Path(__file__).parent / "data"
PUBLISHED = json.loads((DATA / "published.json").read_text(encoding="utf-8"))
FILES = sorted(path.name for path in (DATA / "networks").glob("*.onnx"))


@cache
def _analysis(file: str, batch_size: int = 1) -> Analysis:
    return analyse(DATA / "networks" / file, batch_size=batch_size)


def _files_of(name: str) -> list[str]:
    return [file for file in FILES if file.startswith(name + ".")]


@pytest.mark.parametrize(
    "file", [file for file in FILES if PUBLISHED[file.split(".")[0]]["macs"] is not None]
)
def test_macs_are_within_one_percent_of_the_published_figure(file: str) -> None:
    published = PUBLISHED[file.split(".")[0]]["macs"]
    assert _analysis(file).static.macs == pytest.approx(published, rel=0.01)


def test_the_networks_that_must_be_right_are_all_there() -> None:
    wanted = {"resnet50", "mobilenet_v2", "vgg16", "vit_b_16", "bert_base", "yolov8n"}
    wanted |= {"lstm", "dcgan", "resnext50_32x4d", "speech_encoder"}
    assert wanted <= {file.split(".")[0] for file in FILES}


def _conv(out: int, channels_in: int, channels_out: int, kernel: int) -> int:
    return out * channels_in * channels_out * kernel


def _lstm_macs() -> int:
    steps, features, hidden = 100, 128, 512
    first = 4 * hidden * (features + hidden)
    second = 4 * hidden * (hidden + hidden)
    return steps * (first + second) + hidden * 10


def _gru_macs() -> int:
    steps, hidden, vocabulary = 64, 512, 10_000
    return steps * (3 * hidden * (hidden + hidden) + hidden * vocabulary)


def _dcgan_macs() -> int:
    # A transposed convolution multiplies each input element with the whole filter.
    layers = [(1, 100, 512), (4, 512, 256), (8, 256, 128), (16, 128, 64), (32, 64, 3)]
    return sum(_conv(side * side, cin, cout, 4 * 4) for side, cin, cout in layers)


def _speech_encoder_macs() -> int:
    total, length, channels = 0, 16_000, 1
    for kernel, stride in zip((10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2), strict=True):
        length = (length - kernel) // stride + 1
        total += _conv(length, channels, 512, kernel)
        channels = 512
    return total


def _unet_macs() -> int:
    total, side, channels = 0, 256, 3
    widths = [64, 128, 256, 512, 1024]
    for level, width in enumerate(widths):  # down: two 3x3 convolutions a level
        pixels = (side >> level) ** 2
        total += _conv(pixels, channels, width, 9) + _conv(pixels, width, width, 9)
        channels = width
    for level in (3, 2, 1, 0):  # up: 2x2 transposed, then two 3x3 on the concatenation
        width, below = widths[level], (side >> (level + 1)) ** 2
        pixels = (side >> level) ** 2
        total += _conv(below, 2 * width, width, 4)
        total += _conv(pixels, 2 * width, width, 9) + _conv(pixels, width, width, 9)
    return total + _conv(side * side, 64, 2, 1)


@pytest.mark.parametrize(
    ("name", "macs"),
    [
        ("lstm", _lstm_macs()),
        ("gru", _gru_macs()),
        ("dcgan", _dcgan_macs()),
        ("speech_encoder", _speech_encoder_macs()),
        ("unet", _unet_macs()),
    ],
)
def test_macs_equal_the_count_by_hand(name: str, macs: int) -> None:
    assert [_analysis(file).static.macs for file in _files_of(name)] == [macs]


def _resnet50_bn_channels() -> int:
    total, channels = 64, 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        total += blocks * (width + width + 4 * width) + 4 * width  # and one projection a stage
        channels = 4 * width
    assert channels == 2048
    return total


def _mobilenet_v2_bn_channels() -> int:
    # Table 2 of the paper: expansion, output channels, repeats.
    stages = ((1, 16, 1), (6, 24, 2), (6, 32, 3), (6, 64, 4), (6, 96, 3), (6, 160, 3), (6, 320, 1))
    total = channels = 32
    for expansion, width, repeats in stages:
        for _ in range(repeats):
            hidden = expansion * channels
            total += (hidden if expansion > 1 else 0) + hidden + width
            channels = width
    return total + 1280


_BERT_POOLER = 768 * 768 + 768  # published with it, exported without


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("vgg16", 0),
        ("vit_b_16", 0),
        ("lstm", 0),
        ("gru", 0),
        ("resnet50", -_resnet50_bn_channels()),
        ("mobilenet_v2", -_mobilenet_v2_bn_channels()),
        ("bert_base", -_BERT_POOLER),
        ("yolov8n", 3_151_904 - 3_157_200),  # Ultralytics prints 3151904 for the fused model
    ],
)
def test_parameters_are_exact(name: str, difference: int) -> None:
    expected = PUBLISHED[name]["params"] + difference
    for file in _files_of(name):
        assert _analysis(file).static.params == expected, file


@pytest.mark.parametrize("file", ["resnet50.torchscript18.onnx", "bert_base.dynamo18.onnx"])
def test_macs_grow_in_proportion_to_the_batch_and_parameters_do_not(file: str) -> None:
    one, eight = _analysis(file), _analysis(file, 8)
    assert eight.static.macs == 8 * one.static.macs
    assert eight.static.params == one.static.params
