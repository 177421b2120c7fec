"""A LightGBM model as a function from feature rows to numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dippm_lite.booster.forest import Forest, grow_forest
from dippm_lite.booster.model_text import parse_model_text

__all__ = ["Booster"]


@dataclass(frozen=True, slots=True, eq=False)
class Booster:
    """An evaluator that agrees with LightGBM bit for bit: trees are summed in its own order.

    Attributes:
        feature_names: the columns of the rows, in order.
        objective: LightGBM's objective with its parameters, such as ``multiclass num_class:7``; it
            says how a raw score relates to the target. Empty for a custom one.
        num_tree_per_iteration: outputs a row, which is the number of classes of a multiclass
            model and 1 otherwise.
        average_output: True for a random forest, whose trees are averaged, not added.
        forest: the trees.
    """

    feature_names: tuple[str, ...]
    objective: str
    num_tree_per_iteration: int
    average_output: bool
    forest: Forest

    @classmethod
    def from_text(cls, text: str | bytes) -> Booster:
        """Read what ``lightgbm.Booster.save_model`` writes.

        Raises:
            BundleError: the text is no complete LightGBM model, its trees are not trees, or it
                has linear leaves.
        """
        model = parse_model_text(text)
        return cls(
            feature_names=model.feature_names,
            objective=model.objective,
            num_tree_per_iteration=model.num_tree_per_iteration,
            average_output=model.average_output,
            forest=grow_forest(model),
        )

    @property
    def num_trees(self) -> int:
        return self.forest.num_trees

    @property
    def max_feature_idx(self) -> int:
        return len(self.feature_names) - 1

    def predict_raw(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The score before the objective's link function (identity for regression).

        A random forest's is the mean over its trees, where LightGBM's ``raw_score=True`` leaves
        the sum.

        Shapes:
            rows: (n, features); result: (n,), or (n, num_tree_per_iteration) where that exceeds 1.

        Raises:
            ValueError: ``rows`` has another number of columns than the model has features.
        """
        rows = np.asarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.feature_names):
            raise ValueError(f"rows of shape {rows.shape} for {len(self.feature_names)} features")
        outputs = self.num_tree_per_iteration
        scores = np.empty((outputs, len(rows)))
        step = self.forest.rows_per_chunk
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            values = self.forest.leaf_values(chunk).reshape(-1, outputs, len(chunk))
            # numpy adds pairwise where one number remains; accumulating keeps LightGBM's order
            total = np.add.accumulate(values)[-1] if values[0].size == 1 else values.sum(axis=0)
            scores[:, start : start + step] = total
        if self.average_output:
            scores /= self.num_trees // outputs
        return scores[0] if outputs == 1 else np.ascontiguousarray(scores.T)
