"""Published rows made up for the tests of matching."""

from __future__ import annotations

from training.corpus.records import Record
from training.datasets.graph_index import GraphIndex
from training.datasets.tables import PublishedRow


def published(**fields) -> PublishedRow:
    """A latency of ResNet-50 in some paper, but for ``fields``."""
    row = {
        "table": "vision.csv", "line": 2, "source": "some_paper", "model": "ResNet-50",
        "hint": "torchvision:resnet50", "task": "classification", "device": "A100-SXM4-40GB",
        "precision": "fp16", "framework": "tensorrt", "batch": "8", "height": 224, "width": 224,
        "metric": "latency_ms", "value": 5.0, "unit": "ms", "percentile": "avg",
    }  # fmt: skip
    return PublishedRow(**{**row, **fields})


def record(name: str, *aliases: str, shape: tuple[int, ...] = (3, 224, 224)) -> Record:
    return Record(
        name=name,
        family="family",
        builder="builder",
        arguments={},
        exporter="torchscript",
        opset=17,
        inputs=[["image", list(shape), "float32"]],
        batch=True,
        parameters=1,
        nodes=1,
        fingerprint=f"fingerprint of {name}",
        architecture="architecture",
        torch="2",
        aliases=aliases,
    )


INDEX = GraphIndex.of(
    [
        record("torchvision/resnet50"),
        record("timm/resnet50", "timm/resnet50_clip"),
        record("timm/resnet50@288", shape=(3, 288, 288)),
        record("transformers/bert-large-qa@384", shape=(384,)),
        record("step/llama-2-7b@512", shape=(1,)),
        record("diffusion/sd15-unet", shape=(4, 64, 64)),
        record("published/jasper@201", shape=(64, 201)),
    ]
)
