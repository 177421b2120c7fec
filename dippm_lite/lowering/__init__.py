"""From a graph to the kernels that a runtime launches.

1. ``index``: leave out what costs nothing (shape arithmetic, prepared weights, no-ops).
2. ``patterns``: recognise what runtimes run as one operator, whatever the exporter wrote; every
   other node is a step of its own (``operators``).
3. ``layouts``: views stay views until a kernel needs them as a tensor.
4. ``fusion`` (engines), ``autocast`` (eager PyTorch in mixed precision).
5. ``costing``: bytes and arithmetic in the run-time precision.
"""

from __future__ import annotations

from dippm_lite.lowering.numerics import Numerics, dominant_dtype, numerics_of
from dippm_lite.lowering.patterns import PATTERNS, Pattern
from dippm_lite.lowering.pipeline import Lowering, lower

__all__ = ["PATTERNS", "Lowering", "Numerics", "Pattern", "dominant_dtype", "lower", "numerics_of"]
