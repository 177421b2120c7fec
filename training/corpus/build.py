"""Build a corpus: export every network of a plan, resumably, and pack the results as records.

The work folder holds one file per network: ``models/<id>.onnx`` with ``<id>.json`` beside it, or
``failures/<id>.json`` with the reason. What is there is not built again. Each worker process
exports one network at a time, under a time limit, and is replaced when it dies.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

import onnx

from dippm_lite.onnx_reader import read_graph
from training.corpus.canonical import canonicalise, fingerprint, shape_free_fingerprint
from training.corpus.catalog import EXAMPLE_BATCH, export_network, find_network
from training.corpus.records import Corpus, Record, write_shards
from training.corpus.workers import Died, run_tasks

__all__ = ["build", "failures", "make_record", "pack", "rebuild", "unpack"]

EXPORTERS = (("torchscript", 17), ("dynamo", 18))
"""What is tried in turn, with its opset. TorchScript takes seconds at most, dynamo ten times
that; each exports some networks that the other can't."""

TIME_LIMIT_S = 180
MEMORY_LIMIT_BYTES = 8 << 30
NETWORKS_PER_WORKER = 100
"""Networks that a worker exports before a fresh one takes over: torch's caches only grow."""


def make_record(name: str, exporter: str, opset: int) -> tuple[Record, onnx.ModelProto]:
    """Export a network of the catalog to its record and canonical model.

    Raises:
        KeyError: no such network.
        InputError: the exporter wrote a model whose shapes contradict each other.
        whatever torch raises where it can't be built or exported.
    """
    import torch

    network = find_network(name)
    model, parameters = export_network(network, exporter=exporter, opset=opset)
    canonicalise(model)
    read_graph(model.SerializeToString(), batch_size=EXAMPLE_BATCH if network.batch else None)
    record = Record(
        name=network.name,
        family=network.family,
        builder=network.builder,
        arguments=dict(network.arguments),
        exporter=exporter,
        opset=opset,
        inputs=[[s.name, list(s.shape), str(s.dtype).split(".")[-1]] for s in network.inputs],
        batch=network.batch,
        parameters=parameters,
        nodes=len(model.graph.node),
        fingerprint=fingerprint(model),
        architecture=shape_free_fingerprint(model),
        torch=torch.__version__.split("+")[0],
    )
    return record, model


