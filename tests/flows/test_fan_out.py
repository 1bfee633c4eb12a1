"""Independent benchmarks on two nodes of a real Slurm cluster: one queue, a run for each node, one report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
from command_line import CommandLine
from processes import kill
from slurm_cluster import SlurmCluster, start_slurm_cluster, wait_until

import benchwright

pytestmark = pytest.mark.xdist_group("slurm flows")
ON_TWO = ("--on", "slurm:main", "--nodes", "2", "--slurm", "--time=10")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    made = start_slurm_cluster(tmp_path_factory.mktemp("slurm"))
    yield made
    made.stop()


@pytest.fixture
def slurm(bw: CommandLine, running: SlurmCluster) -> Iterator[CommandLine]:
    bw.env |= running.environment
    yield bw
    wait_until(lambda: running.jobs() == [], "the queue is empty")
    running.wait_until_idle()


def write_scripts(bw: CommandLine, names: str, body: str = "") -> list[str]:
    """Programs that note that they ran."""
    for name in names:
        (bw.cwd / f"{name}.py").write_text(f"import os, time\nopen('ran', 'a').write('{name}')\n{body}\n")
    return [f"{name}.py" for name in names]


def runs_of(bw: CommandLine) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(bw.base.glob("runs/*/run.json"))]


def measured(bw: CommandLine) -> dict[str, int]:
    """How often each was measured successfully."""
    results = [result for run in runs_of(bw) for result in run["results"]]
    return Counter(result["benchmark"] for result in results if result["status"] == "ok")


def ran(bw: CommandLine) -> str:
    file = bw.cwd / "ran"
    return "".join(sorted(file.read_text())) if file.exists() else ""


def nodes_in(report: str) -> dict[str, str]:
    """The node of every benchmark in a report on the screen."""
    return dict(re.findall(r"^ (\w+\.py) on (\w+)", report, re.MULTILINE))


# The agent is the parent of the process that watches the program.
KILL_AGENT = """\
import signal
watcher = os.getppid()
agent = int(open(f"/proc/{watcher}/stat").read().rpartition(")")[2].split()[1])
os.kill(agent, signal.SIGKILL)
time.sleep(60)
"""


def test_two_nodes_share_a_queue_and_one_report_names_the_node_of_every_number(slurm, running):
    scripts = write_scripts(slurm, "abcde", "time.sleep(0.3)")
    done = slurm("run", *scripts, *ON_TWO)
    assert ran(slurm) == "abcde"
    assert measured(slurm) == dict.fromkeys(scripts, 1)
    told = {r["benchmark"]: run["labels"]["node"] for run in runs_of(slurm) for r in run["results"]}
    assert set(told.values()) == {"n1", "n2"}
    assert nodes_in(done.stdout) == told
    assert nodes_in(slurm("report", "last").stdout) == told
    page = json.loads(slurm("report", "last", "--json").stdout)
    assert {r["benchmark"]: run["labels"]["node"] for run in page["runs"] for r in run["results"]} == told


def test_it_begins_with_the_first_node_and_takes_back_the_request_for_others(slurm, running):
    words = ("sbatch", "--parsable", "--exclusive", "-w", "n2", "--time=5", "--output=/dev/null", "--wrap=sleep 300")
    blocker = running.call(*words).strip()
    scripts = write_scripts(slurm, "ab")
    done = slurm("run", *scripts, *ON_TWO)
    assert set(nodes_in(done.stdout).items()) == {("a.py", "n1"), ("b.py", "n1")}
    wait_until(lambda: running.jobs() == [blocker], "only the blocker is left")
    running.call("scancel", blocker)


def test_what_a_killed_agent_had_goes_to_the_other_node(slurm):
    """With all its launches: those of one result are of one node."""
    second = "if open('ran').read().count('a') == 2:\n  " + KILL_AGENT.replace("\n", "\n  ")
    scripts = [*write_scripts(slurm, "a", second), *write_scripts(slurm, "bcd", "time.sleep(0.5)")]
    done = slurm("run", *scripts, *ON_TWO, "--repeat", "2")
    assert measured(slurm) == dict.fromkeys(scripts, 1)
    assert ran(slurm) == "aaaabbccdd"
    assert re.search(r"^ a\.py on n[12]  2 launches", done.stdout, re.MULTILINE)
    [lost] = [run["labels"]["node"] for run in runs_of(slurm) for r in run["results"] if r["reason"] == "agent_lost"]
    assert nodes_in(done.stdout)["a.py"] == ({"n1", "n2"} - {lost}).pop()


@pytest.mark.long
def test_the_work_of_a_dead_node_goes_elsewhere(slurm, running):
    """slurmd and all that it started are killed at once, as if the node had no power."""
    scripts = write_scripts(slurm, "abcdef", "time.sleep(2)")
    with subprocess.Popen(slurm.argv("run", *scripts, *ON_TWO), env=slurm.env, cwd=slurm.cwd) as driver:
        wait_until(lambda: len(ran(slurm)) >= 2, "both nodes measure")
        [number] = re.findall(r"^(\d+) n1$", running.call("squeue", "--noheader", "--format=%i %N"), re.MULTILINE)
        running.kill("n1")
        for process in psutil.process_iter(["cmdline"]):
            if f"[{number}." in " ".join(process.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):  # slurmd's end ends some of them first
                    kill(*process.children(recursive=True), process)
        assert driver.wait(600) == 0
    running.start_node("n1")
    assert measured(slurm) == dict.fromkeys(scripts, 1)
    assert len(ran(slurm)) == 7


def test_a_benchmark_that_kills_every_agent_is_given_up(slurm):
    scripts = [*write_scripts(slurm, "a", KILL_AGENT), *write_scripts(slurm, "bc")]
    done = slurm("run", *scripts, *ON_TWO, code=1)
    assert ran(slurm) == "aaabc"
    assert measured(slurm) == {"b.py": 1, "c.py": 1}
    assert "not measured: a.py; go on with: benchwright run --resume=" in done.stderr
    assert re.search(r"a\.py on n[12]\b.*agent", done.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_was_measured_is_not_repeated_by_resuming(slurm, running, number):
    wait = "while os.path.exists('wait'): time.sleep(0.05)"
    scripts = [*write_scripts(slurm, "ab"), *write_scripts(slurm, "cd", wait), *write_scripts(slurm, "e")]
    (slurm.cwd / "wait").touch()
    with subprocess.Popen(
        slurm.argv("run", *scripts, *ON_TWO), env=slurm.env, cwd=slurm.cwd, stderr=subprocess.PIPE, text=True
    ) as driver:
        wait_until(lambda: ran(slurm) == "abcd", "two are measured")
        os.kill(driver.pid, number)
        said = driver.communicate(timeout=600)[1]
    if number == signal.SIGINT:
        assert driver.returncode == 130
        assert re.search(r"interrupted; resume with: benchwright run --resume=a\.", said)
    else:
        assert "released nodes that killed runs still held" in slurm("devices", code=None).stderr
    (slurm.cwd / "wait").unlink()
    done = slurm("run", "--resume")
    assert measured(slurm) == dict.fromkeys(scripts, 1)
    assert ran(slurm) == "abccdde"
    assert sorted(nodes_in(done.stdout)) == scripts


def marks_of(bw: CommandLine) -> dict[str, set[str]]:
    """By node the jobs of others that launches were marked with; "": they were not."""
    found: dict[str, set[str]] = {}
    for run in runs_of(bw):
        for launch in (launch for result in run["results"] for launch in result["launches"]):
            marks = [note["figure"] for note in launch["notes"] if note["kind"] == "shared_node"] or [""]
            found.setdefault(run["labels"]["node"], set()).update(marks)
    return found


def test_nodes_of_an_allocation_that_the_user_has_share_a_queue_and_stay_the_users(slurm, running):
    """Another job on one of them marks what was measured there, and only that."""
    small = ("sbatch", "--parsable", "--mem=100", "--time=5", "--output=/dev/null", "--wrap=sleep 300")
    ours = running.call(*small, "--nodes=2", "--ntasks-per-node=1").strip()
    other = running.call(*small, "--nodelist=n1", "--ntasks=1").strip()
    wait_until(lambda: running.call("squeue", "--noheader", "--format=%T").split() == ["RUNNING"] * 2, "both run")
    scripts = write_scripts(slurm, "abcd", "time.sleep(0.3)")
    done = slurm("run", *scripts, "--on", f"slurm:job={ours}")
    assert measured(slurm) == dict.fromkeys(scripts, 1)
    assert set(nodes_in(done.stdout).values()) == {"n1", "n2"}
    assert marks_of(slurm) == {"n1": {f"job {other}"}, "n2": {""}}
    assert sorted(running.jobs()) == sorted([ours, other])
    (slurm.cwd / "ran").unlink()
    done = slurm("run", *scripts, "--on", f"slurm:job={ours}", "--nodes", "1")  # one run, on the first
    assert nodes_in(done.stdout) == {}
    assert ran(slurm) == "abcd"
    too_few = slurm("run", *scripts, "--on", f"slurm:job={ours}", "--nodes", "3", code=3)
    assert f"job {ours} has 2 nodes, and --nodes asks for 3" in too_few.stderr
    running.call("scancel", ours, other)


def test_python_gets_one_run_over_all_nodes(slurm, running, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", running.environment["SLURM_CONF"])
    entry = "{inherits: _defaults, definition: ., plan: {method: njobs, n: 1}}"
    (slurm.cwd / "suite.yaml").write_text("".join(f"{name}: {entry}\n" for name in "abc"))
    loop = "import time\nfrom benchprobe import iterate\nfor _ in iterate('train', range(20), batch_size=1): time.sleep(0.02)\n"
    (slurm.cwd / "main.py").write_text(loop)
    how = {"on": "slurm:main", "nodes": 2, "slurm": "--time=10", "repeat": 2, "use_current_env": True}
    made = benchwright.run(slurm.cwd / "suite.yaml", base=slurm.base, **how)
    nodes = {name: made.result(name).benchmark.labels["node"] for name in "abc"}
    assert set(nodes.values()) == {"n1", "n2"}
    assert all(f" {name} on {node} " in repr(made) for name, node in nodes.items())
    assert [len(result.counted) for result in made.results] == [2, 2, 2]


def test_models_of_a_zoo_are_shared_and_the_report_says_who_measured_each(slurm, plugins, plugin_folder):
    """The two runtimes of a model stay on one node, where they are compared."""
    slurm.env["PYTHONPATH"] = str(plugin_folder)
    runtimes = ("--runtime", "torch-eager,onnxruntime", "--stop", "5")
    done = slurm("run", "example:mlp,conv,needy", *ON_TWO, *runtimes)
    nodes: dict[str, set[str]] = {}
    for run in runs_of(slurm):
        for result in run["results"]:
            nodes.setdefault(result["benchmark"].partition("@")[0], set()).add(run["labels"]["node"])
    assert sorted(nodes) == ["example:conv", "example:mlp", "example:needy"]
    assert all(len(found) == 1 for found in nodes.values())
    assert all(f"{name} on {found.copy().pop()}" in " ".join(done.stdout.split()) for name, found in nodes.items())
