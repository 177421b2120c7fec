"""``python -m training VERB``: everything that makes what the package ships."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from dippm_lite.errors import DippmError

_COMMANDS = (
    "training.corpus.commands",
    "training.datasets.splits_commands",
    "training.kernels.command",
)
"""Modules that add a verb each, by ``add_parser(verbs)``; a verb's parser sets ``handler``, which
takes the parsed arguments and returns the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; ``argv`` are the arguments without the program's name."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name in _COMMANDS:
        importlib.import_module(name).add_parser(verbs)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.handler(arguments)
    except DippmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
