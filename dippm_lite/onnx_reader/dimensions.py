"""Free dimensions: which names name something, and the arithmetic that exporters write in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil, floor

from dippm_lite.onnx_reader.proto import Dim

__all__ = ["Expression", "is_batch_like", "is_batch_name", "normal_dim", "parse_expression"]

_PLACEHOLDER = re.compile(
    r"\s*|\?|-\d+|None|none|unk__\d+|unknown(_\d+)?|.*dynamic_axes_\d+|p2o\.DynamicDimension\.\d+"
)
"""What exporters write for "no name": Keras, tf2onnx, PyTorch and Paddle among them. The same
placeholder in two places doesn't mean the same size."""

_BATCH_WORD = r"bs|bsz|([a-z0-9]+[_.-])*batch([_.-]?(size|dim|axis|\d+))*"
_BATCH_NAME = re.compile(_BATCH_WORD, re.IGNORECASE)
_BATCH_LIKE = re.compile(f"n|b|nb|{_BATCH_WORD}", re.IGNORECASE)


def normal_dim(dim: Dim) -> Dim:
    """``dim`` with everything that isn't a size or a name turned into None."""
    if isinstance(dim, int):
        return None if dim < 0 else dim
    if dim is None or _PLACEHOLDER.fullmatch(dim):
        return None
    return dim


def is_batch_like(name: str) -> bool:
    """True for the names that exporters give a batch: N, batch, batch_size, bs."""
    return _BATCH_LIKE.fullmatch(name) is not None


def is_batch_name(name: str) -> bool:
    """True for the names that can't be anything but a batch, which a single letter can."""
    return _BATCH_NAME.fullmatch(name) is not None


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w.]*)|(//|[-+*/(),]))")
_FUNCTIONS: dict[str, Callable[..., Fraction]] = {
    "floor": lambda a: Fraction(floor(a)),
    "ceil": lambda a: Fraction(ceil(a)),
    "ceiling": lambda a: Fraction(ceil(a)),
    "min": min,
    "Min": min,
    "max": max,
    "Max": max,
    "Mod": lambda a, b: a % b,
}
_MAX_LENGTH = 256  # characters: bounds the time and the nesting of an expression
_MAX_NESTING = 32


class Expression:
    """A dimension computed from named ones: ``past_len + seq``, ``2*N``, ``floor(N/2)``.

    ``names`` are the dimensions it depends on.
    """

    __slots__ = ("_depth", "_position", "_tokens", "_values", "names")

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._tokens = tokens
        self._values: Mapping[str, int] = {}
        self._position = self._depth = 0
        self.names = frozenset(
            token
            for token, following in zip(tokens, (*tokens[1:], ""), strict=True)
            if (token[0].isalpha() or token[0] == "_") and following != "("
        )

    def value(self, values: Mapping[str, int]) -> int | None:
        """The size under ``values``, rounded down; None where it can't be computed."""
        try:
            size = self._evaluate(values)
        except (ArithmeticError, KeyError):
            return None
        return floor(size) if size >= 0 else None

    def is_valid(self) -> bool:
        """True where the tokens form an expression, whatever its value."""
        try:
            self._evaluate(dict.fromkeys(self.names, 1))
        except (KeyError, TypeError, _SyntaxError):
            return False
        except ArithmeticError:
            return True
        return True

    def _evaluate(self, values: Mapping[str, int]) -> Fraction:
        self._values, self._position, self._depth = values, 0, 0
        size = self._sum()
        if self._position < len(self._tokens):
            raise _SyntaxError
        return size

    def _next(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._next()
        if not token or (expected is not None and token != expected):
            raise _SyntaxError
        self._position += 1
        return token

    def _sum(self) -> Fraction:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise _SyntaxError
        total = -self._product() if self._next() == "-" and self._take() else self._product()
        while self._next() in ("+", "-"):
            total = total + self._product() if self._take() == "+" else total - self._product()
        self._depth -= 1
        return total

    def _product(self) -> Fraction:
        result = self._atom()
        while self._next() in ("*", "/", "//"):
            sign, right = self._take(), self._atom()
            quotient = result * right if sign == "*" else result / right
            result = Fraction(floor(quotient)) if sign == "//" else quotient
        return result

    def _atom(self) -> Fraction:
        token = self._take()
        if token.isdigit():
            return Fraction(int(token))
        if token == "(":
            inner = self._sum()
            self._take(")")
            return inner
        if self._next() != "(":
            return Fraction(self._values[token])
        self._take("(")
        arguments = [self._sum()]
        while self._next() == ",":
            self._take()
            arguments.append(self._sum())
        self._take(")")
        return _FUNCTIONS[token](*arguments)


class _SyntaxError(Exception):
    pass


def parse_expression(text: str) -> Expression | None:
    """The expression in ``text``; None for a plain name or anything that isn't arithmetic."""
    if len(text) > _MAX_LENGTH:
        return None
    tokens: list[str] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(match.group().strip())
        position = match.end()
    if len(tokens) < 2:
        return None
    expression = Expression(tuple(tokens))
    return expression if expression.is_valid() else None
