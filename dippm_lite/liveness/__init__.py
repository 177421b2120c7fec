"""The values in device memory while each kernel runs, and the most bytes they take at once."""

from dippm_lite.liveness.schedule import Buffer, Liveness, float_storage, peak, weight_sizes

__all__ = ["Buffer", "Liveness", "float_storage", "peak", "weight_sizes"]