def build(
    names: Sequence[str],
    work: Path,
    *,
    exporters: Sequence[tuple[str, int]] = EXPORTERS,
    workers: int = 1,
    retry: bool = False,
) -> None:
    """Export each network of ``names`` that ``work`` lacks; progress goes to stderr.

    A network that the first of ``exporters`` (name and opset) can't export is given to the next.
    ``retry`` tries again what failed before.

    The estimate of the time left is the mean time of the networks exported in this run.
    """
    for folder in ("models", "failures"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    if retry:
        for failure in (work / "failures").glob("*.json"):
            failure.unlink()
    todo = [name for name in names if not _is_done(work, name)]
    print(f"{len(names) - len(todo)} of {len(names)} networks are built already", file=sys.stderr)
    started, failed = time.monotonic(), 0
    tasks = [(name, work, tuple(exporters)) for name in todo]
    results = run_tasks(_build_one, tasks, workers=workers, tasks_per_worker=NETWORKS_PER_WORKER)
    for count, ((name, *_), result) in enumerate(results, 1):
        reason = result
        if isinstance(result, Died):
            reason = f"the process that exported it ended with code {result.exit_code}"
            _fail(work, name, reason)
        failed += reason is not None
        spent = time.monotonic() - started
        left = spent / count * (len(todo) - count)
        text = f"{count}/{len(todo)} {failed} failed, {left / 60:.0f} min left, {name}"
        print(text if reason is None else f"{text}: {reason}", file=sys.stderr, flush=True)


def _fail(work: Path, name: str, reason: str) -> None:
    path = work / "failures" / f"{_identifier(name)}.json"
    _write(path, {"name": name, "reason": reason})


def _identifier(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _is_done(work: Path, name: str) -> bool:
    identifier = _identifier(name)
    return (work / "models" / f"{identifier}.json").exists() or (
        work / "failures" / f"{identifier}.json"
    ).exists()


def _build_one(task: tuple[str, Path, tuple[tuple[str, int], ...]]) -> str | None:
    """Export one network into the work folder; returns the reason where it fails."""
    import torch

    name, work, exporters = task
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    sys.setrecursionlimit(10_000)
    identifier = _identifier(name)
    signal.signal(signal.SIGALRM, _time_out)
    reasons = []
    for exporter, opset in exporters:
        signal.alarm(TIME_LIMIT_S)
        try:
            with _silent_output():
                record, model = make_record(name, exporter, opset)
        except Exception as error:  # a failure of any network is a line in the list of failures
            reasons.append(f"{exporter} opset {opset}: {_in_one_line(error)}")
            continue
        finally:
            signal.alarm(0)
        (work / "models" / f"{identifier}.onnx").write_bytes(model.SerializeToString())
        _write(work / "models" / f"{identifier}.json", asdict(record))
        return None
    _fail(work, name, "; ".join(reasons))
    return reasons[-1]


def _in_one_line(error: BaseException) -> str:
    """What was raised, and what that was first raised for; exporters wrap what they meet."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    texts = [f"{type(e).__name__}: {' '.join(str(e).split())[:200]}" for e in (error, first)]
    return texts[0] if first is error else f"{texts[0]} <- {texts[1]}"


def _time_out(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {TIME_LIMIT_S} s")


class _silent_output:
    """Send file descriptors 1 and 2 to nowhere: exporters print graphs from C++ when they fail."""

    def __enter__(self) -> None:
        self.saved = os.dup(1), os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.close(nowhere)

    def __exit__(self, *error: object) -> None:
        for descriptor, saved in zip((1, 2), self.saved, strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)


def _write(path: Path, content: object) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, sort_keys=True), encoding="utf-8")
    temporary.replace(path)


def failures(work: Path) -> tuple[tuple[str, str], ...]:
    """Name and reason of each network that could not be exported, sorted."""
    found = (json.loads(path.read_text()) for path in (work / "failures").glob("*.json"))
    return tuple(sorted((item["name"], item["reason"]) for item in found))


def pack(work: Path, folder: Path) -> int:
    """Merge duplicates and write the records of ``work`` to ``folder``; returns their number.

    Of networks with the same fingerprint the first by name is kept, the others are its aliases.
    ``failures.jsonl`` in ``folder`` lists what could not be exported, with the reason.
    """
    kept: dict[str, tuple[Record, Path]] = {}
    paths = (work / "models").glob("*.json")
    entries = [(Record(**json.loads(path.read_text())), path) for path in paths]
    for record, path in sorted(entries, key=lambda entry: entry[0].name):
        if record.fingerprint in kept:
            first, place = kept[record.fingerprint]
            merged = replace(first, aliases=(*first.aliases, record.name))
            kept[record.fingerprint] = (merged, place)
        else:
            kept[record.fingerprint] = (record, path)
    ordered = sorted(kept.values(), key=lambda entry: (entry[0].family, entry[0].name))
    write_shards(folder, _with_models(ordered))
    lines = (json.dumps({"name": name, "reason": reason}) for name, reason in failures(work))
    (folder / "failures.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return len(ordered)


def unpack(corpus: Corpus, work: Path) -> None:
    """The inverse of :func:`pack`: ``work`` as if what the corpus holds had just been built there,
    so that a build goes on from records where its folder is gone."""
    (work / "models").mkdir(parents=True, exist_ok=True)
    for record, content in corpus.models():
        for name in (record.name, *record.aliases):
            if not _is_done(work, name):
                identifier = _identifier(name)
                (work / "models" / f"{identifier}.onnx").write_bytes(content)
                entry = asdict(replace(record, name=name, aliases=()))
                _write(work / "models" / f"{identifier}.json", entry)


def _with_models(entries: Iterable[tuple[Record, Path]]) -> Iterator[tuple[Record, bytes]]:
    for record, path in entries:
        yield record, path.with_suffix(".onnx").read_bytes()


def rebuild(corpus: Corpus, count: int) -> tuple[tuple[str, str], ...]:
    """Export ``count`` records again, evenly chosen; name and reason of each that differs."""
    records = corpus.records
    chosen = records[:: max(1, len(records) // count)][:count]
    differing = []
    for record, content in corpus.models(chosen):
        try:
            again, model = make_record(record.name, record.exporter, record.opset)
        except Exception as error:  # a network that fails now differs; the others still count
            differing.append((record.name, f"{type(error).__name__}: {error}"))
            continue
        if replace(again, aliases=record.aliases) != record:
            differing.append((record.name, "its metadata differ"))
        elif model.SerializeToString() != content:
            differing.append((record.name, "its model differs"))
    return tuple(differing)
