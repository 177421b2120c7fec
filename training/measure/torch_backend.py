"""Networks of the corpus catalog in PyTorch, eager or compiled.

Weights are what the constructor draws: times don't depend on them. Floating-point inputs are drawn
from a normal distribution, since a GPU draws less power for zeros; token inputs are the catalog's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from dippm_lite.execution import Precision
from training.corpus.catalog import find_network
from training.corpus.network import Network
from training.measure.device import Device
from training.measure.prepared import Prepared
from training.measure.workloads import Workload

__all__ = ["prepare"]

_TF32 = {
    # precision: (matmul, cuDNN); the first line is torch's default since 1.12
    Precision.AUTO: (False, True),
    Precision.FP32: (False, False),
    Precision.TF32: (True, True),
}
_WEIGHTS = {Precision.FP16: torch.float16, Precision.BF16: torch.bfloat16}
_SEED = 0


def prepare(workload: Workload, device: Device) -> Prepared:
    """Build the network on the device.

    Raises:
        KeyError: the catalog has no such network.
        ValueError: PyTorch has no such precision there, or the batch is fixed at another size.
        whatever the network raises when it is built.
    """
    network = find_network(workload.network)
    if not network.batch and workload.batch_size != 1:
        raise ValueError(f"{network.name} takes one sample at a time")
    context = _precision(workload.precision, device.kind)
    dtype = _WEIGHTS.get(workload.precision)
    module = _build(network, device.kind)
    inputs = _inputs(network, workload.batch_size, device.kind)
    if dtype is not None:
        module = module.to(dtype)
        inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    run: Callable[..., Any] = module
    if workload.runtime == "pytorch-compile":
        torch.compiler.reset()  # what is compiled keeps its module, and its memory, alive
        run = torch.compile(module)

    def call() -> object:
        with torch.no_grad(), context():
            return run(*inputs)

    facts = {
        "graph": network.name,
        "family": network.family,
        "builder": network.builder,
        "arguments": dict(network.arguments),
        "inputs": [[spec.name, list(spec.shape), str(spec.dtype)] for spec in network.inputs],
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
    }
    return Prepared(call, device.timer(), facts)


def _precision(precision: Precision, kind: str) -> Callable[[], Any]:
    """Set TF32 for the process; returns what each pass runs within."""
    if precision is Precision.INT8 or (kind == "cpu" and precision is Precision.TF32):
        raise ValueError(f"PyTorch on {kind} has no precision {precision.value}")
    matmul, convolution = _TF32.get(precision, _TF32[Precision.AUTO])
    torch.backends.cuda.matmul.allow_tf32 = matmul
    torch.backends.cudnn.allow_tf32 = convolution
    if precision is Precision.AMP:
        half = torch.bfloat16 if kind == "cpu" else torch.float16
        return lambda: torch.autocast(kind, half)
    return contextlib.nullcontext


def _build(network: Network, kind: str) -> torch.nn.Module:
    torch.manual_seed(_SEED)
    try:
        with torch.device(kind):
            module = network.build()
    except (RuntimeError, NotImplementedError, TypeError):
        module = network.build()  # a constructor that mixes devices
    return module.eval().requires_grad_(False).to(kind)


def _inputs(network: Network, batch_size: int, kind: str) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(_SEED)
    made = []
    for spec in network.inputs:
        example = spec.example(batch_size)
        if example.is_floating_point():
            example = torch.randn(example.shape, generator=generator, dtype=example.dtype)
        made.append(example.to(kind))
    return tuple(made)
