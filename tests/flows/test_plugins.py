"""Every seam from outside: a package that adds one variant to each, by entry points alone."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, metric
from made_once import MadeOnce
from plugin_package import ADDED, PACKAGE

# Prints a table and how nice it is, and writes for long enough to be sampled a few times.
PROGRAM = """
import os, time
for step in range(8):
    with open(os.devnull, "w") as file:
        file.write("x" * 100_000)
    print(f"| loss | {1 / (step + 1)} |", flush=True)
    time.sleep(0.1)
print(f"niceness={os.nice(0)}")
"""
METRICS = ("--metric", "loss[lower,last]=table:loss", "--metric", "niceness=kv:niceness")
MODEL = """
import torch
model = torch.nn.Conv2d(3, 4, 3)
model(torch.randn(1, 3, 16, 16))
"""

pytestmark = pytest.mark.xdist_group("plugins")


@pytest.fixture
def outside(bw: CommandLine, plugins: None, plugin_folder: Path) -> CommandLine:
    """The command line where the package is installed: for this process, and for those it starts."""
    bw.env["PYTHONPATH"] = str(plugin_folder)
    return bw


Measured = tuple[CommandLine, dict[str, Any]]


@pytest.fixture
def measured(outside: CommandLine, made_once: MadeOnce) -> Measured:
    """One run with a kind, a sampler, an extractor, an executor and a store from outside, which several tests look at."""

    def make(folder: Path) -> None:
        (folder / "program.py").write_text(PROGRAM)
        (folder / "both.bench").write_text(
            f"# two\nfirst: {sys.executable} program.py\nsecond: {sys.executable} program.py\n"
        )
        where = ("--on", "nice:7", "--store", f"shelf://{folder}/shelf", "--sample-interval", "0.1s")
        there = CommandLine(folder / "base", folder)
        there.env |= {"PYTHONPATH": outside.env["PYTHONPATH"]}
        there("run", *METRICS, *where, "both.bench")

    outside.cwd = made_once("plugins", make)
    outside.base = outside.cwd / "base"
    outside.env["BENCHWRIGHT_BASE"] = str(outside.base)
    return outside, outside.json("show")


def test_the_kind_is_recognised_and_its_hooks_are_called(measured: Measured) -> None:
    outside, body = measured
    assert [result["benchmark"] for result in body["results"]] == ["first", "second"]
    settings = json.loads((outside.last_run() / "plan.json").read_text())["options"]
    assert settings["interleave"] is True
    done = outside("run", "--format", "bench-list", "program.py", code=2)
    assert "program.py:2: this line names no command" in done.stderr.replace("\n", " ")


def test_the_extractor_reads_the_log(measured: Measured) -> None:
    _, body = measured
    assert metric(body, "loss")["value"] == 0.125


def test_the_executor_runs_the_jobs(measured: Measured) -> None:
    outside, body = measured
    assert metric(body, "niceness")["value"] == min(19, os.nice(0) + 7)
    assert "'most' is not a priority" in outside("run", "--on", "nice:most", "--", "true", code=2).stderr


def test_the_samplers_series_are_kept_and_shown_in_every_format(measured: Measured) -> None:
    outside, body = measured
    kept = json.loads((outside.last_run() / "run.json").read_text())
    (counted,) = [m for m in kept["results"][0]["launches"][0]["samples"] if m["metric"] == "disk.written"]
    streamed = [json.loads(line) for line in next(outside.last_run().glob("first*.data")).read_text().splitlines()]
    assert counted["measured"] == len([event for event in streamed if event.get("sampler") == "disk"]) >= 2
    assert metric(body, "disk.written")["value"] > 10_000  # of few samples, the first may be 0
    assert metric(body, "disk.written")["unit"] == "B"
    for format_ in ("screen", "markdown", "html", "json", "csv"):
        shown = outside("report", "last", "--format", format_).stdout
        assert "disk.written" in shown, format_
    rows = list(csv.DictReader(io.StringIO(outside("report", "last", "--format", "csv").stdout)))
    assert "disk.written" in {row.get("metric") for row in rows}


def test_the_store_has_the_run(measured: Measured) -> None:
    outside, _ = measured
    assert (outside.cwd / "shelf" / "runs.db").is_file()
    listed = outside("runs", "--store", f"shelf://{outside.cwd}/shelf", "--json").stdout
    assert outside.last_run().name in listed
    assert "'shell' is not a kind of store; did you mean 'shelf'" in outside(
        "runs", "--store", "shell:///x", code=2
    ).stderr.replace("\n", " ")


def test_the_reporter_renders_it(measured: Measured) -> None:
    outside, _ = measured
    shown = outside("report", "last", "--format", "plain").stdout
    assert "first\tloss\t0.125\t\n" in shown
    assert "did you mean 'plain'?" in outside("report", "last", "--format", "plane", code=2).stderr


def test_the_importer_reads_its_files(outside: CommandLine) -> None:
    for number, option in enumerate([(), ("--format", "timings"), ("--from", "timings")], start=1):
        (outside.cwd / "old.json").write_text(f'{{"timings": {{"sort": [0.5, 0.{number}], "none": []}}}}')
        outside("import", *option, "old.json")
        listed = json.loads(outside("runs", "--json", "--label", "imported_from=timings").stdout)
        assert [run["id"].startswith("import.timings.") for run in listed] == [True] * number
    (outside.cwd / "bad.json").write_text('{"timings": {"sort": ["soon"]}}')
    assert "bad.json" in outside("import", "--from", "timings", "bad.json", code=2).stderr


def test_task_files_and_suites_reach_the_extractor(outside: CommandLine) -> None:
    (outside.cwd / "print.py").write_text("print('| loss | 2 |')\n")
    (outside.cwd / "tasks.cfg").write_text(
        f"[one]\npatterns = ['table:loss']\nmetrics = ['loss']\ncompute_method = ['last']\n"
        f"command_to_execute = {sys.executable} print.py\n"
    )
    body = outside.json("run", "tasks.cfg")
    assert metric(body, "loss")["value"] == 2


def test_the_runtime_measures_a_model_by_its_alias(outside: CommandLine) -> None:
    (outside.cwd / "model.py").write_text(MODEL)
    quick = ("--stop", "20", "--warmup", "3", "--threads", "1", "--python", sys.executable)
    body = outside.json("run", *quick, "--as", "models", "--runtime", "nhwc", "model.py")
    runtimes = [result["model"]["runtime"] for result in body["results"] if result.get("model")]
    assert runtimes == ["torch-channels-last"]
    assert body["status"] == "ok"


def test_the_doctor_lists_them_all(outside: CommandLine) -> None:
    """As a process of its own, which finds the package when it starts."""
    outside.is_process = True
    body = json.loads(outside("doctor", "--quick", "--json", code=None).stdout)
    found = {note["kind"]: note for note in body["notes"]}
    for group, name in ADDED.items():
        assert found[f"plugin.{name}"]["severity"] == "ok", group
        assert PACKAGE in found[f"plugin.{name}"]["text"]
    assert found["sampler.disk"]["text"].startswith("reads ")


@pytest.fixture
def broken(bw: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line where a package is installed of which nothing can be imported."""
    info = tmp_path / "site" / "rusty-2.1.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text("".join(f"[{group}]\nrust = rusty.gone:thing\n\n" for group in ADDED))
    monkeypatch.syspath_prepend(str(info.parent))
    bw.env["PYTHONPATH"] = str(info.parent)
    return bw


