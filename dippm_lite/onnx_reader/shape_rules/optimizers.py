"""Training steps, domain ``ai.onnx.preview.training``."""

from __future__ import annotations

from dippm_lite.onnx_reader.shape_rules.calls import Outputs, Rule, given, like
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_TRAINING = "ai.onnx.preview.training"


def _step(groups: int) -> Rule:
    """Rate and step count, then ``groups`` lists of equal length: the tensors, their gradients,
    and the state; all but the gradients come out updated."""

    def rule(call: OpCall) -> Outputs:
        tensors = [given(call, i) for i in range(2, len(call.inputs))]
        count, rest = divmod(len(tensors), groups)
        if rest:
            raise ShapeRuleError(f"{len(tensors)} tensors don't divide into {groups} lists")
        return tuple([like(x) for x in tensors[:count] + tensors[2 * count :]])

    return rule


def _gradient(call: OpCall) -> Outputs:
    """A gradient for each of ``xs``, which are the first inputs."""
    names = call.attributes.get("xs")
    if not isinstance(names, tuple):
        raise ShapeRuleError("attribute 'xs' is not a list")
    inputs = [given(call, i) for i in range(len(names))]
    return tuple([Tensor(x.dtype, x.shape) for x in inputs])


RULES: dict[tuple[str, str], Rule] = {
    (_TRAINING, "Adagrad"): _step(groups=3),
    (_TRAINING, "Adam"): _step(groups=4),
    (_TRAINING, "Gradient"): _gradient,
    (_TRAINING, "Momentum"): _step(groups=3),
}
