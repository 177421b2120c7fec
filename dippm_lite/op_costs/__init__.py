"""What each operator costs: a table from ``(domain, op_type)`` to a rule.

An operator is *counted* (:func:`node_cost` gives MACs and bytes), *free* (:func:`is_free`: nothing
runs), host-only (``runs_on_gpu`` is False) or *unknown* (:func:`node_cost` is None); never silently
zero.
"""

from __future__ import annotations

from dippm_lite.op_costs.attention import ATTENTION_SIZES, AttentionSizes, attention_sizes
from dippm_lite.op_costs.costs import (
    find_rule,
    is_computed_at_load,
    is_free,
    node_cost,
    node_macs,
    nodes_at_load,
    other_flops,
    runs_on_gpu,
)
from dippm_lite.op_costs.einsum import Contraction, parse_einsum
from dippm_lite.op_costs.elementwise_table import ELEMENTWISE
from dippm_lite.op_costs.macs import flag, integer, matmul_inner
from dippm_lite.op_costs.rules import OpKey, OpRule, Slots, UnknownShapeError, Work, shape_of
from dippm_lite.op_costs.totals import graph_macs, graph_params, graph_weight_bytes

__all__ = [
    "ATTENTION_SIZES",
    "ELEMENTWISE",
    "AttentionSizes",
    "Contraction",
    "OpKey",
    "OpRule",
    "Slots",
    "UnknownShapeError",
    "Work",
    "attention_sizes",
    "find_rule",
    "flag",
    "graph_macs",
    "graph_params",
    "graph_weight_bytes",
    "integer",
    "is_computed_at_load",
    "is_free",
    "matmul_inner",
    "node_cost",
    "node_macs",
    "nodes_at_load",
    "other_flops",
    "parse_einsum",
    "runs_on_gpu",
    "shape_of",
]
