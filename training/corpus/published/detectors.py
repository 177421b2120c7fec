"""Single-shot detectors of MLPerf and of NVIDIA's examples, up to boxes and scores.

Final suppression is left out: the engines do it in a kernel of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network

__all__ = ["EfficientDet", "Ssd", "detector"]


def _extra(inputs: int, middle: int, outputs: int, stride: int, padding: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, middle, 1), nn.ReLU(),
        nn.Conv2d(middle, outputs, 3, stride, padding), nn.ReLU(),
    )  # fmt: skip


class Ssd(nn.Module):
    """SSD (Liu et al., ECCV 2016) on maps of a backbone and of extra convolutions.

    ``stages``: modules in a row; ``taps``: which of their outputs are predicted from;
    ``boxes``: default boxes of a cell of each of these maps.
    """

    def __init__(
        self,
        stages: Sequence[nn.Module],
        taps: Sequence[int],
        widths: Sequence[int],
        boxes: Sequence[int],
        classes: int,
        kernel: int = 3,
        strides: Sequence[int] = (1, 1, 1, 1, 1, 1),
    ) -> None:
        super().__init__()
        self.stages, self.taps = nn.ModuleList(stages), tuple(taps)
        head = partial(nn.Conv2d, kernel_size=kernel, padding=kernel // 2)
        rows = list(zip(widths, boxes, strides, strict=True))
        self.places = nn.ModuleList(head(w, b * 4, stride=s) for w, b, s in rows)
        self.scores = nn.ModuleList(head(w, b * classes, stride=s) for w, b, s in rows)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        maps, x = [], image
        for number, stage in enumerate(self.stages):
            x = stage(x)
            if number in self.taps:
                maps.append(x)
        places = [head(m).flatten(1) for head, m in zip(self.places, maps, strict=True)]
        scores = [head(m).flatten(1) for head, m in zip(self.scores, maps, strict=True)]
        return torch.cat(places, dim=1), torch.cat(scores, dim=1)


def _resnet(name: str) -> list[nn.Module]:
    """Stem, stages 1 and 2, and stage 3 without its stride: a map of a quarter of stage 5's."""
    from torchvision import models

    network = models.get_model(name, weights=None)
    first = network.layer3[0]
    for layer in (first.conv1, first.conv2, first.downsample[0]):
        layer.stride = (1, 1)
    stem = nn.Sequential(network.conv1, network.bn1, network.relu, network.maxpool)
    return [stem, network.layer1, network.layer2, network.layer3]


_BOXES = (4, 6, 6, 6, 4, 4)


def _ssd_resnet34() -> nn.Module:
    """MLPerf's large detector: 1200 pixels, maps of 50, 25, 13, 7 cells and two small ones."""
    stages = [
        *_resnet("resnet34"),
        _extra(256, 256, 512, 2), _extra(512, 256, 512, 3), _extra(512, 128, 256, 2),
        _extra(256, 128, 256, 2, 0), _extra(256, 128, 256, 1, 0),
    ]  # fmt: skip
    widths = (256, 512, 512, 256, 256, 256)
    return Ssd(stages, range(3, 9), widths, _BOXES, 81, strides=(3, 3, 2, 2, 2, 2))


def _ssd300_resnet50() -> nn.Module:
    """NVIDIA's SSD300 v1.1: maps of 38, 19, 10, 5, 3 and 1 cells."""
    stages = [
        *_resnet("resnet50"),
        _extra(1024, 256, 512, 2), _extra(512, 256, 512, 2), _extra(512, 128, 256, 2),
        _extra(256, 128, 256, 1, 0), _extra(256, 128, 256, 1, 0),
    ]  # fmt: skip
    return Ssd(stages, range(3, 9), (1024, 512, 512, 256, 256, 256), _BOXES, 81)


