"""Constant propagation: the content of outputs whose inputs are all known.

An evaluator computes with numpy what a rule has already found the shapes of. It runs only where
every output has at most ``MAX_KNOWN_ELEMENTS``, so its cost is bounded by that and the inputs.
Where numpy refuses (an index out of range, a power of a negative integer), the content stays
unknown: whether that contradicts the operator is the rule's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dippm_lite.onnx_reader.shape_rules.calls import Outputs, Shape
from dippm_lite.onnx_reader.shape_rules.storage import COMPUTABLE, STORAGE, stored
from dippm_lite.onnx_reader.tensors import MAX_KNOWN_ELEMENTS, OpCall, Tensor

__all__ = ["Array", "Arrays", "Evaluator", "with_content"]

Array = NDArray[Any]
Arrays = list[Array]
Evaluator = Callable[[OpCall, Arrays, tuple[Tensor, ...]], "Sequence[Array] | None"]
"""Computes the outputs of a call from the contents of its inputs. An absent input is an empty
array here: whether it is absent, ``call.inputs`` says."""

_ABSENT: Array = np.empty(0, dtype=np.uint8)
_REFUSALS = (ArithmeticError, IndexError, TypeError, ValueError)


def with_content(call: OpCall, outputs: Outputs, evaluator: Evaluator, moves: bool) -> Outputs:
    """``outputs`` with their content where ``evaluator`` can tell it.

    ``moves`` says that elements are only moved, whatever their type; where they are computed
    with, numpy has to know the type.
    """
    arrays: Arrays = []
    for tensor in call.inputs:
        if tensor is None:
            arrays.append(_ABSENT)
            continue
        if tensor.dtype not in (STORAGE if moves else COMPUTABLE) or not _is_small(tensor.shape):
            return outputs
        if tensor.data is None:
            return outputs
        arrays.append(tensor.data)
    wanted: list[Tensor] = []
    for output in outputs[: call.n_outputs]:
        if output is None or not _is_small(output.shape):
            return outputs
        wanted.append(output)
    try:
        with np.errstate(all="ignore"):
            results = evaluator(call, arrays, tuple(wanted))
            if results is None:
                return outputs
            known = [
                _known(output, np.asarray(values), moves)
                for output, values in zip(wanted, results, strict=False)
            ]
    except _REFUSALS:
        return outputs
    return (*known, *outputs[len(known) :])


def _is_small(shape: Shape | None) -> bool:
    """Few elements, and no long axis either, which an empty tensor may have: an evaluator may
    count along it."""
    if not shape:
        return shape is not None
    return max(shape) <= MAX_KNOWN_ELEMENTS and math.prod(shape) <= MAX_KNOWN_ELEMENTS


def _known(output: Tensor, values: Array, moves: bool) -> Tensor:
    """``output`` with ``values``, which may turn a bounded shape into the true one."""
    content: Array | None = values
    if not moves:
        content = stored(output.dtype, values)
    elif values.dtype != STORAGE.get(output.dtype):  # operands of several types
        return output
    if content is None or (values.shape != output.shape and not output.bounded):
        return output
    return Tensor(output.dtype, values.shape, content)
