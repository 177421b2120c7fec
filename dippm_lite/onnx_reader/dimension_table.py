"""The dimensions of all inputs while they are being bound, as one table of names and places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader import binding_errors as say
from dippm_lite.onnx_reader.dimensions import (
    Expression,
    is_batch_like,
    is_batch_name,
    normal_dim,
    parse_expression,
)
from dippm_lite.onnx_reader.proto import Dim

__all__ = ["DimensionTable", "InputDecl"]


@dataclass(frozen=True, slots=True)
class InputDecl:
    """A graph input as the file declares it. ``dims`` is None where the rank is unknown;
    ``required`` is False for one that may stay unknown: nobody reads it, or it is a sequence."""

    name: str
    dims: tuple[Dim, ...] | None
    required: bool = True


class DimensionTable:
    """Sizes of dimensions by name, and of unnamed ones by input and axis.

    ``dims`` are the inputs as declared, ``symbols`` the names bound so far; ``had_free`` says
    that the file left a dimension of a required input open.
    """

    def __init__(self, inputs: Sequence[InputDecl]) -> None:
        self.dims: dict[str, tuple[Dim, ...] | None] = {}
        self.symbols: dict[str, int] = {}
        self._required = {decl.name for decl in inputs if decl.required}
        self._unnamed: dict[tuple[str, int], int] = {}
        for decl in inputs:
            self.dims[decl.name] = (
                None if decl.dims is None else tuple(normal_dim(dim) for dim in decl.dims)
            )
        self.names = {d for dims in self.dims.values() for d in dims or () if isinstance(d, str)}
        self.expressions = self._find_expressions()
        self.had_free = any(
            dims is None or any(not isinstance(dim, int) for dim in dims)
            for name, dims in self.dims.items()
            if name in self._required
        )

    def _find_expressions(self, given: Iterable[str] = ()) -> dict[str, Expression]:
        """Names that are arithmetic on names which stand for themselves somewhere: the name
        ``batch-size`` isn't, unless there are dimensions ``batch`` and ``size``."""
        parsed = {name: parse_expression(name) for name in self.names}
        plain = {name for name, expression in parsed.items() if expression is None} | set(given)
        return {n: e for n, e in parsed.items() if e is not None and e.names <= plain}

    def apply_dims(self, dims: Mapping[str, int], other_names: Iterable[str]) -> None:
        """Bind names; one may also stand inside an expression, or in outputs only."""
        self.expressions = self._find_expressions(dims)
        known = self.names | {inner for name in self.names for inner in _names_inside(name)}
        known |= {name for name in other_names if normal_dim(name) is not None}
        for name, size in dims.items():
            if name not in known:
                raise InputError(say.unknown_dim(name, known))
            leading = any(d is not None and d[:1] == (name,) for d in self.dims.values())
            if size < 0 or (size == 0 and (leading or is_batch_like(name))):
                raise InputError(say.bad_dim(name, size))
            self.symbols[name] = size

    def apply_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Plain dimensions first, so that one computed from them is checked against them."""
        for name, shape in shapes.items():
            if name not in self.dims:
                raise InputError(say.unknown_input(name, self.dims))
            if any(size < 0 for size in shape):
                raise InputError(say.bad_shape(name, shape))
            declared = self.dims[name]
            if declared is None:
                self.dims[name] = tuple(shape)
            elif len(declared) != len(shape):
                raise InputError(say.wrong_rank(name, declared, shape))
        for computed in (False, True):
            for name, shape in shapes.items():
                for axis, dim in enumerate(self.dims[name] or ()):
                    if (dim in self.expressions) == computed:
                        self._apply_size(name, axis, shape)

    def _apply_size(self, name: str, axis: int, shape: tuple[int, ...]) -> None:
        before, size = self.size(name, axis), shape[axis]
        dim = (self.dims[name] or ())[axis]
        if before is not None and before != size:
            raise InputError(say.wrong_size(name, self.dims[name] or (), shape, axis, before))
        if size == 0 and not isinstance(dim, int) and (axis == 0 or is_batch_like(dim or "")):
            raise InputError(say.bad_dim(self.label(name, axis), size))
        self.set(name, axis, size)

    def apply_batch(self, size: int) -> None:
        """Bind the batch.

        Raises:
            InputError: it is fixed at another size, or there is none.
        """
        if size <= 0:
            raise InputError(say.bad_batch(size))
        targets = self._batch_dims()
        if not targets:
            first = {n: self.size(n, 0) for n, dims in self.dims.items() if dims}
            if size not in first.values():
                raise InputError(say.fixed_batch(size, self.dims, first))
        for name, axis in targets:
            self.set(name, axis, size)

    def only_batch_is_free(self) -> bool:
        """True where every free dimension leads and is the batch."""
        free = self.free()
        return all(axis == 0 for _, axis in free) and len(self._batch_dims()) == len(free)

    def _batch_dims(self) -> list[tuple[str, int]]:
        """The free leading dimensions, if no others are free. Else, and where a name shows which
        one is the batch, those with a name like "batch", wherever they stand, and the unnamed
        leading ones."""
        free = self.free()
        leading = [(name, axis) for name, axis in free if axis == 0]
        shown = any(
            isinstance(dim, str) and (is_batch_name(dim) or (axis > 0 and is_batch_like(dim)))
            for dims in self.dims.values()
            for axis, dim in enumerate(dims or ())
        )
        if len(leading) == len(free) and not shown:
            return leading
        named = [at for at in free if is_batch_like(self._symbol(*at) or "")]
        unnamed = [at for at in leading if self._symbol(*at) is None]
        return [*named, *unnamed] if named or shown else leading

    def agreed_batch(self) -> int:
        """What the caller's own bindings say of the batch; 1 where they say nothing."""
        bound = {
            size
            for name, dims in self.dims.items()
            if dims and not isinstance(dims[0], int) and (size := self.size(name, 0)) is not None
        }
        return bound.pop() if len(bound) == 1 and bound != {0} else 1

    def common_batch(self, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
        """What the batch-like names are bound to, else the first dimension that all inputs of
        rank 2 or more share."""
        named = {size for name, size in self.symbols.items() if is_batch_like(name)}
        if len(named) == 1:
            return named.pop()
        first = {s[0] for n, s in shapes.items() if len(s) >= 2 and n in self._required}
        return first.pop() if len(first) == 1 else None

    def free(self) -> list[tuple[str, int]]:
        """``(input, axis)`` of each dimension that needs a number and has none. One computed from
        dimensions that will be asked for isn't among them."""
        asked = {d for name in self._required for d in self.dims[name] or ()}
        return [
            (name, axis)
            for name, dims in self.dims.items()
            if name in self._required
            for axis, dim in enumerate(dims or ())
            if self.size(name, axis) is None
            and not (dim in self.expressions and self.expressions[dim].names <= asked)
        ]

    def size(self, name: str, axis: int) -> int | None:
        """The size of a dimension, None while it is free."""
        dim = (self.dims[name] or ())[axis]
        if isinstance(dim, int):
            return dim
        if dim is None:
            return self._unnamed.get((name, axis))
        if dim in self.symbols:
            return self.symbols[dim]
        return self.expressions[dim].value(self.symbols) if dim in self.expressions else None

    def set(self, name: str, axis: int, size: int) -> None:
        """Bind a dimension; what is bound already stays."""
        dim = (self.dims[name] or ())[axis]
        if dim is None:
            self._unnamed[name, axis] = size
        elif isinstance(dim, str):
            self.symbols.setdefault(dim, size)

    def label(self, name: str, axis: int) -> str:
        """How a message calls a dimension."""
        return self._symbol(name, axis) or say.unnamed(name, axis)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The inputs whose dimensions are all bound."""
        found = {}
        for name, dims in self.dims.items():
            sizes = [self.size(name, axis) for axis in range(len(dims or ()))]
            if dims is not None and None not in sizes:
                found[name] = tuple(size for size in sizes if size is not None)
        return found

    def _symbol(self, name: str, axis: int) -> str | None:
        dim = (self.dims[name] or ())[axis]
        return dim if isinstance(dim, str) else None


def _names_inside(text: str) -> frozenset[str]:
    expression = parse_expression(text)
    return frozenset() if expression is None else expression.names
