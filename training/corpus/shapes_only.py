"""Run torch code for its shapes: large floating-point results are never computed.

The TorchScript exporter learns a network by running it. Under :class:`ShapesOnly` that run costs
milliseconds for a network of any size: an operator on a large tensor is asked for the shape of
its result alone (on torch's meta device), and hands on a zero with stride 0 in that shape. Integers
and small tensors are computed, since shapes depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["ShapesOnly", "TracedConvolution"]

LARGE = 4096
"""Elements of a floating-point tensor from which on its content is taken to be irrelevant."""


class ShapesOnly(TorchDispatchMode):
    """Context in which operators on large floating-point tensors only give shapes.

    To be used with :class:`TracedConvolution` inside it.

    Operators run in a thread of their own: torch's tracing is a state of the calling thread, in
    which even reading a shape is recorded. Not for use with gradients.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = _THREAD.submit(_shapes_of_result, func, args, kwargs).result()
        return func(*args, **kwargs) if result is _COMPUTE else result


_COMPUTE = object()

_THREAD = ThreadPoolExecutor(1, thread_name_prefix="shapes")


def _shapes_of_result(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if func.is_view or not any(_is_irrelevant(leaf) for leaf in tree_flatten((args, kwargs))[0]):
        return _COMPUTE
    if func._schema.is_mutable:
        return args[0]
    with torch.no_grad():
        result = func(*tree_map(_to_meta, args), **tree_map(_to_meta, kwargs))
        return tree_map(_from_meta, result)


def _is_irrelevant(leaf: object) -> bool:
    """Whether the content of a tensor is large, or was left out already."""
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
        return False
    elements = leaf.numel()
    return elements >= LARGE or leaf.untyped_storage().nbytes() < elements * leaf.itemsize


def _to_meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
    return torch.device("meta") if isinstance(leaf, torch.device) else leaf


def _from_meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.zeros((), dtype=leaf.dtype).expand(leaf.shape)
    return leaf


class TracedConvolution(TorchFunctionMode):
    """Context in which convolutions are called by the operator that tracing records.

    ``conv2d`` and its kin are left out of a trace, which has the ``_convolution`` below them; a
    dispatch mode such as :class:`ShapesOnly` would answer before it is reached.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _CONVOLUTIONS:
            rank, bind = _CONVOLUTIONS[func]
            call = bind(*args, **kwargs)
            if not isinstance(call["padding"], str):
                return _convolution(rank, **call)
        return func(*args, **kwargs)


def _convolution(
    rank: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    transposed: bool,
    output_padding: Any,
) -> torch.Tensor:
    sizes = [
        [value] * rank if isinstance(value, int) else list(value)
        for value in (stride, padding, dilation, output_padding)
    ]
    flags = (False, False, True, True)  # cuDNN's benchmark, deterministic, enabled and TF32
    return torch._convolution(input, weight, bias, *sizes[:3], transposed, sizes[3], groups, *flags)


def _direct(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> dict[str, Any]:  # fmt: skip
    return locals() | {"transposed": False, "output_padding": 0}


def _transposed(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> dict[str, Any]:  # fmt: skip
    return locals() | {"transposed": True}


_CONVOLUTIONS = {
    torch.conv1d: (1, _direct),
    torch.conv2d: (2, _direct),
    torch.conv3d: (3, _direct),
    torch.conv_transpose1d: (1, _transposed),
    torch.conv_transpose2d: (2, _transposed),
    torch.conv_transpose3d: (3, _transposed),
}
