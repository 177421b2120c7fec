"""The errors that a user can cause or meet; everything else is a bug and keeps its traceback."""

from __future__ import annotations

from typing import ClassVar

__all__ = ["BundleError", "DippmError", "InputError"]


class DippmError(Exception):
    """Base of every expected failure. Its text is one line: what is wrong, where, what to do."""

    exit_code: ClassVar[int] = 2


class InputError(DippmError):
    """The model file, a dimension binding or an option can't be used as given."""

    exit_code = 2


class BundleError(DippmError):
    """A shipped or given bundle is missing, damaged or was made for other features."""

    exit_code = 3
