"""Commands measured together, as users of hyperfine do: the verdict at the end, parameters, what runs before and after."""

from __future__ import annotations

import json
import signal
import subprocess

from builders import events
from command_line import CommandLine, metric
from processes import wait_for

SPEED = ("--metric", "speed[MB,higher]=kv:speed")  # not a time or a rate: those of a busy machine do not count


def test_commands_measured_together_end_with_the_verdict_of_compare(bw: CommandLine) -> None:
    done = bw("run", "--repeat", "6", *SPEED, "-c", "echo speed=100", "-c", "echo speed=90", "-c", "echo speed=100.5")
    *_, first, figures, second, _ = done.stdout.splitlines()
    assert first.split() == ["▼", "regressed", "echo", "speed=90", "vs", "speed=100:", "speed"]
    assert "-10.0 %" in figures
    assert "6 pairs" in figures
    assert second.startswith(" = same (within 2 %)")


def test_the_verdict_in_json_is_the_one_of_compare(bw: CommandLine) -> None:
    names = ("echo speed=100", "echo speed=90")
    body = bw.json("run", "--repeat", "6", *SPEED, "-c", names[0], "-c", names[1])
    (comparison,) = body["comparisons"]
    assert [r["benchmark"] for r in body["results"]] == [*names]
    between = ("compare", "last", "--between", *names, "--json")
    assert comparison == json.loads(bw(*between).stdout)
    (effect,) = comparison["effects"]
    assert (effect["metric"], effect["verdict"]) == ("speed", "regressed")
    page = bw("report", "last", "--format", "markdown").stdout
    assert "`echo speed=90` compared with `echo speed=100`: 1 regressed of 1" in page
    assert f"{(comparison['effects'][0]['ratio'] - 1) * 100:+.1f} %" in page


def test_no_verdict_says_why(bw: CommandLine) -> None:
    done = bw("run", "-c", "true", "-c", "false", code=1)
    assert "? no verdict           false vs true: nothing to compare" in done.stdout
    few = bw("run", "-c", "true", "-c", "echo")
    assert "? inconclusive         echo vs true:" in few.stdout
    assert "--repeat" in few.stdout
    assert "comparisons" not in bw.json("run", "--no-interleave", "-c", "true", "-c", "echo")


def test_as_many_launches_as_the_interval_needs(bw: CommandLine) -> None:
    body = bw.json("run", "--repeat", "auto", *SPEED, "-c", "echo speed=100", "-c", "echo speed=90")
    assert [len(r["launches"]) for r in body["results"]] == [8, 8]
    assert body["status"] == "ok"
    assert [len(r["launches"]) for r in bw.json("show", "last")["results"]] == [8, 8]
    for word in ("0", "3.5", "often"):
        assert (
            f"'{word}' is not a number of launches; write 6" in bw("run", "--repeat", word, "--", "true", code=2).stderr
        )
    assert "[1, at most 1000] sleep" in bw("run", "--repeat", "500ms", "-v", "--", "sleep", "0.3").stderr
    assert "at most: --repeat 30s ends" in bw("plan", "--repeat", "30s", "--", "true").stdout


def test_a_command_runs_once_for_each_value_of_a_parameter(bw: CommandLine) -> None:
    body = bw.json("run", "-c", "echo n={n}", "--param", "n=1,2,4", "--metric", "n=kv:n")
    assert [(r["benchmark"], r["parameters"]) for r in body["results"]] == [
        (f"echo[n={n}]", {"n": n}) for n in ("1", "2", "4")
    ]
    assert [r["metrics"][0]["value"] for r in body["results"]] == [1, 2, 4]
    assert len(body["comparisons"]) == 2
    assert "no command has {m} in it; write {m}" in bw("run", "--param", "m=1", "--", "true", code=2).stderr


_AROUND = {
    "setup": "echo setup >> said",
    "prepare": "echo prepare >> said; date +%s.%N > prepared",
    "cleanup": "date +%s.%N > cleaned; echo cleanup >> said",
}
HOOKS = ("--shell", *(word for name, line in _AROUND.items() for word in (f"--{name}", line)))


def test_hooks_run_around_the_launches_and_their_time_is_not_measured(bw: CommandLine) -> None:
    body = bw.json("run", "--repeat", "2", *HOOKS, "-c", "echo launch >> said")
    assert (bw.cwd / "said").read_text().split() == ["setup", *["prepare", "launch"] * 2, "cleanup"]
    assert sorted(p.name for p in bw.last_run().glob("*.data")) == ["echo.R0.D0.data", "echo.R1.D0.data"]
    stream = bw.last_run() / "echo.R1.D0.data"
    (started,), (ended,) = events(stream, "start"), events(stream, "end")
    prepared, cleaned = (float((bw.cwd / name).read_text()) for name in ("prepared", "cleaned"))
    assert prepared <= started["wall"] <= ended["wall"] <= cleaned
    assert metric(body, "process.duration")["values"][1] <= ended["wall"] - started["wall"]


