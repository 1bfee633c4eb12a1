"""Explanations: the right operator, work told from waiting, the rest that nothing explains; and nothing claimed that is not known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import builders
import pytest
from builders import launch, measurement
from command_line import CommandLine
from comparable_runs import benchmark
from msgspec.structs import replace

from benchwright.analysis.comparison.compare import compare_interleaved
from benchwright.analysis.operator_times import OperatorsExplained, explain_operators
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.kinds.function_profile import with_functions_profiled
from benchwright.regress.explain import Explanation, Profiled, TimeSplit, causes, explain, profile_in, split_of
from benchwright.regress.explain_pairs import with_functions
from benchwright.regress.explain_report import explanation_body, explanation_markdown, explanation_text
from benchwright.results.compare import compare_commands

BLOCKS = 8


def profile(*launches: dict[str, float], calls: dict[str, str] | None = None) -> Result:
    """A profiled result: of each launch the seconds of its operators."""
    made = [
        launch(
            *(
                measurement(
                    s,
                    metric="op.time",
                    unit="s",
                    source="model",
                    labels={"op": op, "calls": (calls or {}).get(op, "1")},
                )
                for op, s in each.items()
            )
        )
        for each in launches
    ]
    return builders.result(benchmark("net"), *made)


def explained(before: Result, after: Result, slow_down_s: float | None = 1.0) -> OperatorsExplained:
    found = explain_operators(before, after, slow_down_s)
    assert found is not None
    return found


def test_the_operator_with_the_largest_difference_comes_first_with_its_share_and_the_rest_is_shown() -> None:
    before = profile({"conv": 2.0, "relu": 1.0}, {"conv": 2.1, "relu": 1.0}, {"conv": 1.9, "relu": 1.0})
    after = profile({"conv": 2.6, "relu": 1.1}, {"conv": 2.5, "relu": 1.1}, {"conv": 2.7, "relu": 1.1})
    found = explained(before, after)
    assert [each.op for each in found.operators] == ["conv", "relu"]
    conv, relu = found.operators
    assert (conv.control_s, conv.treatment_s) == (2.0, 2.6)
    assert conv.share == pytest.approx(0.6)
    assert relu.share == pytest.approx(0.1)
    assert found.rest_s == pytest.approx(0.3)
    assert found.slow_down_s == pytest.approx(found.explained_s + (found.rest_s or 0.0))
    assert conv.clear is True


def test_an_operator_that_only_one_side_has_is_all_difference() -> None:
    found = explained(profile({"a": 1.0}), profile({"a": 1.0, "new": 0.4}))
    (new, _) = found.operators
    assert (new.op, new.control_s, new.difference_s) == ("new", None, 0.4)
    assert new.calls == ("0", "1")
    gone = explained(profile({"a": 1.0, "old": 0.4}), profile({"a": 1.0}))
    assert gone.operators[0].difference_s == pytest.approx(-0.4)


def test_what_one_side_summed_with_others_is_never_taken_for_nothing() -> None:
    """`small` is below what the control lists: it may have been there all along. `big` is not, but may have been a little."""
    before = profile({"a": 1.0, "b": 0.1, "other": 0.05})
    after = profile({"a": 1.0, "small": 0.04, "big": 0.5, "b": 0.1, "other": 0.01})
    found = explained(before, after)
    by_name = {each.op: each for each in found.operators}
    assert "small" not in by_name
    assert by_name["other"].treatment_s == pytest.approx(0.05)
    assert by_name["other"].difference_s == pytest.approx(0.0)
    assert by_name["big"].difference_s == pytest.approx(0.45)
    assert by_name["big"].below_s == pytest.approx(0.05)
    assert by_name["big"].calls == ("", "1")


def test_noise_is_called_noise_and_one_launch_says_nothing_of_it() -> None:
    noisy = explained(profile({"a": 1.0}, {"a": 1.5}), profile({"a": 1.4}, {"a": 1.9}))
    assert noisy.operators[0].clear is False
    assert explained(profile({"a": 1.0}), profile({"a": 1.4})).operators[0].clear is None


def test_if_profiling_exaggerates_shares_are_of_what_was_profiled() -> None:
    found = explained(profile({"a": 1.0}), profile({"a": 3.0}), slow_down_s=0.5)
    assert found.operators[0].share == pytest.approx(1.0)
    assert found.rest_s == pytest.approx(-1.5)


def test_no_share_is_given_where_nothing_is_slower_or_the_slow_down_is_not_known() -> None:
    assert explained(profile({"a": 1.0}), profile({"a": 0.5}), slow_down_s=-0.5).operators[0].share is None
    unknown = explained(profile({"a": 1.0}), profile({"a": 2.0}), slow_down_s=None)
    assert (unknown.operators[0].share, unknown.rest_s) == (None, None)


def test_without_operators_on_both_sides_there_is_nothing_to_explain() -> None:
    assert explain_operators(profile({"a": 1.0}), builders.result(benchmark("net"), launch()), 1.0) is None


def process(wall: float, cpu: float, **usage: float) -> Launch:
    facts = {"usage": usage} if usage else {}
    made = launch(
        measurement(wall, metric="process.duration", unit="s", source="process"),
        measurement(cpu, metric="process.cpu_time", unit="s", source="process"),
        measurement(100e6 * wall, metric="memory.peak_rss", unit="B", source="process"),
    )
    return replace(made, facts=facts)


def side(name: str, *launches: Launch) -> Result:
    made = [replace(x, block=n) for n, x in enumerate(launches)]
    return builders.result(benchmark(name), *made)


def said(before: Launch, after: Launch) -> str:
    control, treatment = side("x control", before), side("x treatment", after)
    split = split_of(control, treatment, None)
    return " ".join(causes(control, treatment, split, of_launch=True, slower=True))


def test_more_cpu_time_is_work_and_the_same_is_waiting() -> None:
    assert "more work" in said(process(1.0, 0.9), process(1.5, 1.4))
    waits = said(process(1.0, 0.9), process(1.5, 0.9))
    assert "waits longer" in waits
    assert "CPU time +0.0 %" in waits
    assert "50 % of the slow-down is work" in said(process(1.0, 1.0), process(1.5, 1.25))


def test_the_kernels_share_and_counts_are_told_only_if_they_grew() -> None:
    before = process(1.0, 0.9, system_s=0.1, page_faults=5_000, waits=10, preemptions=5)
    after = process(1.5, 1.4, system_s=0.5, page_faults=60_000, waits=12, preemptions=7_777)
    words = said(before, after)
    assert "kernel (100 ms → 500 ms)" in words
    assert "blocked" not in words
    assert "7,777" not in words
    assert "60,000" not in words
    quiet = said(before, process(1.5, 1.4, system_s=0.1, waits=300))
    assert "kernel" not in quiet
    assert "Times it blocked: 10 → 300." in quiet


def test_of_a_loop_that_runs_for_a_given_time_the_use_of_the_cpu_tells_work_from_waiting() -> None:
    """Both launches last 5 s: only the time of a call, and how busy the CPU was meanwhile, say what changed."""

    def looped(use: float) -> Launch:
        return launch(
            measurement(5.0, metric="process.duration", unit="s", source="process"),
            measurement(4.0, metric="process.cpu_time", unit="s", source="process"),
            measurement(use, metric="cpu.use", unit="%", source="sampler"),
        )

    work = split_of(side("a", looped(100.0)), side("b", looped(100.0)), (0.01, 0.02))
    waits = split_of(side("a", looped(100.0)), side("b", looped(50.0)), (0.01, 0.02))
    busy = replace(looped(50.0), notes=(Note(text="ran while the machine was busy", kind="busy"),))
    assert split_of(side("a", looped(100.0)), side("b", busy), (0.01, 0.02)) is None  # others used the CPU meanwhile
    assert work is not None
    assert waits is not None
    assert work.work_share == pytest.approx(1.0)
    assert waits.work_share == pytest.approx(0.0)


def test_on_a_busy_machine_an_added_sleep_is_waiting_and_no_wait_for_a_core() -> None:
    def waited(wall: float, cpu: float, seconds: float) -> Launch:
        made = process(wall, cpu, main_ran_s=cpu, main_waited_s=seconds)
        return replace(made, notes=(Note(text="ran while the machine was busy", kind="busy"),))

    words = said(waited(0.16, 0.01, 0.05), waited(0.15, 0.01, 0.03))  # 110 and 120 ms without it
    assert "waits longer" in words
    assert "time +9.1 % (110 ms → 120 ms)" in words


def test_of_the_steps_of_a_loop_their_cpu_time_tells_work_from_waiting_on_a_busy_machine_too() -> None:
    def looped(cpu: float) -> Launch:
        made = launch(measurement(cpu, metric="cpu.step_time", unit="s", source="process"))
        return replace(made, notes=(Note(text="ran while the machine was busy", kind="busy"),))

    sleeps = split_of(side("a", looped(0.005)), side("b", looped(0.005)), (0.01, 0.02), of_step=True)
    assert sleeps is not None
    assert sleeps.work_share == pytest.approx(0.0)
    assert split_of(side("a", looped(0.005)), side("b", looped(0.005)), (0.01, 0.02)) is None


def test_nothing_is_said_of_work_where_the_time_did_not_grow_or_cpu_time_is_unknown() -> None:
    assert TimeSplit(time_s=(1.0, 1.0), cpu_s=(1.0, 2.0)).work_share is None
    assert split_of(side("a", launch()), side("b", launch()), None) is None


def an_explanation(slow: float = 1.5, spread: float = 0.001, **more: Any) -> Explanation:
    jitter = [1 + spread * ((n * 7) % 5 - 2) for n in range(BLOCKS)]
    control = side("x control", *(process(1.0 * j, 0.9 * j) for j in jitter))
    treatment = side("x treatment", *(process(slow * j, (slow - 0.1) * j) for j in reversed(jitter)))
    run = builders.run(control, treatment)
    chosen = frozenset({("x control", "process.duration")})
    verdict = compare_interleaved(run, "x control", "x treatment", metrics=chosen)
    every = compare_interleaved(run, "x control", "x treatment")
    return explain(verdict, every, control, treatment, name="x", **more)


def test_an_explanation_has_the_regression_what_moved_with_it_and_memory_apart() -> None:
    found = an_explanation()
    assert found.headline is not None
    assert (found.headline.metric, found.headline.verdict.value) == ("process.duration", "regressed")
    assert [e.metric for e in found.moved] == ["process.cpu_time"]
    assert [e.metric for e in found.memory] == ["memory.peak_rss"]
    assert "more work" in found.causes[0]


def test_of_a_slow_down_that_is_not_certain_no_kind_and_no_shares_are_claimed() -> None:
    profiled = Profiled(profile({"a": 1.0}), profile({"a": 1.5}), "profile-1", "launch")
    found = an_explanation(slow=1.05, spread=0.3, profiled=profiled)
    assert found.headline is not None
    assert found.headline.verdict.value == "inconclusive"
    assert found.causes == ()
    assert found.operators is not None
    assert found.operators.operators[0].share is None
    assert "No shares: it is not known to be slower." in " ".join(explanation_text(found).split())


def test_every_line_fits_the_screen_and_markdown_and_json_say_the_same() -> None:
    long = "a_function_with_a_very_long_name_in_a_very_deep/module/of/some_package.py:and_so_on"
    ops = {f"{long}{n}": 0.01 * n for n in range(12)}
    profiled = Profiled(profile(ops, ops), profile({op: s * 2 for op, s in ops.items()}, ops), "profile-1", "launch")
    found = an_explanation(profiled=profiled, advice=("Do this.",))
    text = explanation_text(found, width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "▼ regressed: x time" in text
    assert "4 others" in text
    assert "4 others" in explanation_markdown(found)
    body = json.loads(json.dumps(explanation_body(found), allow_nan=False))
    assert body["headline"]["verdict"] == "regressed"
    assert len(body["operators"]["operators"]) == 12


def test_a_profile_is_found_beside_its_model_and_not_beside_the_other_sides() -> None:
    def of(name: str, side_: str, *launches: Launch) -> Result:
        return builders.result(benchmark(name, pair="m", labels={"side": side_}), *launches)

    timed = of("m control", "control", process(1.0, 1.0))
    profiled = profile({"a": 1.0}).launches[0]
    own, others = of("m profile control", "control", profiled), of("m profile treatment", "treatment", profiled)
    assert profile_in(timed, (timed, others, own)) is own
    assert profile_in(timed, (timed, others)) is None


def test_profiled_launches_decide_no_verdict() -> None:
    def of(name: str, pair: str, side_: str, *launches: Launch) -> Result:
        numbered = [replace(x, block=n) for n, x in enumerate(launches)]
        return builders.result(benchmark(f"{name} {side_}", pair=pair, labels={"side": side_}), *numbered)

    fast, slow = profile(*[{"a": 1.0}] * BLOCKS).launches, profile(*[{"a": 2.0}] * BLOCKS).launches
    timed = [process(1.0, 1.0)] * BLOCKS
    run = builders.run(
        of("m", "m", "control", *timed),
        of("m profile", "m profile", "control", *fast),
        of("m", "m", "treatment", *timed),
        of("m profile", "m profile", "treatment", *slow),
    )
    (found,) = compare_commands(run)
    assert (found.control, found.treatment) == ("m control", "m treatment")
    assert {e.verdict.value for e in found.effects} == {"same"}


def test_functions_of_both_sides_are_matched_though_folders_and_lines_differ(tmp_path: Path) -> None:
    found = []
    for name, lines in (("one", ""), ("two", "\n\n\n")):
        folder, into = tmp_path / name, tmp_path / f"{name}-profiles"
        folder.mkdir()
        into.mkdir()
        (folder / "helper.py").write_text(
            f"{lines}def work():\n    for i in range(10**6): pass\n    return sum(range(3_000_000))\n"
        )
        (folder / "main.py").write_text(
            "import sys, helper\nhelper.work()\nassert sys.argv == ['main.py', 'x']\nsys.exit(3)\n"
        )
        made = with_functions_profiled(benchmark("x"), [sys.executable, "main.py", "x"], str(folder), str(into))
        assert made is not None
        assert subprocess.run(made.workload.words, cwd=folder, check=False).returncode == 3
        result = with_functions(builders.result(benchmark("x"), launch()), into, str(folder))
        assert result is not None
        assert with_functions(builders.result(benchmark("x"), launch(), launch()), into, str(folder)) is None
        found.append({m.labels["op"] for m in result.launches[0].measurements})
    assert "helper.py:work" in found[0] & found[1]
    assert "builtins.sum" in found[0] & found[1]


@pytest.mark.parametrize("argv", [["sh", "x.sh"], ["python", "-c", "1"], ["python"], ["python", "-m"], []])
def test_what_is_no_python_script_has_no_functions_to_profile(argv: list[str]) -> None:
    assert with_functions_profiled(benchmark("x"), argv, "/", "/tmp") is None


def test_a_profile_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "1.prof").write_bytes(b"{half")
    assert with_functions(builders.result(benchmark("x"), launch()), tmp_path, "/") is None


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_two_runs_are_explained_with_the_commits_between_them(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    bw = CommandLine(tmp_path / "base", work)
    for name in ("first", "second", "third"):
        (work / "main.py").write_text(f"print({name!r})\n")
        git(work, "add", "-A")
        git(work, "commit", "-qm", f"The {name} one")
        if name != "second":
            bw("run", "--repeat", "2", "--name", name, "--", "python", "main.py")
    (found,) = json.loads(bw("explain", "first", "third", "--json").stdout)
    assert [text.partition(" ")[2] for text in found["revisions"]["commits"]] == ["The second one", "The third one"]
    assert found["headline"]["verdict"] == "inconclusive"
    assert found["operators"] is None
    assert found["advice"]


def test_profiles_of_launches_that_failed_explain_nothing(tmp_path: Path) -> None:
    """The program fails from its fourth launch on: the A/B has two of each side, their profiles would have half of the work."""
    bw = CommandLine(tmp_path / "base", tmp_path)
    (tmp_path / "main.py").write_text(
        "import os, sys\nfrom pathlib import Path\nPath(f'{os.getpid()}.started').touch()\n"
        "sys.exit(len(list(Path().glob('*.started'))) > 4)\n"
    )
    bw("run", "--repeat", "2", "-c", "python main.py a", "-c", "python main.py b")
    refused = bw("explain", "last", "--profile", "--launches", "1", code=3)
    assert "the profiled launches failed" in refused.stderr


SCRIPT = """
import sys, time
def work(n):
    return sum(i * i for i in range(n))
