"""LightGBM text models evaluated with numpy alone; the only place that knows about trees."""

from __future__ import annotations

from dippm_lite.booster.ensemble import Booster

__all__ = ["Booster"]
