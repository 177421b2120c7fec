"""Fetching public sources: resumed, checked, extracted safely, converted to our columns.

The server is this file's own, on 127.0.0.1; the sources are miniatures of each layout.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dippm_lite.errors import InputError
from training.__main__ import main
from training.data_folder import cache_folder, data_file, data_folder
from training.datasets.public import mlperf, neusight, parvagpu, timm_tables, vidur
from training.datasets.public.archives import extract
from training.datasets.public.bar import bar
from training.datasets.public.download import download
from training.datasets.public.fetch import LOCK, fetch
from training.datasets.public.outputs import rounded
from training.datasets.public.sources import SOURCES, RemoteFile, Source

CONTENT = bytes(range(256)) * 4096  # 1 MiB


@dataclass
class Server:
    """What the server holds, how it behaves, and what it was asked."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"1"'
    break_after: int | None = None
    ranges: bool = True
    fail: int = 0
    lie: bool = False
    asked: list[str | None] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append(wanted)
            content = state.files.get(self.path)
            if state.fail:
                state.fail -= 1
                self.send_error(503)
                return
            if content is None:
                self.send_error(404)
                return
            start, status = 0, 200
            current = self.headers.get("If-Range") in (None, state.etag)
            if wanted and state.ranges and current:
                start, status = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]), 206
                if start >= len(content):
                    self.send_error(416)
                    return
            self.send_response(status)
            if status == 206:
                shown = 0 if state.lie else start
                self.send_header("Content-Range", f"bytes {shown}-/{len(content)}")
            if state.etag:
                self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = len(content)
            if state.break_after is not None:
                end, state.break_after = start + state.break_after, None
            self.wfile.write(content[start:end])

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        state = Server(f"http://127.0.0.1:{running.server_port}")
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield state
        running.shutdown()


def get(server: Server, path: Path, **options: Any) -> Any:
    return download(f"{server.url}/file", path, wait_s=0.01, **options)


def test_an_interrupted_download_goes_on_where_it_broke_off(server: Server, tmp_path: Path) -> None:
    server.files["/file"], server.break_after = CONTENT, 300_000
    seen: list[tuple[int, int | None]] = []
    done = get(server, tmp_path / "f", progress=lambda size, total: seen.append((size, total)))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]
    assert done.resumed_at == 300_000
    assert done.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_download_goes_on_in_a_later_run(server: Server, tmp_path: Path) -> None:
    server.files["/file"] = CONTENT
    (tmp_path / "f.part").write_bytes(CONTENT[:1000])
    (tmp_path / "f.tag").write_text('"1"')
    assert get(server, tmp_path / "f").resumed_at == 1000
    assert (tmp_path / "f").read_bytes() == CONTENT


@pytest.mark.parametrize("what", ["other version", "no tag", "no ranges", "lie", "too long"])
def test_a_part_that_is_not_of_this_file_is_not_continued(
    server: Server, tmp_path: Path, what: str
) -> None:
    server.files["/file"] = CONTENT
    (tmp_path / "f.part").write_bytes(b"x" * (len(CONTENT) if what == "too long" else 1000))
    if what != "no tag":
        (tmp_path / "f.tag").write_text('"0"' if what == "other version" else '"1"')
    server.ranges, server.lie = what != "no ranges", what == "lie"
    if what == "lie":
        with pytest.raises(InputError, match="another range"):
            get(server, tmp_path / "f")
        assert not (tmp_path / "f").exists()
        return
    get(server, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_leaves_what_was_there(
    server: Server, tmp_path: Path
) -> None:
    server.files["/file"] = CONTENT
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(InputError, match=r"has sha256 .*, not 0000"):
        get(server, tmp_path / "f", sha256="0" * 64)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("f", b"old")]
    get(server, tmp_path / "f", sha256=hashlib.sha256(CONTENT).hexdigest())
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_passing_faults_are_tried_again_and_others_are_not(server: Server, tmp_path: Path) -> None:
    server.files["/file"], server.fail = CONTENT, 3
    get(server, tmp_path / "f")
    assert len(server.asked) == 4
    server.fail = 99
    with pytest.raises(InputError, match="503"):
        get(server, tmp_path / "g")
    server.fail = 0
    server.asked.clear()
    with pytest.raises(InputError, match="404"):
        download(f"{server.url}/none", tmp_path / "g", wait_s=0.01)
    assert len(server.asked) == 1


