"""`benchwright run -- any command`, from another folder, as a user would."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, metric

Write = Callable[[str, str], Path]
PY = sys.executable

SPEED = "import sys\nfor n in (829.0, 844.0, 835.0):\n    print(f'INFO: Speed: {n} samples/sec', flush=True)\n"


def test_a_command_is_timed_and_kept(bw: CommandLine) -> None:
    done = bw("run", "--", PY, "-c", "print('hello')")
    assert "1 launch of" in done.stdout
    folder = bw.last_run()
    assert f"saved: {folder}" in done.stdout
    names = {p.name for p in folder.iterdir()}
    assert {"plan.json", "run.json", "machine.json", "packages.json"} <= names
    stem = next(p.name.removesuffix(".data") for p in folder.glob("*.data"))
    assert stem.endswith(".D0")
    assert gzip.decompress((folder / f"{stem}.log.gz").read_bytes()) == b"hello\n"


def test_a_metric_is_read_from_the_log(bw: CommandLine, script: Write) -> None:
    script("train.py", SPEED)
    body = bw.json(
        "run", "--metric", r"speed[samples/s,higher,average]=Speed: ([\d.]+) samples/sec", "--", PY, "train.py"
    )
    speed = metric(body, "speed")
    assert speed["value"] == pytest.approx(836.0)
    assert (speed["unit"], speed["direction"]) == ("samples/s", "higher")


def test_a_number_cut_in_the_middle_is_told_with_its_line_and_a_better_pattern(bw: CommandLine, script: Write) -> None:
    script("train.py", "print('start')\nprint('speed: 1,234.5')\n")
    cut = bw("run", "--metric", r"speed=speed: ([\d.]+)", "--", PY, "train.py")
    words = " ".join(cut.stdout.split())
    assert "only part of a number (1 of 1, line 2: 1,234.5 read as 1); write 'speed=speed: {number}'" in words
    body = bw.json("run", "--metric", "speed=speed: {number}", "--", PY, "train.py")
    assert metric(body, "speed")["value"] == 1234.5
    assert "part of a number" not in json.dumps(body)


def test_two_values_that_are_far_apart_are_no_silent_median(bw: CommandLine, script: Write) -> None:
    script("train.py", "print('speed: 10')\nprint('speed: 1000')\n")
    done = bw("run", "--metric", "speed=speed: {number}", "--", PY, "train.py")
    assert "values of a launch range from 10 to 1,000" in " ".join(done.stdout.split())
    (remark,) = metric(json.loads((bw.last_run() / "run.json").read_text()), "speed")["remarks"]
    assert remark["kind"] == "far_apart"


def test_a_pattern_that_never_matches_is_a_failure_that_shows_the_nearest_line(bw: CommandLine, script: Write) -> None:
    script("train.py", SPEED)
    done = bw("run", "--metric", r"speed=Sped: ([\d.]+)", "--", PY, "train.py", code=1)
    assert "FAILED no data" in done.stdout
    assert "Speed: 829.0" in done.stdout


def test_a_failing_command_is_data_and_exit_1(bw: CommandLine) -> None:
    done = bw("run", "--", PY, "-c", "print('before'); raise SystemExit(3)", code=1)
    assert "exit code 3" in done.stdout
    assert "| before" in done.stdout


def test_a_command_that_does_not_exist_is_exit_3(bw: CommandLine) -> None:
    done = bw("run", "--", "no-such-program-here", code=3)
    assert "no-such-program-here" in done.stdout


def test_wrong_input_is_exit_2_and_leaves_no_run(bw: CommandLine) -> None:
    for args in (
        ["run"],
        ["run", "--stop", "soon", "--", "true"],
        ["run", "--metric", "x=(", "--", "true"],
        ["run", "nope.cfg"],
    ):
        done = bw(*args, code=2)
        assert "Traceback" not in done.stderr
        assert ";" in done.stderr  # what is wrong; what to do
    assert not (bw.base / "runs").exists()


def test_repeats_are_separate_launches_with_an_interval(bw: CommandLine) -> None:
    body = bw.json("run", "--repeat", "6", "--warmup-runs", "1", "--", "true")
    (result,) = body["results"]
    assert [x["warmup"] for x in result["launches"]] == [True] + [False] * 6
    duration = metric(body, "process.duration")
    assert duration["launches"] == 6
    assert duration["interval_95"] is not None


def test_several_commands_are_interleaved_and_their_pairs_recorded(bw: CommandLine) -> None:
    body = bw.json("run", "--repeat", "3", "-c", "echo A", "-c", "true")
    assert [pair["jobs"] for pair in body["pairs"]] == [
        ["echo.R0.D0", "true.R0.D0"],
        ["true.R1.D0", "echo.R1.D0"],
        ["echo.R2.D0", "true.R2.D0"],
    ]
    order = sorted((x["position"], x["job"]) for r in body["results"] for x in r["launches"])
    assert [job for _, job in order] == [job for pair in body["pairs"] for job in pair["jobs"]]
    streams = {p.name.removesuffix(".data"): p.read_text() for p in bw.last_run().glob("*.data")}
    begun = {job: json.loads(text.splitlines()[0])["t"] for job, text in streams.items()}
    assert sorted(begun, key=lambda job: begun[job]) == [job for _, job in order]


def test_labels_are_kept_with_the_run_and_its_benchmarks(bw: CommandLine) -> None:
    body = bw.json("run", "--label", "branch=main", "--label", "why=a=b", "--", "true")
    assert body["labels"] == {"branch": "main", "why": "a=b"}
    plan = json.loads((bw.last_run() / "plan.json").read_text())
    assert plan["labels"] == plan["benchmarks"][0]["labels"] == body["labels"]


def test_a_shell_is_used_only_when_asked_for(bw: CommandLine) -> None:
    done = bw("run", "-c", "echo one | cat", code=2)
    assert "--shell" in done.stderr
    bw("run", "--shell", "-c", "echo one | cat > out.txt")
    assert (bw.cwd / "out.txt").read_text() == "one\n"


def test_the_environment_is_changed_as_asked_and_secrets_are_not_written_down(bw: CommandLine) -> None:
    code = "import os; print(os.environ['A'], 'B' in os.environ, os.environ['MY_TOKEN'])"
    bw("run", "--env", "A=1", "--env", "B", "--", PY, "-c", code, env={"B": "x", "MY_TOKEN": "hunter2"})
    folder = bw.last_run()
    log = next(folder.glob("*.log.gz"))
    assert gzip.decompress(log.read_bytes()) == b"1 False hunter2\n"
    for path in folder.iterdir():
        if path.is_file() and path != log:
            assert b"hunter2" not in path.read_bytes(), path


def test_stdin_is_closed(bw: CommandLine) -> None:
    body = bw.json(
        "run", "--metric", r"read=(\d+)", "--", PY, "-c", "import sys; print(f'read={len(sys.stdin.read())}')"
    )
    assert [m["value"] for m in body["results"][0]["metrics"] if m["metric"] == "read"] == [0]


def test_a_timeout_ends_the_launch_and_says_so(bw: CommandLine) -> None:
    done = bw("run", "--timeout", "1s", "--", PY, "-c", "import time; time.sleep(60)", code=1)
    assert "timed out" in done.stdout


def test_a_pinned_program_sees_only_its_core(bw: CommandLine) -> None:
    bw("run", "--cores", "0", "--", PY, "-c", "import os; assert os.sched_getaffinity(0) == {0}")
    done = bw("run", "--cores", "4097", "--", "true", code=2)
    assert "core 4097" in done.stderr


def test_discarded_logs_go_only_after_success(bw: CommandLine) -> None:
    bw("run", "--discard-logs", "--", "echo", "x")
    assert not list(bw.last_run().glob("*.log*"))
    bw("run", "--discard-logs", "--", PY, "-c", "print('y'); raise SystemExit(1)", code=1)
    assert list(bw.last_run().glob("*.log.gz"))


def test_output_is_shown_on_request_and_kept_for_later(bw: CommandLine) -> None:
    done = bw("run", "--show-output", "--", "echo", "visible")
    assert "visible" in done.stderr
    assert "visible" not in done.stdout
    assert bw("logs").stdout == "visible\n"
    assert bw("logs", "last", "echo", "--tail", "1").stdout == "visible\n"
    assert "no log of 'ecko'" in bw("logs", "last", "ecko", code=2).stderr


def test_json_and_key_value_metrics(bw: CommandLine, script: Write) -> None:
    lines = ['{"train": {"loss": 0.5}}', "step=3 loss=0.25 val_loss=9", '{"train": {"loss": 0.125}}']
    script("p.py", "".join(f"print({line!r})\n" for line in lines))
    body = bw.json("run", "--metric", "deep[,,last]=json:train.loss", "--metric", "loss=kv:loss", "--", PY, "p.py")
    assert metric(body, "deep")["value"] == 0.125
    assert metric(body, "loss")["value"] == 0.25  # the middle one of "loss": 0.5, loss=0.25 and "loss": 0.125


def test_a_plan_runs_nothing(bw: CommandLine) -> None:
    body = json.loads(bw("plan", "--json", "--repeat", "2", "--env", "A=1", "--", "touch", "made").stdout)
    (benchmark,) = body["benchmarks"]
    assert [job["argv"] for job in benchmark["jobs"]] == [["touch", "made"]] * 2
    assert benchmark["jobs"][0]["env"] == {"A": "1"}
    assert {"argv", "cwd", "env", "devices", "node", "timeout_s"} <= set(benchmark["jobs"][0])
    assert "touch made" in bw("plan", "--", "touch", "made").stdout
    assert not (bw.cwd / "made").exists()
    assert not bw.base.exists()


def test_the_report_fits_eighty_columns_and_a_pipe_gets_no_escapes(bw: CommandLine) -> None:
    done = bw("run", "--repeat", "2", "--metric", "a=kv:a", "--", "echo", "a=1")
    assert "\x1b" not in done.stdout + done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "saved:" not in line)


def test_the_start_help_and_a_mistyped_command(bw: CommandLine) -> None:
    assert "benchwright run" in bw().stdout
    assert "Keep in order" in bw("--help").stdout
    assert "did you mean 'run'" in bw("rum", code=2).stderr
    for name in ("run", "plan", "logs", "completion"):
        assert "Example" in bw(name, "--help").stdout
    assert "_benchwright_completion" in bw("completion", "bash").stdout
    assert "-F _bw_completion bw" in bw("completion", "bash").stdout


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--cores=", "not a list of cores"),
        ("--cores=0-999999999999", "not a list of cores"),
        ("--timeout=", "not a duration"),
        ("--timeout=0", "is not a time limit"),
        ("--stop=", "not a stop rule"),
    ],
)
def test_a_value_that_means_nothing_is_refused_not_left_out(bw: CommandLine, option: str, words: str) -> None:
    assert words in bw("run", option, "--", "true", code=2).stderr


def test_a_metric_that_needs_the_number_of_workers_is_refused_before_anything_runs(bw: CommandLine) -> None:
    args = ("run", "--metric", r"x[average_aggregate]=(\d)", "--", "echo", "8")
    assert "set DEEPLEARNING_WORKERS_COUNT" in bw(*args, code=2).stderr
    assert not (bw.base / "runs").exists()
    assert metric(bw.json(*args, env={"DEEPLEARNING_WORKERS_COUNT": "4"}), "x")["value"] == 32.0


DIES_AS = "import os, sys; print('speed 5'); sys.exit(3 if '.R1.1.data' in os.environ['BENCHPROBE_CONFIG'] else 0)"


def test_of_jobs_measured_together_one_dead_job_leaves_no_number(bw: CommandLine) -> None:
    """Three launches of two jobs; in the second one a job dies, so the number of the other does not count either."""
    together = ("--repeat", "3", "--jobs", "2", "--metric", "speed=speed (.*)")
    body = bw.json("run", *together, "--name", "b", "--", PY, "-c", DIES_AS, code=1)
    [result] = body["results"]
    assert (result["status"], result["reason"], result["detail"]) == ("failed", "crashed", "b.R1.1: exit code 3")
    assert {launch["job"]: launch["reason"] for launch in result["launches"]} == {
        "b.R0.0": None, "b.R0.1": None, "b.R1.0": "partner_failed", "b.R1.1": "crashed", "b.R2.0": None, "b.R2.1": None,
    }  # fmt: skip
    assert [len(m["values"]) for m in result["metrics"] if m["metric"] == "speed"] == [2, 2]
    again = json.loads(bw("report", "last", "--format", "json").stdout)
    assert again["results"] == [result]
    exported = csv.DictReader(bw("export", "last", "--format", "csv", "-o", "-").stdout.splitlines())
    assert {row["status"] for row in exported if row["job"].startswith("b.R1.")} == {"failed"}
