"""``python -m training VERB``: everything that makes what the package ships."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence

from dippm_lite.errors import DippmError

__all__ = ["VERBS", "main"]

VERBS: Mapping[str, tuple[str, str]] = {
    "corpus": ("training.corpus.commands", "networks as weightless ONNX files and records"),
    "data": ("training.datasets.data_commands", "measurements of others: fetch, list, look into"),
    "splits": (
        "training.datasets.splits_commands",
        "what is trained on and what is tested on",
    ),
    "measure": ("training.measure.commands", "latency, energy and memory on this machine"),
    "kernels": ("training.kernels.command", "kernel latency models from measured kernels"),
}
"""Verb to the module that has it, and one line of help.

A module adds its verb by ``add_parser(verbs)``; the verb's parser sets ``handler``, which takes
the parsed arguments and returns the exit code. Only the module of the verb that runs is imported:
no environment needs what another verb needs.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; ``argv`` are the arguments without the program's name."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb, (module, text) in VERBS.items():
        if verb in argv[:1]:
            importlib.import_module(module).add_parser(verbs)
        else:
            verbs.add_parser(verb, help=text)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.handler(arguments)
    except DippmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
