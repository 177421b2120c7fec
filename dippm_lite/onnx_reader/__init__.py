"""An ONNX file to a :class:`~dippm_lite.graph.Graph`: weights skipped, every dimension bound.

The order of the pipeline is the order to read the modules in: ``source`` and ``sniff``, ``wire``
and ``decode_*`` into ``proto``, ``binding``, ``walk`` with ``functions``, ``branches``, ``loops``
and ``scans`` onto a ``draft``, ``shapes`` with the ``shape_rules``, ``finish``.
"""

from __future__ import annotations

from dippm_lite.onnx_reader.limits import DEFAULT_LIMITS, Limits
from dippm_lite.onnx_reader.reader import ReadModel, read_graph

__all__ = ["DEFAULT_LIMITS", "Limits", "ReadModel", "read_graph"]
