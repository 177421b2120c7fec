"""Reading the tables' files, and the whole of ``corpus match`` on miniatures of them."""

from __future__ import annotations

import json

import onnx
import pytest
from match_rows import record
from onnx import TensorProto, helper

from dippm_lite.errors import InputError
from training.__main__ import main
from training.corpus.records import write_shards
from training.datasets.provenance import read_sources, source_of
from training.datasets.tables import read_tables

MAIN = (
    "source_id,model,library_hint,task,device,precision,framework,batch,{},metric,value,unit,"
    "percentile,notes"
)
VISION, LANGUAGE = MAIN.format("height,width"), MAIN.format("seq_len,gen_len")
DASHBOARD = "suite,model,batch,precision,mode,device,abs_latency,eager_or_speedup,date,source"
TIMM = "model,infer_img_size,infer_batch_size,infer_samples_per_sec,infer_step_time,infer_gmacs"
MIG = "source,device,model,precision,framework,batch,profile,metric,value,unit,notes"
SOURCES = "source_id,title,repository_or_paper,path,commit_or_date,measurement_method"

RESNET = "resnet50,torchvision:resnet50,cls"
ENGINE = "fp16,tensorrt"
PARVA = "MunQ-Lee/ParvaGPU_SC24:resnet50.csv,A100-80GB,resnet50 224x224,tf32-default"

FILES = {
    "published_a100/vision.csv": (
        VISION,
        # A label, whose copy is in language.csv, and its tail.
        f"paper,{RESNET},A100-SXM4-40GB,{ENGINE},8,224,224,latency_ms,1.5,ms,p50,",
        f"paper,{RESNET},A100-SXM4-40GB,{ENGINE},8,224,224,latency_ms,1.6,ms,p99,",
        # The mean and the throughput of one run; then an impossible figure.
        f"paper,{RESNET},A100-SXM4-80GB,{ENGINE},4,224,224,latency_ms,1.1,ms,avg,",
        f"paper,{RESNET},A100-SXM4-80GB,{ENGINE},4,224,224,throughput,3600,samples/s,,",
        f"paper,{RESNET},A100-SXM4-80GB,{ENGINE},64,224,224,latency_ms,0.0001,ms,p50,",
        # Named by nobody, unknown to the catalog, not among the records, of unknown size.
        f"paper,OurNet,,cls,A100,{ENGINE},8,224,224,latency_ms,2,ms,avg,",
        f"paper,FasterViT,fastervit:faster_vit_0,cls,A100,{ENGINE},8,224,224,latency_ms,2,ms,avg,",
        f"paper,resnet101,timm:resnet101,cls,A100,{ENGINE},8,224,224,latency_ms,2,ms,avg,",
        f"monai_zoo,vista3d,,medical,A100-80GB,{ENGINE},1,,,latency_ms,2,ms,avg,",
    ),
    "published_a100/language.csv": (
        LANGUAGE,
        f"paper,{RESNET},A100-SXM4-40GB,{ENGINE},8,,,latency_ms,1.5,ms,p50,",
        "bloom_inference,BLOOM-176B,transformers:bigscience/bloom,text-generation,A100-80GB x8,"
        "bf16,pytorch-eager,1,,100,latency_ms,44,ms,,",
    ),
    "published_a100/inductor_dashboard.csv": (
        DASHBOARD,
        "torchbench,resnet50,64,fp16,inference,A100-SXM4-40GB,14.29,eager,2023-04-07,yaml",
    ),
    "published_a100/timm_rtx4090_infer-amp-nhwc-pt240-cu124-rtx4090.csv": (
        TIMM,
        "resnet50,224,256.0,5000.0,51.2,4.11",
        "resnet50,448,,,,16.4",
    ),
    "facts/mig_slowdown.csv": (
        MIG,
        f"{PARVA},pytorch(ngc21.11),8,7g.80gb,throughput_per_process,800,samples/s,procs=1",
        f"{PARVA},pytorch(ngc21.11),8,7g.80gb,throughput_per_process,500,samples/s,procs=2",
        f"{PARVA},pytorch(ngc21.11),8,1g.10gb,throughput_per_process,120,samples/s,procs=1",
        "boringlee24/socc22-miso:logs,A100-40GB,bert,default(tf32),keras,2,7g.40gb,"
        "train_step_time_mean,21,ms,n=4751",
    ),
    "published_a100/sources_vision.csv": (
        SOURCES,
        "mlperf_v2_0,MLPerf v2.0,github:mlcommons/x,closed,425a,LoadGen",
        "paper,A paper,arXiv 1,Table 1,v2,timed",
    ),
}


