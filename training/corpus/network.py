"""One architecture that can be built and exported: its name, family, builder and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

__all__ = ["InputSpec", "Network"]


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a network: ``shape`` is without the batch, which is always dimension 0."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32

    def example(self, batch_size: int) -> torch.Tensor:
        """Zeros of shape ``(batch_size, *shape)``: valid as an image and as a token.

        It is one zero with stride 0: a cache of keys and values can be as large as a network.
        """
        return torch.zeros((), dtype=self.dtype).expand(batch_size, *self.shape)


@dataclass(frozen=True, slots=True)
class Network:
    """An architecture with its arguments bound.

    Attributes:
        name: ``"source/name"``, with what distinguishes it: ``"timm/resnet50@288"``.
        family: the kind of architecture, for splits that leave a family out: ``"resnet"``.
        builder: the callable that a reader can look up: ``"timm.create_model"``.
        arguments: what the builder is called with, JSON values only.
        inputs: in the order of the module's positional arguments.
        build: makes the module; runs on the meta device where it can.
        batch: False where the architecture fixes its batch at 1 (detection post-processing).
    """

    name: str
    family: str
    builder: str
    arguments: Mapping[str, object]
    inputs: tuple[InputSpec, ...]
    build: Callable[[], torch.nn.Module] = field(compare=False)
    batch: bool = True
