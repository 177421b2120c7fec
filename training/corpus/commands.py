"""``python -m training corpus``: build, pack, count, export and label networks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from training.corpus.card_command import add_card_parsers
from training.corpus.label_command import add_label_parser
from training.corpus.records import INDEX, Corpus
from training.datasets.match_command import add_match_parser

__all__ = ["RECORDS", "add_parser"]

RECORDS = Path(__file__).parent / "records"
"""The records that the repository holds."""


def add_parser(verbs: Any) -> None:
    """Add the verb ``corpus`` to the subparsers of ``python -m training``."""
    corpus = verbs.add_parser("corpus", help="networks as weightless ONNX files and records")
    commands = corpus.add_subparsers(dest="command", required=True, metavar="COMMAND")

    export = commands.add_parser("export", help="write one network as a weightless ONNX file")
    export.add_argument("name", help="such as timm/resnet50@288, neusight/gpt3-xl, plain/unet")
    export.add_argument("--exporter", choices=("torchscript", "dynamo"), default="torchscript")
    export.add_argument("--opset", type=int, default=17)
    export.add_argument(
        "--canonical", action="store_true", help="short tensor names, no node names"
    )
    export.add_argument("--output", type=Path, required=True, metavar="FILE")
    export.set_defaults(handler=_export)

    build = commands.add_parser("build", help="export the networks of the plan, resumably")
    build.add_argument("--source", action="append", default=[], help="a part of the plan; repeat")
    build.add_argument("--work", type=Path, help="folder of what is built so far")
    build.add_argument(
        "--output", type=Path, help="go on from the records in this folder, and pack into it"
    )
    build.add_argument("--sample", type=int, metavar="N", help="rebuild N records and compare them")
    build.add_argument("--retry", action="store_true", help="try again what failed before")
    build.add_argument("--workers", type=int, default=2)
    build.set_defaults(handler=_build)

    pack = commands.add_parser("pack", help="merge duplicates and write the records")
    pack.add_argument("--work", type=Path, required=True)
    pack.add_argument("--output", type=Path, default=RECORDS)
    pack.set_defaults(handler=_pack)

    add_match_parser(commands, RECORDS)
    add_label_parser(commands, RECORDS)
    add_card_parsers(commands, RECORDS)


def _export(options: argparse.Namespace) -> int:
    from training.corpus.canonical import canonicalise
    from training.corpus.catalog import export_network, find_network

    network = find_network(options.name)
    model, parameters = export_network(network, exporter=options.exporter, opset=options.opset)
    if options.canonical:
        canonicalise(model)
    options.output.write_bytes(model.SerializeToString())
    size = options.output.stat().st_size
    print(f"{options.output}: {len(model.graph.node)} nodes, {parameters} parameters, {size} bytes")
    return 0


def _build(options: argparse.Namespace) -> int:
    from training.corpus.build import build, pack, rebuild, unpack
    from training.corpus.plan import plan

    if options.sample is not None:
        differing = rebuild(Corpus(options.output or RECORDS), options.sample)
        for name, reason in differing:
            print(f"{name}: {reason}", file=sys.stderr)
        print(f"{options.sample - len(differing)} of {options.sample} records rebuilt identically")
        return 1 if differing else 0
    if options.work is None:
        print("error: no folder to build in: give --work FOLDER", file=sys.stderr)
        return 2
    names = plan(tuple(options.source))
    if options.output is not None and (options.output / INDEX).exists():
        unpack(Corpus(options.output), options.work)
    build(names, options.work, workers=options.workers, retry=options.retry)
    if options.output is not None:
        print(f"{pack(options.work, options.output)} records in {options.output}")
    return 0


def _pack(options: argparse.Namespace) -> int:
    from training.corpus.build import pack

    print(f"{pack(options.work, options.output)} records in {options.output}")
    return 0
