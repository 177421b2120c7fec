"""Sizes and tasks of YOLOv8 and YOLOv5 in plain torch, without the final suppression.

Structure: the published configurations of both (Jocher et al., 2020 and 2023). YOLOv5u is YOLOv5's
backbone and neck with YOLOv8's head; YOLOv5 itself predicts from anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from training.corpus.network import InputSpec, Network
from training.corpus.yolo import C2f, Conv, Sppf, YoloV8

__all__ = ["yolo_network"]

SIZES: Mapping[str, tuple[float, float, int]] = {
    # letter: width, depth, channels at most
    "n": (0.25, 1 / 3, 1024),
    "s": (0.5, 1 / 3, 1024),
    "m": (0.75, 2 / 3, 768),
    "l": (1.0, 1.0, 512),
    "x": (1.25, 1.0, 512),
}

MASKS, KEYPOINTS = 32, 51


class _Bottleneck(nn.Module):
    """A 1 x 1 and a 3 x 3 convolution, with a shortcut in the backbone."""

    def __init__(self, width: int, shortcut: bool) -> None:
        super().__init__()
        self.first, self.second, self.shortcut = Conv(width, width), Conv(width, width, 3), shortcut

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.second(self.first(x))
        return x + result if self.shortcut else result


class C3(nn.Module):
    """YOLOv5's block: bottlenecks on one half, a 1 x 1 convolution on the other."""

    def __init__(self, inputs: int, outputs: int, depth: int, shortcut: bool = False) -> None:
        super().__init__()
        half = outputs // 2
        self.left, self.right = Conv(inputs, half), Conv(inputs, half)
        self.blocks = nn.Sequential(*(_Bottleneck(half, shortcut) for _ in range(depth)))
        self.leave = Conv(2 * half, outputs)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.leave(torch.cat((self.blocks(self.left(x)), self.right(x)), dim=1))
        return result


class _Prototypes(nn.Module):
    """Masks that an object's mask is a mixture of, at a quarter of the image's resolution."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Conv(inputs, width, 3), nn.ConvTranspose2d(width, width, 2, 2), Conv(width, width, 3),
            Conv(width, MASKS),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x)
        return result


class WithTask(nn.Module):
    """A detector whose three maps feed one more branch: mask mixtures, keypoints or angles."""

    def __init__(self, detector: YoloV8, widths: list[int], outputs: int, masks: int = 0) -> None:
        super().__init__()
        self.detector = detector
        middle = max(widths[0] // 4, outputs)
        self.more = nn.ModuleList(detector._branch(n, middle, outputs) for n in widths)
        self.prototypes = _Prototypes(widths[0], masks) if masks else None

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        maps = _maps(self.detector, image)
        found = _detect(self.detector, maps)
        more = [branch(m).flatten(2) for branch, m in zip(self.more, maps, strict=True)]
        result = (found, torch.cat(more, dim=2))
        return result if self.prototypes is None else (*result, self.prototypes(maps[0]))


def _maps(net: YoloV8, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The neck's three maps, as in ``YoloV8.forward``."""
    stage3 = net.stage3(net.stage2(net.stem(image)))
    stage4 = net.stage4(stage3)
    stage5 = net.stage5(stage4)
    middle = net.top_down4(torch.cat((net.grow(stage5), stage4), dim=1))
    fine = net.top_down3(torch.cat((net.grow(middle), stage3), dim=1))
    middle = net.bottom_up4(torch.cat((net.shrink3(fine), middle), dim=1))
    coarse = net.bottom_up5(torch.cat((net.shrink4(middle), stage5), dim=1))
    return fine, middle, coarse


def _detect(net: YoloV8, maps: tuple[Tensor, ...]) -> Tensor:
    boxes = torch.cat([b(x).flatten(2) for b, x in zip(net.boxes, maps, strict=True)], dim=2)
    labels = torch.cat([b(x).flatten(2) for b, x in zip(net.labels, maps, strict=True)], dim=2)
    bins = boxes.unflatten(1, (4, -1)).transpose(1, 2).softmax(1)
    start, end = net.integral(bins).squeeze(1).chunk(2, dim=1)
    return torch.cat((end - start, end + start, labels.sigmoid()), dim=1)