def test_hooks_get_the_value_of_the_parameter_and_one_prepare_for_each_is_taken(bw: CommandLine) -> None:
    bw(
        "run",
        "--setup",
        "touch s{n}",
        "--prepare",
        "touch a",
        "--prepare",
        "touch b{n}",
        "--param",
        "n=1,2",
        "-c",
        "echo {n}",
    )
    assert {p.name for p in bw.cwd.iterdir()} == {"s1", "s2", "a", "b2"}
    three = [word for name in "abc" for word in ("--prepare", f"touch {name}")]
    assert "3 for 1 benchmark; give one for all" in bw("run", *three, "--", "true", code=2).stderr


def test_a_prepare_that_fails_fails_the_launch_and_shows_what_it_printed(bw: CommandLine) -> None:
    done = bw("run", "--shell", "--prepare", "echo no disk; exit 3", "-c", "true", code=3)
    assert "true  FAILED not ready: --prepare failed (exit code 3): echo no disk; exit 3" in done.stdout
    assert "| no disk" in done.stdout
    missing = bw("run", "--setup", "no-such-program", "--", "true", code=3)
    assert "--setup could not be run: command 'no-such-program' was not found" in " ".join(missing.stdout.split())


def test_secrets_of_hooks_are_not_written_down(bw: CommandLine) -> None:
    bw("run", "--setup", "true --password=hunter2", "--prepare", "false --password=hunter2", "--", "true", code=3)
    for path in bw.last_run().iterdir():
        assert b"hunter2" not in path.read_bytes(), path


def test_a_failure_that_is_ignored_counts_and_is_said(bw: CommandLine) -> None:
    bw("run", "--", "false", code=1)
    body = bw.json("run", "--repeat", "2", "--ignore-failure", "--", "false")
    (result,) = body["results"]
    assert [(x["status"], x["exit_code"]) for x in result["launches"]] == [("ok", 1)] * 2
    assert "--ignore-failure counts as a result (2 of 2 launches, exit code 1)" in " ".join(
        bw("show", "last").stdout.split()
    )
    killed = bw("run", "-i", "--", "sh", "-c", "kill -9 $$", code=1)
    assert "FAILED signalled" in killed.stdout  # no exit code: the program did not end by itself


def test_an_interrupt_still_cleans_up_and_the_resumed_run_sets_up_again(bw: CommandLine) -> None:
    words = bw.argv("run", *HOOKS, "-c", "echo launch >> said; sleep 60")
    with subprocess.Popen(words, cwd=bw.cwd, env=bw.env, stderr=subprocess.PIPE) as started:
        assert wait_for(lambda: (bw.cwd / "said").exists() and "launch" in (bw.cwd / "said").read_text())
        started.send_signal(signal.SIGINT)
        _, said = started.communicate()
    assert started.returncode == 130
    assert b"resume with" in said
    assert (bw.cwd / "said").read_text().split() == ["setup", "prepare", "launch", "cleanup"]


def test_what_a_setup_leaves_running_is_ended_and_said(bw: CommandLine) -> None:
    done = bw("run", "--shell", "--setup", "sleep 100 & true", "-c", "true")
    assert "--setup: the program ended, but 1 process(es) it had started were still running and were" in done.stderr


def test_settings_of_a_script_alternate_and_end_with_a_verdict(bw: CommandLine) -> None:
    (bw.cwd / "loop.py").write_text(
        "import os, time\nfrom benchprobe import iterate\n"
        "for step in iterate('train', range(15), batch_size=1):\n    time.sleep(float(os.environ['PAUSE']))\n"
    )
    body = bw.json(
        "run", "loop.py", "--as", "loop", "--param", "env:PAUSE=0.001,0.03", "--repeat", "6", "--warmup", "2"
    )
    assert [r["benchmark"] for r in body["results"]] == [f"loop.py[env:PAUSE={value}]" for value in ("0.001", "0.03")]
    (comparison,) = body["comparisons"]
    (rate,) = [e for e in comparison["effects"] if e["metric"] == "rate"]
    assert rate["paired"]
    assert rate["ratio"] < 1


def test_a_variable_of_a_command_is_swept_too(bw: CommandLine) -> None:
    body = bw.json("plan", "--param", "env:MODE=a,b", "--", "true")
    assert [one["jobs"][0]["env"]["MODE"] for one in body["benchmarks"]] == ["a", "b"]
