"""All trees of a model in one set of arrays, walked level by level for many rows at once.

Two ideas keep the walk to three look-ups a step. First, every split becomes the plain question
``column <= threshold``: LightGBM's missing-value rules and category sets depend on the feature
and the split's kind alone, so they are applied beforehand, by deriving for each such pair a
column that holds -inf where the row must go left and NaN where it must go right. Second, the
children of a split lie side by side, so that the next node is ``base + (column <= threshold)``;
a leaf is a split on NaN that leads to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dippm_lite.booster.model_text import ModelText
from dippm_lite.errors import BundleError

__all__ = ["Forest", "grow_forest"]

MAX_DEPTH = 1024
"""Deepest tree that is accepted; a walk takes as many steps. LightGBM's default allows 30."""

_LANES = 1 << 16
"""Pairs of row and tree walked together: few enough for a CPU's second-level cache."""

_LEVELS_PER_SWEEP = 3
"""Steps between two removals of pairs that have reached a leaf (measured: 2 to 4 are alike)."""

_ZERO = float(np.float32(1e-35))
"""LightGBM's kZeroThreshold: what is no larger counts as zero (include/LightGBM/meta.h)."""

# How a column is derived from a feature. LightGBM's decision_type holds the missing type
# in bits 2-3 (0 none, 1 zero, 2 NaN), default-left in bit 1 and categorical in bit 0.
_NAN_IS_ZERO, _NAN_RIGHT, _NAN_LEFT, _ZERO_RIGHT, _ZERO_LEFT = range(5)
_INVALID = -1
_MODE = np.array(
    [_NAN_IS_ZERO, _NAN_IS_ZERO, _ZERO_RIGHT, _ZERO_LEFT, _NAN_RIGHT, _NAN_LEFT, _INVALID, _INVALID]
)
"""Indexed by decision_type >> 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Flattened trees.

    Positions ``0 .. num_trees - 1`` are the roots. ``column``, ``threshold``, ``base`` and
    ``value`` have one entry a position; ``is_leaf`` marks those whose ``value`` counts.
    ``feature`` gives the feature behind each column: first plain columns, grouped by how missing
    values are treated (group ``m`` ends before ``group_ends[m]``), then one for each category
    set. Set ``s`` is ``set_size[s]`` 32-bit words from ``words[set_start[s]]``.
    """

    num_trees: int
    column: NDArray[np.intp]
    threshold: NDArray[np.float64]
    base: NDArray[np.intp]
    value: NDArray[np.float64]
    is_leaf: NDArray[np.bool_]
    feature: NDArray[np.intp]
    group_ends: tuple[int, ...]
    set_start: NDArray[np.int64]
    set_size: NDArray[np.int64]
    words: NDArray[np.int64]

    def leaf_values(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The leaf value of each tree for each row.

        Shapes:
            rows: (n, features); result: (num_trees, n).
        """
        n = len(rows)
        columns = self._columns(rows).ravel()
        offset = self.column * n
        node = np.repeat(np.arange(self.num_trees), n)
        row = np.tile(np.arange(n), self.num_trees)
        lane = np.arange(self.num_trees * n)
        reached = np.empty(self.num_trees * n)
        while True:
            at_leaf = self.is_leaf.take(node)
            done = np.flatnonzero(at_leaf)
            reached[lane.take(done)] = self.value.take(node.take(done))
            if len(done) == len(lane):
                break
            left = np.flatnonzero(~at_leaf)
            node, row, lane = node.take(left), row.take(left), lane.take(left)
            for _ in range(_LEVELS_PER_SWEEP):
                go_left = columns.take(offset.take(node) + row) <= self.threshold.take(node)
                node = self.base.take(node) + go_left
        return reached.reshape(self.num_trees, n)

    @property
    def rows_per_chunk(self) -> int:
        """How many rows to pass to ``leaf_values`` at once: bounds memory, and is fastest."""
        return max(1, _LANES // max(self.num_trees, len(self.feature)))

    def _columns(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """(columns, n): what the splits compare with their thresholds."""
        columns = np.ascontiguousarray(rows.T[self.feature])
        columns[np.abs(columns) <= _ZERO] = 0.0
        groups = np.split(columns, self.group_ends)
        groups[_NAN_IS_ZERO][np.isnan(groups[_NAN_IS_ZERO])] = 0.0
        groups[_NAN_LEFT][np.isnan(groups[_NAN_LEFT])] = -np.inf
        for mode, fill in ((_ZERO_RIGHT, np.nan), (_ZERO_LEFT, -np.inf)):
            groups[mode][np.isnan(groups[mode]) | (groups[mode] == 0)] = fill
        if len(self.set_start):
            groups[-1][:] = self._membership(groups[-1])
        return columns

    def _membership(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(sets, n) category codes to -inf where the set holds them, NaN where it doesn't.

        As in LightGBM a code is truncated towards zero, and a negative, missing or too large one
        is in no set.
        """
        valid = (values > -1) & (values < 2**31)
        code = np.where(valid, values, 0).astype(np.int64)
        word = code >> 5
        valid &= word < self.set_size[:, None]
        bits = self.words[self.set_start[:, None] + np.where(valid, word, 0)] >> (code & 31)
        return np.where(valid & (bits & 1 == 1), -np.inf, np.nan)


def grow_forest(model: ModelText) -> Forest:
    """Lay out the trees of ``model``, after checking that they are trees.

    Raises:
        BundleError: a child, feature or category set is out of range, a node has two parents or
            can't be reached, or a tree is deeper than ``MAX_DEPTH``.
    """
    trees = len(model.num_leaves)
    splits_per_tree = model.num_leaves - 1
    splits = len(model.split_feature)
    tree = np.repeat(np.arange(trees), splits_per_tree)
    if ((model.split_feature < 0) | (model.split_feature >= len(model.feature_names))).any():
        raise _malformed("a split names a feature that doesn't exist")

    # Child (split s, side) lies at trees + 2 s + side, side 0 being the right child.
    child = np.stack([model.right_child, model.left_child], axis=1)
    if ((child < -model.num_leaves[tree, None]) | (child >= splits_per_tree[tree, None])).any():
        raise _malformed("a split names a child that doesn't exist")
    child_position = trees + np.arange(2 * splits).reshape(splits, 2)
    first_split = np.cumsum(splits_per_tree) - splits_per_tree
    first_leaf = np.cumsum(model.num_leaves) - model.num_leaves
    is_split = child >= 0
    below = np.where(is_split, child + first_split[tree, None], ~child + first_leaf[tree, None])
    parents = np.bincount(below[is_split], minlength=splits)
    parents[first_split[splits_per_tree > 0]] += 1  # a root hangs on the forest
    leaf_parents = np.bincount(below[~is_split], minlength=len(model.leaf_value))
    leaf_parents[first_leaf[splits_per_tree == 0]] += 1
    if (parents != 1).any() or (leaf_parents != 1).any():
        raise _malformed("a node has no parent or several")

    positions = trees + 2 * splits
    split_position = np.empty(splits, dtype=np.intp)
    split_position[first_split[splits_per_tree > 0]] = np.flatnonzero(splits_per_tree > 0)
    split_position[below[is_split]] = child_position[is_split]
    leaf_position = np.empty(len(model.leaf_value), dtype=np.intp)
    leaf_position[first_leaf[splits_per_tree == 0]] = np.flatnonzero(splits_per_tree == 0)
    leaf_position[below[~is_split]] = child_position[~is_split]
    base = np.arange(positions, dtype=np.intp)
    base[split_position] = child_position[:, 0]
    is_leaf = np.zeros(positions, dtype=np.bool_)
    is_leaf[leaf_position] = True
    _check_reachable(base, is_leaf, trees)

    split_column, split_threshold, columns = _derive_columns(model, tree)
    column = np.zeros(positions, dtype=np.intp)
    column[split_position] = split_column
    threshold = np.full(positions, np.nan)
    threshold[split_position] = split_threshold
    value = np.zeros(positions)
    value[leaf_position] = model.leaf_value
    return Forest(trees, column, threshold, base, value, is_leaf, *columns)


def _check_reachable(base: NDArray[np.intp], is_leaf: NDArray[np.bool_], trees: int) -> None:
    """Each node has one parent; what no root reaches is therefore a cycle of its own."""
    level = np.flatnonzero(~is_leaf[:trees])
    reached = trees
    for _ in range(MAX_DEPTH + 1):
        if not len(level):
            break
        below = (base[level][:, None] + np.arange(2)).ravel()
        reached += len(below)
        level = below[~is_leaf[below]]
    else:
        raise _malformed(f"a tree is deeper than {MAX_DEPTH} levels")
    if reached != len(base):
        raise _malformed("splits lead in a circle")


_Columns = tuple[
    NDArray[np.intp], tuple[int, ...], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]


def _derive_columns(
    model: ModelText, tree: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64], _Columns]:
    """Each split's column and threshold, and the last five fields of ``Forest``."""
    if ((model.decision_type < 0) | (model.decision_type >= 2 * len(_MODE))).any():
        raise _malformed("decision_type is out of range")
    categorical = model.decision_type & 1 == 1
    mode = np.where(categorical, _NAN_RIGHT, _MODE[model.decision_type >> 1])
    if (mode == _INVALID).any():
        raise _malformed("decision_type names an unknown kind of missing value")
    column = np.empty(len(mode), dtype=np.intp)
    threshold = np.where(categorical, 0.0, model.threshold)
    features = len(model.feature_names)
    key = mode * features + model.split_feature
    plain, column[~categorical] = np.unique(key[~categorical], return_inverse=True)
    group_ends = np.searchsorted(plain, np.arange(1, 6) * features)

    sets: dict[tuple[int, bytes], int] = {}
    for split in np.flatnonzero(categorical):
        tree_sets = model.cat_sets.get(int(tree[split]), ())
        number = model.threshold[split]
        if not 0 <= number < len(tree_sets):
            raise _malformed("a categorical split names a category set that doesn't exist")
        identity = (int(model.split_feature[split]), tree_sets[int(number)].tobytes())
        column[split] = len(plain) + sets.setdefault(identity, len(sets))
    set_words = [np.frombuffer(raw, dtype=np.int64) for _, raw in sets]
    set_size = np.array([len(words) for words in set_words], dtype=np.int64)
    return (
        column,
        threshold,
        (
            np.concatenate([plain % features, [f for f, _ in sets]]).astype(np.intp),
            tuple(int(end) for end in group_ends),
            np.cumsum(set_size) - set_size,
            set_size,
            np.concatenate([*set_words, [0]]).astype(np.int64),  # one to spare for an empty set
        ),
    )


def _malformed(what: str) -> BundleError:
    return BundleError(f"LightGBM text is damaged: {what}")
