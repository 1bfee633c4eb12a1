"""Specifications from the command line: every option of FAI-PEP's harness that concerns what is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import events
from command_line import CommandLine, metric
from specifications import file_entry, written

PROGRAM = """#!/bin/sh
echo "got $* lib=$LD_LIBRARY_PATH side=$AIBENCH_TREATMENT_GROUP"
for value in 10.5 11.5 12.5; do
  echo "Caffe2Observer {\\"type\\": \\"NET\\", \\"metric\\": \\"latency\\", \\"unit\\": \\"us\\", \\"value\\": \\"$value\\"}"
done
"""


@pytest.fixture
def program(bw: CommandLine) -> str:
    return _program(bw.cwd / "program.sh", PROGRAM)


def _program(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def _said(bw: CommandLine, job: str) -> str:
    return bw("logs", "last", job).stdout


@pytest.mark.compat
def test_one_specification_with_many_options(bw: CommandLine, program: str) -> None:
    """Benchmark file, program, backend, framework, string map, shared libs, root model dir, model cache, run type, timeout."""
    file_entry(bw.cwd / "root" / "net.pb", "model")
    files = {"net": {"filename": "net.pb", "location": "//net.pb"}, "more": file_entry(bw.cwd / "m" / "more.pb")}
    test = {
        "identifier": "{ID}",
        "iter": 3,
        "warmup": 0,
        "arguments": "--net {files.net} --more {files.more} --data {DATA}",
    }
    path = written(bw.cwd / "spec.json", {"files": files}, test)
    body = bw.json(
        *("run", "--benchmark_file", path, "--program", program, "--backend", "mkl", "--framework", "pytorch"),
        *("--string_map", '{"DATA": "/data/set"}', "--shared-libs", str(bw.cwd / "m"), "--timeout", "60"),
        *("--root_model_dir", str(bw.cwd / "root"), "--model-cache", str(bw.cwd / "cache"), "--run-type", "verify"),
    )
    (result,) = body["results"]
    assert result["benchmark"] == "net-0"
    assert result["status"] == "ok"
    said = _said(bw, "net-0")
    assert "--data /data/set --backend mkl lib=" in said
    assert f"--net {bw.cwd}/cache/" in said
    assert f"lib={bw.cwd}" in said
    (run,) = [run for run in json.loads(bw("runs", "--json").stdout) if run["id"] == body["id"]]
    assert run
    plan = json.loads((bw.last_run() / "plan.json").read_text())
    labels = plan["benchmarks"][0]["labels"]
    assert (labels["run_type"], labels["backend"], labels["framework"]) == ("verify", "mkl", "pytorch")
    assert plan["benchmarks"][0]["timeout_s"] == 60


def test_every_record_counts_and_none_is_no_data(bw: CommandLine, program: str) -> None:
    path = written(bw.cwd / "spec.json")
    body = bw.json("run", path, "--program", program)
    assert metric(body, "latency")["value"] == pytest.approx(11.5e-6)
    samples = {each["metric"]: each["measured"] for each in body["results"][0]["launches"][0]["samples"]}
    assert samples["latency"] == 3
    silent = _program(bw.cwd / "silent.sh", "#!/bin/sh\necho nothing\n")
    (result,) = bw.json("run", path, "--program", silent, code=1)["results"]
    assert result["reason"] == "no_data"


def test_info_with_a_control_ends_with_a_verdict(bw: CommandLine) -> None:
    """Both programs alternate, launch by launch, and each test is a pair."""
    line = 'PyTorchObserver {\\"type\\": \\"NET\\", \\"metric\\": \\"memory\\", \\"unit\\": \\"MB\\", \\"value\\": \\"%s\\"}'
    sides = {}
    for side, value in (("treatment", "120"), ("control", "100")):
        text = f'#!/bin/sh\necho "{line % value}"\n'
        sides[side] = {"commit": side, "commit_time": 1, "program": _program(bw.cwd / f"{side}.sh", text)}
    tests = [{"identifier": "{ID}", "command": "{program}"}] * 2
    path = written(bw.cwd / "spec.json", {}, *tests)
    body = bw.json("run", path, "--info", json.dumps(sides), "--repeat", "6")
    assert [c["treatment"] for c in body["comparisons"]] == ["net-0 treatment", "net-1 treatment"]
    for comparison in body["comparisons"]:
        (effect,) = comparison["effects"]
        assert (effect["metric"], effect["verdict"]) == ("memory", "regressed")
        assert effect["ratio"] == pytest.approx(1.2)
    order = [job["benchmark"] for job in sorted(_jobs(bw), key=lambda job: job["position"])]
    assert order[:4] == ["net-0 control", "net-0 treatment", "net-0 treatment", "net-0 control"]
    assert set(order[12:]) == {"net-1 control", "net-1 treatment"}
    for name, count in (("net-1", 2), ("net-1 control", 1), ("net", 4)):
        planned = json.loads(bw("plan", path, "--info", json.dumps(sides), "--task", name, "--json").stdout)
        assert len(planned["benchmarks"]) == count


def _jobs(bw: CommandLine) -> list[dict[str, Any]]:
    body = bw.json("show", "last")
    return [{**launch, "benchmark": r["benchmark"]} for r in body["results"] for launch in r["launches"]]


def test_steps_repeats_and_files_that_a_test_makes(bw: CommandLine) -> None:
    """An accuracy test as FAI-PEP writes it: the data is cut by awk, converted, compared, and summed up at the end."""
    (bw.cwd / "images.txt").write_text("".join(f"{n} image{n}\n" for n in range(6)))
    convert = _program(bw.cwd / "convert.sh", '#!/bin/sh\ncut -d" " -f1 "$1" > "$2"\n')
    run = _program(bw.cwd / "run.sh", '#!/bin/sh\ncat "$1" > "$2/out.txt"\n')
    total = _program(
        bw.cwd / "total.sh",
        '#!/bin/sh\ncat "$1"/* | awk \'{s+=$1} END '
        '{print "Caffe2Observer {\\"type\\": \\"SUM\\", \\"metric\\": \\"accuracy\\", \\"unit\\": \\"\\", \\"value\\": " s "}"}\'\n',
    )
    model = {
        "repeat": 3,
        "total": 6,
        "per": "{total}/{repeat}",
        "preprocess": {"commands": ["mkdir -p {HOSTDIR}/outputs", "cp {DATA} '{HOSTDIR}/images.txt'"]},
        "postprocess": {"commands": ["{sum} {HOSTDIR}/outputs"]},
    }
    test = {
        "identifier": "{ID}",
        "metric": "accuracy",
        "iter": 1,
        "preprocess": {
            "commands": [
                "awk '(NR>{INDEX}*{per})&&(NR<={INDEX}*{per}+{per}) {print > \"{HOSTDIR}/part_{INDEX}.txt\"}' {HOSTDIR}/images.txt",
                "{convert} {HOSTDIR}/part_{INDEX}.txt {input_files.tensor}",
            ]
        },
        "input_files": {"tensor": {"filename": "tensor.pb", "location": "{HOSTDIR}/tensor.pb"}},
        "commands": ["{program} {input_files.tensor} '{TGTDIR}'"],
        "output_files": {"out": {"filename": "out.txt", "location": "{TGTDIR}/out.txt"}},
        "postprocess": {
            "commands": [
                "cp {output_files.out} {HOSTDIR}/outputs/{INDEX}.txt",
                """echo 'Caffe2Observer {"type": "NET", "metric": "part", "unit": "", "value": {INDEX}}'""",
            ]
        },
    }
    path = written(bw.cwd / "a folder" / "spec.json", model, test)
    programs = ("--program", run, "--program", f"convert={convert}", "--program", f"sum={total}")
    body = bw.json("run", path, *programs, "--string-map", json.dumps({"DATA": str(bw.cwd / "images.txt")}))
    (result,) = body["results"]
    assert result["status"] == "ok", result
    assert len(result["launches"]) == 3
    folder = bw.last_run() / "files" / "models" / "net" / "outputs"
    assert [(folder / f"{n}.txt").read_text().split() for n in range(3)] == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert 15.0 in [value for each in result["metrics"] for value in each["values"]]


def test_what_is_missing_is_said_before_anything_runs(bw: CommandLine, program: str) -> None:
    path = written(bw.cwd / "spec.json")
    assert "add --program PATH" in bw("run", path, code=2).stderr
    absent = written(bw.cwd / "absent.json", {"files": {"net": {"location": "net.pb", "filename": "net.pb"}}})
    done = bw("run", absent, "--program", program, code=3)
    assert "net.pb" in done.stderr
    wrong = written(bw.cwd / "wrong.json", {"files": {"net": {**file_entry(bw.cwd / "x.pb"), "md5": "0" * 32}}})
    done = bw("run", wrong, "--program", program, code=3)
    assert "0" * 32 in done.stderr
    assert "9dd4e461268c8034f5c8564e155c67a6" in done.stderr
    for code, *words in ((2, path), (3, absent, "--program", program), (3, wrong, "--program", program)):
        assert bw("plan", *words, code=code).stderr == bw("run", *words, code=code).stderr  # refused in the same words
    two = written(
        bw.cwd / "two.json", {}, {"identifier": "a", "command": "{program}"}, {"identifier": "b", "command": "true"}
    )
    planned = json.loads(bw("plan", two, "--json").stdout)["benchmarks"]
    assert [(b["status"], len(b["jobs"])) for b in planned] == [("skipped", 0), ("planned", 1)]
    assert "add --program PATH" in planned[0]["reason"]
    escape = written(bw.cwd / "escape.json", {"files": {"a": {"filename": "../../etc/passwd", "location": "x"}}})
    done = bw("run", escape, "--program", program, code=2)
    assert "escape.json:7:17: '../../etc/passwd' is not the name of a file" in done.stderr


def test_files_are_validated_and_planned_from_another_folder(bw: CommandLine, program: str) -> None:
    written(bw.cwd / "models" / "a.json", {"name": "a"})
    listed = bw.cwd / "list.yaml"
    listed.write_text("meta: {group: CNN}\nbenchmarks: [models/a.json]\n")
    broken = bw.cwd / "broken.json"
    broken.write_text('{"model": {"name": "a"},\n "tests": [{"identifier": "x", "iter": -1, "command": "a"}]}')
    done = bw("validate", "list.yaml", "models/a.json", "broken.json", code=2)
    assert "list.yaml: ok, 1 benchmark" in done.stdout
    assert "broken.json:2:40: iter is -1, not a number of iterations" in done.stdout
    body = json.loads(bw("plan", "list.yaml", "--program", program, "--json").stdout)
    assert body["benchmarks"][0]["jobs"][0]["argv"] == [program, "--iter", "5"]


def test_options_for_other_targets_are_refused(bw: CommandLine, program: str) -> None:
    path = written(bw.cwd / "spec.json")
    assert "applies to" in bw("run", path, "--program", program, "--epochs", "1", code=2).stderr
    done = bw("run", "--program", program, "--", sys.executable, "-c", "pass", code=2)
    assert "--program: applies to specifications, not to commands" in done.stderr
    assert "there is no test 'net-7'" in bw("run", path, "--program", program, "--task", "net-7", code=2).stderr


def test_cooldown_is_no_part_of_a_measurement(bw: CommandLine, program: str) -> None:
    path = written(bw.cwd / "spec.json", {"cooldown": 0.5, "repeat": 2})
    bw("run", path, "--program", program)
    first, second = sorted(bw.last_run().glob("*.data"))
    (ended,), (started,) = events(first, "exit"), events(second, "start")
    assert started["t"] - ended["t"] >= 0.5e9


def test_a_run_with_steps_is_resumed(bw: CommandLine, program: str) -> None:
    """The script of the steps lies in the run's folder; that it is there now is no change."""
    tests = [{"identifier": "{ID}", "command": "{program}", "postprocess": {"commands": ["echo done"]}}] * 2
    path = written(bw.cwd / "spec.json", {}, *tests)
    bw("run", path, "--program", program)
    run = bw.last_run()
    for part in run.glob("net-1.D0.*"):  # as if it had been killed before
        part.unlink()
    body = bw.json("run", f"--resume={run.name}", path, "--program", program)
    assert [r["status"] for r in body["results"]] == ["ok", "ok"]
    assert not [note for r in body["results"] for note in r["notes"]]


