"""Small torch networks that use what exporters write in different ways, and their ONNX files."""

from __future__ import annotations

import io
import logging
import warnings
from functools import cache

import torch
from torch import nn
from torch.nn import functional

from dippm_lite.graph import Graph
from dippm_lite.onnx_reader import read_graph


class ConvNet(nn.Module):
    """Convolutions with and without batch norm, squeeze and excitation, activations, pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.reduce, self.expand = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.grouped = nn.Conv2d(8, 16, 3, padding=1, groups=2)
        self.groups = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2, bias=False)
        self.norm3 = nn.BatchNorm2d(8)
        self.pool = nn.AvgPool2d(3, stride=2, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.hardswish(self.norm1(self.stem(x)))
        y = functional.silu(self.norm2(self.depthwise(x)))
        gate = functional.relu(self.reduce(y.mean((2, 3), keepdim=True)))
        x = x + y * functional.hardsigmoid(self.expand(gate))
        x = functional.mish(self.groups(self.grouped(x)))
        x = functional.relu6(self.norm3(self.up(x)))
        x = functional.max_pool2d(self.pool(x), 2)
        x = functional.leaky_relu(functional.softplus(x), 0.1)
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Transformer(nn.Module):
    """A window of image tokens through attention, fused or by hand, and an MLP."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.rand(1, 1, 16))
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
        self.fc1, self.fc2 = nn.Linear(16, 64), nn.Linear(64, 16)
        self.head = nn.Linear(16, 5)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            x = functional.scaled_dot_product_attention(q, k, v)
        else:
            x = ((q @ k.transpose(-2, -1)) * 8**-0.5).softmax(-1) @ v
        return self.proj(x.transpose(1, 2).reshape(batch, length, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)
        x = torch.roll(x, 1, 1)
        x = x + self.attend(self.norm1(x))
        x = x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))
        x = x + functional.gelu(x, approximate="tanh")
        return self.head(x[:, 0])


class Vgg(nn.Module):
    """Convolutions with biases of their own and no batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.head = nn.Linear(8 * 15 * 15, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).flatten(1))


class ResNet(nn.Module):
    """A residual block with a projection: every convolution is followed by a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.down = nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        y = functional.relu(y + self.down(x))
        return self.fc(functional.adaptive_avg_pool2d(y, 1).flatten(1))


NETWORKS = {
    "convnet": ConvNet,
    "transformer": lambda: Transformer(fused=True),
    "transformer by hand": lambda: Transformer(fused=False),
    "vgg": Vgg,
    "untrained vgg": Vgg,
    "resnet": ResNet,
}
BATCH = 2


def network(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network in eval mode with random parameters and statistics, and an input of two images. An
    untrained one has biases of zeros, as model libraries initialise them."""
    torch.manual_seed(0)
    model = NETWORKS[name]().eval()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.1)
        for label, parameter in model.named_parameters():
            if name.startswith("untrained") and label.endswith("bias"):
                parameter.zero_()
    return model, torch.rand(BATCH, 3, 32, 32)


@cache
def exported(name: str, exporter: str, opset: int, keep_batch_norm: bool = False) -> Graph:
    """The graph of a network through the ``torchscript`` or the ``dynamo`` exporter."""
    model, x = network(name)
    file = io.BytesIO()
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            program = torch.onnx.export(
                model, (x,), dynamo=True, opset_version=opset, verbose=False
            )
            data = program.model_proto.SerializeToString()
        else:
            training = torch.onnx.TrainingMode.EVAL
            if keep_batch_norm:
                training = torch.onnx.TrainingMode.PRESERVE
            torch.onnx.export(
                model,
                (x,),
                file,
                dynamo=False,
                opset_version=opset,
                training=training,
                do_constant_folding=not keep_batch_norm,
            )
            data = file.getvalue()
    logging.disable(logging.NOTSET)
    return read_graph(data).graph
