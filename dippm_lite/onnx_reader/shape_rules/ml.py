"""Classical machine learning, domain ``ai.onnx.ml``."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    int_attribute,
    ints_attribute,
    length_attribute,
    like,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES"]

_ML = "ai.onnx.ml"
_FLOAT = DType.FLOAT
_INT64 = DType.INT64
_STRING = DType.STRING


def _listed(call: OpCall, *names: str) -> int:
    """Entries of the first of the list attributes ``names`` that is set; 0 where none is."""
    for name in names:
        values = call.attributes.get(name)
        if values is not None:
            if not isinstance(values, tuple):
                raise ShapeRuleError(f"attribute '{name}' is not a list")
            return len(values)
    return 0


def _rows(x: Tensor) -> Shape | None:
    """The batch of (N, features...); a vector is one row."""
    if x.shape is None:
        return None
    if not x.shape:
        raise ShapeRuleError("a scalar is not a table")
    return x.shape[:1] if len(x.shape) > 1 else (1,)


def _scores(rows: Shape | None, count: int) -> Shape | None:
    return None if rows is None or count < 1 else (*rows, count)


def _classifier(call: OpCall) -> Outputs:
    """The top label of each row, and (N, classes) scores. Raw scores of a support vector machine
    with more than two classes come in pairs, in a number that runtimes don't agree on."""
    rows = _rows(given(call, 0))
    strings = _listed(call, "classlabels_strings")
    count = strings or _listed(call, "classlabels_ints", "classlabels_int64s")
    if call.op_type == "SVMClassifier" and count > 2 and not _listed(call, "prob_a"):
        count = 0
    return Tensor(_STRING if strings else _INT64, rows), Tensor(_FLOAT, _scores(rows, count))


def _regressor(call: OpCall) -> Outputs:
    """(N, targets)."""
    attribute = "targets" if call.op_type == "LinearRegressor" else "n_targets"
    rows = _rows(given(call, 0))
    return (Tensor(_FLOAT, _scores(rows, length_attribute(call, attribute, 1))),)


def _tree_ensemble(call: OpCall) -> Outputs:
    x = given(call, 0)
    return (Tensor(x.dtype, _scores(_rows(x), length_attribute(call, "n_targets", 1))),)


def _svm_regressor(call: OpCall) -> Outputs:
    return (Tensor(_FLOAT, _scores(_rows(given(call, 0)), 1)),)


def _to_float(call: OpCall) -> Outputs:
    """Scaler, Normalizer; and ZipMap, whose maps hold the scores of its input."""
    return (Tensor(_FLOAT, given(call, 0).shape),)


def _same(call: OpCall) -> Outputs:
    return (like(given(call, 0)),)


def _mapper(call: OpCall) -> Outputs:
    """CategoryMapper and LabelEncoder of version 1: strings to integers and back."""
    x = given(call, 0)
    return (Tensor(_INT64 if x.dtype is _STRING else _STRING, x.shape),)


def _label_encoder(call: OpCall) -> Outputs:
    """The type is that of the values which the keys map to."""
    x = given(call, 0)
    if "values_tensor" in call.tensors:
        return (Tensor(call.tensors["values_tensor"].dtype, x.shape),)
    for name, dtype in (
        ("values_strings", _STRING),
        ("values_int64s", _INT64),
        ("values_floats", _FLOAT),
    ):
        if name in call.attributes:
            return (Tensor(dtype, x.shape),)
    return _mapper(call)


def _one_hot_encoder(call: OpCall) -> Outputs:
    shape = given(call, 0).shape
    count = _listed(call, "cats_strings", "cats_int64s")
    return (Tensor(_FLOAT, None if shape is None else (*shape, count)),)


def _feature_vectorizer(call: OpCall) -> Outputs:
    """Tables side by side; ``inputdimensions`` are their widths."""
    tables = [given(call, i) for i in range(max(len(call.inputs), 1))]
    rows = _rows(tables[0])
    widths = ints_attribute(call, "inputdimensions")
    if widths is None:
        shapes = [table.shape for table in tables if table.shape]
        if len(shapes) != len(tables):
            return (Tensor(_FLOAT, None),)
        widths = tuple([shape[-1] for shape in shapes])
    return (Tensor(_FLOAT, _scores(rows, sum(widths))),)


def _dict_vectorizer(call: OpCall) -> Outputs:
    """One row with a place for each word of the vocabulary."""
    x = given(call, 0)
    return (Tensor(x.dtype, (1, _listed(call, "string_vocabulary", "int64_vocabulary"))),)


def _cast_map(call: OpCall) -> Outputs:
    """One row: a sparse map has ``max_map`` places, a dense one as many as it holds."""
    given(call, 0)
    names = {b"TO_INT64": _INT64, b"TO_STRING": _STRING}
    target, form = call.attributes.get("cast_to"), call.attributes.get("map_form")
    dtype = names.get(target, _FLOAT) if isinstance(target, bytes) else _FLOAT
    sparse = form in (b"SPARSE", "SPARSE")
    return (Tensor(dtype, (1, int_attribute(call, "max_map", 1)) if sparse else None),)


RULES: dict[tuple[str, str], Rule] = {
    **{
        (_ML, name): _classifier
        for name in ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")
    },
    **{(_ML, name): _regressor for name in ("LinearRegressor", "TreeEnsembleRegressor")},
    **{(_ML, name): _to_float for name in ("Normalizer", "Scaler", "ZipMap")},
    **{(_ML, name): _same for name in ("Binarizer", "Imputer")},
    (_ML, "CastMap"): _cast_map,
    (_ML, "CategoryMapper"): _mapper,
    (_ML, "DictVectorizer"): _dict_vectorizer,
    (_ML, "FeatureVectorizer"): _feature_vectorizer,
    (_ML, "LabelEncoder"): _label_encoder,
    (_ML, "OneHotEncoder"): _one_hot_encoder,
    (_ML, "SVMRegressor"): _svm_regressor,
    (_ML, "TreeEnsemble"): _tree_ensemble,
}
