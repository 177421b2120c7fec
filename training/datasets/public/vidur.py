"""Vidur's profiles of LLM layers (fp16, tensor parallel) to ``kernels/vidur_fp16.csv.gz``.

Layout: ``data/profiling/compute/<device>/<organisation>/<model>/mlp.csv``, a row for each number of
tokens and degree of tensor parallelism, with ``time_stats.<operation>.median`` in ms and the
model's sizes. A product is (M, K) x (K, N), M being tokens. A pair of tokens and degree that is
measured twice counts once, the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.datasets.public.outputs import Row, number, positive, read_rows, rounded, write_rows

__all__ = ["FILES", "convert"]

_MODELS: Mapping[str, tuple[str, ...]] = {
    "a100": ("meta-llama/Meta-Llama-3-70B", "meta-llama/Meta-Llama-3-8B"),
    "a40": (),
    "h100": (),
}
_EVERYWHERE = (
    "Qwen/Qwen-72B", "codellama/CodeLlama-34b-Instruct-hf", "internlm/internlm-20b",
    "meta-llama/Llama-2-70b-hf", "meta-llama/Llama-2-7b-hf", "microsoft/phi-2",
)  # fmt: skip

FILES = tuple(
    f"{device}/{model}/mlp.csv"
    for device, more in _MODELS.items()
    for model in sorted((*_EVERYWHERE, *more))
)
"""What is fetched, under ``data/profiling/compute``."""

COLUMNS = ("op", "device", "precision", "model", "tp", "latency_ms", "M", "N", "K")


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of a model on one of ``tp`` GPUs."""

    hidden: int
    heads: int
    kv_heads: int
    inner: int
    gated: bool
    tp: int

    @property
    def head(self) -> int:
        return self.hidden // self.heads


_OPERATIONS: tuple[tuple[str, str, Callable[[_Sizes], tuple[int, int | None]]], ...] = (
    # time_stats column, our op, (N, K)
    ("attn_pre_proj", "linear", lambda s: ((s.heads + 2 * s.kv_heads) * s.head // s.tp, s.hidden)),
    ("attn_post_proj", "linear", lambda s: (s.hidden, s.heads * s.head // s.tp)),
    ("mlp_up_proj", "linear", lambda s: ((1 + s.gated) * s.inner // s.tp, s.hidden)),
    ("mlp_down_proj", "linear", lambda s: (s.hidden, s.inner // s.tp)),
    ("input_layernorm", "layernorm", lambda s: (s.hidden, None)),
    ("post_attention_layernorm", "layernorm", lambda s: (s.hidden, None)),
    ("add", "add", lambda s: (s.hidden, None)),
    ("mlp_act", "act", lambda s: (s.inner // s.tp, None)),
    ("attn_rope", "rope", lambda s: ((s.heads + s.kv_heads) * s.head // s.tp, None)),
    ("emb", "embedding", lambda s: (s.hidden, None)),
)


def convert(raw: Path, data: Path) -> tuple[Path, ...]:
    """Write the table; returns its path.

    Raises:
        InputError: a file is missing, or isn't as described above.
    """
    target = data / "kernels" / "vidur_fp16.csv.gz"
    write_rows(target, COLUMNS, (row for file in FILES for row in _rows(raw, file)))
    return (target,)


_SIZES = ("n_head", "n_kv_head", "n_embd", "n_expanded_embd", "use_gated_mlp")
_KEY = ("num_tokens", "num_tensor_parallel_workers")


def _rows(raw: Path, file: str) -> Iterator[Sequence[str]]:
    path = raw / file
    device, model = file.split("/", 1)[0], file.split("/", 1)[1].removesuffix("/mlp.csv")
    seen: set[tuple[int, int]] = set()
    for line, row in read_rows(path, (*_SIZES, *_KEY)):
        tokens, tp = (int(positive(path, line, row, column)) for column in _KEY)
        if (tokens, tp) in seen:
            continue
        seen.add((tokens, tp))
        sizes = _sizes(path, line, row, tp)
        for name, op, dimensions in _OPERATIONS:
            column = f"time_stats.{name}.median"
            if not row.get(column):  # a model without that layer
                continue
            latency = number(path, line, row, column)
            if latency <= 0:  # not measured
                continue
            n, k = dimensions(sizes)
            gated = "_gated" if op == "act" and sizes.gated else ""
            yield [
                op + gated, device, "fp16", model, str(tp), rounded(latency, 6),
                str(tokens), str(n), "" if k is None else str(k),
            ]  # fmt: skip


def _sizes(path: Path, line: int, row: Row, tp: int) -> _Sizes:
    heads, kv_heads, hidden, inner = (
        int(positive(path, line, row, column)) for column in _SIZES[:4]
    )
    return _Sizes(hidden, heads, kv_heads, inner, row["use_gated_mlp"] == "True", tp)
