"""Commands measured together, as users of hyperfine do: the verdict at the end, parameters, what runs before and after."""

from __future__ import annotations

import json

from command_line import CommandLine

SPEED = ("--metric", "speed[,higher]=kv:speed")


def test_commands_measured_together_end_with_the_verdict_of_compare(bw: CommandLine) -> None:
    done = bw("run", "--repeat", "6", *SPEED, "-c", "echo speed=100", "-c", "echo speed=90", "-c", "echo speed=100.5")
    *_, first, figures, second, _ = done.stdout.splitlines()
    assert first.split() == ["▼", "regressed", "echo", "speed=90", "vs", "speed=100:", "speed"]
    assert "-10.0 %" in figures
    assert "6 pairs" in figures
    assert second.startswith(" = same (within 2 %)")


def test_the_verdict_in_json_is_the_one_of_compare(bw: CommandLine) -> None:
    body = bw.json("run", "--repeat", "6", "-c", "sleep 0.01", "-c", "sleep 0.03")
    (comparison,) = body["comparisons"]
    assert [r["benchmark"] for r in body["results"]] == ["sleep 0.01", "sleep 0.03"]
    between = ("compare", "last", "--between", "sleep 0.01", "sleep 0.03", "--json")
    assert comparison == json.loads(bw(*between).stdout)
    assert comparison["effects"][0]["metric"] == "process.duration"


def test_no_verdict_says_why(bw: CommandLine) -> None:
    done = bw("run", "-c", "true", "-c", "false", code=1)
    assert "? no verdict           false vs true: nothing to compare" in done.stdout
    few = bw("run", "-c", "true", "-c", "echo")
    assert "? inconclusive         echo vs true:" in few.stdout
    assert "--repeat" in few.stdout
    assert "comparisons" not in bw.json("run", "--no-interleave", "-c", "true", "-c", "echo")


def test_a_command_runs_once_for_each_value_of_a_parameter(bw: CommandLine) -> None:
    body = bw.json("run", "-c", "echo n={n}", "--param", "n=1,2,4", "--metric", "n=kv:n")
    assert [(r["benchmark"], r["parameters"]) for r in body["results"]] == [
        (f"echo[n={n}]", {"n": n}) for n in ("1", "2", "4")
    ]
    assert [r["metrics"][0]["value"] for r in body["results"]] == [1, 2, 4]
    assert len(body["comparisons"]) == 2
    assert "no command has {m} in it; write {m}" in bw("run", "--param", "m=1", "--", "true", code=2).stderr
