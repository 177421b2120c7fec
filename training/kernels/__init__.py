"""Measured kernels to kernel latency models: ``python -m training kernels fit|evaluate``."""
