"""Programs that are forked from a process that has imported what they need, seen through the executor that has it done."""

from __future__ import annotations

import gzip
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import events
from builders import job as job_in
from processes import wait_for

from benchwright.core.job import Job, Outcome
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked like this on Linux only")
MakeJob = Callable[..., Job]


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor() as local:
        yield local


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs that share it can share a warm process, which costs most of the time of these tests."""
    return tmp_path_factory.mktemp("warm")


@pytest.fixture
def make_job(home: Path, request: pytest.FixtureRequest) -> MakeJob:
    def make(code: str, id: str = "", **fields: Any) -> Job:
        name = re.sub(r"\W", "-", f"{request.node.name}{id}")
        script = home / f"{name}.py"
        script.write_text("import colorsys\n" + code)
        given = {"warm": ("colorsys",), "probe": {"models": {"mode": "discover"}}}
        return job_in(sys.executable, "-m", "benchmodels", str(script), folder=home, id=name, **(given | fields))

    return make


def run(executor: LocalExecutor, job: Job) -> Outcome:
    [outcome] = executor.run([job], Listener())
    return outcome


def printed(job: Job) -> str:
    return gzip.decompress(Path(job.log + ".gz").read_bytes()).decode()


def is_warm(job: Job) -> bool:
    return events(job, "start")[0].get("warm", False)


def remarks(job: Job) -> list[str]:
    return [event["text"] for event in events(job, "message")]


def is_warm_process(process: psutil.Process) -> bool:
    try:
        return "benchmodels.warm" in process.cmdline()
    except psutil.NoSuchProcess:  # or a zombie
        return False


@pytest.fixture
def new_warm_processes() -> Callable[[], list[psutil.Process]]:
    """Those that this test started."""
    before = set(psutil.Process().children(recursive=True))

    def living() -> list[psutil.Process]:
        return [p for p in set(psutil.Process().children(recursive=True)) - before if is_warm_process(p)]

    return living


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("print(1)", (0, None)),
        ("raise SystemExit(7)", (7, None)),
        ("1/0", (1, None)),
        ("import os; os._exit(9)", (9, None)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", (None, signal.SIGSEGV)),
    ],
)
def test_it_ends_as_a_program_started_afresh(executor, make_job, code, ending):
    job = make_job(code)
    outcome = run(executor, job)
    assert (outcome.exit_code, outcome.signal) == ending
    assert is_warm(job)
    assert remarks(job) == []


def test_a_traceback_shows_the_script_only(executor, make_job):
    job = make_job("1/0")
    run(executor, job)
    assert printed(job).splitlines()[1].startswith(f'  File "{job.argv[-1]}", line 2')


def test_each_is_a_fresh_process_in_a_session_of_its_own(executor, make_job):
    code = "import os, sys; print(os.getpid() == os.getsid(0), hasattr(colorsys, 'seen'), sys.argv, os.getcwd())"
    jobs = [make_job(f"{code}\ncolorsys.seen = True\n", id=name) for name in "ab"]
    for job in jobs:
        run(executor, job)
        assert printed(job) == f"True False ['{job.argv[-1]}'] {job.cwd}\n"
    assert events(jobs[0], "start")[0]["pid"] != events(jobs[1], "start")[0]["pid"]


def test_random_numbers_differ_between_processes(executor, make_job):
    code = "import random, numpy; print(random.random(), numpy.random.random())"
    jobs = [make_job(code, id=name, probe={"models": {"mode": "discover", "seed": None}}) for name in "ab"]
    for job in jobs:
        run(executor, job)
    first, second = (printed(job).split() for job in jobs)
    assert first[0] != second[0]
    assert first[1] != second[1]


@pytest.mark.parametrize(
    "code", ["import threading, time; threading.Thread(target=time.sleep, args=(300,), daemon=True).start()", "1 / 0"]
)
def test_imports_that_only_save_time_and_prevent_forking_are_left_out(executor, make_job, home, code):
    (home / "spoiling_imports.py").write_text(code)
    job = make_job("import sys; print('spoiling_imports' in sys.modules)", warm=("colorsys", "spoiling_imports"))
    run(executor, job)
    assert (is_warm(job), remarks(job), printed(job)) == (True, [], "False\n")


def test_another_environment_means_another_warm_process(executor, make_job):
    code = "import os; print(os.environ.get('MKL_NUM_THREADS'), os.environ['BENCHPROBE_CONFIG'].count(__file__[-9:-3]))"
    for threads in ("1", "2"):
        job = make_job(code, id=threads, env={"MKL_NUM_THREADS": threads})
        run(executor, job)
        assert is_warm(job)
        assert printed(job) == f"{threads} 1\n"


def test_at_the_deadline_it_is_killed_with_all_it_started_and_the_next_one_runs(executor, make_job):
    code = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "300"], start_new_session=True).pid, flush=True)
time.sleep(300)
"""
    job = make_job(code, timeout_s=4.0)
    outcome = run(executor, job)
    assert (outcome.timed_out, outcome.signal) == (True, signal.SIGKILL)
    assert not psutil.pid_exists(int(printed(job)))
    after = make_job("print(2)", id="after")
    assert run(executor, after).exit_code == 0
    assert is_warm(after)