class YoloV5(nn.Module):
    """YOLOv5's backbone and neck: ``maps`` gives three maps of ``widths`` channels."""

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        c = [int(base * width) for base in (64, 128, 256, 512, 1024)]
        three, six, nine = (max(round(n * depth), 1) for n in (3, 6, 9))
        self.widths = c[2:]
        self.stem = nn.Sequential(Conv(3, c[0], 6, 2), Conv(c[0], c[1], 3, 2))
        self.stem[0].conv.padding = (2, 2)
        self.stage2 = C3(c[1], c[1], three, True)
        self.stage3 = nn.Sequential(Conv(c[1], c[2], 3, 2), C3(c[2], c[2], six, True))
        self.stage4 = nn.Sequential(Conv(c[2], c[3], 3, 2), C3(c[3], c[3], nine, True))
        self.stage5 = nn.Sequential(
            Conv(c[3], c[4], 3, 2), C3(c[4], c[4], three, True), Sppf(c[4], c[4]),
            Conv(c[4], c[3]),
        )  # fmt: skip
        self.grow = nn.Upsample(scale_factor=2)
        self.down4 = nn.Sequential(C3(2 * c[3], c[3], three), Conv(c[3], c[2]))
        self.down3 = C3(2 * c[2], c[2], three)
        self.shrink3, self.up4 = Conv(c[2], c[2], 3, 2), C3(2 * c[2], c[3], three)
        self.shrink4, self.up5 = Conv(c[3], c[3], 3, 2), C3(2 * c[3], c[4], three)

    def maps(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        stage3 = self.stage3(self.stage2(self.stem(image)))
        stage4 = self.stage4(stage3)
        stage5 = self.stage5(stage4)
        middle = self.down4(torch.cat((self.grow(stage5), stage4), dim=1))
        fine = self.down3(torch.cat((self.grow(middle), stage3), dim=1))
        coarse = self.up4(torch.cat((self.shrink3(fine), middle), dim=1))
        return fine, coarse, self.up5(torch.cat((self.shrink4(coarse), stage5), dim=1))


class Anchored(nn.Module):
    """YOLOv5 with its own head: one 1 x 1 convolution a map, three anchors a cell."""

    def __init__(self, width: float, depth: float, masks: int = 0) -> None:
        super().__init__()
        self.body = YoloV5(width, depth)
        outputs = 3 * (5 + 80 + (MASKS if masks else 0))
        self.heads = nn.ModuleList(nn.Conv2d(n, outputs, 1) for n in self.body.widths)
        self.prototypes = _Prototypes(self.body.widths[0], masks) if masks else None

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        maps = self.body.maps(image)
        found = [head(m).sigmoid().flatten(2) for head, m in zip(self.heads, maps, strict=True)]
        result = (torch.cat(found, dim=2),)
        return result if self.prototypes is None else (*result, self.prototypes(maps[0]))


class Anchorless(nn.Module):
    """YOLOv5u: YOLOv5's maps, YOLOv8's head."""

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        self.body = YoloV5(width, depth)
        widths = self.body.widths
        box, label = max(16, widths[0] // 4, 64), max(widths[0], 80)
        self.boxes = nn.ModuleList(YoloV8._branch(n, box, 64) for n in widths)
        self.labels = nn.ModuleList(YoloV8._branch(n, label, 80) for n in widths)
        self.integral = nn.Conv2d(16, 1, 1, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        return _detect(self, self.body.maps(image))  # type: ignore[arg-type]


class Classifier(nn.Module):
    """YOLOv8's backbone without pyramid pooling, and a linear classifier."""

    def __init__(self, width: float, depth: float, classes: int = 1000) -> None:
        super().__init__()
        c = [int(base * width) for base in (64, 128, 256, 512, 1024)]
        few, many = max(round(3 * depth), 1), max(round(6 * depth), 1)
        layers: list[nn.Module] = [Conv(3, c[0], 3, 2)]
        for stage, blocks in enumerate((few, many, many, few), 1):
            layers += [Conv(c[stage - 1], c[stage], 3, 2), C2f(c[stage], c[stage], blocks, True)]
        self.layers = nn.Sequential(*layers, Conv(c[4], 1280))
        self.head = nn.Linear(1280, classes)

    def forward(self, image: Tensor) -> Tensor:
        return torch.softmax(self.head(self.layers(image).mean((2, 3))), dim=1)


def _v8(letter: str, task: str) -> nn.Module:
    width, depth, top = SIZES[letter]
    if task == "cls":
        return Classifier(width, depth)
    classes = {"": 80, "seg": 80, "oiv7": 601, "pose": 1, "obb": 15}[task]
    detector = YoloV8(width, depth, top, classes)
    widths = [max(int(min(base, top) * width), 8) for base in (256, 512, 1024)]
    if task == "seg":
        return WithTask(detector, widths, MASKS, masks=int(256 * width))
    if task == "pose":
        return WithTask(detector, widths, KEYPOINTS)
    return WithTask(detector, widths, 1) if task == "obb" else detector


def _v5(letter: str, task: str) -> nn.Module:
    width, depth = {**{k: v[:2] for k, v in SIZES.items()}, "x": (1.25, 4 / 3)}[letter]
    if task == "u":
        return Anchorless(width, depth)
    return Anchored(width, depth, masks=int(256 * width) if task == "seg" else 0)


_DEFAULTS = {"cls": 224, "obb": 1024}


def _rows() -> Mapping[str, tuple[str, Callable[[], nn.Module]]]:
    rows: dict[str, tuple[str, Callable[[], nn.Module]]] = {}
    for letter in SIZES:
        for task in ("", "seg", "oiv7", "pose", "obb", "cls"):
            key = f"yolov8{letter}" + (f"-{task}" if task else "")
            rows[key] = (task, lambda a=letter, b=task: _v8(a, b))  # type: ignore[misc]
        for task in ("", "u", "seg"):
            key = f"yolov5{letter}" + ("-seg" if task == "seg" else task)
            rows[key] = (task, lambda a=letter, b=task: _v5(a, b))  # type: ignore[misc]
    return rows


def yolo_network(key: str, size: int | None) -> Network | None:
    """A size and task of YOLOv8 or YOLOv5 at ``size`` pixels square, or ``None``."""
    rows = _rows()
    if key not in rows:
        return None
    task, build = rows[key]
    pixels = size or _DEFAULTS.get(task, 640)
    name = f"published/{key}" if size is None else f"published/{key}@{size}"
    inputs = (InputSpec("image", (3, pixels, pixels)),)
    return Network(name, "yolo", f"{__name__}.{key}", {}, inputs, build)
