"""The flat graph while it grows: values and calls that can still change or be taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dippm_lite.graph import AttributeValue, DType, ValueKind
from dippm_lite.onnx_reader.tensors import Tensor

__all__ = ["UNKNOWN", "Draft", "DraftNode", "DraftValue", "Mark"]

UNKNOWN = Tensor(DType.UNDEFINED, None)


@dataclass(slots=True)
class DraftValue:
    """A value as far as it is known.

    ``constant_only`` is True for what the file alone decides, whatever the input shapes are;
    ``rooted`` for what depends on a stored weight; ``in_file`` for what an initializer or a
    Constant node holds; ``guessed`` for a shape that rests on a guess. ``is_tensor`` is False for
    maps, which have no shape to find.
    """

    name: str
    tensor: Tensor
    kind: ValueKind
    constant_only: bool = False
    rooted: bool = False
    in_file: bool = False
    guessed: bool = False
    is_tensor: bool = True


@dataclass(slots=True)
class DraftNode:
    """A call. ``problem`` says how it contradicts its operator, ``guessed`` that the shape of its
    output is a guess, ``on_guess`` that an input's is."""

    name: str
    domain: str
    op_type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, AttributeValue]
    repeat: int
    problem: str | None = None
    guessed: bool = False
    on_guess: bool = False


@dataclass(slots=True)
class Draft:
    """All values and calls so far, and the choices made on the way: Ifs whose costlier branch was
    taken, loops whose trip count was assumed, and the conditions that would decide them, which
    have to be computed although no output is made of them."""

    values: list[DraftValue] = field(default_factory=list)
    nodes: list[DraftNode] = field(default_factory=list)
    chosen_branches: list[str] = field(default_factory=list)
    assumed_trips: list[str] = field(default_factory=list)
    conditions: list[int] = field(default_factory=list)

    def add(self, value: DraftValue) -> int:
        """The index of a new value."""
        self.values.append(value)
        return len(self.values) - 1

    def mark(self) -> Mark:
        """The present state, to cut back to."""
        return Mark(
            len(self.nodes),
            len(self.chosen_branches),
            len(self.assumed_trips),
            len(self.conditions),
        )

    def cut(self, start: Mark, stop: Mark | None = None) -> None:
        """Take back what was added between two marks. Values stay: they are numbered already, and
        those that nobody reads are left out in the end."""
        del self.nodes[start.nodes : stop.nodes if stop else None]
        del self.chosen_branches[start.branches : stop.branches if stop else None]
        del self.assumed_trips[start.trips : stop.trips if stop else None]
        del self.conditions[start.conditions : stop.conditions if stop else None]


@dataclass(frozen=True, slots=True)
class Mark:
    """Lengths of a draft's lists at one moment."""

    nodes: int
    branches: int
    trips: int
    conditions: int
