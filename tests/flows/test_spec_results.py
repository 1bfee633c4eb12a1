"""What comes out of a specification's tests: records of programs, golden errors, accuracy, power, and models on our runtimes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import CommandLine, metric
from specifications import written

PROGRAMS = Path(__file__).parents[1] / "programs"
PROGRAM = f"{sys.executable} {PROGRAMS / 'observed_program.py'}"


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path / "base", tmp_path)


def run(
    bw: CommandLine, *tests: dict[str, Any], code: int | None = 0, model: dict[str, Any] | None = None
) -> dict[str, Any]:
    return bw.json("run", written(bw.cwd / "spec.json", model, *tests), "--program", PROGRAM, code=code)


def prints(records: str, **more: Any) -> dict[str, Any]:
    return {"identifier": records, "iter": 5, "commands": [f"{{program}} --records {records} --iter {{iter}}"], **more}


def test_every_form_of_record_gives_every_sample(bw: CommandLine) -> None:
    forms = ("json", "older", "text")
    other = {"older": {"observer": "PyTorchObserver"}}
    body = run(
        bw, *(prints(form, **other.get(form, {})) for form in forms), prints("tflite", converter={"name": "tflite"})
    )
    for number, _ in enumerate(forms):
        assert metric(body, "latency", number)["value"] == pytest.approx(102e-6)
        [launch] = body["results"][number]["launches"]
        [samples] = [m for m in launch["samples"] if m["metric"] == "latency"]
        assert samples["measured"] == 5
    assert metric(body, "latency", 3)["value"] == pytest.approx(98.5e-6)
    operators = {m["labels"]["op"]: m["value"] for m in body["results"][0]["metrics"] if m["metric"] == "op.time"}
    assert operators == pytest.approx({"ID_0_Conv": 51e-6, "ID_1_Relu": 25.5e-6})
    shown = bw("report", "last").stdout
    assert "ID_0_Conv" in shown
    assert "latency" in shown


def test_what_is_no_result_is_none(bw: CommandLine) -> None:
    body = run(bw, prints("nothing"), prints("half"), prints("operators"), code=1)
    nothing, half, operators = body["results"]
    assert (nothing["status"], nothing["reason"]) == ("failed", "no_data")
    assert "'Caffe2Observer {…}'" in nothing["detail"]
    assert half["status"] == "ok"
    assert metric(body, "latency", 1)["value"] == pytest.approx(102e-6)
    assert any("could not be read" in note["text"] for launch in half["launches"] for note in launch["notes"])
    assert not any(m["metric"] == "latency" for m in operators["metrics"])
    assert any("operators only" in note["text"] for launch in operators["launches"] for note in launch["notes"])


@pytest.mark.compat
def test_outputs_are_compared_with_golden_files_of_every_format(bw: CommandLine) -> None:
    scores = np.array([[0.1, 0.7, 0.2]])
    np.save(bw.cwd / "g.npy", scores)
    np.savez(bw.cwd / "g.npz", softmax=scores, other=scores + 1)
    (bw.cwd / "g.txt").write_text("0.1\n0.7\n0.25\n")
    (bw.cwd / "nan.txt").write_text("0.1\nnan\n0.2\n")
    (bw.cwd / "long.txt").write_text("0.1\n0.7\n0.2\n0.3\n")
    error = {"metric": "error", "iter": 1, "inputs": {"data": {"shapes": [[1, 3]], "type": "float"}}}
    files = ("g.npy", "g.npz", "g.txt", "nan.txt", "long.txt")
    tests = [
        {**error, "identifier": name, "golden_files": {"softmax": name}, "tolerance": {"max_abs": 0.01}}
        for name in files
    ]
    body = run(bw, *tests, code=1, model={"files": {"predict": {"filename": "g.npy", "location": "g.npy"}}})
    results = dict(zip(files, body["results"], strict=True))
    assert [results[name]["status"] for name in files] == ["ok", "ok", "failed", "failed", "failed"]
    assert metric(body, "error.max_abs")["value"] == 0.0
    assert results["g.txt"]["reason"] == "invalid"
    assert "furthest off at [0, 2]: 0.25 expected, 0.2 found" in results["g.txt"]["detail"]
    assert "the golden is nan at [1]" in results["nan.txt"]["detail"]
    assert "the output has 3 numbers, the golden 4" in results["long.txt"]["detail"]


@pytest.mark.compat
def test_an_accuracy_test_runs_our_script_with_the_seeds_arguments(bw: CommandLine) -> None:
    (bw.cwd / "labels.txt").write_text("1,cat,/images/1.jpg\n")
    (bw.cwd / "net.pb").write_text("weights")
    written(
        bw.cwd / "accuracy.json",
        {
            "name": "squeezenet",
            "files": {
                "golden_output": {"filename": "labels.txt", "location": "labels.txt"},
                "predict": {"filename": "net.pb", "location": "net.pb"},
            },
        },
        {
            "identifier": "{ID}",
            "metric": "accuracy",
            "iter": 1,
            "commands": [
                '{program} --net {files.predict} --iter {iter} --input "data" --output softmaxout --text_output true '
                "--output_folder '{TGTDIR}'"
            ],
            "output_files": {"softmaxout": {"filename": "softmaxout.txt", "location": "{TGTDIR}/softmaxout.txt"}},
            "postprocess": {
                "commands": [
                    "{FAIPEPROOT}/libraries/python/classification_compare.py --name {name} --benchmark-output "
                    "{output_files.softmaxout} --labels {files.golden_output} --top 1 --metric-keyword 'Caffe2Observer ' "
                ]
            },
        },
    )
    done = bw.json("run", "accuracy.json", "--program", PROGRAM)
    found = metric(done, "percent_of_top1_corrects")
    assert (found["value"], found["unit"], found["direction"]) == (100.0, "%", "higher")
    (bw.cwd / "labels.txt").write_text("2,dog,/images/1.jpg\n")
    again = bw.json("run", "accuracy.json", "--program", PROGRAM)
    assert metric(again, "percent_of_top1_corrects")["value"] == 0.0


def test_a_power_test_is_measured_or_skipped_with_the_reason(bw: CommandLine) -> None:
    body = run(bw, prints("json", metric="power", method="software", collection_time=5), code=None)
    result = body["results"][0]
    if result["status"] == "ok":  # this machine counts energy
        assert metric(body, "power")["value"] > 0
    else:
        assert (result["status"], result["reason"]) == ("skipped", "lacks_capability")
        assert "no readable RAPL counter" in result["detail"]


# -- models on our runtimes -------------------------------------------------------------------------------------------


def exported(path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(model, (torch.randn(1, 3, 8, 8),)), str(path))


def on_runtimes(folder: Path, name: str, filename: str, inputs: dict[str, Any], **test: Any) -> str:
    model = {"name": name, "format": "any", "files": {"model": {"filename": filename, "location": filename}}}
    return written(
        folder / f"{name}.json", model, {"identifier": "{ID}", "iter": 20, "warmup": 2, "inputs": inputs, **test}
    )


@pytest.mark.compat
def test_one_specification_runs_on_every_backend_and_outputs_agree_with_the_golden(bw: CommandLine) -> None:
    from onnx_models import softmax_of_product

    wanted, inputs = softmax_of_product(bw.cwd / "tiny.onnx")
    np.save(bw.cwd / "x.npy", inputs)
    np.save(bw.cwd / "prob.npy", wanted)
    given = {"data": {"shapes": [list(inputs.shape)], "type": "float"}}
    spec = on_runtimes(
        bw.cwd, "tiny", "tiny.onnx", given, input_files={"data": "x.npy"}, golden_files={"prob": "prob.npy"},
        tolerance={"max_abs": 1e-5, "top1": 1}, statistics=["mean", "p95"],
    )  # fmt: skip
    body = bw.json("run", spec, "--backend", "onnxruntime,openvino")
    names = [result["benchmark"] for result in body["results"]]
    assert names == ["tiny-0@onnxruntime", "tiny-0@openvino"]
    for number, result in enumerate(body["results"]):
        assert metric(body, "error.max_abs", number)["value"] < 1e-5
        [launch] = result["launches"]
        [latency] = [m for m in launch["samples"] if m["metric"] == "latency"]
        assert (latency["measured"], latency["warmup"]) == (20, 2)
        assert list(result["statistics"]["latency"]) == ["mean", "p95", "p50"]
        assert result["statistics"]["latency"]["p50"] == pytest.approx(metric(body, "latency", number)["value"])
    np.save(bw.cwd / "prob.npy", wanted[:, ::-1])
    wrong = bw.json("run", spec, code=1)["results"][0]
    assert (wrong["status"], wrong["reason"]) == ("failed", "invalid")
    assert wrong["detail"].startswith("output prob: max_abs")


@pytest.mark.long
@pytest.mark.xdist_group("plugins")
def test_one_backend_from_outside_runs_every_model(bw: CommandLine, plugin_folder: Path) -> None:
    """tests/plugins adds a runtime in one file: no specification knows of it."""
    exported(bw.cwd / "conv.pt2")
    for name in ("first", "second"):
        on_runtimes(bw.cwd, name, "conv.pt2", {"input": {"shapes": [[1, 3, 8, 8]], "type": "float"}})
    outside = CommandLine(bw.base, bw.cwd, is_process=True)
    outside.env["PYTHONPATH"] = str(plugin_folder)
    body = outside.json("run", "first.json", "second.json", "--backend", "torch-channels-last")
    assert {result["benchmark"]: result["status"] for result in body["results"]} == {
        f"{name}-0@torch-channels-last": "ok" for name in ("first", "second")
    }
