"""The command line: arguments in, text out, exit code. It computes nothing itself."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dippm_lite import __version__
from dippm_lite.errors import DippmError, InputError
from dippm_lite.execution import Precision, Runtime

if TYPE_CHECKING:
    from dippm_lite.prediction import Prediction

__all__ = ["main", "run"]

_EXAMPLES = """\
examples:
  dippm-lite predict resnet50.onnx --batch 8
  dippm-lite predict bert.onnx --dim seq=128 --device a100-80gb --precision fp16
  dippm-lite predict *.onnx --format csv
  dippm-lite inspect model.onnx --shape input=1x3x640x640

exit codes: 0 fine, 2 wrong usage or unusable model, 3 broken bundle
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program's name; None takes the process's own.

    Returns:
        The exit code: 0 fine, 2 usage or input error, 3 bundle error.
    """
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.handler(arguments)
        return code
    except DippmError as error:
        print(f"dippm-lite: {_one_line(str(error))}", file=sys.stderr)
        return error.exit_code


def run() -> None:
    """Entry point of the ``dippm-lite`` script."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) is gone; a second failing flush at exit must stay silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _one_line(message: str) -> str:
    return "".join(ch if ch.isprintable() else " " for ch in message)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dippm-lite",
        description="Predict latency, energy, GPU memory and MIG profile of an ONNX model on an "
        "NVIDIA A100, without a GPU.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dippm-lite {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    predict = commands.add_parser("predict", help="latency, energy, memory, MIG profile of models")
    _add_model_arguments(predict)
    predict.add_argument("--device", default="a100-40gb", help="see 'dippm-lite devices'")
    predict.set_defaults(handler=_predict)

    inspect = commands.add_parser("inspect", help="MACs, parameters, kernels of models, no trees")
    _add_model_arguments(inspect)
    inspect.set_defaults(handler=_inspect)

    devices = commands.add_parser("devices", help="list devices and their MIG profiles")
    devices.add_argument("--format", choices=("text", "json"), default="text")
    devices.set_defaults(handler=_devices)

    info = commands.add_parser("info", help="what the shipped bundle is and how good it is")
    info.add_argument("--format", choices=("text", "json"), default="text")
    info.set_defaults(handler=_info)
    return parser


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="ONNX file")
    binding = parser.add_argument_group("free dimensions")
    binding.add_argument("--batch", type=_positive, metavar="N", help="leading dimension of inputs")
    binding.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=N",
        help="bind a named free dimension; may be repeated",
    )
    binding.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=1x3x224x224",
        help="bind the shape of an input; may be repeated",
    )
    target = parser.add_argument_group("target")
    target.add_argument("--runtime", choices=[r.value for r in Runtime], default="pytorch")
    target.add_argument("--precision", choices=[p.value for p in Precision], default="auto")
    parser.add_argument("--format", choices=("text", "json", "csv", "markdown"), default="text")
    parser.add_argument(
        "--top", type=_count, default=5, metavar="N", help="kernels to list (default: 5)"
    )


def _positive(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive: give 1 or more")
    return value


def _count(text: str) -> int:
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is negative: give 0 or more")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _dims(pairs: Sequence[str]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for pair in pairs:
        name, separator, number = pair.rpartition("=")
        if not separator or not name or not _is_int(number):
            raise InputError(f"--dim {pair!r} is not NAME=N: write, say, --dim seq=128")
        dims[name] = int(number)
    return dims


def _shapes(pairs: Sequence[str]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for pair in pairs:
        name, separator, text = pair.rpartition("=")
        sizes = [] if text in ("", "scalar") else text.replace(",", "x").split("x")
        if not separator or not name or not all(_is_int(size) for size in sizes):
            raise InputError(
                f"--shape {pair!r} is not INPUT=SIZES: write, say, --shape input=1x3x224x224"
            )
        shapes[name] = tuple(int(size) for size in sizes)
    return shapes


def _is_int(text: str) -> bool:
    digits = text[1:] if text.startswith("-") else text
    return digits.isascii() and digits.isdigit() and len(digits) <= 18


def _predictions(arguments: argparse.Namespace) -> list[Prediction]:
    from dippm_lite.predictor import Predictor

    predictor = Predictor.load(
        device=arguments.device,
        runtime=Runtime(arguments.runtime),
        precision=Precision(arguments.precision),
    )
    dims, shapes = _dims(arguments.dim), _shapes(arguments.shape)
    return [
        predictor.predict(file, batch_size=arguments.batch, dims=dims, shapes=shapes)
        for file in arguments.files
    ]


def _predict(arguments: argparse.Namespace) -> int:
    from dippm_lite.report import FORMATS
    from dippm_lite.report.wording import caveat_text

    predictions = _predictions(arguments)
    print(FORMATS[arguments.format](predictions, arguments.top))
    if arguments.format != "markdown":  # where they are part of the page
        _notes((p.model, caveat_text(caveat)) for p in predictions for caveat in p.caveats)
    return 0


def _inspect(arguments: argparse.Namespace) -> int:
    from dippm_lite.analysis import analyse
    from dippm_lite.report.inspection import INSPECT_FORMATS
    from dippm_lite.report.wording import caveat_text

    dims, shapes = _dims(arguments.dim), _shapes(arguments.shape)
    analyses = [
        analyse(
            file,
            batch_size=arguments.batch,
            dims=dims,
            shapes=shapes,
            runtime=Runtime(arguments.runtime),
            precision=Precision(arguments.precision),
        )
        for file in arguments.files
    ]
    print(INSPECT_FORMATS[arguments.format](analyses, arguments.top))
    if arguments.format != "markdown":
        _notes((a.model, caveat_text(caveat)) for a in analyses for caveat in a.caveats)
    return 0


def _devices(arguments: argparse.Namespace) -> int:
    from dippm_lite.devices import ALIASES, DEVICES
    from dippm_lite.report.devices import render_devices_json, render_devices_text

    render = render_devices_json if arguments.format == "json" else render_devices_text
    print(render(tuple(DEVICES.values()), ALIASES))
    return 0


def _info(arguments: argparse.Namespace) -> int:
    from dippm_lite.bundle import Bundle
    from dippm_lite.report.bundle import render_bundle_json, render_bundle_text

    bundle = Bundle.load()
    render = render_bundle_json if arguments.format == "json" else render_bundle_text
    print(render(bundle.manifest))
    return 0


def _notes(notes: Iterable[tuple[str, str]]) -> None:
    for model, text in notes:
        print(f"dippm-lite: {_one_line(model)}: note: {_one_line(text)}", file=sys.stderr)
