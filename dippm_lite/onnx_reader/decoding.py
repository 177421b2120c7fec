"""The state of one decoding: the buffer, what may still be used up, what was found damaged."""

from __future__ import annotations

from dippm_lite.errors import InputError
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.wire import Buffer, Span, fields

__all__ = ["Decoder"]


class Decoder:
    """Reads texts from a buffer and charges every record against the limits."""

    def __init__(self, buffer: Buffer, limits: Limits) -> None:
        self.buffer = buffer
        self.limits = limits
        self.damaged_texts = 0
        """Names and strings that were not UTF-8."""
        self._nodes_left = limits.max_nodes
        self._tensors_left = limits.max_tensors
        self._items_left = limits.max_items
        self._text_left = limits.max_text_bytes

    def text(self, start: int, end: int) -> str:
        """The string at ``start:end``; bytes that aren't UTF-8 become ``\\xNN``, so that two
        different broken names stay different."""
        self._text_left -= end - start
        self._items_left -= 1
        if self._text_left < 0 or self._items_left < 0:
            raise self._too_much_text(start)
        try:
            return str(self.buffer[start:end], "utf-8")
        except UnicodeDecodeError:
            self.damaged_texts += 1
            return str(self.buffer[start:end], "utf-8", "backslashreplace")

    def raw_text(self, start: int, end: int) -> bytes:
        """The bytes of a string, charged."""
        self._text_left -= end - start
        self._items_left -= 1
        if self._text_left < 0 or self._items_left < 0:
            raise self._too_much_text(start)
        return self.buffer[start:end]

    def _too_much_text(self, position: int) -> InputError:
        return InputError(f"names and strings take more than the reader holds (byte {position})")

    def charge_node(self) -> None:
        """One node, function or subgraph is about to be kept."""
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise InputError(f"more than {self.limits.max_nodes:,} nodes")

    def charge_tensor(self) -> None:
        """One tensor is about to be kept."""
        self._tensors_left -= 1
        if self._tensors_left < 0:
            raise InputError(f"more than {self.limits.max_tensors:,} initializers and constants")

    def charge_items(self, items: int) -> None:
        """``items`` small records (list entries, dimensions) are about to be kept."""
        self._items_left -= items
        if self._items_left < 0:
            raise InputError(f"more than {self.limits.max_items:,} names, dimensions and values")

    def check_depth(self, depth: int, what: str) -> None:
        """Raises InputError where ``what`` is nested beyond the limit."""
        if depth > self.limits.max_depth:
            raise InputError(f"{what} nested more than {self.limits.max_depth} deep")

    def entry(self, span: Span) -> tuple[str, str]:
        """A ``StringStringEntryProto`` as ``(key, value)``."""
        key = value = ""
        for tag, a, b in fields(self.buffer, (span,)):
            if tag == 10:
                key = self.text(a, b)
            elif tag == 18:
                value = self.text(a, b)
        return key, value

    def opset(self, span: Span) -> tuple[str, int]:
        """An ``OperatorSetIdProto`` as ``(domain, version)``, the default domain being ``""``."""
        domain, version = "", 0
        for tag, a, b in fields(self.buffer, (span,)):
            if tag == 10:
                domain = normal_domain(self.text(a, b))
            elif tag == 16:
                version = a
        return domain, version


def normal_domain(domain: str) -> str:
    """``"ai.onnx"`` is another spelling of the default domain ``""``."""
    return "" if domain == "ai.onnx" else domain
