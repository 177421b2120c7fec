"""The life of every buffer over a sequence of kernels.

A value lives from the kernel that writes it to the last kernel that reads it; what the caller holds
(the graph's inputs) lives throughout, and what it gets back lives to the end. Values that no kernel
writes (Reshape and other views) have no storage of their own: they keep alive the one they look at.
Weights aren't counted, and the body of a loop is counted once, however often it runs.

Eager PyTorch frees by reference count, which is this rule, except that a module call holds its
arguments until it returns (see ``calls``). The file doesn't say which activations were
``inplace=True``: each output gets its own buffer, which also stands in for the output of a
BatchNorm that the exporter folded away (on torchvision's CNNs the two cancel). onnxruntime and
TensorRT plan their buffers ahead by the same rule, and let an elementwise kernel overwrite an
operand that nothing reads later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType

from dippm_lite.execution import Runtime
from dippm_lite.graph import ABSENT, Graph, TensorSpec, ValueKind
from dippm_lite.kernels import Kernel, KernelKind
from dippm_lite.liveness.calls import Call, module_calls

__all__ = ["Buffer", "Liveness", "float_storage", "peak", "weight_sizes"]

# onnxruntime's kernels declare MayInplace, TensorRT's pointwise layers run in place.
_OVERWRITES: Mapping[Runtime, frozenset[KernelKind]] = MappingProxyType(
    {
        Runtime.PYTORCH: frozenset(),
        Runtime.ONNXRUNTIME: frozenset({KernelKind.ELEMENTWISE}),
        Runtime.TENSORRT: frozenset({KernelKind.ELEMENTWISE}),
    }
)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Storage that one or more values share.

    ``first`` and ``last`` are indices into the kernels: the buffer is in memory while kernels
    ``first`` to ``last`` run, both included. ``values`` are those written to it, in that order;
    ``held`` marks one that belongs to the caller (an input) and is there before the first kernel.
    """

    values: tuple[int, ...]
    size_bytes: int
    first: int
    last: int
    held: bool = False


@dataclass(frozen=True, slots=True)
class Liveness:
    """Memory over one inference.

    Attributes:
        peak_bytes: most bytes in buffers at once.
        peak_kernel: index of the first kernel during which that happens; -1 without kernels.
        alive: indices into ``buffers`` of what is in memory then, largest first.
        profile: bytes in buffers while each kernel runs.
        buffers: all of them, by first kernel; the caller's inputs come first.
        unsized: values of unknown shape: their bytes are missing from every figure.
        calls_known: whether module calls were found that keep their arguments alive. Without them
            the peak of eager PyTorch is a lower bound. Always True for runtimes that plan ahead.
    """

    peak_bytes: int
    peak_kernel: int
    alive: tuple[int, ...]
    profile: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    unsized: tuple[int, ...]
    calls_known: bool = True


def float_storage(itemsize: int) -> Callable[[TensorSpec], int]:
    """A ``size_of`` for :func:`peak` where every floating-point tensor has ``itemsize`` bytes an
    element, whatever the file says; other tensors keep their type."""

    def size_of(spec: TensorSpec) -> int:
        return spec.elements * itemsize if spec.dtype.is_floating else spec.size_bytes

    return size_of


def weight_sizes(
    graph: Graph, size_of: Callable[[TensorSpec], int] | None = None
) -> tuple[int, ...]:
    """Bytes of each weight that the file stores, in the run-time precision, in file order."""
    specs = (graph.values[value].spec for value in graph.stored_weights)
    return tuple(
        spec.size_bytes if size_of is None else size_of(spec) for spec in specs if spec is not None
    )


