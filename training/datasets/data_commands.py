"""``python -m training data``: fetch the public sources, list them, say where data is read."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from dippm_lite.errors import InputError
from training.data_folder import add_data_option, cache_folder, data_folder

__all__ = ["add_parser"]


def add_parser(verbs: Any) -> None:
    """Add the verb ``data`` to the subparsers of ``python -m training``."""
    data = verbs.add_parser("data", help="measurements of others: fetch, list, look into")
    commands = data.add_subparsers(dest="command", required=True, metavar="COMMAND")

    fetch = commands.add_parser("fetch", help="download public sources and convert them")
    fetch.add_argument("source", nargs="*", help="default: all that are not large")
    fetch.add_argument("--into", type=Path, metavar="DIR", help="default: the cache folder")
    fetch.add_argument(
        "--accept-changed", action="store_true", help="take another content than the locked one"
    )
    fetch.set_defaults(handler=_fetch)

    listing = commands.add_parser("list", help="the sources that fetch knows")
    listing.set_defaults(handler=_list)

    where = commands.add_parser("where", help="the folder that measurements are read from")
    add_data_option(where)
    where.set_defaults(handler=_where)

    dippm = commands.add_parser("dippm", help="read a folder of DIPPM's graphs and sum it up")
    dippm.add_argument("folder", type=Path, help="holds data_<i>.pt")
    dippm.set_defaults(handler=_dippm)


def _fetch(options: argparse.Namespace) -> int:
    from training.datasets.public.bar import bar
    from training.datasets.public.fetch import fetch
    from training.datasets.public.sources import SOURCES

    known = {source.name: source for source in SOURCES}
    for name in options.source:
        if name not in known:
            raise InputError(f"no source {name!r}: one of {', '.join(known)}")
    chosen = options.source or [source.name for source in SOURCES if not source.large]
    into = options.into or cache_folder()
    into.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in chosen:
        source = known[name]
        print(f"{name}: {source.repository} at {source.commit}, licence: {source.licence}")
        try:
            done = fetch(
                source,
                into,
                accept_changed=options.accept_changed,
                watch=partial(bar, stream=sys.stderr),
            )
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            failed += 1
            continue
        print(f"  {done.downloaded} files downloaded, {done.kept} kept")
        for path in done.written:
            print(f"  {path}")
    if not options.source:
        large = ", ".join(source.name for source in SOURCES if source.large)
        print(f"large ones are fetched by name: {large}")
    if failed:
        print(f"{failed} of {len(chosen)} sources failed", file=sys.stderr)
    return 2 if failed else 0


def _list(_options: argparse.Namespace) -> int:
    from training.datasets.public.sources import SOURCES

    for source in SOURCES:
        size = "large" if source.large else f"{len(source.files)} files"
        print(f"{source.name:12} {size:9} {source.title}")
        print(f"{'':22} {source.repository} at {source.commit}, licence: {source.licence}")
    return 0


def _where(options: argparse.Namespace) -> int:
    folder = data_folder(options.data)
    print(folder if folder.is_dir() else f"{folder} (not there yet)")
    return 0


def _dippm(options: argparse.Namespace) -> int:
    import numpy as np

    from training.datasets.dippm import energy_unit, read_folder

    unit = energy_unit(options.folder)
    labels = [record.labels for record in read_folder(options.folder, unit)]
    print(f"{len(labels)} graphs; the stored energies are {unit.value}")
    for name in ("latency_ms", "energy_j", "memory_mib"):
        low, middle, high = np.percentile([getattr(item, name) for item in labels], (0, 50, 100))
        print(f"{name}: {low:.4g} to {high:.4g}, median {middle:.4g}")
    return 0
