"""FAI-PEP's reporters from the command line: both sides of a comparison in its folders, and back."""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from processes import wait_for
from specifications import file_entry, written

pytestmark = pytest.mark.compat

LINE = 'PyTorchObserver {"type": "%s", "metric": "latency", "unit": "us", "value": "%s"}'


def program(path: Path, *records: tuple[str, str]) -> str:
    path.write_text("#!/bin/sh\n" + "".join(f"echo '{LINE % record}'\n" for record in records))
    path.chmod(0o755)
    return str(path)


def record(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.txt").read_text())
    return found


def test_both_sides_are_reported_marked_and_read_back(bw: CommandLine) -> None:
    """Local reporter, info with a control, run type and regressed types."""
    sides = {
        "treatment": program(bw.cwd / "new.sh", ("NET", "120.5"), ("NET", "121.5"), ("Conv", "60")),
        "control": program(bw.cwd / "old.sh", ("NET", "100.5"), ("NET", "101.5"), ("Conv", "50")),
    }
    info: dict[str, Any] = {
        side: {"commit": f"{side}-commit", "commit_time": 1_521_460_800, "program": path}
        for side, path in sides.items()
    }
    info |= {"run_type": "regress", "regressed_types": ["NET"]}
    path = written(bw.cwd / "spec.json", {}, {"identifier": "{ID}", "metric": "delay", "command": "{program}"})
    body = bw.json("run", path, "--info", json.dumps(info), "--repeat", "2", "--local_reporter", "reports")
    (meta,) = (bw.cwd / "reports").rglob("meta.txt")
    folder = meta.parent
    assert folder.parts[-6:] == ("0", "2018", "3", "19", "treatment-commit", "0")
    net = record(folder, "NET-latency")
    assert net["values"] == [120.5, 121.5] * 2
    assert net["control_values"] == [100.5, 101.5] * 2
    assert net["diff_summary"]["p0"] == pytest.approx(120.5 - 101.5)
    assert net["regressed"] == 1
    assert "regressed" not in record(folder, "Conv-latency")
    said = record(folder, "meta")
    assert (said["control_commit"], said["run_type"], said["run"]) == ("control-commit", "regress", body["id"])

    imported = bw("import", "fai-pep", "reports").stdout.partition(":")[0]
    back = {result["benchmark"]: result for result in bw.json("show", imported)["results"]}
    assert set(back) == {"net-0 control", "net-0 treatment"}
    values = {m["metric"]: m["values"] for m in back["net-0 treatment"]["metrics"]}
    assert values["latency"] == pytest.approx([121e-6] * 2)
    assert "already imported" in bw("import", "fai-pep", "reports").stdout

    bw("export", body["id"], "--format", "fai-pep", "-o", "reports")
    assert record(folder.parent / "1", "NET-latency") == net
    line = json.loads(bw("report", body["id"], "--format", "fai-pep").stdout)
    assert line["data"]["NET latency"] == net


def says(path: Path, *lines: str) -> str:
    path.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    path.chmod(0o755)
    return str(path)


def test_a_programs_own_summary_is_reported_as_it_printed_it(bw: CommandLine) -> None:
    """tflite prints statistics only; an accuracy is its own summary of 0s and 1s."""
    new = says(bw.cwd / "new.sh", "count=1 curr=900", "count=50 first=120 curr=91 min=90 max=120 avg=98.4 std=7")
    old = says(bw.cwd / "old.sh", "count=40 first=110 curr=81 min=80 max=115 avg=88.4 std=5")
    info = {side: {"commit": side, "program": path} for side, path in (("treatment", new), ("control", old))}
    test = {"identifier": "{ID}", "metric": "delay", "command": "{program}", "statistics": ["mean", "p95"]}
    path = written(bw.cwd / "spec.json", {"framework": "tflite"}, test)
    body = bw.json("run", path, "--info", json.dumps(info), "--local-reporter", "reports")
    (meta,) = (bw.cwd / "reports").rglob("meta.txt")
    net = record(meta.parent, "NET-latency")
    assert (net["values"], net["num_runs"]) == ([98.4], 50)
    assert net["summary"] == {"mean": 98.4, "p0": 90, "p100": 120, "stdev": 7}
    assert net["control_summary"] == {"mean": 88.4, "p0": 80, "p100": 115, "stdev": 5}
    wanted = {"mean": 10.0, "p0": 90 - 115, "p100": 120 - 80, "stdev": 2}
    assert net["diff_summary"] == {name: pytest.approx(value) for name, value in wanted.items()}
    treatment = next(r for r in body["results"] if "treatment" in r["benchmark"])
    assert treatment["statistics"]["latency"] == {"mean": pytest.approx(98.4e-6)}

    imported = bw("import", "fai-pep", "reports").stdout.partition(":")[0]
    bw("export", imported, "--format", "fai-pep", "-o", "again")
    again = [record(path.parent, "NET-latency")["summary"] for path in (bw.cwd / "again").rglob("meta.txt")]
    assert all(summary in again for summary in (net["summary"], net["control_summary"]))


@pytest.mark.parametrize(("repeat", "expected"), [(1, {"mean": 45}), (2, {"mean": 45})])
def test_an_accuracy_stays_the_percentage_that_was_printed(bw: CommandLine, repeat: int, expected: object) -> None:
    line = {"type": "NET", "metric": "accuracy", "unit": "percent", "values": [0, 1, 0, 1], "summary": {"mean": 45}}
    program = says(bw.cwd / "accuracy.sh", f"PyTorchObserver {json.dumps(line)}")
    path = written(bw.cwd / "spec.json", {}, {"identifier": "a", "metric": "accuracy", "command": program})
    bw("run", path, "--repeat", str(repeat), "--local-reporter", "reports")
    (meta,) = (bw.cwd / "reports").rglob("meta.txt")
    assert record(meta.parent, "NET-accuracy")["summary"] == expected


def test_what_failed_is_named_and_the_rest_reported(bw: CommandLine) -> None:
    good = {"identifier": "good", "command": program(bw.cwd / "good.sh", ("NET", "1"))}
    bad = {"identifier": "bad", "command": "false"}
    path = written(bw.cwd / "spec.json", {}, good, bad)
    done = bw("run", path, "--local-reporter", "reports", "--screen_reporter", code=1)
    assert "net-good" in done.stdout  # the screen reporter is always there
    assert "no records reported of net-bad: " in done.stderr
    assert [meta.parent.parts[-6] for meta in (bw.cwd / "reports").rglob("meta.txt")] == ["good"]


def test_reports_are_written_as_tests_end(bw: CommandLine) -> None:
    """A run that is killed leaves those of its finished tests; once it is resumed, every test is there once."""
    first = {"identifier": "first", "command": program(bw.cwd / "first.sh", ("NET", "1"))}
    second = {"identifier": "second", "command": program(bw.cwd / "second.sh", ("NET", "2"))}
    (bw.cwd / "second.sh").write_text("#!/bin/sh\ntouch begun\nsleep 600\n")
    words = ("run", written(bw.cwd / "spec.json", {}, first, second), "--local-reporter", "reports", "--repeat", "2")
    child = subprocess.Popen(bw.argv(*words), cwd=bw.cwd, env=bw.env)
    assert wait_for((bw.cwd / "begun").exists)
    child.kill()
    child.wait()
    assert identifiers(bw) == ["first"]
    program(bw.cwd / "second.sh", ("NET", "2"))
    bw(*words, "--resume", "--anyway")
    assert identifiers(bw) == ["first", "second"]


def identifiers(bw: CommandLine) -> list[str]:
    return sorted(meta.parent.parts[-6] for meta in (bw.cwd / "reports").rglob("meta.txt"))


def test_a_place_or_server_that_is_none_is_refused_before_anything_runs(bw: CommandLine) -> None:
    (bw.cwd / "file").write_text("")
    marked = ("--", "touch", "ran")
    assert "file is not a folder" in bw("run", "--local-reporter", "file", *marked, code=2).stderr
    assert "has no category" in bw("run", "--remote-reporter", "perf.example/x", *marked, code=2).stderr
    assert (
        "cannot be read"
        in bw(*("run", "--remote-reporter", "x|y", "--remote-access-token", "@nowhere", *marked), code=2).stderr
    )
    assert not (bw.cwd / "ran").exists()
    assert "add -o FILE" in bw("export", "last", code=2).stderr
    assert "fai-pep is no text to print" in bw("export", "last", "-o", "-", "--format", "fai-pep", code=2).stderr


def test_reports_and_exports_give_the_command_that_ran(bw: CommandLine) -> None:
    run = program(bw.cwd / "run.sh", ("NET", "1"))
    model = {"files": {"init": file_entry(bw.cwd / "init.txt")}, "command_args": "--more 3"}
    one = {"identifier": "one", "command": f"{run} {{files.init}}"}
    line = {"identifier": "line", "commands": [f"true && {run} {{files.init}}"]}
    two = {"identifier": "two", "commands": ["echo {files.init} a; true", f"{run} {{files.init}}"]}
    bw("run", written(bw.cwd / "spec.json", model, one, line, two))
    init = str(bw.cwd / "init.txt")
    expected = {
        "net-one": f"{run} {init} --more 3",
        "net-line": f"true && {run} {init} --more 3",
        "net-two": f"(echo {init} a; true --more 3) && exec {run} {init} --more 3",
    }
    lines = [json.loads(line) for line in bw("report", "--format", "fai-pep").stdout.splitlines()]
    assert {f"net-{line['meta']['identifier']}": line["meta"]["command"] for line in lines} == expected
    page = html.unescape(bw("report", "--format", "html").stdout)
    assert all(f"<code>{command}</code>" in page for command in expected.values())
    bw("export", "--format", "milabench", "-o", "out")
    started = {path.name: path.read_text().splitlines()[2] for path in (bw.cwd / "out").rglob("*.data")}
    assert json.loads(started["net-one.D0.data"])["data"]["command"] == [run, init, "--more", "3"]
    assert json.loads(started["net-line.D0.data"])["data"]["command"] == ["/bin/sh", "-c", expected["net-line"]]
    assert f"exec {run} {init} --more 3" in json.loads(started["net-two.D0.data"])["data"]["command"][2]
