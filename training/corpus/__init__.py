"""Architectures to weightless ONNX files and compact records."""
