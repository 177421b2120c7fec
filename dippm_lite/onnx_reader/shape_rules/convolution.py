"""Convolutions, plain, transposed, quantised, deformable and stateful."""

from __future__ import annotations

from dippm_lite.graph import DType
from dippm_lite.onnx_reader.shape_rules.broadcasting import common_size
from dippm_lite.onnx_reader.shape_rules.calls import (
    Outputs,
    Rule,
    Shape,
    given,
    int_attribute,
    int_content,
    ints_attribute,
    length_attribute,
    optional,
    rank_is,
)
from dippm_lite.onnx_reader.shape_rules.windows import (
    padding,
    per_axis,
    swapped_layout,
    window_counts,
)
from dippm_lite.onnx_reader.tensors import OpCall, ShapeRuleError, Tensor

__all__ = ["RULES", "conv_shape", "conv_transpose_shape"]

_MICROSOFT = "com.microsoft"
_NHWC = "com.ms.internal.nhwc"


def _checked_kernel(call: OpCall, x: Shape, w: Shape) -> Shape:
    """The spatial kernel: the weight's own, which ``kernel_shape`` must not contradict."""
    if len(x) < 3:
        raise ShapeRuleError(f"input {x} has no spatial axes")
    rank_is(w, len(x), "the weight")
    kernel = w[2:]
    declared = ints_attribute(call, "kernel_shape")
    if declared and declared != kernel:
        raise ShapeRuleError(f"kernel_shape {declared} differs from the weight's {kernel}")
    return kernel


def conv_shape(call: OpCall, x: Shape | None, w: Shape | None) -> Shape | None:
    """(N, C, spatial...) by a weight (M, C / group, kernel...)."""
    if x is None or w is None:
        return None
    kernel = _checked_kernel(call, x, w)
    group = length_attribute(call, "group", 1)
    common_size(call, x[1], w[1] * group, "channels of input and weight")
    if w[0] % group:
        raise ShapeRuleError(f"{w[0]} output channels don't divide into {group} groups")
    return (x[0], w[0], *window_counts(call, x[2:], kernel))


def conv_transpose_shape(
    call: OpCall, x: Shape | None, w: Shape | None, extra_pads: Shape | None = ()
) -> Shape | None:
    """(N, C, spatial...) by a weight (C, M / group, kernel...).

    ``output_shape`` decides where it is set; some exporters put N and C in front of it.
    ``extra_pads`` stands for ``pads`` where they are an input (None: not known).
    """
    if x is None or w is None:
        return None
    kernel = _checked_kernel(call, x, w)
    rank = len(kernel)
    group = length_attribute(call, "group", 1)
    common_size(call, x[1], w[0], "channels of input and weight")
    batch_and_channels = (x[0], w[1] * group)
    declared = ints_attribute(call, "output_shape")
    if declared:
        if len(declared) not in (rank, rank + 2):
            raise ShapeRuleError(f"output_shape {declared} doesn't have {rank} entries")
        return (*batch_and_channels, *declared[-rank:])
    strides = per_axis(call, "strides", rank)
    auto_pad, pads = padding(call, rank)
    if extra_pads is None:
        return None
    if extra_pads:
        if len(extra_pads) != 2 * rank:
            raise ShapeRuleError(f"there are {len(extra_pads)} pads, not {2 * rank}")
        pads = tuple([extra_pads[i] + extra_pads[i + rank] for i in range(rank)])
    dilations = per_axis(call, "dilations", rank)
    output_padding = ints_attribute(call, "output_padding") or (0,) * rank
    if len(output_padding) != rank:
        raise ShapeRuleError(f"output_padding {output_padding} doesn't have {rank} entries")
    sizes = [
        strides[i] * (size - 1) + output_padding[i] + dilations[i] * (kernel[i] - 1) + 1 - pads[i]
        for i, size in enumerate(x[2:])
    ]
    if auto_pad == "SAME":  # padding only takes away: a stride beyond the kernel stays short
        sizes = [min(full, x[2 + i] * strides[i]) for i, full in enumerate(sizes)]
    return (*batch_and_channels, *sizes)


def _conv(call: OpCall) -> Outputs:
    x = given(call, 0)
    return (Tensor(x.dtype, conv_shape(call, x.shape, given(call, 1).shape)),)