def test_a_long_file_and_other_schemes_are_refused(server: Server, tmp_path: Path) -> None:
    server.files["/file"] = CONTENT
    with pytest.raises(InputError, match="more than 1000 bytes"):
        get(server, tmp_path / "f", limit_bytes=1000)
    for url in ("http://example.org/f", "file:///etc/hostname", "ftp://example.org/f"):
        with pytest.raises(InputError, match="only https"):
            download(url, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_every_source_is_fetched_over_https_into_its_own_folder() -> None:
    names = [source.name for source in SOURCES]
    assert len(set(names)) == len(names)
    for source in SOURCES:
        assert source.licence
        for file in source.files:
            assert file.url.startswith("https://")
            assert " " not in file.url
            assert not file.name.startswith("/") and ".." not in file.name
            assert source.commit in file.url
        assert bool(source.members) == (len(source.files) == 1 and source.large)


def tarball(members: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def linked(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def test_chosen_members_are_extracted(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tarball({"top/a/x.csv": b"1", "top/a/y.txt": b"2", "top/b/x.csv": b"3"}))
    assert extract(path, tmp_path / "out", ["*.csv"], strip=1) == 2
    assert (tmp_path / "out/a/x.csv").read_bytes() == b"1"
    assert sorted(p.name for p in (tmp_path / "out").rglob("*")) == ["a", "b", "x.csv", "x.csv"]
    path.write_bytes(tarball({"top/c/x.csv": b"4"}))
    extract(path, tmp_path / "out", ["*.csv"], strip=1)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["c"]


@pytest.mark.parametrize(
    "members",
    [
        {"../x.csv": b"1"},
        {"a/../../x.csv": b"1"},
        {"/x.csv": b"1"},
        {"a\\..\\x.csv": b"1"},
        {"C:/x.csv": b"1"},
        {"x.csv": linked("x.csv", "/etc/hostname")},
        {"x.csv": linked("x.csv", "../secret", tarfile.LNKTYPE)},
        {"a": linked("a", ".."), "a/x.csv": linked("a/x.csv", "y", tarfile.FIFOTYPE)},
        {"big.csv": b"0" * 5000},
    ],
)
def test_an_archive_that_reaches_out_is_refused(
    tmp_path: Path, members: dict[str, bytes | tarfile.TarInfo]
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    box = tmp_path / "box"
    box.mkdir()
    (box / "a.tar").write_bytes(tarball(members))
    with pytest.raises(InputError, match=r"refused|unpacks to too much"):
        extract(box / "a.tar", box / "out", ["*.csv"], limit_bytes=4000)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.tar", "box", "secret"]


def test_links_that_nobody_asked_for_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tarball({"a": linked("a", "/etc"), "a/x.csv": b"1"}))
    assert extract(path, tmp_path / "out", ["*.csv"]) == 1
    assert (tmp_path / "out/a/x.csv").read_bytes() == b"1"
    assert not (tmp_path / "out/a").is_symlink()


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, 400), place=st.integers(0, 400), value=st.integers(0, 255))
def test_a_damaged_archive_raises_only_input_errors(
    tmp_path_factory: pytest.TempPathFactory, cut: int, place: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("tar")
    content = bytearray(tarball({"a/x.csv": bytes(range(256)), "b.csv": b"2"}))
    content[place % len(content)] = value
    (folder / "a.tar.gz").write_bytes(content[: len(content) - cut % len(content)])
    try:
        extract(folder / "a.tar.gz", folder / "out", ["*.csv"])
    except InputError:
        assert not (folder / "out").exists()


def local(source_name: str, server: Server, raw: Path) -> Source:
    """A source of the table, its files served from ``raw``; an archive is made of the folder."""
    source = next(source for source in SOURCES if source.name == source_name)
    if source.members:
        members = {
            f"top/{p.relative_to(raw)}": p.read_bytes() for p in raw.rglob("*") if p.is_file()
        }
        server.files["/archive"] = tarball(members)
        file = replace(source.files[0], url=f"{server.url}/archive")
        return replace(source, files=(file,))
    files = []
    for number, file in enumerate(source.files):
        server.files[f"/{number}"] = (raw / file.name).read_bytes()
        files.append(RemoteFile(file.name, f"{server.url}/{number}"))
    return replace(source, files=tuple(files))


PARVA = """Mig instance,Batch size,Workload Number,Throughput,Latency
1,8,1,101.907,0.079
1,8,2,64.346,0.124
1,8,5,0,0
7,256,1,0,0
"""


def write_parvagpu(raw: Path) -> None:
    raw.mkdir(parents=True)
    for name in parvagpu.FILES:
        (raw / name).write_text(PARVA)


def table(path: Path) -> list[dict[str, str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_a_source_is_fetched_once_locked_and_converted(server: Server, tmp_path: Path) -> None:
    write_parvagpu(tmp_path / "upstream")
    source, data = local("parvagpu", server, tmp_path / "upstream"), tmp_path / "data"
    first = fetch(source, data, wait_s=0.01)
    assert (first.downloaded, first.kept) == (11, 0)
    lock = json.loads((data / LOCK).read_text())["files"]
    assert lock["parvagpu/bert.csv"]["sha256"] == hashlib.sha256(PARVA.encode()).hexdigest()
    assert lock["parvagpu/bert.csv"]["bytes"] == len(PARVA)
    server.asked.clear()
    again = fetch(source, data, wait_s=0.01)
    assert (again.downloaded, again.kept) == (0, 11)
    assert server.asked == []
    (data / "raw/parvagpu/bert.csv").write_text("damaged")
    assert fetch(source, data, wait_s=0.01).downloaded == 1


def test_a_source_that_changed_upstream_is_refused_until_it_is_accepted(
    server: Server, tmp_path: Path
) -> None:
    write_parvagpu(tmp_path / "upstream")
    source, data = local("parvagpu", server, tmp_path / "upstream"), tmp_path / "data"
    fetch(source, data, wait_s=0.01)
    (data / "raw/parvagpu/bert.csv").unlink()
    server.files["/0"] = PARVA.replace("101.907", "999").encode()
    with pytest.raises(InputError, match="--accept-changed"):
        fetch(source, data, wait_s=0.01)
    fetch(source, data, accept_changed=True, wait_s=0.01)
    assert any(row["value"] == "999" for row in table(data / "facts/mig_slowdown.csv"))
    fetch(source, data, wait_s=0.01)


def test_a_damaged_lock_file_is_said(server: Server, tmp_path: Path) -> None:
    write_parvagpu(tmp_path / "upstream")
    source = local("parvagpu", server, tmp_path / "upstream")
    for text in ("{", "[]", '{"schema": "other", "files": {}}'):
        (tmp_path / LOCK).write_text(text)
        with pytest.raises(InputError, match="is damaged"):
            fetch(source, tmp_path, wait_s=0.01)


def test_parvagpu_rows(tmp_path: Path) -> None:
    write_parvagpu(tmp_path / "raw")
    target = tmp_path / "facts/mig_slowdown.csv"
    target.parent.mkdir()
    columns = ",".join(parvagpu.COLUMNS)
    old = f"{parvagpu.REPOSITORY}:prof_data/bert.csv,,,,,,,,,,old"
    target.write_text(f"{columns}\nother:x,,,,,,,,,,kept\n{old}\n")
    parvagpu.convert(tmp_path / "raw", tmp_path)
    rows = table(target)
    assert [row["notes"] for row in rows[:1]] == ["kept"]
    assert not any(row["notes"] == "old" for row in rows)
    bert = [row for row in rows if row["model"] == "bert-large seq128"]
    # 8 samples at 101.907 samples/s are 78.5029 ms; a slice of one is 1g.10gb on an 80 GB card.
    assert [(row["metric"], row["value"], row["profile"]) for row in bert] == [
        ("throughput_per_process", "101.907", "1g.10gb"),
        ("latency", "78.5029", "1g.10gb"),
        ("throughput_per_process", "64.346", "1g.10gb"),
        ("latency", "124.3279", "1g.10gb"),
        ("oom_or_not_run", "1", "7g.80gb"),
    ]
    assert [re.search(r"procs=(\d)", row["notes"])[1] for row in bert] == ["1", "1", "2", "2", "1"]
    assert {row["model"] for row in rows} >= {"resnet50 224x224", "inceptionv3 224x224"}


NEUSIGHT = (
    "OPName,Latency,Device,Torch Version,CUDNN Version,Kernel Name,Warps per SM,Blocks per SM,"
    "Grid x,Grid y,Grid z,Block x,Block y,Block z,CUDA Version,Kernels"
)
NAMES = {
    "gemm": "ampere_sgemm_32x128_tn",
    "vector": '"void at::native::vectorized_elementwise_kernel<4, add<float>, x>(int, add<float>)"',
    "conv": "cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
}


def write_neusight(raw: Path) -> None:
    for name in neusight.FILES:
        path = raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        op = path.parts[-3] if "collect" in name else {"elem": "add"}.get(path.stem, path.stem)
        device = path.stem if "collect" in name else "NVIDIA H100 80GB HBM3"
        kind = "gemm" if op in ("bmm", "linear") else "conv" if op == "conv" else "vector"
        sizes = {"gemm": ("B,M,N,K", "3,58,13,141"), "vector": ("B,H", "127,168")} | {
            "conv": ("B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding",
                     "38,893,326,3,5,1,1"),
        }  # fmt: skip
        columns, values = sizes[kind]
        fixed = f"p2.1.0,8902,{NAMES[kind]},1.6,0.2,2,2,1,256,1,1,cu121,;k"
        rows = [
            f"{op},{latency},{device},{fixed},{values}"
            for latency in ("0.05450700000000001", "0.02")
        ]
        path.write_text(f"{NEUSIGHT},{columns}\n" + "\n".join(rows) + "\n")


def test_neusight_tables(tmp_path: Path) -> None:
    write_neusight(tmp_path / "raw")
    written = neusight.convert(tmp_path / "raw", tmp_path)
    assert [path.name for path in written] == [
        "neusight_gemm.csv.gz", "neusight_conv.csv.gz", "neusight_vector.csv.gz",
        "neusight_gemm_test.csv.gz", "neusight_vector_test.csv.gz",
    ]  # fmt: skip
    gemm, conv, vector, gemm_test, vector_test = (table(path) for path in written)
    assert gemm[0] == {
        "op": "bmm", "device": "NVIDIA A100-PCIE-40GB", "precision": "fp32",
        "latency_ms": "0.054507", "B": "3", "M": "58", "N": "13", "K": "141",
        "kernel": "ampere_sgemm_32x128_tn",
    }  # fmt: skip
    assert [row["latency_ms"] for row in gemm[:4]] == ["0.054507", "0.02"] * 2  # as measured
    assert [len(rows) for rows in (gemm, conv, vector, gemm_test, vector_test)] == [
        2 * 2 * 5, 2 * 5, 2 * 13 * 5, 2 * 2, 2 * 3,
    ]  # fmt: skip
    assert conv[0] == {
        "op": "conv", "device": "NVIDIA A100 80GB PCIe", "precision": "fp32",
        "latency_ms": "0.054507", "B": "38", "in_channels": "893", "out_channels": "326",
        "kernel_size": "3", "input_size": "5", "stride": "1", "padding": "1",
        "kernel": "cudnn_infer_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_ti",
    }  # fmt: skip
    assert vector[0]["kernel"] == "at::native::vectorized_elementwise_kernel"
    assert list(gemm_test[0]) == ["op", "device", "precision", "latency_ms", "B", "M", "N", "K"]
    assert list(vector_test[0]) == ["op", "device", "precision", "latency_ms", "B", "H"]
    first = written[0].read_bytes()
    neusight.convert(tmp_path / "raw", tmp_path)
    assert written[0].read_bytes() == first


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        ("Latency", "Time", "no column 'Latency'"),
        ("0.02", "nan", r"line 3: Latency is 'nan'"),
        ("0.02", "-1", "not above 0"),
        (",13,", ",x,", "N is 'x'"),
    ],
)
def test_another_layout_is_refused(tmp_path: Path, find: str, put: str, message: str) -> None:
    write_neusight(tmp_path / "raw")
    path = tmp_path / "raw" / neusight.FILES[0]
    path.write_text(path.read_text().replace(find, put))
    with pytest.raises(InputError, match=message):
        neusight.convert(tmp_path / "raw", tmp_path)
    assert not (tmp_path / "kernels").exists()
    path.unlink()
    with pytest.raises(InputError, match="can't be read"):
        neusight.convert(tmp_path / "raw", tmp_path)


VIDUR_TIMES = {
    "emb": 0.14, "input_layernorm": 0.043, "post_attention_layernorm": 0.044,
    "attn_pre_proj": 0.651, "attn_rope": 0.098, "attn_post_proj": 0.236, "mlp_up_proj": 0.867,
    "mlp_act": 0.123, "mlp_down_proj": 0.79, "add": 0.078,
}  # fmt: skip


def write_vidur(raw: Path) -> None:
    for name in vidur.FILES:
        phi = "phi-2" in name
        times = {k: v for k, v in VIDUR_TIMES.items() if not (phi and k.startswith("post"))}
        columns = [f"time_stats.{k}.{s}" for k in times for s in ("min", "median")]
        columns += ["n_head", "n_kv_head", "n_embd", "n_expanded_embd", "vocab_size"]
        columns += ["use_gated_mlp", "num_tokens", "num_tensor_parallel_workers"]
        # Published sizes of Phi-2 and of Llama 2 70B.
        sizes = [32, 32, 2560, 10240, 51200, False] if phi else [64, 8, 8192, 28672, 32768, True]
        lines = [",".join(columns)]
        for tokens, tp, more in ((4096, 1, 0.0), (4096, 1, 9.0), (1, 2, 0.0)):
            values = [v + more for v in times.values() for _ in range(2)]
            lines.append(",".join(map(str, [*values, *sizes, tokens, tp])))
        path = raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


def test_vidur_table(tmp_path: Path) -> None:
    write_vidur(tmp_path / "raw")
    (path,) = vidur.convert(tmp_path / "raw", tmp_path)
    rows = table(path)
    assert list(rows[0]) == [
        "op",
        "device",
        "precision",
        "model",
        "tp",
        "latency_ms",
        "M",
        "N",
        "K",
    ]
    phi = [r for r in rows if r["model"] == "microsoft/phi-2" and r["device"] == "a100"]
    # Phi-2: 32 heads of 80; the fused q, k, v are 7680 columns, q and k together 5120.
    assert [(r["op"], r["latency_ms"], r["M"], r["N"], r["K"]) for r in phi[:9]] == [
        ("linear", "0.651", "4096", "7680", "2560"),
        ("linear", "0.236", "4096", "2560", "2560"),
        ("linear", "0.867", "4096", "10240", "2560"),
        ("linear", "0.79", "4096", "2560", "10240"),
        ("layernorm", "0.043", "4096", "2560", ""),
        ("add", "0.078", "4096", "2560", ""),
        ("act", "0.123", "4096", "10240", ""),
        ("rope", "0.098", "4096", "5120", ""),
        ("embedding", "0.14", "4096", "2560", ""),
    ]
    llama = [r for r in rows if r["model"].endswith("Llama-2-70b-hf") and r["device"] == "h100"]
    # On one of two GPUs: 32 + 2 * 4 heads of 128, half of a gated 28672.
    assert [(r["op"], r["N"], r["K"]) for r in llama if r["tp"] == "2"] == [
        ("linear", "5120", "8192"), ("linear", "8192", "4096"), ("linear", "28672", "8192"),
        ("linear", "8192", "14336"), ("layernorm", "8192", ""), ("layernorm", "8192", ""),
        ("add", "8192", ""), ("act_gated", "14336", ""), ("rope", "4608", ""),
        ("embedding", "8192", ""),
    ]  # fmt: skip
    assert len(rows) == 2 * (3 * 9 + 17 * 10)  # a pair that is measured twice counts once


def test_timm_tables(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    older = [c for c in timm_tables.COLUMNS if c != "infer_batch_size"]
    older.insert(2, "infer_batch_size")
    for name in timm_tables.FILES:
        columns = older if "pt210" in name else timm_tables.COLUMNS
        row = {c: c for c in columns} | {"model": "vit_tiny", "infer_step_time": ""}
        (raw / name).write_text(",".join(columns) + "\n" + ",".join(row.values()) + "\n")
    written = timm_tables.convert(raw, tmp_path)
    assert "timm_rtx4090_infer-amp-nchw-pt291-cu128-4090-dynamo.csv" in {p.name for p in written}
    for path in written:
        assert path.name.split("_")[1] in ("rtx3090", "rtx4090")
        (row,) = table(path)
        assert tuple(row) == timm_tables.COLUMNS
        assert row["infer_batch_size"] == "infer_batch_size"
        assert row["infer_step_time"] == ""


def summary(scenario: str, *, valid: bool = True, samples: int = 1) -> str:
    """As LoadGen writes one, shortened."""
    head = "Samples per second: 38087.4" if scenario == "Offline" else "p : 1"
    return f"""================================================
MLPerf Results Summary
================================================
SUT name : LWIS_Server
Scenario : {scenario}
Mode     : PerformanceOnly
{head}
Result is : {"VALID" if valid else "INVALID"}
  Min duration satisfied : Yes

================================================
Additional Stats
================================================
Min latency (ns)                : 440286
Mean latency (ns)               : 484108
50.00 percentile latency (ns)   : 478617
90.00 percentile latency (ns)   : 486693

================================================
Test Parameters Used
================================================
samples_per_query : {samples}
"""


def write_mlperf(raw: Path) -> None:
    def system(name: str, accelerator: str, count: object = "1") -> None:
        path = raw / "closed/Alibaba/systems" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = {"accelerator_model_name": accelerator, "accelerators_per_node": count}
        path.write_text(json.dumps(facts | {"number_of_nodes": 1}))

    def result(name: str, scenario: str, text: str, precision: str | None = "INT8") -> None:
        tail = f"{name}/resnet50/{scenario}"
        folder = raw / "closed/Alibaba/results" / tail / "performance/run_1"
        folder.mkdir(parents=True)
        (folder / "mlperf_log_summary.txt").write_text(text)
        if precision:
            path = raw / "closed/Alibaba/measurements" / tail / f"{name}_trt_{scenario}.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({"weight_data_types": precision}))

    system("A100x1_TRT", "NVIDIA A100-SXM4-40GB")
    result("A100x1_TRT", "Offline", summary("Offline"))
    result("A100x1_TRT", "SingleStream", summary("SingleStream"))
    result("A100x1_TRT", "MultiStream", summary("MultiStream", samples=8), precision=None)
    system("A100_1xMIG_TRT", "NVIDIA A100-SXM-80GB (1x1g.10gb MIG)", 1)
    result("A100_1xMIG_TRT", "Offline", summary("Offline"))
    system("A30-MIG_1x1g.6gb_TRT_HeteroMultiUse", "NVIDIA A30")
    result("A30-MIG_1x1g.6gb_TRT_HeteroMultiUse", "Offline", summary("Offline"))
    system("A100x8_TRT", "NVIDIA A100-SXM4-40GB", "8")
    result("A100x8_TRT", "Offline", summary("Offline"))
    system("A100-7xMIG_TRT", "NVIDIA A100-SXM-80GB (7x1g.10gb MIG)")
    result("A100-7xMIG_TRT", "Offline", summary("Offline"))
    system("T4x1", "NVIDIA T4")
    result("T4x1", "Offline", summary("Offline"))
    system("A100-bad", "NVIDIA A100-PCIe-40GB")
    result("A100-bad", "Offline", summary("Offline", valid=False))
    result("unheard", "Offline", summary("Offline"))


def test_mlperf_rows_through_an_archive(server: Server, tmp_path: Path) -> None:
    write_mlperf(tmp_path / "upstream")
    source = local("mlperf-v2.0", server, tmp_path / "upstream")
    fetch(source, tmp_path / "data", wait_s=0.01)
    rows = table(tmp_path / "data/facts/mig_slowdown.csv")
    found = {(r["device"], r["profile"], r["batch"], r["metric"], r["value"], r["precision"])
             for r in rows}  # fmt: skip
    assert found == {
        ("A100-SXM4-40GB", "full", "max", "throughput", "38087.4", "int8"),
        ("A100-SXM4-40GB", "full", "1", "latency_mean", "0.4841", "int8"),
        ("A100-SXM4-40GB", "full", "1", "latency_p90", "0.4867", "int8"),
        ("A100-SXM4-40GB", "full", "8", "latency_mean", "0.4841", "unknown"),
        ("A100-SXM-80GB", "1g.10gb", "max", "throughput", "38087.4", "int8"),
        ("A30", "1g.6gb(6 other slices busy)", "max", "throughput", "38087.4", "int8"),
    }
    assert rows[0]["source"].startswith("mlcommons/inference_results_v2.0:closed/Alibaba/results/")
    assert rows[0]["model"] == "resnet50"


def test_queries_of_many_samples_had_another_meaning_before_v2(tmp_path: Path) -> None:
    write_mlperf(tmp_path / "raw")
    mlperf.convert(tmp_path / "raw", tmp_path, round_="v1.1")
    assert {row["batch"] for row in table(tmp_path / "facts/mig_slowdown.csv")} == {"1", "max"}
    with pytest.raises(InputError, match=r"no mlperf_log_summary\.txt"):
        mlperf.convert(tmp_path / "none", tmp_path, round_="v1.1")


def test_dippm_release_becomes_a_folder_of_graphs(server: Server, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream/PT"
    upstream.mkdir(parents=True)
    for name in ("data_0.pt", "data_11.pt", "pre_filter.pt", "._data_0.pt"):
        (upstream / name).write_bytes(name.encode())
    source = local("dippm", server, tmp_path / "upstream")
    fetch(source, tmp_path / "data", wait_s=0.01)
    found = {p.name: p.read_bytes() for p in (tmp_path / "data/dippm").iterdir()}
    assert found == {"data_0.pt": b"data_0.pt", "data_11.pt": b"data_11.pt"}


@given(st.floats(1e-6, 1e6), st.integers(0, 9))
def test_rounded_numbers_are_short_and_near(value: float, digits: int) -> None:
    text = rounded(value, digits)
    assert abs(float(text) - value) <= 0.5 * 10**-digits + 1e-9 * value
    assert len(text.partition(".")[2]) <= digits or "e" in text


def test_the_data_folder_is_given_or_beside_the_checkout_or_a_cache(tmp_path: Path) -> None:
    assert data_folder(tmp_path) == tmp_path
    with pytest.raises(InputError, match="not a folder"):
        data_folder(tmp_path / "missing")
    beside = tmp_path / "shared" / "data"
    beside.mkdir(parents=True)
    assert data_folder(checkout=tmp_path / "checkout") == beside
    assert data_folder(checkout=tmp_path / "other" / "checkout") == cache_folder()
    (beside / "x.csv").touch()
    assert data_file(beside, "x.csv") == beside / "x.csv"
    with pytest.raises(InputError, match="data fetch"):
        data_file(beside, "y.csv")


def test_the_cache_folder_follows_the_platform() -> None:
    home = Path("/home/me")
    for platform, environ, expected in (
        ("linux", {}, "/home/me/.cache"),
        ("linux", {"XDG_CACHE_HOME": "/var/cache"}, "/var/cache"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache"),
        ("darwin", {"XDG_CACHE_HOME": "/var/cache"}, "/home/me/Library/Caches"),
        ("win32", {}, "/home/me/AppData/Local"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
    ):
        found = cache_folder(platform, environ, home)
        assert found == Path(expected) / "dippm-lite" / "data"


def test_a_bar_shows_on_a_terminal_alone() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    show = bar("neusight/file.csv", terminal)
    assert show is not None
    show(5_000_000, 10_000_000)
    show(10_000_000, 10_000_000)
    assert "[############............]" in terminal.getvalue()
    assert terminal.getvalue().endswith("neusight/file.csv\n")
    assert bar("x", io.StringIO()) is None


def test_the_command_line_fetches_lists_and_goes_on_after_a_failure(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    write_parvagpu(tmp_path / "upstream")
    good = local("parvagpu", server, tmp_path / "upstream")
    bad = replace(good, name="bad", files=(RemoteFile("bert.csv", f"{server.url}/none"),))
    monkeypatch.setattr("training.datasets.public.sources.SOURCES", (bad, good))
    assert main(["data", "fetch", "--into", str(tmp_path / "data")]) == 2
    out, err = capsys.readouterr()
    assert "11 files downloaded" in out
    assert "404" in err and "1 of 2 sources failed" in err
    assert (tmp_path / "data/facts/mig_slowdown.csv").exists()
    assert main(["data", "fetch", "unheard"]) == 2
    assert "no source 'unheard'" in capsys.readouterr().err
    assert main(["data", "list"]) == 0
    assert "MunQ-Lee/ParvaGPU_SC24" in capsys.readouterr().out
    assert main(["data", "where", "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path)