def _ssd_mobilenet() -> nn.Module:
    """MLPerf's small detector: MobileNet v1 at 300 pixels, predictions by 1 x 1 convolutions."""

    def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU6(),
        )  # fmt: skip

    def separable(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
        return nn.Sequential(
            conv(inputs, inputs, 3, stride, groups=inputs), conv(inputs, outputs, 1)
        )

    def extra(inputs: int, middle: int, outputs: int) -> nn.Module:
        return nn.Sequential(conv(inputs, middle, 1), conv(middle, outputs, 3, 2))

    to_c11 = nn.Sequential(
        conv(3, 32, 3, 2), separable(32, 64), separable(64, 128, 2), separable(128, 128),
        separable(128, 256, 2), separable(256, 256), separable(256, 512, 2),
        *(separable(512, 512) for _ in range(5)),
    )  # fmt: skip
    stages = [
        to_c11, nn.Sequential(separable(512, 1024, 2), separable(1024, 1024)),
        extra(1024, 256, 512), extra(512, 128, 256), extra(256, 128, 256), extra(256, 64, 128),
    ]  # fmt: skip
    widths = (512, 1024, 512, 256, 256, 128)
    return Ssd(stages, range(6), widths, (3, 6, 6, 6, 6, 6), 91, kernel=1)


class _Retina(nn.Module):
    """RetinaNet as MLPerf has it: ResNeXt-50, pyramid to P7, 264 classes."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
        from torchvision.models.detection.retinanet import RetinaNetHead
        from torchvision.ops.feature_pyramid_network import LastLevelP6P7

        self.pyramid = resnet_fpn_backbone(
            backbone_name="resnext50_32x4d", weights=None, trainable_layers=5,
            returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256),
        )  # fmt: skip
        self.head = RetinaNetHead(256, 9, 264)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        found = self.head(list(self.pyramid(image).values()))
        return found["cls_logits"], found["bbox_regression"]


class _Fused(nn.Module):
    """Weighted sum of maps, then a separable convolution (Tan et al., CVPR 2020, section 3.3)."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.ones(inputs))
        self.depthwise = nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False)
        self.pointwise, self.norm = nn.Conv2d(width, width, 1), nn.BatchNorm2d(width)

    def forward(self, *maps: Tensor) -> Tensor:
        weights = torch.relu(self.weights)
        weights = weights / (weights.sum() + 1e-4)
        mixed = sum(m * weights[i] for i, m in enumerate(maps))
        result: Tensor = self.norm(self.pointwise(self.depthwise(nn.functional.silu(mixed))))
        return result


class _BiFpn(nn.Module):
    """One bidirectional layer over five maps, finest first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(_Fused(2, width) for _ in range(4))
        self.up = nn.ModuleList(_Fused(3 if i < 3 else 2, width) for i in range(4))

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        coming = [maps[4]]
        for level in (3, 2, 1, 0):
            size = maps[level].shape[-2:]
            grown = nn.functional.interpolate(coming[0], size=size, mode="nearest")
            coming.insert(0, self.down[level](maps[level], grown))
        result = [coming[0]]
        for level in (1, 2, 3, 4):
            shrunk = nn.functional.max_pool2d(result[-1], 3, 2, 1)
            parts = (maps[level], coming[level], shrunk) if level < 4 else (maps[4], shrunk)
            result.append(self.up[level - 1](*parts))
        return result


class EfficientDet(nn.Module):
    """EfficientDet-D0 (Tan et al., CVPR 2020): three BiFPN layers of width 64, heads of depth 3."""

    def __init__(self, width: int = 64, layers: int = 3, depth: int = 3, classes: int = 90) -> None:
        super().__init__()
        import timm

        self.backbone = timm.create_model(
            "tf_efficientnet_b0", features_only=True, out_indices=(2, 3, 4)
        )
        self.lateral = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, width, 1), nn.BatchNorm2d(width))
            for inputs in (40, 112, 320, 320)
        )
        self.pyramid = nn.ModuleList(_BiFpn(width) for _ in range(layers))
        self.classes = self._head(width, depth, 9 * classes)
        self.boxes = self._head(width, depth, 9 * 4)

    @staticmethod
    def _head(width: int, depth: int, outputs: int) -> nn.Module:
        layers: list[nn.Module] = []
        for layer in range(depth + 1):
            last = layer == depth
            layers += [
                nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
                nn.Conv2d(width, outputs if last else width, 1),
            ]
            if not last:
                layers += [nn.BatchNorm2d(width), nn.SiLU()]
        return nn.Sequential(*layers)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        found = self.backbone(image)
        maps = [lateral(m) for lateral, m in zip(self.lateral, [*found, found[-1]], strict=True)]
        maps[3] = nn.functional.max_pool2d(maps[3], 3, 2, 1)
        maps.append(nn.functional.max_pool2d(maps[3], 3, 2, 1))
        for layer in self.pyramid:
            maps = layer(maps)
        classes = torch.cat([self.classes(m).flatten(2) for m in maps], dim=2)
        boxes = torch.cat([self.boxes(m).flatten(2) for m in maps], dim=2)
        return classes, boxes


ROWS: Mapping[str, tuple[str, int, Callable[[], nn.Module]]] = {
    # name: (family, image size, build)
    "ssd-resnet34": ("ssd", 1200, _ssd_resnet34),
    "ssd300-resnet50": ("ssd", 300, _ssd300_resnet50),
    "ssd-mobilenet": ("ssd", 300, _ssd_mobilenet),
    "retinanet-resnext50": ("retinanet", 800, _Retina),
    "efficientdet-d0": ("efficientdet", 512, EfficientDet),
}


def detector(key: str, size: int | None) -> Network | None:
    """A detector at ``size`` pixels square, or ``None``."""
    if key not in ROWS:
        return None
    family, default, build = ROWS[key]
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    inputs = (InputSpec("image", (3, size or default, size or default)),)
    return Network(name, family, f"{__name__}.{key}", {}, inputs, build)
