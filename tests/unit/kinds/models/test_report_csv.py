"""Models as CSV: MLAgility's columns, then ours."""

from __future__ import annotations

import csv
import io

import model_runs as made
import msgspec
import pytest
from example_reports import ordinary_report
from model_runs import BUILT, failed, launch, model, profiled, report, result, steps

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.run import Result
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.report.fields import OURS, THEIRS
from benchwright.kinds.models.report.sections import contribution
from benchwright.report.base import Report
from benchwright.report.csv import CsvReporter
from benchwright.report.multi_run import render_several
from benchwright.report.tables.results import FIELDS

CSV_COLUMNS = tuple(field.column.key for field in FIELDS if field.column.key)

SEED = (
    "model_name, author, model_class, params, hash, license, task, groq_chips_used, groq_estimated_latency, "
    "nvidia_latency, x86_latency, onnx_exported, onnx_optimized, onnx_converted"
)


def rows(*reports: Report) -> list[dict[str, str]]:
    text = render_several(CsvReporter(), reports)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_columns_of_the_seed_come_first() -> None:
    (row, *_) = rows(report(made.bert()))
    assert tuple(row)[: len(THEIRS)] == tuple(SEED.split(", "))
    assert tuple(row)[len(THEIRS) :][: len(OURS)] == OURS


def test_one_row_for_each_result_failed_ones_too() -> None:
    found = rows(report([*made.bert(), profiled("onnxruntime", {"Gemm": 0.001})]))
    assert [r["runtime"] for r in found] == ["torch-eager", "onnxruntime", "openvino"] * 2
    assert [r["parameter.batch_size"] for r in found] == ["1"] * 3 + ["8"] * 3
    assert (found[2]["status"], found[2]["reason"], found[2]["latency_ms"]) == ("failed", "build_failed", "")
    assert found[2]["detail"].startswith("in export:")


def test_latency_is_in_milliseconds_and_in_the_column_of_its_device() -> None:
    labels = {"author": "google", "name": "bert_base", "test_group": "daily,monthly"}
    on_cpu = result(model("onnxruntime"), launch(0.02, facts={"build": steps(*BUILT)}), labels=labels)
    found = rows(report([on_cpu, result(model(device="cuda"), launch(0.004))]))
    first, second = found
    assert float(first["latency_ms"]) == pytest.approx(20, rel=0.02)
    assert first["x86_latency"] == first["latency_ms"]
    assert first["nvidia_latency"] == ""
    assert (second["x86_latency"], second["nvidia_latency"]) == ("", second["latency_ms"])
    assert (first["model_name"], first["author"], first["label.test_group"]) == ("bert_base", "google", "daily,monthly")
    assert (second["model_name"], second["params"]) == ("bert", "109482240")
    assert (first["onnx_exported"], first["onnx_optimized"], first["onnx_converted"]) == ("True", "True", "")
    assert (second["onnx_exported"], second["build_s"]) == ("", "")
    assert float(first["build.export_s"]) == 5.2
    assert float(first["items_per_s"]) == pytest.approx(50, rel=0.02)
    assert (first["outputs"], first["error_relative_l2"]) == ("right", "2e-06")


def test_another_processor_is_no_x86() -> None:
    shown = report([result(model(), launch(0.02))])
    arm = msgspec.structs.replace(shown.run.machine, architecture="aarch64")
    shown = msgspec.structs.replace(shown, run=msgspec.structs.replace(shown.run, machine=arm))
    (row,) = rows(msgspec.structs.replace(shown, added=contribution(shown)))
    assert row["x86_latency"] == ""
    assert row["latency_ms"] != ""


def test_a_failed_export_says_so() -> None:
    (row,) = rows(report([failed(model("onnxruntime"), "in export: unsupported operator aten::foo")]))
    assert row["onnx_exported"] == "False"


def test_what_was_only_found_has_a_row_without_a_runtime() -> None:
    (row,) = rows(report([result(model(), status=Status.SKIPPED, withheld="never called", detail="never called")]))
    assert (row["status"], row["runtime"], row["detail"]) == ("skipped", "", "never called")


def test_several_runs_share_one_header_whatever_their_parameters() -> None:
    swept = report(made.bert())
    plain = report([result(model(), launch(0.02), labels={"task": "nlp"})])
    found = rows(plain, swept)
    assert len(found) == 7
    assert (found[0]["parameter.batch_size"], found[1]["parameter.batch_size"]) == ("", "1")
    assert (found[0]["label.task"], found[0]["task"], found[1]["task"]) == ("nlp", "nlp", "")


def test_beside_other_benchmarks_models_have_the_usual_rows() -> None:
    mixed = rows(ordinary_report(), report(made.bert()))
    assert tuple(mixed[0]) == CSV_COLUMNS
    assert {row["benchmark"] for row in mixed if row["metric"] == "latency"} >= {
        "bert.py::BertModel{'batch_size': '1'}@torch-eager,cpu,fp32"
    }
    one = ordinary_report()
    both = msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, results=(*one.run.results, *made.bert())))
    assert tuple(rows(both)[0]) == CSV_COLUMNS


def test_a_script_of_a_folder_without_a_model_has_a_row_and_spoils_no_table() -> None:
    plain = Benchmark(
        name="c.py",
        workload=Command(argv=("python", "/x/c.py"), cwd="/x"),
        source="models/c.py",
        labels={"author": "me"},
        parameters={"batch_size": "8"},
    )
    broken = Result(benchmark=plain, status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 1", launches=())
    silent = msgspec.structs.replace(broken, status=Status.OK, reason=None, detail=None)
    found = rows(report([broken, *made.bert(), silent]))
    assert tuple(found[0])[: len(THEIRS)] == THEIRS
    first, last = found[0], found[-1]
    assert (first["model_name"], first["author"], first["script"]) == ("c", "me", "/x/c.py")
    assert (first["status"], first["reason"], first["detail"]) == ("failed", "crashed", "exit code 1")
    assert (first["parameter.batch_size"], first["hash"], first["latency_ms"]) == ("8", "", "")
    assert (last["status"], last["detail"]) == ("ok", "no model was found in it")
    assert len(found) == 2 + len(made.bert())
