"""JSON: one object for one model, an array for several."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dippm_lite.prediction import Prediction

__all__ = ["render_json"]


def render_json(predictions: Sequence[Prediction], top: int) -> str:
    """The predictions as JSON text; layout ``dippm-lite/1``, keys are dataclass field names."""
    payload = [prediction.to_dict(top) for prediction in predictions]
    return json.dumps(payload[0] if len(payload) == 1 else payload, indent=2, allow_nan=False)