def test_what_it_leaves_behind_is_ended_and_told(executor, make_job):
    code = """
import os, time
reads, writes = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        print(os.getpid(), flush=True)
        os.write(writes, b"x")
        time.sleep(300)
    os._exit(0)
os.read(reads, 1)
"""
    job = make_job(code)
    assert run(executor, job).exit_code == 0
    assert not psutil.pid_exists(int(printed(job)))
    assert "1 process(es) it had started were still running" in remarks(job)[0]


def test_its_cpu_time_is_its_own(executor, make_job):
    busy = "import time\nwhile time.process_time() - began < 0.4: pass\n"
    for name in "ab":
        job = make_job(f"import time; began = time.process_time()\n{busy}", id=name)
        run(executor, job)
        [end] = events(job, "end")
        assert 0.38 < end["cpu_s"] < 1.2  # not that of the process it was forked from, nor of the one before


def test_its_memory_is_that_of_a_program_started_afresh(executor, make_job):
    code = "import numpy, time\nkept = numpy.ones(8_000_000)\ntime.sleep(0.6)\n"
    peaks = {}
    for warm in (("colorsys",), ()):
        job = make_job(code, id=str(len(warm)), warm=warm)
        run(executor, job)
        assert is_warm(job) == bool(warm)
        peaks[warm] = events(job, "end")[0]["max_rss_bytes"]
    assert peaks["colorsys",] == pytest.approx(peaks[()], rel=0.1)


def test_a_script_that_does_something_first_is_started_afresh(executor, make_job, home):
    job = make_job("")
    Path(job.argv[-1]).write_text(
        "import os\nos.environ['A'] = 'b'\nimport colorsys\nprint('benchmodels.warm.pages' in __import__('sys').modules)"
    )
    assert run(executor, job).exit_code == 0
    assert not is_warm(job)
    assert remarks(job) == ["started afresh: line 2 comes before the script imports colorsys"]
    assert printed(job) == "False\n"
    assert events(job, "end")[0]["max_rss_bytes"] > 0


def test_without_a_warm_process_it_is_started_afresh(executor, make_job):
    job = make_job("print(1)", warm=("no_such_module",))
    assert run(executor, job).exit_code == 0
    assert not is_warm(job)
    assert remarks(job) == [
        "started afresh: no warm process: no_such_module cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"
    ]


def test_a_warm_process_that_was_killed_is_replaced(make_job, new_warm_processes):
    with LocalExecutor() as executor:
        run(executor, make_job("print(1)", id="before"))
        [warm] = new_warm_processes()
        warm.kill()
        for name in ("after", "later"):
            job = make_job("print(1)", id=name)
            assert run(executor, job).exit_code == 0
        assert is_warm(job)
    assert new_warm_processes() == []


def test_if_its_supervisor_is_killed_so_is_the_program(make_job, new_warm_processes):
    job = make_job("import time; time.sleep(300)")

    class Killing(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            self.pid = pid
            os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)

    listener = Killing()
    with LocalExecutor() as executor:
        [outcome] = executor.run([job], listener)
        assert "supervisor of this job was killed" in (outcome.detail or "")
        assert wait_for(lambda: not psutil.pid_exists(listener.pid))
        assert wait_for(lambda: not new_warm_processes())
        assert run(executor, make_job("print(1)", id="after")).exit_code == 0


def test_a_stop_does_not_wait_for_imports(make_job, home, new_warm_processes):
    importing = home / "importing"
    (home / "slow_to_import.py").write_text(f"import time; open({str(importing)!r}, 'w'); time.sleep(600)")
    job = make_job("print(1)", warm=("slow_to_import",))
    with LocalExecutor() as executor:

        def stop() -> None:
            wait_for(importing.exists)
            executor.stop()

        threading.Thread(target=stop).start()
        began = time.monotonic()
        assert run(executor, job).stopped
        assert time.monotonic() - began < 300
    assert new_warm_processes() == []
