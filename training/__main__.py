"""``python -m training VERB``: every step from architectures and measurements to a bundle.

A verb is a module with ``add_parser(verbs)``, which adds its parser and sets ``run``, a function
from the parsed options to an exit code. It imports what is heavy when it runs, not before.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

__all__ = ["VERBS", "main"]

VERBS = ("training.corpus.commands",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training", description="From architectures and measurements to a bundle.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for module in VERBS:
        importlib.import_module(module).add_parser(verbs)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
