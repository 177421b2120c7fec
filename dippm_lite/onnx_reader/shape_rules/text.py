"""Operators on strings."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    given,
    ints_attribute,
    like,
    optional_int_attribute,
    rank_is,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]


def _normalizer(call: OpCall) -> Outputs:
    """StringNormalizer: dropped stop words shorten the last axis."""
    x = given(call, 0)
    if call.attributes.get("stopwords"):
        return (Tensor(x.dtype, x.shape, bounded=True),)
    return (like(x),)


def _split(call: OpCall) -> Outputs:
    """Pieces on a new last axis, and how many each string has; ``maxsplit`` bounds them."""
    x = given(call, 0)
    most = optional_int_attribute(call, "maxsplit")
    shape = None
    if x.shape is not None and most is not None and most >= 0:
        shape = (*x.shape, most + 1)
    return Tensor(x.dtype, shape, bounded=shape is not None), Tensor(DType.INT64, x.shape)


def _tf_idf(call: OpCall) -> Outputs:
    """(C) or (N, C) tokens to counts of each n-gram."""
    x = given(call, 0)
    places = ints_attribute(call, "ngram_indexes")
    if not places or min(places) < 0:
        raise ShapeRuleError("attribute 'ngram_indexes' names no place")
    if x.shape is None:
        return (Tensor(DType.FLOAT, None),)
    if len(x.shape) > 2:
        raise ShapeRuleError(f"input {x.shape} has more than 2 dimensions")
    return (Tensor(DType.FLOAT, (*x.shape[:-1], max(places) + 1)),)


def _word_conv_embedding(call: OpCall) -> Outputs:
    """Words (words, letters) to one vector each; filters are (size, 1, window, letter size)."""
    words, weight = given(call, 0), given(call, 1)
    if words.shape is None or weight.shape is None:
        return (Tensor(weight.dtype, None),)
    rank_is(words.shape, 2, "the words")
    rank_is(weight.shape, 4, "the weight")
    return (Tensor(weight.dtype, (words.shape[0], weight.shape[0])),)


RULES: dict[tuple[str, str], Rule] = {
    ("", "StringNormalizer"): _normalizer,
    ("", "StringSplit"): _split,
    ("", "TfIdfVectorizer"): _tf_idf,
    ("com.microsoft", "WordConvEmbedding"): _word_conv_embedding,
}
