"""Operators that no exporter knows, or only at newer opsets, as the operators they consist of."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

__all__ = ["ATTENTION_OPSET", "composed_attention", "separate_operators"]

ATTENTION_OPSET = 14
"""First opset for which the TorchScript exporter knows ``scaled_dot_product_attention``."""


@contextlib.contextmanager
def composed_attention() -> Iterator[None]:
    """Attention as matmul, softmax and matmul, in the form that the exporters write it from opset
    14 on: query and key each times the root of the scale."""
    functional = torch.nn.functional
    before = functional.scaled_dot_product_attention

    def composed(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if is_causal or enable_gqa:
            raise ValueError("causal or grouped attention needs opset 14 or newer")
        root = (query.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
        scores = (query * root) @ (key.transpose(-2, -1) * root)
        if attn_mask is not None:
            scores = scores + attn_mask
        return scores.softmax(dim=-1) @ value

    functional.scaled_dot_product_attention = composed
    try:
        yield
    finally:
        functional.scaled_dot_product_attention = before


@contextlib.contextmanager
def separate_operators() -> Iterator[None]:
    """Keep torch from fused operators that no exporter knows, or only at newer opsets."""
    functional = torch.nn.functional
    fast_path = torch.backends.mha.get_fastpath_enabled()
    rms_norm, attention = functional.rms_norm, functional.scaled_dot_product_attention

    @functools.wraps(attention)
    def attention_with_plain_flag(*args: Any, **kwargs: Any) -> Any:
        # While a network is traced, a flag that depends on a shape comes as a tensor.
        if "is_causal" in kwargs:
            kwargs["is_causal"] = bool(kwargs["is_causal"])
        return attention(*args, **kwargs)

    torch.backends.mha.set_fastpath_enabled(False)
    functional.rms_norm = _composed_rms_norm
    functional.scaled_dot_product_attention = attention_with_plain_flag
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        functional.rms_norm = rms_norm
        functional.scaled_dot_product_attention = attention


def _composed_rms_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        eps = torch.finfo(input.dtype).eps
    scaled = input * torch.rsqrt(input.pow(2).mean(axes, keepdim=True) + eps)
    return scaled if weight is None else scaled * weight
