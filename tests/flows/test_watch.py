"""`benchwright watch`, on small repositories whose programs print their own numbers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from processes import wait_for
from small_repository import SmallRepository, noise
from specifications import written
from watched_repository import METRIC, WatchedRepository
from webhook_server import webhook_server


@pytest.fixture
def watched(tmp_path: Path, bw: CommandLine) -> WatchedRepository:
    return WatchedRepository(tmp_path, bw)


def commits_of(records: list[dict[str, Any]]) -> list[str]:
    return [record["commit"] for record in records]


# -- which commits, and what they are compared with ------------------------------------------------------------------


def test_it_begins_with_the_newest_commit_of_the_default_branch_of_the_remote(watched: WatchedRepository) -> None:
    newest = watched.commit(1000)
    (found,) = watched.pending()
    assert (found["commit"], found["control"]) == (newest, watched.commits[0])


def test_commit_is_the_first_to_be_measured(watched: WatchedRepository) -> None:
    made = [watched.commit(1000, subject=str(i)) for i in range(3)]
    assert commits_of(watched.pending("--commit", made[1])) == made[1:]
    assert commits_of(watched.pending("--commit", made[1][:10])) == made[1:]


def test_commit_may_be_a_branch(watched: WatchedRepository) -> None:
    watched.remote.git("checkout", "-q", "-b", "topic")
    topic = watched.commit(1000)
    watched.remote.git("checkout", "-q", "main")
    watched.commit(1001)
    assert commits_of(watched.pending("--commit", "topic")) == [topic]
    assert commits_of(watched.pending("--branch", "topic")) == [topic]


def test_a_branch_or_commit_that_does_not_exist_is_an_error_of_the_user(watched: WatchedRepository) -> None:
    for option in ("--branch", "--base-commit", "--remote-repository"):
        assert watched.pending(option, "nothing", code=2) == []
    assert watched.pending("--commit", "f" * 40, code=2) == []


def test_another_remote_is_fetched_if_it_is_named(watched: WatchedRepository, tmp_path: Path) -> None:
    other = SmallRepository(tmp_path / "other")
    newest = other.commit("elsewhere", {"value": "1\n"})
    watched.remote.git("remote", "add", "other", str(other.folder), folder=watched.clone)
    assert commits_of(watched.pending("--remote-repository", "other")) == [newest]


def test_base_commit_is_the_control_where_it_is_later_than_the_first_of_the_week(watched: WatchedRepository) -> None:
    base, newest = watched.commit(1000), watched.commit(1001)
    (found,) = watched.pending("--base-commit", base)
    assert (found["commit"], found["control"], found["control_is"]) == (newest, base, "--base-commit")
    (found,) = watched.pending("--against", "parent")
    assert found["control"] == base


def test_a_step_measures_one_commit_in_so_many(watched: WatchedRepository) -> None:
    made = [watched.commit(1000 + i) for i in range(5)]
    assert commits_of(watched.pending("--commit", made[0], "--step", "2")) == made[::2]


def test_a_repository_without_a_remote_is_watched_as_it_is(watched: WatchedRepository) -> None:
    newest = watched.commit(1000)
    watched.clone = watched.remote.folder
    assert commits_of(watched.pending()) == [newest]


@pytest.mark.skipif(shutil.which("hg") is None, reason="Mercurial is not installed")
def test_a_mercurial_repository_is_watched(bw: CommandLine, tmp_path: Path) -> None:
    def hg(folder: Path, *words: str) -> str:
        argv = ["hg", "--config", "ui.username=t", *words]
        return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    remote, clone = tmp_path / "remote", tmp_path / "clone"
    remote.mkdir()
    hg(remote, "init")
    nodes = []
    for number, value in enumerate((1000, 1001, 1300)):
        (remote / "bench.sh").write_text(f'echo "ms=$(( {value} + {noise(tmp_path / "launches")} ))"\n')
        hg(remote, "commit", "-A", "-m", f"value {value}", "-d", f"{1_700_000_000 + 3600 * number} 0")
        nodes.append(hg(remote, "log", "-r", ".", "-T", "{node}"))
        if number == 0:
            hg(tmp_path, "clone", "-q", str(remote), str(clone))
    words = ["watch", "--repo", "hg", "--repo-dir", str(clone), "--repeat", "6", "--json", *METRIC]
    done = bw(*words, "--commit", nodes[1], "--", "sh", "bench.sh", code=1)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(r["commit"], r["control"], r["outcome"]) for r in records] == [
        (nodes[1], nodes[0], "same"),
        (nodes[2], nodes[0], "regressed"),
    ]
    assert bw(*words, "--commit", nodes[1], "--", "sh", "bench.sh").stdout == ""


def test_git_is_the_usual_kind_of_repository(watched: WatchedRepository) -> None:
    assert commits_of(watched.pending("--repo", "git"))
    watched.pending("--repo", "hg", code=2)


@pytest.mark.compat
def test_the_spelling_of_the_repo_driver_is_understood(watched: WatchedRepository, tmp_path: Path) -> None:
    newest = watched.commit(1000)
    words = [
        "--commit_file",
        str(tmp_path / "last"),
        "--regression",
        "--ab_testing",
        "--same_host",
        "--status_file=/no",
    ]
    assert commits_of(watched.pending(*words)) == [newest]
    done = watched.bw("watch", "--repo_dir", str(watched.clone), "--list", "--", "sh", "bench.sh")
    assert newest[:10] in done.stdout


# -- what is measured and recorded -----------------------------------------------------------------------------------


def test_a_regression_is_verified_called_recorded_and_told(watched: WatchedRepository, tmp_path: Path) -> None:
    watched.commit(1000)
    slow = watched.commit(1200, subject="Slower")
    last = watched.commit(1200, subject="After")
    file, junit = tmp_path / "last", tmp_path / "verdict.xml"
    with webhook_server() as server:
        told = ("--notify", f"webhook:{server.url}", "--notify", f"junit:{junit}")
        first = watched.commits[0]
        records = watched.watch("--commit", first, "--commit-file", str(file), *told, code=1)
    assert [record["outcome"] for record in records] == ["A/A", "same", "regressed", "regressed"]
    called = records[2]
    assert (called["commit"], called["control"]) == (slow, first)
    assert [made["run_type"] for made in called["runs"]] == ["benchmark", "verify", "regress"]
    (effect,) = [each for each in called["effects"] if each.get("called")]
    assert (effect["benchmark"], effect["metric"]) == ("bench.sh", "ms")
    assert 1.19 < effect["low"] < effect["ratio"] < effect["high"] < 1.21
    assert [each.get("since") for each in records[3]["effects"] if each.get("called")] == [slow]
    assert file.read_text() == f"{last}\n"
    assert [notice["title"] for notice in server.taken] == [f"clone {slow[:10]}: regressed (Slower)"]
    assert "since" in junit.read_text()
    listed = json.loads(watched.bw("runs", "--json", "--label", "run_type=verify").stdout)
    assert [run["id"] for run in listed] == [called["runs"][1]["run"]]
    again = watched.bw("compare", "--between", "bench.sh control", "bench.sh treatment", called["runs"][2]["run"])
    assert "regressed" in again.stdout


def test_the_same_command_goes_on_where_it_stopped(watched: WatchedRepository) -> None:
    assert [record["outcome"] for record in watched.watch()] == ["A/A"]
    assert watched.watch() == []
    newest = watched.commit(1000)
    done = watched.bw(*watched.words())
    assert "going on after" in done.stderr
    assert f"{newest[:10]}  same" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.long
def test_a_regression_comes_with_the_line_that_bisects_it(watched: WatchedRepository) -> None:
    watched.commit(1300, subject="Slower")
    done = watched.bw(*watched.words(), code=1)
    (line,) = [each for each in done.stdout.splitlines() if "benchwright bisect" in each]
    words = shlex.split(line.partition(" && ")[2])
    assert words[2:4] == [watched.commits[0][:10], watched.commits[1][:10]]
    watched.bw.cwd = watched.clone
    found = json.loads(watched.bw(*words[1 : words.index("--")], "--json", *words[words.index("--") :]).stdout)
    assert found["suspects"] == [watched.commits[1]]


def test_a_failed_build_is_a_record_and_the_next_commit_is_measured(watched: WatchedRepository) -> None:
    first = watched.commits[0]
    watched.commit(1000, {"broken": "x"}, subject="Broken")
    (watched.remote.folder / "broken").unlink()
    watched.commit(1000, subject="Repaired")
    build = "! test -e broken || { echo no rule to make it; exit 3; }"
    records = watched.watch("--commit", first, "--build", build, code=1)
    assert [record["outcome"] for record in records] == ["A/A", "build failed", "same"]
    assert "no rule to make it" in Path(records[1]["log"]).read_text()


def test_a_program_that_fails_in_the_treatment_is_broken(watched: WatchedRepository) -> None:
    watched.watch()
    watched.commit(1000, {"bench.sh": "exit 3\n"})
    (record,) = watched.watch(code=1)
    assert record["outcome"] == "broken"
    assert "exit code 3" in record["broken"][0]


def test_a_commit_that_could_not_be_measured_is_told_once_and_measured_later(watched: WatchedRepository) -> None:
    watched.watch()
    newest = watched.commit(1000)
    (record,) = watched.watch("--env", "PATH=/nowhere", code=3)
    assert (record["commit"], record["outcome"]) == (newest, "not measured")
    assert record["notes"]
    assert watched.watch("--env", "PATH=/nowhere", code=3) == []
    assert commits_of(watched.pending()) == [newest]
    assert [each["outcome"] for each in watched.watch()] == ["same"]
    assert watched.pending() == []


def test_a_metric_that_no_commit_has_is_an_error_unless_nothing_could_be_measured(watched: WatchedRepository) -> None:
    watched.metric = (*METRIC[:2], "--metric", "speed")
    (record,) = watched.watch("--env", "PATH=/nowhere", code=3)
    assert record["outcome"] == "not measured"
    done = watched.bw(*watched.words(), code=2)
    assert re.search(r"did not measure 'speed'; it measured .*\bms, process\.cpu_time", done.stderr)


def test_a_regression_can_be_acknowledged_or_forgotten(watched: WatchedRepository) -> None:
    watched.watch()
    slow = watched.commit(1200, subject="Slower")
    assert "has called no regression" in watched.bw(*watched.words("--forget", slow), code=2).stderr
    watched.watch(code=1)
    done = watched.bw(*watched.words("--acknowledge", slow[:10]))
    assert re.match(rf"{slow[:10]}  acknowledged   bench.sh: ms \+(19\.[5-9]|20\.)", done.stdout)
    watched.commit(1200, subject="After")
    (record,) = watched.watch()
    assert record["outcome"] == "acknowledged"
    assert watched.watch("--forget", slow) == [{"commit": slow, "mark": "forgotten"}]
    last = watched.commit(1200, subject="Last")
    (record,) = watched.watch(code=1)
    assert [each.get("since") for each in record["effects"] if each.get("called")] == [None]
    assert record["commit"] == last


def test_variables_reach_the_programs(watched: WatchedRepository) -> None:
    watched.commit(1000, {"bench.sh": 'test "$COLOUR" = red || exit 1\n' + watched.printing(1000)})
    (record,) = watched.watch("--commit", watched.commits[-1], "--no-ab-testing", "--env", "COLOUR=red")
    assert (record["outcome"], record["control"]) == ("measured", None)
    run = watched.bw.json("show", record["runs"][0]["run"])
    assert run["labels"]["commit"] == watched.commits[-1]


def test_an_unknown_option_goes_to_run_and_a_wrong_one_is_named(watched: WatchedRepository) -> None:
    done = watched.bw(*watched.words("--size", "auto"), code=2)
    assert "--size: applies to suites" in done.stderr
    (record,) = watched.watch("--no-ab-testing", "--label", "who=me", "--timeout", "30s", "--run-name", "nightly")
    assert record["runs"][0]["run"].startswith("nightly.")
    assert watched.bw(*watched.words("--sizes", "auto"), code=2).stderr.count("--sizes") == 1


def test_a_suite_with_a_mistake_is_the_fault_of_its_commit(watched: WatchedRepository) -> None:
    tasks = "[task]\npatterns = ['ms=(\\d+)']\nmetrics = ['accuracy']\ncompute_method = ['last']\n"
    good = {"tasks.cfg": f"{tasks}command_to_execute = sh bench.sh\nnum_gpus = 0\n"}
    watched.commit(1000, good)
    words = ["watch", "--repo-dir", str(watched.clone), "--repeat", "6", "--json", "tasks.cfg"]
    assert json.loads(watched.bw(*words).stdout)["outcome"] == "A/A"
    watched.commit(1000, {"tasks.cfg": "[task\n"})
    record = json.loads(watched.bw(*words, "--base-commit", watched.commits[1], code=1).stdout)
    assert record["outcome"] == "broken"
    assert "tasks.cfg" in record["broken"][0]


@pytest.mark.long
def test_a_commit_that_renames_the_benchmarks_is_the_control_from_then_on(watched: WatchedRepository) -> None:
    rest = "patterns = ['ms=(\\d+)']\nmetrics = ['accuracy']\ncompute_method = ['last']\ncommand_to_execute = sh bench.sh\n"
    old = watched.commit(1000, {"tasks.cfg": f"[old]\n{rest}num_gpus = 0\n"})
    watched.commit(1000, {"tasks.cfg": f"[new]\n{rest}num_gpus = 0\n"})
    watched.commit(1000, subject="after")
    words = ["watch", "--repo-dir", str(watched.clone), "--repeat", "6", "--json", "tasks.cfg", "--base-commit", old]
    done = watched.bw(*words, "--commit", old)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["outcome"] for record in records] == ["A/A", "A/A", "same"]
    assert records[2]["control"] == watched.commits[2]
    assert "cannot be the control" in done.stderr


@pytest.mark.long
def test_a_program_built_as_fai_pep_does_is_measured_and_reported_in_its_form(
    watched: WatchedRepository, tmp_path: Path
) -> None:
    prints = 'echo \'PyTorchObserver {"type": "NET", "metric": "memory", "unit": "MB", "value": "\'$(( VALUE ))\'"}\''
    for value in (1000, 1300):
        number = f"{value} + {noise(tmp_path / 'launches')}"
        watched.commit(value, {"program.in": f"#!/bin/sh\n{prints.replace('VALUE', number)}\n"})
    script = tmp_path / "frameworks" / "generic" / "host" / "build.sh"
    script.parent.mkdir(parents=True)
    script.write_text('cp "$1/program.in" "$2"\nchmod +x "$2"\ncp "$1/value" "$(dirname "$2")/helper"\n')
    test = {"identifier": "t", "metric": "delay", "iter": 1, "commands": ["test -e {helper} && {program}"]}
    spec = written(tmp_path / "spec.json", {"name": "net", "format": "generic", "framework": "generic"}, test)
    info = {"treatment": {"version": "v7"}, "meta": {"team": "blue"}}
    reports, programs = tmp_path / "reports", tmp_path / "programs"
    words = ["watch", "--repo-dir", str(watched.clone), "--repeat", "6", "--json", "--commit", watched.commits[1]]
    words += ["--frameworks_dir", str(tmp_path / "frameworks"), "--framework", "generic", "--platforms", "host"]
    words += ["--exec_dir", str(programs), "--local_reporter", str(reports), "--info", json.dumps(info), spec]
    words += ["--base-commit", watched.commits[1]]
    done = watched.bw(*words, code=1)
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert [first["outcome"], second["outcome"]] == ["A/A", "regressed"]
    assert second["place"].startswith("host")
    slow = watched.commits[2]
    (built,) = programs.glob(f"generic/host/2023/11/*/{slow}/generic_benchmark")
    assert (built.parent / "helper").read_text() == "1300\n"
    metas = [json.loads(path.read_text()) for path in reports.rglob("meta.txt")]
    (regress,) = [meta for meta in metas if meta["run_type"] == "regress"]
    assert (regress["commit"], regress["control_commit"]) == (slow, watched.commits[1])
    assert regress["commit_time"] == regress["control_commit_time"] + 3600
    records = [json.loads(path.read_text()) for path in reports.rglob(f"{slow}/*/NET-memory.txt")]
    assert [record.get("regressed") for record in records].count(1) == 1
    built.write_text(built.read_text() + "# reused, not built again\n")
    again = watched.bw(*words, "--commit-file", str(tmp_path / "last"), "--no-ab-testing", code=0)
    assert len(again.stdout.splitlines()) == 2
    assert "reused" in built.read_text()


# -- when it stops, and what it survives -----------------------------------------------------------------------------


def test_a_remote_that_is_down_is_said_and_nothing_is_measured(watched: WatchedRepository) -> None:
    watched.remote.folder.rename(watched.remote.folder.with_name("gone"))
    done = watched.bw(*watched.words("--json"), code=3)
    assert "git fetch origin" in done.stderr
    assert done.stdout == ""


def test_a_forced_push_is_said_and_the_new_commits_are_measured(watched: WatchedRepository) -> None:
    first = watched.commits[0]
    watched.commit(1001)
    watched.watch()
    watched.remote.git("reset", "-q", "--hard", first)
    amended = watched.commit(1002)
    done = watched.bw(*watched.words("--list", "--json"))
    assert json.loads(done.stdout)["commit"] == amended
    assert "no longer in the branch" in watched.bw(*watched.words("--list")).stderr


def test_a_zero_in_the_status_file_stops_it_after_the_commit_in_hand(
    watched: WatchedRepository, tmp_path: Path
) -> None:
    status = tmp_path / "status"
    stops = f"echo 0 > {status}\n{watched.printing(1000)}"
    first = watched.commit(1000, {"bench.sh": stops})
    watched.commit(1001)
    status.write_text("1\n")
    words = ["--interval", "0.01", "--status-file", str(status), "--commit", first]
    assert commits_of(watched.watch(*words)) == [first]
    assert watched.watch(*words) == []  # it still holds 0
    status.unlink()
    assert commits_of(watched.pending("--commit", first)) == [watched.commits[-1]]


@pytest.fixture
def watching(watched: WatchedRepository, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A watch of three commits; of the second, the program waits in its first launch until it may go on. Yields the process
    and the file that says that it waits."""
    waits, goes_on = tmp_path / "waits", tmp_path / "goes-on"
    wait = f"touch {waits}\nwhile ! test -e {goes_on}; do sleep 0.05; done\n"
    first = watched.commits[0]
    watched.commit(1001, {"bench.sh": wait + watched.printing(1000)})
    watched.commit(1002, {"bench.sh": watched.printing(1000)})
    words = watched.bw.argv(*watched.words("--commit", first, "--commit-file", str(tmp_path / "last"), "--json"))
    process = subprocess.Popen(
        words, cwd=watched.bw.cwd, env=watched.bw.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert wait_for(lambda: waits.exists() or process.poll() is not None)
        assert process.poll() is None, "the second commit is not being measured"
        yield process, goes_on
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_a_second_watch_is_refused_and_after_sigterm_the_commit_in_hand_is_finished(
    watched: WatchedRepository, watching: tuple[subprocess.Popen[bytes], Path], tmp_path: Path
) -> None:
    process, goes_on = watching
    done = watched.bw(*watched.words("--commit-file", str(tmp_path / "last")), code=3)
    assert "watching" in done.stderr
    process.send_signal(signal.SIGTERM)
    goes_on.touch()
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert commits_of([json.loads(line) for line in output.splitlines()]) == watched.commits[:2]
    assert (tmp_path / "last").read_text().strip() == watched.commits[1]


@pytest.mark.long
def test_after_a_kill_it_goes_on_at_the_commit_it_was_at(
    watched: WatchedRepository, watching: tuple[subprocess.Popen[bytes], Path], tmp_path: Path
) -> None:
    process, goes_on = watching
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (tmp_path / "last").read_text().strip() == watched.commits[0]
    goes_on.touch()
    again = watched.watch("--commit", watched.commits[0], "--commit-file", str(tmp_path / "last"))
    assert commits_of(again) == watched.commits[1:]
