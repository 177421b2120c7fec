"""Compact records of networks: metadata and a canonical weightless model, in compressed shards.

A folder of records holds ``index.jsonl`` (one line of metadata a record) and shards
``NNN.onnx.zst``: models one after the other, compressed together, since networks of one family
repeat each other. The index says where in which shard a model lies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx

__all__ = ["Corpus", "Record", "write_shards"]

INDEX = "index.jsonl"
SHARD_BYTES = 32 << 20
"""Uncompressed size at which a shard is closed: a window that the compressor can look back on."""

LEVEL = 19
"""Compression level: slow to write once, as fast as any other to read."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a stored network besides its model.

    Attributes:
        name: the network's name in the catalog; the first of those merged into this record.
        family: kind of architecture.
        builder: the callable that made it.
        arguments: what it was called with.
        exporter: ``"torchscript"`` or ``"dynamo"``.
        opset: version of the default operator set.
        inputs: ``[name, shape without batch, dtype]`` for each input.
        batch: False where the batch is fixed at 1.
        parameters: numbers in the torch module's parameters.
        nodes: operator calls in the file.
        fingerprint: of operators, shapes and dataflow; distinct among the records of a corpus.
        architecture: the same without shapes: equal for networks that differ in width alone.
        aliases: names of other networks with the same fingerprint.
        torch: version of torch that exported it.
    """

    name: str
    family: str
    builder: str
    arguments: Mapping[str, Any]
    exporter: str
    opset: int
    inputs: Sequence[Sequence[Any]]
    batch: bool
    parameters: int
    nodes: int
    fingerprint: str
    architecture: str
    torch: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    shard: str
    offset: int
    size: int


@dataclass(frozen=True)
class Corpus:
    """Records in a folder; shards are read when a model is asked for."""

    folder: Path

    @cached_property
    def _entries(self) -> tuple[tuple[Record, _Place], ...]:
        lines = (self.folder / INDEX).read_text(encoding="utf-8").splitlines()
        entries = []
        for line in lines:
            fields = json.loads(line)
            place = _Place(**fields.pop("place"))
            fields["aliases"] = tuple(fields["aliases"])
            entries.append((Record(**fields), place))
        return tuple(entries)

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(record for record, _ in self._entries)

    def models(self, records: Iterable[Record] | None = None) -> Iterator[tuple[Record, bytes]]:
        """Records with their serialised models, shard by shard; all of them by default.

        Raises:
            FileNotFoundError: a shard that the index names is missing.
            ValueError: a shard is shorter than its index says.
        """
        wanted = None if records is None else {record.fingerprint for record in records}
        name, content = "", b""
        for record, place in self._entries:
            if wanted is not None and record.fingerprint not in wanted:
                continue
            if place.shard != name:
                name, content = place.shard, _decompress(self.folder / place.shard)
            model = content[place.offset : place.offset + place.size]
            if len(model) != place.size:
                raise ValueError(f"{self.folder / name}: {record.name} lies outside of the shard")
            yield record, model

    def model(self, record: Record) -> onnx.ModelProto:
        """The model of one record, as :func:`onnx.load` would give it."""
        (_, content), *_ = self.models([record])
        return onnx.ModelProto.FromString(content)


def write_shards(folder: Path, models: Iterable[tuple[Record, bytes]]) -> None:
    """Write records and models to ``folder``, replacing the records in it.

    Records of one family should follow each other: they compress against each other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.onnx.zst"):
        old.unlink()
    lines: list[str] = []
    pending: list[bytes] = []
    offset = shard = 0

    def close() -> None:
        nonlocal offset, shard
        if pending:
            (folder / _shard_name(shard)).write_bytes(_compress(b"".join(pending)))
            shard += 1
        pending.clear()
        offset = 0

    for record, content in models:
        if offset and offset + len(content) > SHARD_BYTES:
            close()
        place = _Place(_shard_name(shard), offset, len(content))
        pending.append(content)
        offset += len(content)
        lines.append(json.dumps({**asdict(record), "place": asdict(place)}, sort_keys=True))
    close()
    (folder / INDEX).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _shard_name(number: int) -> str:
    return f"{number:03}.onnx.zst"


def _compress(content: bytes) -> bytes:
    import zstandard

    # The window covers the whole shard, and matches are looked for at any distance in it.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, window_log=25, enable_ldm=True, write_checksum=True, source_size=len(content)
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(content)


def _decompress(path: Path) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompress(path.read_bytes())