def peak(
    graph: Graph,
    kernels: Sequence[Kernel],
    runtime: Runtime = Runtime.PYTORCH,
    size_of: Callable[[TensorSpec], int] | None = None,
) -> Liveness:
    """Lives of all buffers when ``kernels`` run in order, and the peak of their bytes.

    ``size_of`` gives a tensor's bytes in the run-time precision; by default those of its own type.
    """
    storage = _storages(graph, kernels)
    last_read = _last_reads(graph, kernels, storage)
    calls_known = True
    if runtime is Runtime.PYTORCH:
        calls = module_calls(graph, kernels)
        calls_known = any(calls)
        _hold_arguments(kernels, calls, storage, last_read)
    unsized: list[int] = []

    def size(value: int) -> int:
        spec = graph.values[value].spec
        if spec is None:
            unsized.append(value)
            return 0
        return spec.size_bytes if size_of is None else size_of(spec)

    end = max(len(kernels) - 1, 0)
    buffers = [
        Buffer((value,), size(value), 0, end, held=True) for value in dict.fromkeys(graph.inputs)
    ]
    buffer_of: dict[int, int] = {}
    for step, kernel in enumerate(kernels):
        for value in kernel.outputs:
            if value == ABSENT or value in buffer_of:
                continue
            new = Buffer((value,), size(value), step, max(step, last_read.get(value, step)))
            target = None
            if kernel.kind in _OVERWRITES[runtime]:
                target = _overwritten(kernel, step, new, storage, buffer_of, buffers)
            if target is None:
                buffer_of[value] = len(buffers)
                buffers.append(new)
            else:
                old = buffers[target]
                buffers[target] = replace(old, values=(*old.values, value), last=new.last)
                buffer_of[value] = target
    return _summarise(tuple(buffers), len(kernels), tuple(unsized), calls_known)


def _storages(graph: Graph, kernels: Sequence[Kernel]) -> dict[int, int]:
    """Value to the written value (or graph input) whose storage it is in; weights and host values
    have none. A view belongs to its node's first operand that has storage."""
    storage = {value: value for value in graph.inputs}
    storage.update((value, value) for kernel in kernels for value in kernel.outputs)
    for node in graph.nodes:
        source = next((storage[value] for value in node.inputs if value in storage), None)
        if source is None:
            continue
        for value in node.outputs:
            if value != ABSENT and graph.values[value].kind is ValueKind.ACTIVATION:
                storage.setdefault(value, source)
    return storage


def _last_reads(
    graph: Graph, kernels: Sequence[Kernel], storage: Mapping[int, int]
) -> dict[int, int]:
    """Written value to the last kernel that reads it, itself or through a view; graph outputs are
    read by the caller after the last kernel."""
    last: dict[int, int] = {}
    for step, kernel in enumerate(kernels):
        for value in kernel.inputs:
            if value in storage:
                last[storage[value]] = step
    for value in graph.outputs:
        if value in storage:
            last[storage[value]] = len(kernels)
    return last


def _hold_arguments(
    kernels: Sequence[Kernel],
    calls: Sequence[Sequence[Call]],
    storage: Mapping[int, int],
    last_read: dict[int, int],
) -> None:
    """Extend the life of each value to the end of every module call that got it as an argument:
    the outermost call that reads it and began after it was written."""
    written = {v: step for step in reversed(range(len(kernels))) for v in kernels[step].outputs}
    for kernel, around in zip(kernels, calls, strict=True):
        for value in kernel.inputs:
            owner = storage.get(value)
            if owner is None or owner not in written:
                continue
            end = next((last for first, last in around if first > written[owner]), 0)
            last_read[owner] = max(last_read[owner], end)


def _overwritten(
    kernel: Kernel,
    step: int,
    new: Buffer,
    storage: Mapping[int, int],
    buffer_of: Mapping[int, int],
    buffers: Sequence[Buffer],
) -> int | None:
    """Index of an operand's buffer that the kernel may write its output to."""
    for value in kernel.inputs:
        index = buffer_of.get(storage.get(value, ABSENT))
        if index is None:
            continue
        old = buffers[index]
        if old.last == step and old.first < step and old.size_bytes == new.size_bytes:
            return index
    return None


def _summarise(
    buffers: tuple[Buffer, ...], steps: int, unsized: tuple[int, ...], calls_known: bool
) -> Liveness:
    change = [0] * (steps + 1)
    last_step = max(steps - 1, 0)
    buffers = tuple(replace(b, last=min(b.last, last_step)) for b in buffers)
    for buffer in buffers:
        change[buffer.first] += buffer.size_bytes
        if buffer.last < last_step:
            change[buffer.last + 1] -= buffer.size_bytes
    profile = tuple(accumulate(change[:steps]))
    at = max(range(steps), key=profile.__getitem__, default=-1)
    alive = [i for i, b in enumerate(buffers) if at < 0 or b.first <= at <= b.last]
    return Liveness(
        peak_bytes=profile[at] if profile else sum(b.size_bytes for b in buffers),
        peak_kernel=at,
        alive=tuple(sorted(alive, key=lambda i: -buffers[i].size_bytes)),
        profile=profile,
        buffers=buffers,
        unsized=unsized,
        calls_known=calls_known,
    )
