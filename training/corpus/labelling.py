"""Compose the labels of records: every workload of the plan, resumably, on several processes."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import dippm_lite
from dippm_lite.analysis import analyse_graph
from dippm_lite.caveats import ExtrapolatedKernels
from dippm_lite.devices import DeviceSpec
from dippm_lite.errors import InputError
from dippm_lite.kernel_latency import KernelLatencyModel
from dippm_lite.onnx_reader import ReadModel, read_graph
from dippm_lite.prediction import SCHEMA, Prediction
from dippm_lite.predictor import Predictor
from dippm_lite.units import bytes_to_mib
from training.corpus.label_plan import (
    ANCHOR,
    SIZES,
    Setting,
    batches_of,
    device_order,
    ordered,
    settings_of,
)
from training.corpus.labels import Label, read_labels, write_labels
from training.corpus.records import Corpus, Record
from training.corpus.resized import own_size, read_resized
from training.datasets.groups import short
from training.datasets.provenance import Provenance

__all__ = ["Composer", "Outcome", "compose_label", "engine_digest", "label_corpus", "label_record"]

AT_ONCE = 64
"""Records that are read ahead of the processes that label them."""

PER_OTHER_SIZE = 2
SAY_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Labels of a record, or the reason why it has none."""

    fingerprint: str
    name: str
    labels: tuple[Label, ...] = ()
    reason: str = ""


@cache
def engine_digest() -> str:
    """Twelve hex digits over the bundles and the code that a composed label depends on."""
    package = Path(dippm_lite.__file__).parent
    apart = ("cli.py", "__main__.py", "report/", "mig.py")
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package).as_posix()
        if path.suffix in (".py", ".json", ".txt") and not place.startswith(apart):
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{place}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


class Composer:
    """Predictions for any device, runtime and precision from kernel models that are read once."""

    def __init__(self, engine: KernelLatencyModel | None = None) -> None:
        self._engine = engine or KernelLatencyModel.load()

    def predict(
        self,
        read: ReadModel,
        name: str,
        setting: Setting,
        devices: Sequence[DeviceSpec],
    ) -> Prediction | None:
        """The prediction for the first of ``devices`` that has the memory; None where none has."""
        runtime, precision = setting
        analysis = analyse_graph(read, name, runtime, precision)
        for device in devices:
            # Profiles are left out: nobody asks on which instance the workload would fit.
            whole = replace(device, mig_profiles=())
            predictor = Predictor(whole, runtime, precision, self._engine)
            prediction = predictor.predict_analysis(analysis)
            if prediction.memory_mib.value <= device.usable_mib:
                return prediction
        return None


_ALWAYS = (
    "UncalibratedInterval",
    "ExtrapolatedKernels",
    "OutOfRange",
    "DoesNotFit",
    "AssumedBatch",
)
"""Caveats that say nothing of a label's completeness, or have a column of their own."""


def compose_label(record: Record, prediction: Prediction, size: int = 0) -> Label:
    """The prediction as a label of ``record`` at ``size`` (0: its own)."""
    codes = dict.fromkeys(c.code for c in prediction.caveats if c.code not in _ALWAYS)
    return Label(
        fingerprint=short(record.fingerprint),
        name=record.name,
        batch=prediction.batch_size if record.batch else 1,
        size=size,
        runtime=prediction.runtime.value,
        precision=prediction.precision.value,
        device=prediction.device,
        latency_ms=prediction.latency_ms.value,
        latency_low_ms=prediction.latency_ms.low,
        latency_high_ms=prediction.latency_ms.high,
        launch_bound_share=prediction.launch_bound_share,
        memory_mib=prediction.memory_mib.value,
        energy_j=prediction.energy_j.value,
        macs=prediction.static.macs,
        params=prediction.static.params,
        extrapolated_share=max(
            (c.share for c in prediction.caveats if isinstance(c, ExtrapolatedKernels)), default=0.0
        ),
        caveats=";".join(codes),
        provenance=Provenance.COMPOSED.value,
        bundle_id=prediction.bundle_id,
        engine=engine_digest(),
        schema=SCHEMA,
        package=dippm_lite.__version__,
    )


def label_record(record: Record, model: bytes, composer: Composer) -> Outcome:
    """All workloads that the plan wants of a record and that some A100 has the memory for.

    A record that can't be labelled is an outcome with a reason, whatever went wrong.
    """
    try:
        labels = tuple(_labels(record, model, composer))
    except Exception as error:  # one record must not end a run over thousands
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return Outcome(record.fingerprint, record.name, reason=reason)
    reason = "" if labels else "no workload fits the memory of an A100"
    return Outcome(record.fingerprint, record.name, labels, reason)