@pytest.fixture
def data(tmp_path):
    for name, lines in FILES.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def records(tmp_path):
    """One record: a convolution with 3 x 8 x 9 weights over 222 x 222 places."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [8, 3, 3, 3], [0.0] * 216)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["image", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 8, 222, 222])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    write_shards(
        tmp_path / "records", [(record("torchvision/resnet50"), model.SerializeToString())]
    )
    return tmp_path / "records"


def test_each_table_becomes_rows_of_one_kind(data):
    rows = read_tables(data)
    assert [row.table.split(".")[0].split("_")[0] for row in rows] == (
        ["vision"] * 9 + ["inductor"] + ["language"] * 2 + ["mig"] * 2 + ["timm"]
    )
    vision, language, timm = rows[0], rows[10], rows[-1]
    assert (vision.line, vision.height, vision.tokens, vision.batch) == (2, 224, None, "8")
    assert (language.line, language.height, language.generated) == (2, None, None)
    assert (timm.device, timm.precision, timm.notes) == ("rtx4090", "amp", "channels-last")
    assert (timm.value, timm.batch, timm.height) == (51.2, "256.0", 224)


def test_only_whole_cards_and_single_processes_are_read_of_the_slices(data):
    parva, miso = (row for row in read_tables(data) if row.table == "mig_slowdown.csv")
    assert (parva.device, parva.model, parva.height) == ("A100-80GB (MIG 7g)", "resnet50", 224)
    assert (parva.metric, parva.value) == ("throughput", 800)
    assert (miso.device, miso.metric) == ("A100-40GB (MIG 7g)", "train_step_time_mean")


def test_a_table_without_a_column_or_with_a_word_for_a_number_is_refused(data):
    path = data / "published_a100" / "vision.csv"
    path.write_text(path.read_text().replace("library_hint", "hint"))
    with pytest.raises(InputError, match=r"vision.csv, line 2: .*library_hint"):
        read_tables(data)
    path.write_text(f"{VISION}\npaper,a,,cls,A100,fp16,tensorrt,8,224,224,latency_ms,fast,ms,,\n")
    with pytest.raises(InputError, match=r"vision.csv, line 2: .*'fast'"):
        read_tables(data)


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(InputError, match="data fetch"):
        read_tables(tmp_path)


def test_sources_are_known_by_one_id(data):
    assert source_of("mlcommons/inference_results_v2.0") == source_of("mlperf_inf_v2.0")
    assert source_of("trt_demobert_147005ff") == "trt_demobert"
    assert source_of("paper") == "paper"
    sources = read_sources(data)
    assert sources["mlperf_v2.0"].title == "MLPerf v2.0"
    assert (sources["paper"].revision, sources["paper"].method) == ("v2", "timed")


def test_the_report_of_the_miniatures(data, records, tmp_path, capsys, golden):
    macs = tmp_path / "macs.jsonl"
    command = ["corpus", "match", "--data", str(data), "--records", str(records)]
    assert main([*command, "--macs", str(macs)]) == 0
    text = capsys.readouterr().out
    golden("match_report.text", text)
    assert json.loads(macs.read_text())["macs"] == 222 * 222 * 8 * 3 * 3 * 3
    assert main([*command, "--macs", str(macs), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 15 == report["matched"] + sum(report["left_out"].values())
    # With a hint: ResNet-50 at batch 8, 4 and 64 matched; FasterViT, ResNet-101 and timm's not.
    assert report["usable_with_hint"]["all"] == {"usable": 6, "matched": 3, "share": 0.5}
    assert report["usable_with_hint"]["timm_tables"]["usable"] == 1


def test_rows_and_missing_networks_are_written_on_request(data, records, tmp_path, capsys):
    rows, names = tmp_path / "rows.jsonl", tmp_path / "networks.txt"
    command = ["corpus", "match", "--data", str(data), "--records", str(records)]
    assert main([*command, "--output", str(rows), "--networks", str(names)]) == 0
    capsys.readouterr()
    written = [json.loads(line) for line in rows.read_text().splitlines()]
    assert len(written) == 15
    assert written[0] | {"row": None} == {
        "batch": 8,
        "device": "a100-sxm4-40gb",
        "flags": [],
        "graph": "torchvision/resnet50",
        "metric": "latency_ms",
        "precision": "fp16",
        "reason": None,
        "row": None,
        "rule": "as published",
        "runtime": "tensorrt",
        "source": "paper",
        "value": 1.5,
    }
    assert (written[0]["row"]["table"], written[0]["row"]["line"]) == ("vision.csv", 2)
    assert names.read_text().split() == ["timm/resnet101@224", "timm/resnet50@224"]


def test_a_folder_without_records_is_an_input_error(data, tmp_path, capsys):
    command = ["corpus", "match", "--data", str(data), "--records", str(tmp_path / "none")]
    assert main(command) == 2
    assert "corpus build" in capsys.readouterr().err
