"""Recurrent layers."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    given,
    int_attribute,
    optional_int_attribute,
    quoted,
    rank_is,
    text_attribute,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_DIRECTIONS = {"forward": 1, "foward": 1, "reverse": 1, "bidirectional": 2}
"""GRU's default in opset 1 is spelt "foward"."""


def _layer(call: OpCall, hidden_axis: int) -> Outputs:
    """Y (steps, directions, batch, hidden) and the last states (directions, batch, hidden); with
    ``layout`` 1, batch comes first in both.

    ``hidden_size`` is optional: axis ``hidden_axis`` of the recurrence weight R tells it.
    """
    x, r = given(call, 0), given(call, 2)
    direction = text_attribute(call, "direction", "forward").lower()
    if direction not in _DIRECTIONS:
        raise ShapeRuleError(f"direction {quoted(direction)} is not known")
    directions = _DIRECTIONS[direction]
    hidden = optional_int_attribute(call, "hidden_size")
    if r.shape is not None:
        rank_is(r.shape, 3, "the recurrence weight")
        if hidden is None:
            hidden = r.shape[hidden_axis]
        elif hidden != r.shape[hidden_axis]:
            raise ShapeRuleError(
                f"hidden_size {hidden} differs from the weight's {r.shape[hidden_axis]}"
            )
        if directions != r.shape[0]:
            raise ShapeRuleError(f"direction '{direction}' has {r.shape[0]} weights")
    if x.shape is not None:
        rank_is(x.shape, 3, "the input")
    if x.shape is None or hidden is None:
        unknown = Tensor(x.dtype, None)
        return unknown, unknown, unknown
    if int_attribute(call, "layout", 0):
        batch, steps = x.shape[:2]
        y = (batch, steps, directions, hidden)
        state = (batch, directions, hidden)
    else:
        steps, batch = x.shape[:2]
        y = (steps, directions, batch, hidden)
        state = (directions, batch, hidden)
    last = Tensor(x.dtype, state)
    return Tensor(x.dtype, y), last, last


def _recurrent(call: OpCall) -> Outputs:
    """R is (directions, gates * hidden, hidden)."""
    return _layer(call, hidden_axis=2)


def _transposed_weights(call: OpCall) -> Outputs:
    """DynamicQuantizeLSTM: R is (directions, hidden, gates * hidden)."""
    return _layer(call, hidden_axis=1)


RULES: dict[tuple[str, str], Rule] = {
    ("", "GRU"): _recurrent,
    ("", "LSTM"): _recurrent,
    ("", "RNN"): _recurrent,
    ("com.microsoft", "AttnLSTM"): _recurrent,
    ("com.microsoft", "DynamicQuantizeLSTM"): _transposed_weights,
}
