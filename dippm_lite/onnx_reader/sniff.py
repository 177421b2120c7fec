"""What a file is that is not an ONNX model, and what to do about it."""

from __future__ import annotations

import string

from dippm_lite.errors import InputError
from dippm_lite.graph import DType
from dippm_lite.onnx_reader.decode_tensor import decode_tensor
from dippm_lite.onnx_reader.decoding import Decoder
from dippm_lite.onnx_reader.element_types import dtype_of
from dippm_lite.onnx_reader.limits import Limits
from dippm_lite.onnx_reader.wire import Buffer, MalformedError

__all__ = ["what_it_is"]

_HEAD_BYTES = 4096
_EXPORT = "export the model with torch.onnx.export and give the .onnx file"

_MAGIC = (
    (0, b"version https://git-lfs", "is a git-lfs pointer, not the model: run 'git lfs pull'"),
    (0, b"\x89HDF\r\n\x1a\n", "is an HDF5 file (Keras?): convert it with tf2onnx"),
    (0, b"GGUF", "is a GGUF file: give the ONNX export of the model"),
    (0, b"\x1f\x8b", "is gzip-compressed: unpack it first"),
    (0, b"7z\xbc\xaf", "is a 7z archive: unpack it first"),
    (0, b"BZh", "is bzip2-compressed: unpack it first"),
    (0, b"\xfd7zXZ", "is xz-compressed: unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "is zstd-compressed: unpack it first"),
    (0, b"\x93NUMPY", "is a numpy array, not a model: give the .onnx file"),
    (0, b"%PDF", "is a PDF: give the .onnx file"),
    (0, b"\x7fELF", "is an executable: give the .onnx file"),
    (0, b"ptrt", "is a TensorRT engine: give the ONNX file that it was built from"),
    (0, b"ftrt", "is a TensorRT engine: give the ONNX file that it was built from"),
    (4, b"TFL3", "is a TensorFlow Lite model: convert it with tf2onnx"),
    (4, b"ORTM", "is in onnxruntime's own format: give the .onnx file it was converted from"),
    (8, b'{"', f"is a safetensors file, weights without a graph: {_EXPORT}"),
)
"""Offset, bytes, and the end of the sentence."""

_PICKLE_STARTS = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_TEXT = frozenset(string.printable.encode())


def what_it_is(buffer: Buffer, limits: Limits) -> str | None:
    """The end of a sentence that starts with the file's name; None for bytes of no known kind."""
    head = buffer[:_HEAD_BYTES]
    for offset, magic, sentence in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            return sentence
    if head.startswith(b"PK\x03\x04"):
        if b"data.pkl" in head or b"/version" in head or b"constants.pkl" in head:
            return f"is a PyTorch checkpoint: {_EXPORT}"
        return "is a zip archive: unpack it and give the .onnx file inside"
    if head.startswith(_PICKLE_STARTS):
        return f"is a Python pickle (a PyTorch checkpoint?): {_EXPORT}"
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return "is a web page, not a model: the download link led to a page; download the raw file"
    if _is_text(head):
        return _text_kind(head)
    return _tensor_kind(buffer, limits)


def _is_text(head: bytes) -> bool:
    return all(byte in _TEXT for byte in head)


def _text_kind(head: bytes) -> str:
    start = head.lstrip()
    if start.startswith((b"<?xml", b"<net")):
        return "is XML (an OpenVINO model?): give the ONNX file that it was converted from"
    if start.startswith((b"ir_version", b"graph {", b"<", b"producer_name")):
        return "is an ONNX model in text form: save it as binary with onnx.load and onnx.save"
    if start.startswith((b"{", b"[")):
        return "is JSON, not an ONNX model: give the binary .onnx file"
    return "is a text file, not an ONNX model: give the binary .onnx file"


def _tensor_kind(buffer: Buffer, limits: Limits) -> str | None:
    """A ``TensorProto`` on its own, as onnx's test data has them (``input_0.pb``)."""
    try:
        tensor = decode_tensor(Decoder(buffer, limits), ((0, len(buffer)),))
    except (MalformedError, InputError):
        return None
    if dtype_of(tensor.data_type) is DType.UNDEFINED or (tensor.raw is None and not tensor.typed):
        return None
    return "holds one tensor (a TensorProto), not a model: give the .onnx file beside it"
