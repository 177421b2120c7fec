"""Writing the converted tables: whole files at once, the same bytes for the same rows."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dippm_lite.errors import InputError

__all__ = ["number", "positive", "read_rows", "replace_rows", "rounded", "write_rows"]

Row = Mapping[str, str]


def read_rows(path: Path, columns: Iterable[str]) -> Iterator[tuple[int, Row]]:
    """The rows of a CSV file with their line numbers (the header is line 1).

    Raises:
        InputError: the file is missing, isn't UTF-8, or lacks one of ``columns``.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = set(columns) - set(reader.fieldnames or ())
            if missing:
                raise InputError(f"{path} has no column {sorted(missing)[0]!r}: another layout")
            for row in reader:
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} can't be read: {error}") from error


def number(path: Path, line: int, row: Row, column: str) -> float:
    """A cell as a finite number.

    Raises:
        InputError: it isn't one.
    """
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise InputError(f"{path} line {line}: {column} is {row[column]!r}, which is no number")
    return value


def positive(path: Path, line: int, row: Row, column: str) -> float:
    """A cell as a number above 0.

    Raises:
        InputError: it isn't one.
    """
    value = number(path, line, row, column)
    if value <= 0:
        raise InputError(f"{path} line {line}: {column} is {row[column]!r}, not above 0")
    return value


def rounded(value: float, digits: int) -> str:
    """The shortest decimal of ``value`` at ``digits`` places; whole numbers without a point."""
    text = repr(round(value, digits))
    return text.removesuffix(".0")


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a CSV file, gzipped where its name says so; returns the number of rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    count = 0
    for row in rows:
        writer.writerow(row)
        count += 1
    content = text.getvalue().encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
    return count


def replace_rows(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]], ours: Callable[[Row], bool]
) -> int:
    """Put ``rows`` in place of those for which ``ours`` holds, the others staying in front.

    Raises:
        InputError: the file exists with other columns.
    """
    kept: list[Sequence[str]] = []
    if path.exists():
        kept = [
            [row[column] for column in columns]
            for _, row in read_rows(path, columns)
            if not ours(row)
        ]
    return write_rows(path, columns, [*kept, *rows]) - len(kept)
