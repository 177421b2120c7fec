"""How much the reader is willing to hold: a hostile file of a few bytes must stay cheap."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one read; a file beyond one of them raises ``InputError``.

    The defaults stand well above the largest models known (a 70-billion-parameter decoder has
    some 20,000 nodes, an unrolled speech model 300,000) and keep the worst file within about
    2 GiB of memory.

    Attributes:
        max_nodes: node records in the file, and again node calls once functions, branches and
            loop bodies are followed: a call costs about 2 KiB, and k functions that each call
            the next one twice would be 2**k of them.
        max_tensors: initializers.
        max_items: names, dimensions, list entries and value_info records, about 100 bytes each.
        max_text_bytes: all names and strings together.
        max_depth: nesting of subgraphs, of function calls and of types. protobuf itself stops at
            100 messages, about 32 subgraphs.
        max_elements: elements of one tensor; 2**48 floats are a petabyte, so a larger shape is a
            mistake or an attack.
        max_known_bytes: tensor contents that constant propagation keeps at the same time.
        max_repeat: runs of one node in one inference, all enclosing loops multiplied.
        max_stream_bytes: what is read from an object that isn't a file on disk.
    """

    max_nodes: int = 500_000
    max_tensors: int = 500_000
    max_items: int = 8_000_000
    max_text_bytes: int = 256 << 20
    max_depth: int = 32
    max_elements: int = 1 << 48
    max_known_bytes: int = 256 << 20
    max_repeat: int = 1 << 40
    max_stream_bytes: int = 2 << 30


DEFAULT_LIMITS = Limits()
