"""LightGBM's text format to arrays: what is written is read and checked, nothing is computed.

The format is what ``lightgbm.Booster.save_model`` writes (``version=v3`` and ``v4``): a header of
``key=value`` lines, one block of such lines a tree, ``end of trees``, then importances, training
parameters and pandas categories, none of which a prediction needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dippm_lite.errors import BundleError

__all__ = ["ModelText", "parse_model_text"]

MAX_TEXT_BYTES = 1 << 25
"""A larger text is refused: shipped models are ten times smaller."""

_VERSIONS = (b"v3", b"v4")


@dataclass(frozen=True, slots=True, eq=False)
class ModelText:
    """A model as written, the trees' arrays joined in tree order.

    Tree ``t`` has ``num_leaves[t]`` leaves and one internal node fewer. Children are numbers
    within their tree: ``c >= 0`` is internal node ``c``, ``c < 0`` is leaf ``-c - 1``. The
    ``threshold`` of a categorical split is the number of its bit set within the tree;
    ``cat_sets[t]`` holds those sets as arrays of 32-bit words.
    """

    feature_names: tuple[str, ...]
    objective: str
    num_tree_per_iteration: int
    average_output: bool
    num_leaves: NDArray[np.int64]
    split_feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    decision_type: NDArray[np.int64]
    left_child: NDArray[np.int64]
    right_child: NDArray[np.int64]
    leaf_value: NDArray[np.float64]
    cat_sets: Mapping[int, tuple[NDArray[np.int64], ...]]


def parse_model_text(text: str | bytes) -> ModelText:
    """Read ``text``; every array has the length that its tree declares.

    Raises:
        BundleError: the text is not a complete LightGBM model, or is one with linear trees.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    if len(data) > MAX_TEXT_BYTES:
        raise _damaged(f"{len(data)} bytes exceed the limit of {MAX_TEXT_BYTES}")
    body, end, _ = data.partition(b"\nend of trees")
    if not end:
        raise _damaged("the line 'end of trees' is missing: the text is cut off or no such model")
    head, *blocks = body.split(b"\nTree=")
    header = _fields(head)
    version = header.get(b"version", b"")
    if not head.startswith(b"tree") or version not in _VERSIONS:
        raise _damaged(f"format version {_show(version)} where v3 or v4 is expected")
    names = _show(header.get(b"feature_names", b"")).split()
    num_features = _integer(header, b"max_feature_idx", "header") + 1
    if num_features != len(names):
        raise _damaged(f"{len(names)} feature names for {num_features} features")
    if len(blocks) != len(header.get(b"tree_sizes", b"").split()) or not blocks:
        raise _damaged(f"{len(blocks)} trees where the header announces another number")
    per_iteration = _integer(header, b"num_tree_per_iteration", "header")
    if per_iteration < 1 or len(blocks) % per_iteration:
        raise _damaged(f"{len(blocks)} trees at {per_iteration} an iteration")

    num_leaves: list[int] = []
    cat_sets: dict[int, tuple[NDArray[np.int64], ...]] = {}
    splits: dict[bytes, list[bytes]] = {
        key: []
        for key in (b"split_feature", b"threshold", b"decision_type", b"left_child", b"right_child")
    }
    leaf_tokens: list[bytes] = []
    for tree, block in enumerate(blocks):
        where = f"tree {tree}"
        number, _, lines = block.partition(b"\n")
        if number.strip() != b"%d" % tree:
            raise _damaged(f"tree {_show(number)} follows tree {tree - 1}")
        fields = _fields(lines)
        if fields.get(b"is_linear", b"0") != b"0":
            raise BundleError(
                f"LightGBM text: {where} has linear leaves: train with linear_tree=false"
            )
        count = _integer(fields, b"num_leaves", where)
        if count < 1:
            raise _damaged(f"{where}: num_leaves is {count}")
        num_leaves.append(count)
        leaf_tokens += _tokens(fields, b"leaf_value", count, where)
        if count > 1:
            for key, values in splits.items():
                values += _tokens(fields, key, count - 1, where)
            num_cat = _integer(fields, b"num_cat", where)
            if num_cat:
                cat_sets[tree] = _cat_sets(fields, num_cat, where)
    leaf_value = _floats(leaf_tokens, "leaf_value")
    if not np.isfinite(leaf_value).all():
        raise _damaged("leaf_value holds a number that isn't finite")
    return ModelText(
        feature_names=tuple(names),
        objective=_show(header.get(b"objective", b"")),
        num_tree_per_iteration=per_iteration,
        average_output=b"average_output" in header,
        num_leaves=np.array(num_leaves, dtype=np.int64),
        split_feature=_integers(splits[b"split_feature"], "split_feature"),
        threshold=_floats(splits[b"threshold"], "threshold"),
        decision_type=_integers(splits[b"decision_type"], "decision_type"),
        left_child=_integers(splits[b"left_child"], "left_child"),
        right_child=_integers(splits[b"right_child"], "right_child"),
        leaf_value=leaf_value,
        cat_sets=cat_sets,
    )


def _cat_sets(
    fields: Mapping[bytes, bytes], num_cat: int, where: str
) -> tuple[NDArray[np.int64], ...]:
    """The bit sets of one tree, each an array of 32-bit words."""
    if num_cat < 0:
        raise _damaged(f"{where}: num_cat is {num_cat}")
    bounds = _integers(_tokens(fields, b"cat_boundaries", num_cat + 1, where), "cat_boundaries")
    words = _integers(fields.get(b"cat_threshold", b"").split(), "cat_threshold")
    if bounds[0] != 0 or bounds[-1] != len(words) or (np.diff(bounds) < 0).any():
        raise _damaged(f"{where}: cat_boundaries don't divide {len(words)} words")
    if ((words < 0) | (words >> 32 > 0)).any():
        raise _damaged(f"{where}: cat_threshold holds a number that isn't a 32-bit word")
    return tuple(words[a:b] for a, b in pairwise(bounds))


def _fields(lines: bytes) -> dict[bytes, bytes]:
    """``key=value`` lines as a mapping; a line without ``=`` maps to nothing."""
    fields = {}
    for line in lines.split(b"\n"):
        key, _, value = line.strip().partition(b"=")
        fields[key] = value
    return fields


def _tokens(fields: Mapping[bytes, bytes], key: bytes, count: int, where: str) -> list[bytes]:
    tokens = fields.get(key, b"").split()
    if len(tokens) != count:
        raise _damaged(f"{where}: {_show(key)} holds {len(tokens)} numbers, not {count}")
    return tokens


def _integer(fields: Mapping[bytes, bytes], key: bytes, where: str) -> int:
    value = fields.get(key, b"")
    if not value.removeprefix(b"-").isdigit() or len(value) > 10:
        raise _damaged(f"{where}: {_show(key)} is {_show(value[:20])!r}, not a number")
    return int(value)


def _integers(tokens: list[bytes], what: str) -> NDArray[np.int64]:
    return _numbers(tokens, np.int64, what)


def _floats(tokens: list[bytes], what: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = _numbers(tokens, np.float64, what)
    if np.isnan(values).any():
        raise _damaged(f"{what} holds a NaN")
    return values


def _numbers(tokens: list[bytes], dtype: type[np.generic], what: str) -> NDArray[Any]:
    try:
        return np.array(tokens, dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise _damaged(f"{what}: {error}") from None


def _show(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _damaged(what: str) -> BundleError:
    line = " ".join(what.split())
    return BundleError(f"LightGBM text is damaged: {line[:200]}")
