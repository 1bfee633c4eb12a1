"""A run of scripts whose models are found while it is made: script by script, kept, and resumable at any time."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.model import ModelScript, ScriptDiscovery
from benchwright.core.run import Plan, Run
from benchwright.core.status import Reason, Status
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.observer import Observer
from benchwright.kinds.models.discovery.job import discover
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.results.after_run import exit_code
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import all_runs
from benchwright.runs.read_run import read_run
from benchwright.runs.resume import NEWEST


class ModelExecutor(FakeExecutor):
    """Searches find one `Net` in each script, or what `events` says; models take 1 ms."""

    def __init__(self, events: dict[str, list[dict[str, Any]]] | None = None, **more: Any) -> None:
        super().__init__({}, machine=here(), **more)
        self._events = events or {}
        self.killed_before: str | None = None
        self.warm: list[str] = []  # ids of the jobs that may start warm

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if self.killed_before is not None and jobs[0].id.startswith(self.killed_before):
            raise RuntimeError("kill -9")
        outcomes = super().run(jobs, listener)
        self.warm += [job.id for job in jobs if job.warm]
        for job in jobs if not self._stopped else ():
            settings = job.probe["models"]
            if settings["mode"] == "discover":
                told = self._events.get(job.benchmark, [net(job.benchmark)])
                _add(job, [*told, {"event": "discovery_end", "t": 9, "models": len(told)}])
            else:
                _add(job, [{"event": "measured", "t": 9, "metric": "latency", "unit": "s", "values": [0.001]}])
        return outcomes

    def _outcome(self, job: Job) -> Outcome:
        given = self._outcomes.get(job.benchmark)
        return Outcome(job=job.id, exit_code=0, duration_s=1.0) if given is None else given


def here() -> Machine:
    names = os.uname()
    return Machine(
        hostname=names.nodename,
        system=names.sysname,
        kernel=names.release,
        architecture="none",
        cpu="fake processor",
        cores=2,
        cores_total=2,
        memory_bytes=8 << 30,
        python="3.11.0",
    )


def net(script: str) -> dict[str, Any]:
    return {"event": "model", "t": 1, "identity": f"{sum(script.encode()):016x}", "class": "Net", "calls": 2}


def _add(job: Job, events: Sequence[dict[str, Any]]) -> None:
    lines = Path(job.stream).read_text().splitlines()
    told = [json.dumps({"process": "main", **event}) for event in events]
    Path(job.stream).write_text("\n".join([*lines[:-1], *told, lines[-1]]) + "\n")


class Making:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = BaseFolder(folder / "base")
        self.ran: list[str] = []

    def script(self, name: str, args: tuple[str, ...] = (), **options: Any) -> Benchmark:
        path = self.folder / name
        if not path.exists():
            path.write_text("import torch\n")
        work = ModelScript(path=str(path), args=args, cwd="/", python="/usr/bin/python3", **options)
        return Benchmark(name=name, workload=work, source=str(path), kind="script")

    def __call__(
        self, *benchmarks: Benchmark, executor: ModelExecutor | None = None, resume: str | None = None, **more: Any
    ) -> Run:
        fake = executor or ModelExecutor()
        options = Options(**more.pop("options", {}))
        try:
            return measure(benchmarks, options, base=self.base, name="x", executor=fake, resume=resume, **more)
        finally:
            self.ran = fake.ran

    @property
    def stored(self) -> Run:
        return read_run(all_runs(self.base.runs)[0], kind_of)


@pytest.fixture
def make(tmp_path: Path) -> Making:
    return Making(tmp_path)


def statuses(run: Run) -> dict[str, str]:
    return {r.benchmark.name: r.status.value for r in run.results}


def test_the_models_of_a_script_are_measured_before_the_next_is_searched(make: Making) -> None:
    run = make(make.script("a.py"), make.script("b.py"))
    assert make.ran == ["a.py.D0", "a.py::Net@torch-eager.D0", "b.py.D0", "b.py::Net@torch-eager.D0"]
    assert statuses(run) == {"a.py::Net@torch-eager": "ok", "b.py::Net@torch-eager": "ok"}
    assert statuses(make.stored) == statuses(run)
    assert [x.position for r in make.stored.results for x in r.launches] == [0, 1]


def test_already_the_first_of_several_scripts_starts_warm(make: Making) -> None:
    executor = ModelExecutor()
    make(make.script("a.py"), make.script("b.py"), executor=executor)
    assert executor.warm == executor.ran
    alone = ModelExecutor()
    make(make.script("c.py"), executor=alone)
    assert (len(alone.ran), alone.warm) == (2, [])


def test_what_alternates_across_scripts_is_searched_first(make: Making) -> None:
    options = {"interleave": True, "repeat": 2}
    make(make.script("a.py"), make.script("b.py"), search_first=True, options=options)
    assert [job.partition("::")[0] for job in make.ran] == ["a.py.D0", "b.py.D0", "a.py", "b.py", "b.py", "a.py"]


def test_runtimes_of_a_model_alternate_and_are_no_pairs_with_those_of_another_script(make: Making) -> None:
    options = {"interleave": True, "repeat": 2, "runtimes": ("torch-eager", "onnxruntime")}
    run = make(make.script("a.py"), make.script("b.py"), options=options)
    jobs = dict.fromkeys(job for job in make.ran if job.startswith("b.py::"))  # a build has the id of its first launch
    words = [job.partition("::Net@")[2].partition(".")[0] for job in jobs]
    assert words == ["torch-eager", "onnxruntime", "onnxruntime", "torch-eager"]
    assert {r.benchmark.pair for r in run.results} == {"a.py", "b.py"}


@pytest.mark.parametrize(
    ("before", "named"), [("a.py::", False), ("b.py.D0", True), ("b.py::", True), ("c.py.D0", False), ("c.py::", False)]
)
def test_a_run_killed_at_any_time_goes_on_where_it_was(make: Making, before: str, named: bool) -> None:
    scripts = [
        make.script(name, args=("--token", "hf_abcdefghijklmnopqrstuvwxyz")) for name in ("a.py", "b.py", "c.py")
    ]
    scripts = scripts if named else [make.script(name) for name in ("a.py", "b.py", "c.py")]
    executor = ModelExecutor()
    executor.killed_before = before
    with pytest.raises(RuntimeError, match="kill"):
        make(*scripts, executor=executor)
    first = make.ran
    killed = statuses(make.stored)
    assert "pending" in killed.values()
    run = make(*(scripts if named else ()), resume=NEWEST)
    assert sorted(first + make.ran) == sorted(set(first + make.ran))  # nothing twice
    assert len(first + make.ran) == 6
    assert list(statuses(run).values()) == ["ok"] * 3
    assert statuses(make.stored) == statuses(run)


def test_ctrl_c_during_a_search_leaves_the_script_for_later(make: Making) -> None:
    class Interrupting(Observer):
        def on_discovery(self, number: int, total: int, script: Benchmark) -> None:
            if number == 2:
                os.kill(os.getpid(), signal.SIGINT)

    scripts = make.script("a.py"), make.script("b.py")
    with pytest.raises(Interrupted, match="--resume="):
        make(*scripts, observer=Interrupting())
    assert statuses(make.stored) == {"a.py::Net@torch-eager": "ok", "b.py": "pending"}
    left = make.base.runs / all_runs(make.base.runs)[0].id / "discovery" / "b.py.D0.data"
    left.write_text(json.dumps({"event": "model", "t": 1, "identity": "0", "class": "OfTheFirstTry"}) + "\n")
    assert statuses(make(*scripts, resume=NEWEST)) == {"a.py::Net@torch-eager": "ok", "b.py::Net@torch-eager": "ok"}
    assert make.ran == ["b.py.D0", "b.py::Net@torch-eager.D0"]


def test_an_unchanged_script_is_not_searched_again_in_the_next_run(make: Making) -> None:
    scripts = make.script("a.py"), make.script("b.py")
    make(*scripts)
    run = make(*scripts)
    assert make.ran == ["a.py::Net@torch-eager.D0", "b.py::Net@torch-eager.D0"]
    assert [n.text for n in run.notes if "not searched" in n.text] == [
        "2 scripts were not searched for models: an earlier run had found them, and nothing has changed since"
    ]


def found_by_find(make: Making, script: Benchmark, **options: Any) -> ScriptDiscovery:
    fake = ModelExecutor({"a.py": [{**net("a.py"), "flops": 7.0}]})
    found = discover([script], Options(**options), make.base, fake, Observer())
    make.ran = fake.ran
    return found["a.py"]


def test_find_and_run_use_what_the_other_found(make: Making) -> None:
    make(make.script("a.py"))
    counted = found_by_find(make, make.script("a.py"))
    assert make.ran == ["a.py.D0"]  # only to count the arithmetic, which a run does not
    again = found_by_find(make, make.script("a.py"))
    assert make.ran == []
    assert (again.models, again.models[0].flops) == (counted.models, 7.0)
    assert again.searched is not None
    make(make.script("a.py"))
    assert make.ran == ["a.py::Net@torch-eager.D0"]


@pytest.mark.parametrize("why", ["rebuild", "echo", "changed"])
def test_find_searches_again_if_asked_to_if_output_is_wanted_and_if_the_script_changed(make: Making, why: str) -> None:
    found_by_find(make, make.script("a.py"))
    if why == "changed":
        (make.folder / "a.py").write_text("import torch  # another\n")
    how = {"rebuild": {"rebuild": "always"}, "echo": {"show_output": True}}.get(why, {})
    assert found_by_find(make, make.script("a.py"), **how).searched is None
    assert make.ran == ["a.py.D0"]


def test_a_changed_script_argument_seed_or_variable_is_searched_again(
    make: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(make.script("a.py"))
    make(make.script("a.py", args=("--k", "2")))
    assert make.ran[0] == "a.py.D0"
    for changed in ({"rebuild": "always"}, {"max_depth": 1}, {"weights": True}):
        make(make.script("a.py"), options=changed)
        assert make.ran[0] == "a.py.D0", changed
    make(make.script("a.py"), options={"seed": 1})
    assert make.ran[0] == "a.py.D0"
    make(make.script("a.py"))
    assert make.ran[0] != "a.py.D0"
    monkeypatch.setenv("HF_HOME", "/elsewhere")
    make(make.script("a.py"))
    assert make.ran[0] == "a.py.D0"
    (make.folder / "a.py").write_text("import torch, sys\n")
    make(make.script("a.py"))
    assert make.ran[0] == "a.py.D0"


def test_a_changed_module_of_the_script_is_searched_again(make: Making) -> None:
    module = make.folder / "parts.py"
    module.write_text("x = 1\n")

    def searching() -> ModelExecutor:
        class Importing(ModelExecutor):
            def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
                outcomes = super().run(jobs, listener)
                for job in jobs:
                    text = Path(job.stream).read_text()
                    Path(job.stream).write_text(text.replace('"models": 1', f'"modules": ["{module}"]'))
                return outcomes

        return Importing()

    make(make.script("a.py"), executor=searching())
    make(make.script("a.py"), executor=searching())
    assert make.ran[0] != "a.py.D0"
    module.write_text("x = 2\n")
    make(make.script("a.py"), executor=searching())
    assert make.ran[0] == "a.py.D0"


def test_a_script_without_a_model_says_why_and_is_not_run_again(make: Making) -> None:
    sklearn = [{"event": "message", "t": 1, "severity": "info", "text": ""}]
    failed = ModelExecutor(
        {"a.py": [], "b.py": sklearn}, outcomes={"a.py": Outcome(job="a.py.D0", exit_code=1, detail="OSError: no disk")}
    )
    run = make(make.script("a.py"), make.script("b.py"), make.script("c.py"), executor=failed)
    assert make.ran == ["a.py.D0", "b.py.D0", "c.py.D0", "c.py::Net@torch-eager.D0"]
    a, b, c = run.results
    assert (a.status, a.reason, a.detail) == (
        Status.FAILED,
        Reason.CRASHED,
        "OSError: no disk (before it called a model)",
    )
    assert (b.status, b.reason) == (Status.SKIPPED, Reason.NOT_MEASURABLE)
    assert "--as command" in (b.detail or "")
    assert c.status is Status.OK
    assert exit_code(run) == 1
    alone = make(make.script("a.py"), executor=failed)  # a failure is not remembered beyond its run
    assert make.ran[-1] == "a.py.D0"
    assert exit_code(alone) == 1


def test_a_name_that_is_in_none_of_them_ends_one_script_and_not_a_run_of_many(make: Making) -> None:
    with pytest.raises(InvalidInput, match="no model 'Bert'"):
        make(make.script("a.py", select=("Bert",)))
    assert all_runs(make.base.runs) == []
    run = make(make.script("a.py"), make.script("b.py", select=("Bert",)), make.script("c.py"))
    assert list(statuses(run).values()) == ["ok", "failed", "ok"]
    assert run.results[1].reason is Reason.MISCONFIGURED


def test_a_search_has_a_time_limit_of_its_own(make: Making) -> None:
    class Limits(ModelExecutor):
        def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
            limits.append(jobs[0].timeout_s)
            return super().run(jobs, listener)

    limits: list[float | None] = []
    make(make.script("a.py"), executor=Limits())
    make(make.script("b.py"), executor=Limits(), options={"find_timeout": 5.0})
    assert limits == [600.0, None, 5.0, None]


def test_whoever_watches_is_told_how_many_scripts_are_left(make: Making) -> None:
    class Watching(Observer):
        def on_grown(self, plan: Plan, left: int, total: int) -> None:
            told.append((len(plan.launches), left, total))

    told: list[tuple[int, int, int]] = []
    make(make.script("a.py"), make.script("b.py"), make.script("c.py"), observer=Watching())
    assert told == [(1, 2, 3), (2, 1, 3), (3, 0, 3)]


def test_a_script_that_no_longer_calls_what_was_found_is_searched_again_in_the_next_run(make: Making) -> None:
    class Changed(ModelExecutor):
        """The script reads a file that has changed: it calls another model now."""

        def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
            outcomes = super().run(jobs, listener)
            _add(jobs[0], [{"event": "failure", "t": 9, "stage": "capture", "kind": "not_found", "text": "not called"}])
            return outcomes

    make(make.script("a.py"), make.script("b.py"))
    run = make(make.script("a.py"), executor=Changed())
    assert (run.results[0].reason, make.ran) == (Reason.NO_DATA, ["a.py::Net@torch-eager.D0"])
    make(make.script("a.py"), make.script("b.py"))
    assert make.ran == ["a.py.D0", "a.py::Net@torch-eager.D0", "b.py::Net@torch-eager.D0"]
