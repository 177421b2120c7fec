"""Patterns: groups of graph nodes that a runtime runs as one operator."""

from __future__ import annotations

from dippm_lite.lowering.patterns.found import Found, Pattern
from dippm_lite.lowering.patterns.search import Matches, find_patterns
from dippm_lite.lowering.patterns.table import PATTERNS

__all__ = ["PATTERNS", "Found", "Matches", "Pattern", "find_patterns"]