@pytest.mark.compat
def test_a_broken_package_takes_nothing_down(broken: CommandLine, script: Callable[[str, str], Path]) -> None:
    body = broken.json("run", "--metric", "x=x=(.*)", "--sample-interval", "0.05s", "--", "echo", "x=1")
    assert metric(body, "x")["value"] == 1
    assert "rusty" in json.dumps(body)  # the sampler that is off is told with the run
    broken("report", "last")
    broken("runs")
    script("old.json", '{"results": [{"command": "a", "mean": 1, "times": [1]}]}')
    broken("import", "old.json")
    broken.is_process = True
    text = broken("doctor", "--quick", code=None).stdout
    assert "rusty" in text


def test_a_broken_plugin_that_is_asked_for_is_named_with_its_package(broken: CommandLine) -> None:
    broken("run", "--", "true")
    (broken.cwd / "x.rust").write_text("")
    for words in (
        ("run", "--on", "rust", "--", "true"),
        ("run", "--metric", "x=rust:x", "--", "true"),
        ("run", "--format", "rust", "x.rust"),
        ("report", "last", "--format", "rust"),
        ("runs", "--store", "rust://x"),
        ("import", "--from", "rust", "x.json"),
    ):
        said = " ".join(broken(*words, code=3).stderr.split())
        assert (
            "'rust' of the package rusty 2.1 cannot be loaded: ModuleNotFoundError: No module named 'rusty'" in said
        ), words
        assert "Traceback" not in said


def test_a_broken_store_is_refused_before_anything_is_measured(broken: CommandLine) -> None:
    done = broken("run", "--store", "rust://x", "--", "touch", "measured", code=3)
    assert "rusty 2.1 cannot be loaded" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (broken.cwd / "measured").exists()


def test_the_zoo_is_listed(outside: CommandLine) -> None:
    listed = json.loads(outside("find", "example:*", "--json").stdout)["models"]
    assert [model["target"] for model in listed] == ["example:mlp", "example:conv", "example:needy"]


@pytest.mark.parametrize("runtime", ["torch-eager", pytest.param("onnxruntime", marks=pytest.mark.long)])
def test_models_of_the_zoo_are_measured_with_reasons_for_the_rest(outside: CommandLine, runtime: str) -> None:
    words = ("example:mlp,needy", "--runtime", runtime, "--param", "batch_size=4", "--stop", "5")
    results = {r["benchmark"]: r for r in outside.json("run", *words)["results"]}
    measured = results[f"example:mlp[batch_size=4]@{runtime}"]
    assert (measured["status"], measured["model"]["zoo"], measured["model"]["items"]) == ("ok", "example:mlp", 4)
    needy = results[f"example:needy[batch_size=4]@{runtime}"]
    assert needy["status"] == "skipped"
    assert "needs a package: the package 'unheard-of' is not installed" in needy["detail"]
