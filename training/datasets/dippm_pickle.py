"""Opening DIPPM's files without running what is in them, and without torch_geometric.

A ``data_<i>.pt`` is a pickle, and a pickle can call anything. ``torch.load(weights_only=True)``
rebuilds tensors, numbers and containers alone. DIPPM pickled ``torch_geometric.data.Data`` objects
(torch_geometric 2.2): four further names, which here stand for :class:`Bag`, a class that only
holds attributes. Any other name in a file is refused, whether torch_geometric is installed or not.
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError

__all__ = ["LIMIT_BYTES", "PYG_NAMES", "Bag", "load_fields"]

LIMIT_BYTES = 64 << 20
"""Largest file that is opened, and most that it may unpack to: 10,000 nodes take 1.5 MB."""

PYG_NAMES = (
    "torch_geometric.data.data.Data",
    "torch_geometric.data.data.DataEdgeAttr",
    "torch_geometric.data.data.DataTensorAttr",
    "torch_geometric.data.storage.GlobalStorage",
)
"""Classes of torch_geometric 2.x that the pickle of a ``Data`` names: the object, two classes that
it refers to, and its storage, whose ``_mapping`` holds the tensors by name."""


class Bag:
    """Attributes as a pickle sets them, and nothing that could act on them."""


def load_fields(path: Path) -> dict[str, Any]:
    """The named values of a ``data_<i>.pt``: of a PyG ``Data``, or of a plain dictionary.

    Raises:
        InputError: the file is missing, too large or damaged, or it names a class or function that
            DIPPM's layout doesn't have.
    """
    import torch

    _check_archive(path)
    # One class for each name: torch looks allowed classes up by identity as well as by name.
    classes: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
        (type("Bag", (Bag,), {}), name) for name in PYG_NAMES
    ]
    try:
        with torch.serialization.safe_globals(classes), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path} is refused: {_first_line(error)} (only tensors, numbers, containers and "
            "torch_geometric's Data are read)"
        ) from error
    except Exception as error:  # damaged bytes make torch raise almost anything
        raise InputError(f"{path} is damaged: {_first_line(error)}") from error
    fields = _fields(content)
    if fields is None:
        raise InputError(f"{path} holds a {type(content).__name__}, neither a dictionary nor Data")
    return fields


def _check_archive(path: Path) -> None:
    """Only torch's zip format (since 1.6): the older one says itself how much to allocate."""
    try:
        if (size := path.stat().st_size) > LIMIT_BYTES:
            raise InputError(f"{path} has {size} bytes, more than {LIMIT_BYTES}: no DIPPM graph")
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is damaged, or no archive of torch: {error}") from error
    if unpacked > LIMIT_BYTES:
        raise InputError(f"{path} unpacks to {unpacked} bytes, more than {LIMIT_BYTES}")


def _fields(content: object) -> dict[str, Any] | None:
    if isinstance(content, Bag):
        attributes = vars(content)
        store = attributes.get("_store")
        mapping = vars(store).get("_mapping") if isinstance(store, Bag) else attributes
        # The state of an object may be anything, since the pickle says what it is.
        content = mapping
    if isinstance(content, Mapping) and all(isinstance(key, str) for key in content):
        return dict(content)
    return None


def _first_line(error: BaseException) -> str:
    """What torch found; its advice, which comes before and after, goes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith("WeightsUnpickler error")), None)
    text = (found or (lines[0] if lines else type(error).__name__)).split(". Please use")[0]
    return text[:200]
