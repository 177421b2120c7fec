"""Latency, energy and memory of networks on the machine at hand.

The CPU path is tested. The CUDA and NVML paths were written without a GPU and have not run on one:
what they call is behind small protocols (:class:`training.measure.timing.Timer`,
:class:`training.measure.nvml.Nvml`), whose users are tested with stand-ins.
"""
