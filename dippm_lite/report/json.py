"""JSON: one object for one model, an array for several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dippm_lite.prediction import Prediction

__all__ = ["dump", "render_json"]


def render_json(predictions: Sequence[Prediction], top: int) -> str:
    """The predictions as JSON text; layout ``dippm-lite/1``, keys are dataclass field names."""
    return dump([prediction.to_dict(top) for prediction in predictions])


def dump(answers: Sequence[dict[str, Any]]) -> str:
    """One answer as an object, several as an array."""
    payload = answers[0] if len(answers) == 1 else answers
    return json.dumps(payload, indent=2, allow_nan=False)
