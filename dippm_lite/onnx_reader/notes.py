"""Oddities of a file, gathered while it is read: one caveat for each kind, with examples."""

from __future__ import annotations

from enum import Enum

from dippm_lite.caveats import FileNote
from dippm_lite.onnx_reader.names import quoted

__all__ = ["Notes", "Topic"]

_MOST_EXAMPLES = 3


class Topic(Enum):
    """What can be odd; the text is a clause about ``{names}``."""

    DANGLING = "nothing produces {names}: taken as a tensor of unknown shape"
    MISSING_OUTPUT = "output {names} is produced by no node: left out"
    DUPLICATE_VALUE = "{names} is produced more than once: the last one before each use counts"
    DUPLICATE_STORED = "initializer {names} occurs more than once: the last one counts"
    OVERRIDABLE = "initializer {names} is an input too: its default is used"
    UNREADABLE = "the content of {names} can't be read, and a shape may depend on it"
    UNKNOWN_TYPE = "{names} has no element type that is known: its bytes are not counted"
    DECLARED_SHAPE = "the declared shape of {names} contradicts the operators: theirs is used"
    CONTRADICTION = "{names} contradicts its operator's definition: its outputs are unknown"
    GUESSED = "the output of {names} has an unknown shape: taken as that of its first input"
    MIXED_TYPES = "the inputs of {names} have different floating-point types: taken as they are"
    TRAINING_MODE = "{names} is in training mode: run as the file says"
    SPARSE = "initializer {names} is sparse: counted with its dense shape"
    SHORT_LOOP = "{names} never runs: its body costs nothing"


class Notes:
    """Collects examples by topic, and single remarks."""

    __slots__ = ("_counts", "_examples", "_remarks")

    def __init__(self) -> None:
        self._counts: dict[Topic, int] = {}
        self._examples: dict[Topic, list[str]] = {}
        self._remarks: dict[str, None] = {}

    def remark(self, text: str) -> None:
        """A note that stands for itself; said once."""
        self._remarks.setdefault(text)

    def count(self, topic: Topic, name: str, detail: str = "") -> None:
        """One more instance of ``topic``; ``detail`` is added in brackets."""
        self._counts[topic] = self._counts.get(topic, 0) + 1
        examples = self._examples.setdefault(topic, [])
        if len(examples) < _MOST_EXAMPLES:
            shown = f"{quoted(name)} ({detail})" if detail else quoted(name)
            if shown not in examples:
                examples.append(shown)

    def caveats(self) -> tuple[FileNote, ...]:
        """All notes, in the order in which their kinds first came up."""
        texts = list(self._remarks)
        for topic, count in self._counts.items():
            examples = self._examples[topic]
            names = ", ".join(examples)
            if count > len(examples):
                names += f" and {count - len(examples)} more"
            texts.append(topic.value.format(names=names))
        return tuple(FileNote(text) for text in texts)
