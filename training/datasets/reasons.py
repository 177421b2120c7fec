"""Why a published row gives no label, and what to know of one that does."""

from __future__ import annotations

from enum import Enum

__all__ = ["Flag", "Reason"]


class Reason(str, Enum):
    """Why a row is left out. The first group lies in the row, the second in us, the third says
    that a better figure of the same thing is kept or that the figure can't be right."""

    NOT_A_TARGET = "not_a_target"
    """A metric that we don't predict, or no neural network."""
    TRAINING = "training"
    """A training step, or a forward pass that keeps what a backward pass needs."""
    MULTI_GPU = "multi_gpu"
    MIG_SHARE = "mig_share"
    """A MIG slice, or a share of the SMs by MPS."""
    SPARSE = "sparse"
    """Weights in 2:4 sparsity."""
    QUANTISED_WEIGHTS = "quantised_weights"
    """Weights in 4 or 8 bits beside wider activations: kernels that no runtime of ours has."""
    TOKEN_LOOP = "token_loop"
    """A text written token by token, as one figure: many passes of different sizes."""
    PIPELINE_OF_MODELS = "pipeline_of_models"
    """Several networks, or one network many times, as one figure."""
    HOST_BOUND_METHOD = "host_bound_method"
    """The method times the host: data loading, a server's queue, post-processing."""
    PIPELINED = "pipelined"
    """Throughput of batches in flight at the same time, which gives no latency."""
    VARIABLE_LENGTH = "variable_length"
    """Sizes that vary from sample to sample, or padding that is skipped."""
    TAIL_STATISTIC = "tail_statistic"
    """A high percentile, a maximum or a minimum."""
    MEMORY_METHOD = "memory_method"
    """Memory that isn't the peak of one process which runs this workload alone."""
    MISSING_BATCH = "missing_batch"
    MISSING_SIZE = "missing_size"
    """Image size or number of tokens unknown."""

    NO_BUILDER = "no_builder"
    """The catalog has no such network."""
    AMBIGUOUS_NAME = "ambiguous_name"
    """The source's name fits several networks."""
    NOT_EXPORTED = "not_exported"
    """The catalog has the network, but the records lack it."""

    DUPLICATE = "duplicate"
    """The same figure stands in another table, or twice."""
    OTHER_STATISTIC = "other_statistic"
    """A better statistic of the same run is kept."""
    OUTLIER = "outlier"
    """Faster than the device can be, or contradicted; see ``outliers``."""

    @property
    def is_of_the_row(self) -> bool:
        """True where no builder could make the row a label: it isn't usable."""
        return self not in _OURS and not self.is_set_aside

    @property
    def is_set_aside(self) -> bool:
        """True for rows that had a graph and were left out after that."""
        return self in (Reason.DUPLICATE, Reason.OTHER_STATISTIC, Reason.OUTLIER)


_OURS = (Reason.NO_BUILDER, Reason.AMBIGUOUS_NAME, Reason.NOT_EXPORTED)


class Flag(str, Enum):
    """What weakens a label without spoiling it."""

    DEVICE_ASSUMED = "device_assumed"
    """Memory size or form factor isn't stated."""
    PRECISION_ASSUMED = "precision_assumed"
    """The arithmetic follows from the software's defaults or from the figures themselves."""
    FROM_THROUGHPUT = "from_throughput"
    HOST_COPY = "host_copy"
    """The copy of the inputs to the GPU is inside of the timed region."""
    DATA_LOADING = "data_loading"
    """The source's loop reads and prepares its data, in parallel at best."""
    HOST_OVERHEAD = "host_overhead"
    """A scheduler, server or pipeline runs between the passes."""
    ROUNDED = "rounded"
    """Given to whole milliseconds or two digits."""
    MEAN_OF_STEPS = "mean_of_steps"
    """Mean over steps whose cache grows; the graph has the mean length."""
    POWER_LIMITED = "power_limited"
    """The card ran below its standard power limit."""
    NO_WARM_STATE = "no_warm_state"
    """Autograd was on, or the timing isn't synchronised."""