def test_of_several_targets_a_broken_file_stops_only_itself(bw: CommandLine, program: str) -> None:
    """The others are measured; it is named with its place, whatever it was meant to be."""
    good, other = (
        written(bw.cwd / f"{name}.json", {"name": name}, {"identifier": "x", "command": program})
        for name in ("good", "other")
    )
    (bw.cwd / "broken.json").write_text('{"model": {"name": "a"},\n "tests": [{"identifier": "x",, }]}')
    (bw.cwd / "suite.yaml").write_text("net:\n  definition: [\n")
    (bw.cwd / "tasks.cfg").write_text("[task\n")
    body = bw.json("run", good, "broken.json", "suite.yaml", "tasks.cfg", other, code=1)
    results = {result["benchmark"]: result for result in body["results"]}
    assert [results[name]["status"] for name in ("good-x", "other-x")] == ["ok", "ok"]
    places = {"broken": "broken.json:2:31: ", "suite": "suite.yaml:3:1: ", "tasks": "tasks.cfg:1:1: "}
    for name, place in places.items():
        assert results[name]["reason"] == "misconfigured"
        assert results[name]["detail"].startswith(place)
    assert "broken.json:2:31: " in bw("plan", good, "broken.json").stdout


@pytest.mark.parametrize("words", [["broken.json", "tasks.cfg"], ["good.json", "no-such.json"]])
def test_nothing_runs_if_every_file_is_broken_or_one_is_not_there(bw: CommandLine, words: list[str]) -> None:
    written(bw.cwd / "good.json", {}, {"identifier": "x", "command": "touch ran"})
    (bw.cwd / "broken.json").write_text("{")
    (bw.cwd / "tasks.cfg").write_text("[task\n")
    bw("run", *words, code=2)
    assert not (bw.cwd / "ran").exists()
