"""Predict latency, energy and GPU memory of an ONNX model on an NVIDIA A100, without a GPU.

    import dippm_lite

    p = dippm_lite.predict("resnet50.onnx", batch_size=8)
    p.latency_ms.value, p.energy_j.value, p.memory_mib.value, p.mig.profile

Names are resolved on first use, so that ``import dippm_lite`` itself loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dippm_lite.errors import BundleError, DippmError, InputError
    from dippm_lite.execution import Precision, Runtime
    from dippm_lite.prediction import Estimate, Prediction
    from dippm_lite.predictor import Predictor, predict

__all__ = [  # noqa: RUF022 - grouped by what they are for
    # predicting
    "Predictor",
    "predict",
    # what is asked and answered
    "Estimate",
    "Precision",
    "Prediction",
    "Runtime",
    # errors
    "BundleError",
    "DippmError",
    "InputError",
]

__version__ = "0.1.0"

_HOME = {
    "BundleError": "errors",
    "DippmError": "errors",
    "Estimate": "prediction",
    "InputError": "errors",
    "Precision": "execution",
    "Prediction": "prediction",
    "Predictor": "predictor",
    "Runtime": "execution",
    "predict": "predictor",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
