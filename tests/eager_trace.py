"""What eager PyTorch really keeps alive, beside the graph and kernels that it ran.

A dispatch mode sees every operator. Storages are counted from the operator that creates them until
the last tensor on them is collected, so ``peak_bytes`` is what PyTorch's own accounting would show.
The same run gives a ``Graph`` with one node an operator, named after its modules as the ONNX
exporter names them, and one ``Kernel`` for each operator that writes memory.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dippm_lite.execution import MathMode
from dippm_lite.graph import DType, Graph, OpNode, TensorSpec, Value, ValueKind
from dippm_lite.kernels import ElementDims, Kernel, KernelKind, OpCost


@dataclass(frozen=True)
class EagerRun:
    peak_bytes: int
    graph: Graph
    kernels: tuple[Kernel, ...]


class _Trace(TorchDispatchMode):
    def __init__(self, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        held = [*model.parameters(), *model.buffers()]
        self.weights = {_storage(t) for t in held}
        self.tensors: dict[int, int] = {}  # storage -> live tensors on it
        self.sizes: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # id of a live tensor -> value
        self.live_bytes = self.peak_bytes = 0
        self.values: list[Value] = []
        self.nodes: list[OpNode] = []
        self.kernels: list[Kernel] = []
        self.scope: list[str] = []
        self.inputs = tuple(self._new_value(t, ValueKind.INPUT) for t in inputs)

    def _new_value(self, tensor: torch.Tensor, kind: ValueKind = ValueKind.ACTIVATION) -> int:
        storage = _storage(tensor)
        size = tensor.untyped_storage().nbytes()
        if storage not in self.tensors:
            self.tensors[storage] = 0
            self.sizes[storage] = size
            self.live_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.tensors[storage] += 1
        number = len(self.values)
        self.values.append(Value(f"v{number}", TensorSpec((size,), DType.UINT8), kind))
        self.numbers[id(tensor)] = number
        weakref.finalize(tensor, self._forget, id(tensor), number, storage)
        return number

    def _forget(self, key: int, number: int, storage: int) -> None:
        if self.numbers.get(key) == number:
            del self.numbers[key]
        self.tensors[storage] -= 1
        if not self.tensors[storage]:
            del self.tensors[storage]
            self.live_bytes -= self.sizes.pop(storage)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [self.numbers[id(t)] for t in _tensors((args, kwargs)) if id(t) in self.numbers]
        made, written = [], []
        for tensor in _tensors(out):
            storage = _storage(tensor)
            if id(tensor) in self.numbers or storage in self.weights:
                continue
            fresh = storage not in self.tensors
            made.append(self._new_value(tensor))
            if fresh:
                written.append(made[-1])
        name = "/".join(["", *self.scope, str(func)])
        node = len(self.nodes)
        self.nodes.append(OpNode(name, "", str(func), tuple(read), tuple(made)))
        if written or not made:
            kernel = Kernel(
                KernelKind.OTHER, str(func), OpCost(), ElementDims(1), MathMode.FP32,
                (node,), tuple(read), tuple(written),
            )  # fmt: skip
            self.kernels.append(kernel)
        return out


def run_eagerly(model: torch.nn.Module, *inputs: torch.Tensor) -> EagerRun:
    """Run ``model`` without gradients and report what it kept alive."""
    trace = _Trace(model, inputs)
    hooks = []
    for name, module in model.named_modules():
        if name:
            hooks.append(
                module.register_forward_pre_hook(lambda m, a, n=name: trace.scope.append(n))
            )
            hooks.append(module.register_forward_hook(lambda m, a, o: (trace.scope.pop(), None)[1]))
    with torch.no_grad(), trace:
        result = model(*inputs)
    outputs = tuple(trace.numbers[id(t)] for t in _tensors(result))
    for hook in hooks:
        hook.remove()
    graph = Graph("eager", tuple(trace.values), tuple(trace.nodes), trace.inputs, outputs, 17)
    return EagerRun(trace.peak_bytes, graph, tuple(trace.kernels))


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _tensors(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
