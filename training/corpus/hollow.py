"""Modules whose parameters take no memory: shapes, types and ties, no numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["hollow"]


def hollow(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Build a module in evaluation mode whose parameters take no memory.

    ``build`` runs on the meta device; each parameter then becomes one number with stride 0 in
    every dimension, a tied one still being one tensor. No two hold the same number, since
    exporters merge initializers of equal content. Buffers without content become zeros, which are
    valid as indices. A constructor that needs numbers (``.item()``) is run again on the CPU, and
    its buffers are kept.

    Raises:
        whatever ``build`` raises on the CPU.
    """
    try:
        with torch.device("meta"), _NoInitialisation():
            module = build()
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        module = build()
    made: dict[int, torch.Tensor] = {}
    for owner in module.modules():
        for name, parameter in list(owner._parameters.items()):
            if parameter is not None:
                new = made.get(id(parameter))
                if new is None:
                    number = 1 + len(made) / 4096
                    new = torch.nn.Parameter(_flat(parameter, number), requires_grad=False)
                    made[id(parameter)] = new
                owner._parameters[name] = new
        for name, buffer in list(owner._buffers.items()):
            if buffer is not None and buffer.is_meta:
                owner._buffers[name] = made.setdefault(id(buffer), _flat(buffer, 0))
    return module.eval()


class _NoInitialisation(TorchFunctionMode):
    """Skip what writes numbers into tensors that hold none: it changes no shape and takes time."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _WRITERS:
            target = args[0] if args else kwargs.get("tensor")
            if isinstance(target, torch.Tensor) and target.is_meta:
                return target
        return func(*args, **kwargs)


_WRITERS = frozenset({
    "add_", "bernoulli_", "clamp_", "clip_", "copy_", "div_", "erfinv_", "fill_", "mul_",
    "kaiming_normal_", "kaiming_uniform_", "normal_", "pow_", "random_", "sub_", "trunc_normal_",
    "uniform_", "xavier_normal_", "xavier_uniform_", "zero_",
})  # fmt: skip


def _flat(like: torch.Tensor, number: float) -> torch.Tensor:
    return torch.full((), number, dtype=like.dtype).expand(like.shape)