def _labels(record: Record, model: bytes, composer: Composer) -> Iterator[Label]:
    key = record.fingerprint
    reads = {1: read_graph(model, batch_size=1 if record.batch else None)}
    batches = _batches(record, reads[1])
    for batch, (wanted, settings) in settings_of(key, batches).items():
        if batch not in reads:
            reads[batch] = read_graph(model, batch_size=batch)
        yield from _some(record, reads[batch], composer, batch, settings, wanted)
    # A batch in the middle, so that a larger image still fits.
    batch = batches[len(batches) // 2]
    own = reads[batch]
    for size in ordered(key, "size", SIZES) if own_size(record) else ():
        if size == own_size(record):
            continue
        resized = read_resized(record, model, own, size, batch if record.batch else None)
        if resized is None:
            return  # the sizes of a network that has one built in all fail alike
        yield from _some(record, resized, composer, batch, settings, PER_OTHER_SIZE, size)
        return


def _batches(record: Record, first: ReadModel) -> tuple[int, ...]:
    if not record.batch:
        return (1,)
    analysis = analyse_graph(first, record.name, *ANCHOR)
    activations_mib = bytes_to_mib(analysis.static.peak_activation_bytes)
    weights_mib = bytes_to_mib(sum(analysis.weight_sizes))
    return batches_of(record.fingerprint, weights_mib, activations_mib)


def _some(
    record: Record,
    read: ReadModel,
    composer: Composer,
    batch: int,
    settings: Sequence[Setting],
    wanted: int,
    size: int = 0,
) -> Iterator[Label]:
    """Labels for the first ``wanted`` of ``settings`` that fit a device."""
    found = 0
    for setting in settings:
        devices = device_order(record.fingerprint, batch, setting)
        prediction = composer.predict(read, record.name, setting, devices)
        if prediction is not None:
            yield compose_label(record, prediction, size)
            found += 1
        if found == wanted:
            return


_composer: Composer | None = None


def _start() -> None:
    global _composer
    _composer = Composer()


def _label_one(task: tuple[Record, bytes]) -> Outcome:
    assert _composer is not None
    return label_record(*task, _composer)


def label_corpus(
    corpus: Corpus,
    output: Path,
    *,
    records: Sequence[Record] | None = None,
    workers: int = 1,
    fresh: bool = False,
    report: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> tuple[int, tuple[Outcome, ...]]:
    """Label ``records`` (all by default) and write ``output``, in the order of the records.

    Records that ``output`` or the unfinished ``output``.part has are kept where the same engine
    composed them; ``fresh`` composes all again.

    Returns:
        the number of labels in ``output``, and the outcomes without labels.
    """
    chosen = tuple(corpus.records if records is None else records)
    part = output.with_name(f"{output.name}.part")
    if fresh:
        part.unlink(missing_ok=True)
    done = {} if fresh else _kept(output, part)
    todo = [record for record in chosen if short(record.fingerprint) not in done]
    report(f"{len(chosen) - len(todo)} of {len(chosen)} records are labelled already")
    failed: list[Outcome] = []
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("a", encoding="utf-8") as lines:
        if part.stat().st_size:
            lines.write("\n")  # the last line may have been broken off
        for outcome in _progress(_outcomes(corpus, todo, workers), len(todo), report):
            if outcome.reason:
                failed.append(outcome)
                continue
            done[short(outcome.fingerprint)] = outcome.labels
            rows = [label.row() for label in outcome.labels]
            lines.write(json.dumps(rows) + "\n")
            lines.flush()
    labels = [label for record in chosen for label in done.get(short(record.fingerprint), ())]
    write_labels(output, labels)
    failures = sorted(({"name": o.name, "reason": o.reason} for o in failed), key=str)
    output.with_name(f"{output.name.split('.')[0]}_failures.jsonl").write_text(
        "".join(f"{json.dumps(failure)}\n" for failure in failures), encoding="utf-8"
    )
    part.unlink()
    return len(labels), tuple(failed)


def _kept(output: Path, part: Path) -> dict[str, tuple[Label, ...]]:
    """Labels of this engine by short fingerprint, of an earlier run and of one that broke off."""
    earlier: list[Label] = []
    if output.exists():
        try:
            earlier += read_labels(output)
        except InputError:  # of another layout: all is composed again
            earlier.clear()
    if part.exists():
        for line in part.read_text(encoding="utf-8").splitlines():
            try:
                earlier += [Label.of_row(row) for row in json.loads(line)]
            except (ValueError, TypeError):  # empty, or broken off
                continue
    kept: dict[str, dict[Label, None]] = {}
    for label in earlier:
        if label.engine == engine_digest():
            kept.setdefault(label.fingerprint, {})[label] = None
    return {fingerprint: tuple(labels) for fingerprint, labels in kept.items()}


def _outcomes(corpus: Corpus, records: Sequence[Record], workers: int) -> Iterator[Outcome]:
    if not records:
        return
    models = corpus.models(records)
    if workers == 1:
        composer = Composer()
        yield from (label_record(record, model, composer) for record, model in models)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=_start) as pool:
        # In portions: a pool takes all that it is given at once.
        while portion := list(islice(models, AT_ONCE)):
            yield from pool.imap(_label_one, portion)


def _progress(
    outcomes: Iterable[Outcome], count: int, report: Callable[[str], None]
) -> Iterator[Outcome]:
    """Says how far it is, how fast and for how long yet, every few seconds."""
    started = said = time.monotonic()
    labels = failed = 0
    for number, outcome in enumerate(outcomes, 1):
        yield outcome
        labels += len(outcome.labels)
        failed += bool(outcome.reason)
        now = time.monotonic()
        if now - said < SAY_EVERY_S and number < count:
            continue
        said = now
        spent = max(now - started, 1e-9)
        left = spent / number * (count - number)
        report(
            f"{number}/{count} records, {failed} failed, {labels} workloads, "
            f"{labels / spent:.1f} workloads/s, {left / 60:.0f} min left, {outcome.name}"
        )
