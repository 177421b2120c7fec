"""Giving every free dimension of the inputs a number: from the caller, or as the batch.

Named dimensions are one symbol table for the whole model. Unnamed ones are each on their own,
known by their input and axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dippm_lite.caveats import AssumedBatch
from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import binding_errors as say
from dippm_lite.onnx_reader.dimension_table import DimensionTable, InputDecl
from dippm_lite.onnx_reader.dimensions import normal_dim, parse_expression
from dippm_lite.onnx_reader.proto import Dim

__all__ = ["Binding", "InputDecl", "Request", "bind", "say_bound"]


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks for."""

    batch_size: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binding:
    """Every input dimension that could be bound.

    ``shapes`` has the inputs that are known in full; ``symbols`` the named dimensions;
    ``assumed`` says that the batch was a guess; ``had_free`` that the file left anything open.
    """

    batch_size: int | None
    shapes: Mapping[str, tuple[int, ...]]
    symbols: Mapping[str, int]
    assumed: AssumedBatch | None
    had_free: bool

    def size(self, dim: Dim) -> int | None:
        """The size of a dimension declared elsewhere in the model, if its name is bound."""
        dim = normal_dim(dim)
        if not isinstance(dim, str):
            return dim
        if dim in self.symbols:
            return self.symbols[dim]
        expression = parse_expression(dim)
        return None if expression is None else expression.value(self.symbols)


def bind(inputs: Sequence[InputDecl], other_names: Iterable[str], request: Request) -> Binding:
    """The binding of ``inputs`` under ``request``.

    ``other_names`` are dimension names that only outputs and intermediate values have.

    Raises:
        InputError: an unknown name, a size that isn't positive or contradicts the file, or a
            dimension that stays free.
    """
    table = DimensionTable(inputs)
    table.apply_dims(request.dims, other_names)
    table.apply_shapes(request.shapes)
    if request.batch_size is not None:
        table.apply_batch(request.batch_size)
    assumed = None
    free = table.free()
    if free and request.batch_size is None and table.only_batch_is_free():
        size = table.agreed_batch()
        assumed = AssumedBatch(table.label(*free[0]), size)
        for name, axis in free:
            table.set(name, axis, size)
    elif free:
        raise InputError(say.free_dimensions(table.dims, free))
    unshaped = [d.name for d in inputs if d.required and table.dims[d.name] is None]
    if unshaped:
        raise InputError(say.no_shape(unshaped))
    shapes = table.shapes()
    for decl in inputs:
        if decl.required and decl.name not in shapes:
            raise InputError(say.impossible(decl.name, table.dims[decl.name], table.symbols))
    batch = request.batch_size or (assumed.batch_size if assumed else table.common_batch(shapes))
    return Binding(batch, shapes, table.symbols, assumed, table.had_free)


def say_bound(binding: Binding) -> str:
    """What the free dimensions were bound to, for a message."""
    return say.bound(binding.shapes, binding.symbols)