def other():
    return [str(i) for i in range(2000)]
work(int(sys.argv[1])); other()
"""


def test_a_run_without_two_sides_is_refused_with_what_to_do(tmp_path: Path) -> None:
    bw = CommandLine(tmp_path / "base", tmp_path)
    bw("run", "--", "true")
    assert "has no two sides to compare; name the run to compare it with" in bw("explain", "last", code=2).stderr
    bw("run", "--repeat", "2", "-c", "true", "-c", "echo a b")
    refused = bw("explain", "last", "--profile", code=2)
    assert "no operators or Python functions to profile" in refused.stderr


@pytest.mark.long
def test_the_function_that_was_made_slower_is_named_by_ab_and_again_by_explain(tmp_path: Path) -> None:
    bw = CommandLine(tmp_path / "base", tmp_path)
    (tmp_path / "main.py").write_text(SCRIPT)
    sides = ["--control", "args:20000", "--treatment", "args:2000000"]
    told = bw("ab", "--explain", "--repeat", "6", *sides, "--", "python", "main.py", code=1).stdout
    assert "It does more work" in told
    assert "functions, time in a launch (3 + 3 profiled launches)" in told
    assert [line for line in told.splitlines() if len(line) > 80 and not line.startswith(" saved: ")] == []
    (found,) = json.loads(bw("explain", "last", "--json").stdout)  # the last run is that of the profile: it leads back
    slowest = found["operators"]["operators"][0]
    assert slowest["op"] in ("main.py:<genexpr>", "main.py:work")
    assert slowest["share"] > 0.5
    (again,) = json.loads(bw("explain", "last", "--profile", "--launches", "2", "--json").stdout)
    assert again["operators"]["launches"] == [2, 2]
    assert again["headline"] == found["headline"]
