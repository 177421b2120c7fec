"""Frozen dataclasses to JSON and back, with every key and type checked on the way in.

Understood are ``str``, ``int``, ``float``, ``bool``, enums of ``str``, dataclasses, ``X | None``,
``tuple[X, ...]`` and ``Mapping[str, X]``. Keys are the field names, all required, in field order.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NoReturn, TypeVar

from dippm_lite.errors import BundleError

__all__ = ["decode", "encode", "parse"]

T = TypeVar("T")

_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def encode(value: Any) -> Any:
    """``value`` as plain JSON types; the inverse of :func:`decode`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def parse(text: str, where: str) -> Any:
    """JSON ``text`` as plain types; ``where`` names the file in messages.

    Raises:
        BundleError: not JSON, a key given twice, or a number that JSON doesn't have.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_not_finite)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not valid JSON: {error}") from None


def decode(kind: type[T], data: Any, where: str) -> T:
    """What :func:`parse` returned as the dataclass ``kind``.

    Raises:
        BundleError: a key is missing or unknown, or a value isn't what the dataclass declares.
    """
    value: T = _decode(kind, data, where)
    return value


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        inner = next(arg for arg in typing.get_args(kind) if arg is not type(None))
        return None if data is None else _decode(inner, data, where)
    if origin is tuple:
        if not isinstance(data, list):
            _reject(where, "a list", data)
        inner = typing.get_args(kind)[0]
        return tuple(_decode(inner, item, f"{where}[{i}]") for i, item in enumerate(data))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(data, dict):
            _reject(where, "an object", data)
        inner = typing.get_args(kind)[1]
        for key in data:
            _decode(str, key, f"{where}: a key")
        return {key: _decode(inner, item, f"{where}[{_short(key)}]") for key, item in data.items()}
    if is_dataclass(kind):
        return _decode_dataclass(kind, data, where)
    if issubclass(kind, Enum):
        choices = [member.value for member in kind]
        if data not in choices:
            _reject(where, f"one of {', '.join(choices)}", data)
        return kind(data)
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        data = float(data) if abs(data) < 1 << 63 else math.inf
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        _reject(where, _NAMES[kind], data)
    if kind is float and not math.isfinite(data):
        _reject(where, "a finite number", data)
    if kind is str and not data.isprintable():  # it will be shown on a terminal
        _reject(where, "printable text of one line", data)
    return data


def _decode_dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        _reject(where, "an object", data)
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for name in names:
        if name not in data:
            raise BundleError(f"{where} lacks the key {name!r}")
    for key in data:
        if key not in names:
            raise BundleError(f"{where} has an unknown key {_short(key)}")
    values = {name: _decode(hints[name], data[name], f"{where}: {name}") for name in names}
    try:
        return kind(**values)
    except ValueError as error:
        raise BundleError(f"{where}: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("an object has the same key twice")
    return data


def _not_finite(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON number")


def _reject(where: str, expected: str, found: Any) -> NoReturn:
    raise BundleError(f"{where} should be {expected}, found {_short(found)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
