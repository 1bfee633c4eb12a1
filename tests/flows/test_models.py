"""Models in scripts and files, from the command line to the report."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, metric
from made_once import MadeOnce
from onnx_models import looked_up

pytestmark = pytest.mark.xdist_group("models")

TWO_MODELS = '''# labels: author::me test_group::daily,monthly
"""Made for a test."""
import torch
from mlagility.parser import parse

(batch_size,) = parse(["batch_size"])


class Small(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = torch.nn.Linear(8, width)
        self.two = torch.nn.Linear(width, 4)

    def forward(self, x, scale=1.0):
        return {"y": self.two(torch.relu(self.one(x))) * scale}


class Never(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)


def main():
    never = Never()
    for width in (16, 32):
        Small(width)(torch.randn(batch_size, 8), scale=2.0)


if __name__ == "__main__":
    main()
'''
QUICK = ("--stop", "40", "--warmup", "5", "--threads", "1")


Measured = tuple[CommandLine, dict[str, Any]]


@pytest.fixture(scope="module")
def measured(made_once: MadeOnce) -> Measured:
    """What `find` says of a script, and one run of it on two runtimes; several tests look at them."""

    def make(folder: Path) -> None:
        (folder / "two.py").write_text(TWO_MODELS.replace("(16, 32)", "(16,)"))  # each takes seconds to export
        bw = CommandLine(folder / "base", folder)
        (folder / "found.json").write_text(bw("find", "two.py", "--param", "batch_size=4", "--json").stdout)
        assert not (bw.base / "runs").exists()
        bw("run", "two.py", "--runtime", "torch-eager,onnxruntime", "--param", "batch_size=4", *QUICK)

    folder = made_once("models", make)
    bw = CommandLine(folder / "base", folder)
    return bw, bw.json("report")


def by_name(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["benchmark"]: result for result in body["results"]}


def test_each_model_is_measured_on_each_runtime_and_its_outputs_are_right(
    measured: Measured,
) -> None:
    _, body = measured
    results = by_name(body)
    ran = {name: r for name, r in results.items() if r["status"] == "ok"}
    assert len(ran) == 2
    assert sum("@onnxruntime" in name for name in ran) == 1
    assert all("[batch_size=4]" in name for name in ran)
    (never,) = (r for r in results.values() if r["status"] == "skipped")
    assert never["reason"] == "not_measurable"
    assert "not called" in never["detail"]
    for number, result in enumerate(body["results"]):
        if result["status"] == "ok":
            assert len(metric(body, "latency", number)["values"]) == 1
            assert metric(body, "latency", number)["unit"] == "s"
            assert metric(body, "error.relative_l2", number)["value"] < 1e-4
            assert metric(body, "rate", number)["unit"] == "items/s"
            assert (result["model"]["items"], result["model"]["items_from"]) == (4, "parameter batch_size=4")
            assert any("set to eval() to be measured" in note for note in result["notes"])


def test_the_screen_shows_a_table_of_runtimes(measured: Measured) -> None:
    bw, _ = measured
    shown = bw("report").stdout
    assert "Small" in shown
    assert "torch-eager" in shown
    assert "onnxruntime" in shown
    assert max(len(line) for line in shown.splitlines() if not line.startswith(" saved: ")) <= 80


def test_the_table_for_spreadsheets_has_the_known_columns(measured: Measured) -> None:
    bw, _ = measured
    rows = list(csv.DictReader(io.StringIO(bw("report", "--format", "csv").stdout)))
    assert {row["model_class"] for row in rows} >= {"Small"}
    assert {row["author"] for row in rows} == {"me"}
    assert {row["runtime"] for row in rows if row["status"] == "ok"} == {"torch-eager", "onnxruntime"}


def test_runs_are_found_by_the_labels_of_their_scripts(measured: Measured) -> None:
    bw, _ = measured
    assert "two" in bw("runs", "--label", "test_group=monthly").stdout
    assert "two" not in bw("runs", "--label", "author=somebody").stdout


def test_a_second_run_uses_what_was_built_and_agrees(measured: Measured, bw: CommandLine) -> None:
    shared, first = measured
    bw.cwd = shared.cwd
    shutil.copytree(shared.base, bw.base)
    args = ("two.py", "--runtime", "onnxruntime", "--script-args", "--batch_size 4", *QUICK)
    again = bw.json("run", *args)
    identities = {r["benchmark"].partition("@")[0].replace("[batch_size=4]", "") for r in first["results"]}
    assert {r["benchmark"].partition("@")[0] for r in again["results"]} == identities
    streams = [p for p in Path(again["folder"]).glob("*.data") if "onnxruntime" in p.name]
    steps = [e for p in streams for e in map(json.loads, p.read_text().splitlines()) if e["event"] == "build_step"]
    assert steps
    assert all(step["cached"] for step in steps if step["step"] in ("export", "reference"))


def test_models_are_listed_without_being_measured(measured: Measured) -> None:
    bw, _ = measured
    (found,) = json.loads((bw.cwd / "found.json").read_text())["scripts"]
    models = found["models"]
    (small,) = [m for m in models if m["class"] == "Small"]
    assert small["parameters"] == 16 * 8 + 16 + 16 * 4 + 4
    assert small["flops"] == 2 * 4 * (8 * 16 + 16 * 4)
    assert small["inputs"][0]["shape"] == [4, 8]
    assert "Never" in {m["class"] for m in models}


@pytest.mark.long
def test_models_of_one_class_are_listed_and_measured_each_for_each_value_of_a_parameter(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("two.py", TWO_MODELS)
    options = ("two.py", "--param", "batch_size=1,8")
    scripts = bw.json("find", *options)["scripts"]
    assert not (bw.base / "runs").exists()
    for found, batch in zip(scripts, (1, 8), strict=True):
        small = [m for m in found["models"] if m["class"] == "Small"]
        assert [m["parameters"] for m in small] == [16 * 8 + 16 + 16 * 4 + 4, 32 * 8 + 32 + 32 * 4 + 4]
        assert {tuple(m["inputs"][0]["shape"]) for m in small} == {(batch, 8)}
    names = [r["benchmark"] for r in bw.json("run", *options, *QUICK)["results"] if r["status"] == "ok"]
    assert len(names) == len(set(names)) == 4


def test_a_script_without_a_model_says_why_and_is_run_once(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("plain.py", "import sys, click\nopen('ran', 'a').write('once ')\nsys.exit(7)\n")
    body = bw.json("run", "plain.py", code=1)
    (result,) = body["results"]
    assert (result["reason"], result["detail"]) == ("crashed", "it ended with exit code 7 (before it called a model)")
    assert (bw.cwd / "ran").read_text() == "once "
    script("fine.py", "import click\nprint('hello')\n")
    (result,) = bw.json("run", "fine.py", code=3)["results"]
    assert (result["status"], result["detail"]) == (
        "skipped",
        "it calls no model of torch; time all of it with --as command",
    )
    assert bw("find", "fine.py", code=3).stdout


def test_a_model_file_is_a_target(bw: CommandLine) -> None:
    looked_up(bw.cwd)
    refused = bw.json("run", "tiny.onnx", code=1)
    assert "give --shape ids=1x6" in refused["results"][0]["detail"]
    body = bw.json("run", "tiny.onnx", "--shape", "ids=2x6", "--runtime", "onnxruntime", *QUICK)
    assert [r["status"] for r in body["results"]] == ["ok"]
    assert metric(body, "latency")["value"] > 0


def test_a_runtime_that_takes_no_such_file_measures_nothing(bw: CommandLine) -> None:
    looked_up(bw.cwd)
    (skipped,) = bw.json("run", "tiny.onnx", "--runtime", "torch-eager", code=3)["results"]
    assert (skipped["status"], skipped["detail"]) == ("skipped", "torch-eager does not take .onnx files")


def test_a_foreign_script_without_a_model_finds_its_parser_too(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("a.py", 'from mlagility.parser import parse\nimport sys\nsys.exit(parse(["batch_size"])[0])\n')
    (only,) = bw.json("run", "a.py", "--param", "batch_size=7", "--as", "command", code=1)["results"]
    assert only["detail"] == "exit code 7"


def test_a_broken_script_of_a_folder_is_listed_and_each_point_has_its_name(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    (bw.cwd / "models").mkdir()
    script("models/a.py", "def f(:\n")
    script("models/b.py", "print(1)\n")
    listed = bw("find", "models", "--param", "k=1,2", code=1).stdout
    assert listed.count("it is not valid Python: invalid syntax (line 1)") == 2
    assert "models/b.py[k=2]" in listed
    assert "check the quotes" in bw("find", "models", "--script-args", "'", code=2).stderr


def test_what_is_no_runtime_device_or_shape_is_refused(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("a.py", "print(1)\n")
    for option, word, says in (
        ("--runtime", "onnxruntim", "unknown runtime 'onnxruntim'; did you mean 'onnxruntime'?"),
        ("--device", "gpu", "cpu, cuda"),
        ("--precision", "int4", "unknown precision"),
        ("--shape", "x=1x2", "applies to model files"),
        ("--param", "x", "is not a parameter with values"),
    ):
        assert says in bw("run", "a.py", option, word, code=2).stderr
    (bw.cwd / "net.onnx").write_bytes(b"\x08\x08")
    assert "invalid shape" in bw("run", "net.onnx", "--shape", "x=1x", code=2).stderr
    assert "no such file" in bw("run", "absent.py::Net", code=2).stderr


def test_a_folder_of_scripts_each_on_its_own_with_a_runtime_that_only_the_measured_python_has(
    bw: CommandLine, script: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """The interpreter sees the plug-in through a variable that benchwright's own process does not have."""
    plugin = tmp_path / "plugin"
    info = plugin / "fancy_runtime-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fancy-runtime\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[benchmodels.runtimes]\nfancy = fancy_runtime:Fancy\n")
    (plugin / "fancy_runtime.py").write_text(
        "from benchmodels.runtimes.torch_eager import TorchEager\n"
        "class Fancy(TorchEager):\n    name, aliases = 'fancy', ('fcy',)\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{plugin}" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (bw.cwd / "corpus").mkdir()
    script("corpus/a.py", "import torch\ntorch.nn.Linear(4, 4)(torch.ones(2, 4))\nraise ValueError('late')\n")
    script("corpus/b.py", "import os\nos._exit(3)\n")
    script("corpus/c.py", "def f(:\n")
    body = bw.json("run", "corpus", "--python", str(python), "--runtime", "fcy", *QUICK, code=1)
    status = {r["benchmark"]: (r["status"], r["reason"]) for r in body["results"]}
    assert status == {
        "a.py::Linear@fancy": ("ok", None),
        "b.py": ("failed", "crashed"),
        "c.py": ("failed", "crashed"),
    }
    assert any("late" in note for note in by_name(body)["a.py::Linear@fancy"]["notes"])
    assert "unknown runtime 'fcy'" in bw("run", "corpus/a.py", "--runtime", "fcy", code=2).stderr


SHAPES = """
import torch
from torch import nn

class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(10, 5)
    def forward(self, x):
        return self.layer(x)

class TimeFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 8)
    def forward(self, x):
        return self.layer(x)[0]

seen = []
class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        seen.append(x)
        return self.layer(x)

Features()(torch.rand(10))
TimeFirst()(torch.rand(64, 2, 8))
nested = Nested()
nested(torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)]))
assert [each.is_nested for each in seen] == [True]
"""


@pytest.fixture(scope="module")
def shapes(made_once: MadeOnce) -> Measured:
    """A run of models whose inputs have no batch, a batch that comes second, and one that cannot be measured."""

    def make(folder: Path) -> None:
        (folder / "shapes.py").write_text(SHAPES)
        bw = CommandLine(folder / "base", folder)
        (folder / "found.json").write_text(bw("find", "shapes.py", "--json").stdout)
        bw("run", "shapes.py", "--streams", "2", *QUICK)

    folder = made_once("shapes", make)
    bw = CommandLine(folder / "base", folder)
    return bw, bw.json("report")


def test_a_script_that_works_is_not_said_to_fail(shapes: Measured) -> None:
    bw, body = shapes
    (found,) = json.loads((bw.cwd / "found.json").read_text())["scripts"]
    assert (found["exit_code"], found["trouble"]) == (0, None)
    by_class = {model["class"]: model for model in found["models"]}
    assert "skipped: its input 'x' is a nested tensor" in by_class["Nested"]["reason"]
    assert by_class["Features"]["flops"] == 2 * 10 * 5
    told = {r["benchmark"]: (r["status"], r["detail"]) for r in body["results"]}
    assert told["shapes.py::Features@torch-eager"] == ("ok", None)
    assert "its input 'x' is a nested tensor" in told["shapes.py::Nested"][1]


def test_rates_count_calls_unless_the_batch_is_known(shapes: Measured) -> None:
    bw, body = shapes
    measured = {n: result for n, result in enumerate(body["results"]) if result["status"] == "ok"}
    assert len(measured) == 2
    for number, result in measured.items():
        items = 2 if "TimeFirst" in result["benchmark"] else None
        rate, latency = metric(body, "rate", number), metric(body, "latency", number)
        assert rate["unit"] == ("calls/s" if items is None else "items/s")
        # The rate is of all calls, the latency that of the one in the middle: on a busy machine the rate is lower.
        assert rate["value"] * latency["value"] < 1.5 * (items or 1)
        assert metric(body, "throughput.streams", number)["unit"] == rate["unit"]
        assert result["model"]["items"] == items
        notes = [note["text"] for launch in result["launches"] for note in launch["notes"]]
        assert any("rates are in calls/s because the batch size is not known" in text for text in notes) == (not items)
    shown = bw("report").stdout
    assert "calls/s" in shown
    rows = list(csv.DictReader(io.StringIO(bw("report", "--format", "csv").stdout)))
    for row in (row for row in rows if row["status"] == "ok"):
        calls = float(row["calls_per_s"])
        assert calls * float(row["latency_ms"]) / 1000 < 1.5
        assert row["items_per_s"] == "" or float(row["items_per_s"]) == pytest.approx(2 * calls)
        assert bool(row["items_per_s"]) == bool(row["items_from"]) == (row["model_class"] == "TimeFirst")


def test_the_user_says_how_many_items_a_call_has(shapes: Measured, bw: CommandLine) -> None:
    bw.cwd = shapes[0].cwd
    shutil.copytree(shapes[0].base, bw.base)
    (told,) = bw.json("run", "shapes.py::Features", "--items", "10", *QUICK)["results"]
    assert (told["model"]["items"], told["model"]["items_from"]) == (10, "--items")
    assert next(m["unit"] for m in told["metrics"] if m["metric"] == "rate") == "items/s"
    assert (
        "applies to models in scripts, model files and models of zoos, not to commands"
        in bw("run", "--items", "2", "--", "true", code=2).stderr
    )


def test_a_file_that_would_run_code_is_refused_before_anything_is_loaded(bw: CommandLine) -> None:
    with zipfile.ZipFile(bw.cwd / "bad.pt2", "w") as archive:
        archive.writestr("bad/models/model.json", json.dumps({"expr_str": "open('/tmp/never', 'w')"}))
    for command in ("run", "plan"):
        said = bw(command, "bad.pt2", code=2).stderr
        assert "bad.pt2: would run its own code when loaded: models/model.json has a size" in said
        assert "measure it with --trust if you know where it comes from" in said
    assert "applies to model files, not to commands" in bw("run", "--trust", "--", "true", code=2).stderr


@pytest.mark.long
def test_a_file_that_is_trusted_runs_its_code_and_that_is_said(bw: CommandLine) -> None:
    with zipfile.ZipFile(bw.cwd / "bad.pt2", "w") as archive:
        archive.writestr("bad/models/model.json", json.dumps({"expr_str": "open('/tmp/never', 'w')"}))
    trusted = bw("run", "bad.pt2", "--trust", code=1)
    assert "bad.pt2: runs its own code when loaded, as --trust allows" in trusted.stderr
