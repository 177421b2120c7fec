"""Predict latency, energy and GPU memory of an ONNX model on an NVIDIA A100, without a GPU."""

__version__ = "0.1.0"
