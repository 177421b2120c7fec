"""What the shipped bundle is, and how good it was where it was tested."""

from __future__ import annotations

from dippm_lite import __version__
from dippm_lite.bundle import Manifest, render_model_card

__all__ = ["render_bundle_json", "render_bundle_text"]


def render_bundle_text(manifest: Manifest) -> str:
    """Version, then the bundle's model card."""
    return f"dippm-lite {__version__}\n\n{render_model_card(manifest).rstrip()}"


def render_bundle_json(manifest: Manifest) -> str:
    """The manifest as it lies in the bundle."""
    return manifest.to_json().rstrip()
