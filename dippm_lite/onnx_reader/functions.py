"""Local functions of a model: a call is replaced by the body, with its attributes filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from dippm_lite.errors import InputError
from dippm_lite.graph import ABSENT
from dippm_lite.onnx_reader.names import quoted
from dippm_lite.onnx_reader.proto import AttributeDef, FunctionDef, NodeDef
from dippm_lite.onnx_reader.scope import Scope

if TYPE_CHECKING:
    from dippm_lite.onnx_reader.walk import Walker

__all__ = ["FunctionKey", "bound_attributes", "function_table", "inline"]

FunctionKey = tuple[str, str, str]
"""Domain, name, overload."""


def function_table(functions: Iterable[FunctionDef]) -> Mapping[FunctionKey, FunctionDef]:
    """Functions by what a node calls them with."""
    return {(f.domain, f.name, f.overload): f for f in functions}


def bound_attributes(node: NodeDef, scope: Scope) -> tuple[AttributeDef, ...]:
    """The attributes of a node with references to the enclosing function's filled in; one that
    refers to an attribute which the call leaves out is left out too."""
    if not any(attribute.ref for attribute in node.attributes):
        return node.attributes
    bound = []
    for attribute in node.attributes:
        meant = scope.attributes.get(attribute.ref) if attribute.ref else attribute
        if meant is not None:
            bound.append(AttributeDef(attribute.name, meant.type, meant.value))
    return tuple(bound)


def inline(
    walker: Walker,
    key: FunctionKey,
    function: FunctionDef,
    node: NodeDef,
    scope: Scope,
    repeat: int,
) -> None:
    """Follow the body of ``function`` in place of the call ``node``.

    Raises:
        InputError: the function calls itself, directly or through others.
    """
    if key in scope.path:
        raise InputError(f"function {quoted('::'.join(filter(None, key)))} calls itself")
    body = Scope(
        {**scope.opsets, **function.opsets}, f"{scope.prefix}{node.name or function.name}/"
    )
    body.path = (*scope.path, key)
    body.depth = scope.depth + 1
    body.declare(function.value_info)
    given = {default.name: default for default in function.defaults}
    given.update((attribute.name, attribute) for attribute in bound_attributes(node, scope))
    body.attributes = given
    actual = [walker.find(scope, name) for name in node.inputs]
    for formal, index in zip_longest(function.inputs, actual[: len(function.inputs)]):
        body.values[formal] = ABSENT if index is None else index
    walker.follow(function.nodes, body, repeat)
    results = [walker.find(body, name) for name in function.outputs]
    walker.bind_outputs(node, scope, results)