def _conv_integer(call: OpCall) -> Outputs:
    shape = conv_shape(call, given(call, 0).shape, given(call, 1).shape)
    return (Tensor(DType.INT32, shape),)


def _qlinear_conv(call: OpCall) -> Outputs:
    """x, its scale and zero point, w likewise, then the output's; the type is y_zero_point's."""
    x, w = given(call, 0).shape, given(call, 3).shape
    dtype = given(call, 7).dtype
    if call.domain == _NHWC or int_attribute(call, "channels_last", 0):
        shape = conv_shape(call, swapped_layout(x, to_channels_last=False), w)
        return (Tensor(dtype, swapped_layout(shape, to_channels_last=True)),)
    return (Tensor(dtype, conv_shape(call, x, w)),)


def _nhwc_conv(call: OpCall) -> Outputs:
    x = given(call, 0)
    nchw = swapped_layout(x.shape, to_channels_last=False)
    shape = conv_shape(call, nchw, given(call, 1).shape)
    return (Tensor(x.dtype, swapped_layout(shape, to_channels_last=True)),)


def _blocked_conv(call: OpCall) -> Outputs:
    """The NCHWc layout keeps NCHW's shape, but pads a weight's channels to the block size."""
    x, w = given(call, 0), given(call, 1)
    if x.shape is None or w.shape is None:
        return (Tensor(x.dtype, None),)
    kernel = _checked_kernel(call, x.shape, w.shape)
    sizes = window_counts(call, x.shape[2:], kernel)
    return (Tensor(x.dtype, (x.shape[0], w.shape[0], *sizes)),)


def _conv_transpose(call: OpCall) -> Outputs:
    x = given(call, 0)
    return (Tensor(x.dtype, conv_transpose_shape(call, x.shape, given(call, 1).shape)),)


def _conv_transpose_with_dynamic_pads(call: OpCall) -> Outputs:
    x, pads = given(call, 0), optional(call, 2)
    extra = () if pads is None else int_content(pads)
    return (Tensor(x.dtype, conv_transpose_shape(call, x.shape, given(call, 1).shape, extra)),)


def _causal_conv(call: OpCall) -> Outputs:
    """A depthwise convolution along the last axis, and the positions it needs next time:
    (batch, channels, (kernel - 1) * dilation)."""
    x, w = given(call, 0), given(call, 1)
    dilation = length_attribute(call, "dilation", 1)
    window = int_attribute(call, "state_window", 0)
    past = optional(call, 3)
    if past is not None and past.shape is not None:
        return Tensor(x.dtype, x.shape), Tensor(x.dtype, past.shape)
    if x.shape is None or w.shape is None or int_attribute(call, "channels_last", 0):
        return Tensor(x.dtype, x.shape), Tensor(x.dtype, None)
    if len(x.shape) != 3:
        return Tensor(x.dtype, x.shape), Tensor(x.dtype, None)
    rank_is(w.shape, 3, "the weight")
    state = (*x.shape[:2], (w.shape[2] - 1) * dilation)
    return Tensor(x.dtype, x.shape), Tensor(x.dtype, (window, *state) if window > 0 else state)


RULES: dict[tuple[str, str], Rule] = {
    ("", "CausalConvWithState"): _causal_conv,
    ("", "Conv"): _conv,
    ("", "ConvInteger"): _conv_integer,
    ("", "ConvTranspose"): _conv_transpose,
    ("", "DeformConv"): _conv,
    ("", "QLinearConv"): _qlinear_conv,
    (_MICROSOFT, "CausalConvWithState"): _causal_conv,
    (_MICROSOFT, "ConvTransposeWithDynamicPads"): _conv_transpose_with_dynamic_pads,
    (_MICROSOFT, "FusedConv"): _conv,
    (_MICROSOFT, "NhwcConv"): _nhwc_conv,
    (_MICROSOFT, "NhwcFusedConv"): _nhwc_conv,
    (_MICROSOFT, "QLinearConv"): _qlinear_conv,
    ("com.microsoft.nchwc", "Conv"): _blocked_conv,
    (_NHWC, "Conv"): _nhwc_conv,
    (_NHWC, "QLinearConv"): _qlinear_conv,
}
