"""The hint below a comparison of separate runs is a command that can be pasted, wherever there is one."""

from __future__ import annotations

import shlex

from builders import benchmark, run

from benchwright.analysis.comparison.alternation import ALTERNATE, alternate
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.provenance import CodeRevision
from benchwright.kinds.metric_option import parse_metric_option


def hint(before: Benchmark, after: Benchmark, *revisions: CodeRevision) -> str:
    of_runs = [(each,) for each in revisions] or [(), ()]
    control, treatment = (run(revisions=found) for found in of_runs)
    return alternate((control, treatment), (before, after))


def at(commit: str, *, modified: bool = False) -> CodeRevision:
    return CodeRevision(root="/app", commit=commit * 40, modified=modified)


def test_two_commands_are_named_with_their_metrics() -> None:
    metrics = tuple(map(parse_metric_option, ("speed[MB/s,higher]=kv:speed", "loss=Loss: {number}")))
    before, after = (benchmark("b", "python", name, metrics=metrics) for name in ("old.py", "new one.py"))
    lead, _, line = hint(before, after).partition(": ")
    assert lead == "alternate both in one run"
    words = shlex.split(line)
    assert words[:4] == ["bw", "run", "--repeat", "10"]
    assert tuple(parse_metric_option(words[n + 1]) for n, word in enumerate(words) if word == "--metric") == metrics
    assert words[-4:] == ["-c", "python old.py", "-c", "python 'new one.py'"]


def test_lines_for_a_shell_stay_lines() -> None:
    before, after = (benchmark("b", workload=Command(argv=(line,), cwd="/", shell=True)) for line in ("a | b", "a | c"))
    assert hint(before, after).endswith("bw run --repeat 10 --shell -c 'a | b' -c 'a | c'")


def test_one_command_at_two_commits_is_an_a_b() -> None:
    same = benchmark("b", "python", "bench.py")
    commits = "--control aaaaaaaaaa --treatment bbbbbbbbbb"
    assert hint(same, same, at("a"), at("b")).endswith(f": bw ab {commits} -- python bench.py")
    assert hint(same, same, at("a"), at("b", modified=True)).endswith(": bw ab --control aaaaaaaaaa -- python bench.py")


def test_where_nothing_can_be_pasted_no_placeholder_pretends_so() -> None:
    same, other = (
        benchmark("b", "python", "bench.py"),
        benchmark("b", "python", "bench.py", "--api-key", "s3cret-value"),
    )
    assert hint(same, same) == hint(same, same, at("a"), at("a")) == ALTERNATE
    assert hint(same, same, at("a", modified=True), at("b")) == ALTERNATE
    assert hint(same, other) == ALTERNATE
    assert hint(same, benchmark("b", "x", kind="suite")) == ALTERNATE
