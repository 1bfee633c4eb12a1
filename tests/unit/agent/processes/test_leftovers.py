from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import job as job_in

from benchwright.agent.processes import job_group, leftovers
from benchwright.agent.processes.leftovers import abandoned, end_leftovers, find
from benchwright.agent.processes.process_tree import read_stat
from benchwright.core.health import Mark
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor
from benchwright.runs.run_folder import read_marks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def token() -> str:
    return f"{os.getpid()}-{secrets.token_hex(8)}"


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def run(mark: str | None, *argv: str) -> subprocess.Popen[bytes]:
        env = {k: v for k, v in os.environ.items() if k != "BENCHWRIGHT_JOB"}
        process = subprocess.Popen(
            argv or ("sleep", "300"), env=env | ({"BENCHWRIGHT_JOB": mark} if mark else {}), start_new_session=True
        )
        started.append(process)
        wait_for(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == Path((argv or ("sleep",))[0]).name)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def found(*tokens: str) -> set[int]:
    return {stat.pid for stat in find([(token, None) for token in tokens])}


def test_what_carries_the_mark_is_found_with_all_below_it_and_nothing_else(start, token):
    """The child of the second one has an empty environment: only its parent tells whose it is."""
    ours = start(f"{token}/job")
    nest = start(f"{token}/job", "sh", "-c", "env -i sleep 301 & wait")
    start(None)
    start(f"{token[:-1]}x/job")  # another one's token
    start(token[: len(str(os.getpid())) + 3])  # a part of ours is not ours
    wait_for(lambda: len(found(token)) == 3)
    assert {ours.pid, nest.pid} < found(token)


def test_one_that_is_just_being_replaced_by_a_program_is_not_overlooked(start, token, monkeypatch):
    """For a moment the kernel shows no environment of it. Here that moment is made to last for a while."""
    ours = start(f"{token}/job")
    over = time.monotonic() + 0.3

    def slow_exec(path, real=leftovers.read_proc):
        executing = path == f"/proc/{ours.pid}/environ" and time.monotonic() < over
        return b"" if executing else real(path)

    monkeypatch.setattr(leftovers, "read_proc", slow_exec)
    assert found(token) == {ours.pid}


def test_they_are_ended_and_others_are_not(start, token):
    ours, other = start(f"{token}/job"), start(None)
    ended, left = end_leftovers([(token, None)], wait_s=0)
    assert (ended, left) == ([f"sleep ({ours.pid})"], [])
    assert ours.wait(600) != 0
    assert other.poll() is None


def test_an_agent_that_lives_is_given_the_time_to_end_its_jobs_itself(start, token):
    agent, job = start(token, "sleep", "0.3"), start(f"{token}/job", "sleep", "0.3")
    assert end_leftovers([(token, None)], wait_s=200) == ([], [])
    assert (agent.wait(600), job.wait(600)) == (0, 0)


@pytest.mark.parametrize("token", ["", "1", "x", "../1-0123456789abcdef"])
def test_what_is_no_token_means_nobody(token):
    assert end_leftovers([(token, "/sys/fs/cgroup")], wait_s=0) == ([], [])


def test_a_process_we_come_from_is_never_meant(token):
    """Resuming in a shell that a killed run had started."""
    code = f"from benchwright.agent.processes.leftovers import find; print(find([({token!r}, None)]))"
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{code}"; true'],
        env={**os.environ, "BENCHWRIGHT_JOB": f"{token}/job"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_processes_without_their_agent_are_abandoned_and_those_with_one_are_not(start, token):
    job = start(f"{token}/job")
    assert f"sleep ({job.pid})" in abandoned()
    start(token)
    assert f"sleep ({job.pid})" not in abandoned()


def test_a_group_that_is_not_named_after_its_token_is_nobodys(token):
    for folder in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", f"/sys/fs/cgroup/../benchwright-{token}", "/tmp"):
        assert job_group.members(folder, token) == []


def grouped(executor: LocalExecutor, tmp_path: Path, *argv: str) -> Mark:
    executor.run([job_in(*argv, folder=tmp_path)], Listener())
    [mark] = read_marks(tmp_path)
    return mark


def test_a_jobs_mark_is_kept_in_its_stream_and_its_group_is_gone_afterwards(tmp_path):
    with LocalExecutor() as executor:
        mark = grouped(executor, tmp_path, "true")
    assert job_group.TOKEN.fullmatch(mark.token)
    assert mark.group is None or not Path(mark.group).exists()


def test_who_cleared_the_environment_and_left_the_session_is_found_in_the_group(tmp_path, token):
    """With everything killed: nothing but the group tells whose it is."""
    enters = (
        f"from benchwright.agent.processes import job_group; import os, subprocess\n"
        f"print(job_group.enter({token!r}), flush=True)\n"
        f"subprocess.Popen(['sleep', '300'], env={{}}, start_new_session=True, stdout=subprocess.DEVNULL)\n"
    )
    done = subprocess.run([sys.executable, "-c", enters], stdout=subprocess.PIPE, text=True, check=True)
    group = done.stdout.strip()
    if group == "None":
        pytest.skip("no control group can be made here")
    [pid] = job_group.members(group, token)
    assert read_stat(pid).parent != os.getpid()
    ended, left = end_leftovers([(token, group)], wait_s=0)
    assert (ended, left) == ([f"sleep ({pid})"], [])
    assert not Path(group).exists()


def test_marks_are_read_from_every_stream_and_damaged_ones_are_passed_over(tmp_path):
    (tmp_path / "a.data").write_text('{"event":"stream","mark":"1-00","group":null}\n{"event":"end"}\n')
    (tmp_path / "a.interrupted-1.data").write_text('{"event":"stream","mark":"2-00","group":"/g"}\n')
    for name, text in {"b": b"", "c": b"\xff\xfe", "d": b"[1]", "e": b'{"mark": 3}', "f": b'{"mark":"1-00'}.items():
        (tmp_path / f"{name}.data").write_bytes(text)
    os.mkfifo(tmp_path / "g.data")
    (tmp_path / "h.data").mkdir()
    assert sorted(read_marks(tmp_path), key=lambda m: m.token) == [Mark("1-00"), Mark("2-00", "/g")]
