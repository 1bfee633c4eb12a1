"""Every file that was ever released stays readable, and the files written today are those of the newest sample.

When the last test of this file fails, a format has changed. If its version was not released yet, take the sample again:
`rm -r tests/compat/formats/v2 && python tests/compat/formats/take_sample.py v2`. Otherwise raise the version where the code
names it, let the code still read the old one, and keep a new sample (`v3`…) beside the old ones.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import benchprobe.stream.events
from benchwright.agent import stream
from benchwright.analysis.checks.validation import check
from benchwright.analysis.summary import summarize
from benchwright.compat.driver.result_file import driver_result
from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.core.provenance import revisions_of
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.kinds.registry import kind_of
from benchwright.plan.placement import make_plan
from benchwright.record import is_complete, read_events, record_stream
from benchwright.report.run_json import run_body
from benchwright.runs import run_folder, stored_plan
from benchwright.runs.logs import choose_logs, read_log
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan

FORMATS = Path(__file__).parent / "formats"
SAMPLES = sorted((p for p in FORMATS.glob("v*") if p.is_dir()), key=lambda p: int(p.name[1:]))
NEWEST = SAMPLES[-1]
VERSIONS = {
    "plan.json": ("benchwright-plan", stored_plan.PLAN_VERSION),
    "jobs.json": ("benchwright-jobs", stored_plan.JOBS_VERSION),
    "run.json": ("benchwright-run", run_folder.RUN_VERSION),
    "machine.json": ("benchwright-machine", run_folder.MACHINE_VERSION),
    "packages.json": ("benchwright-packages", run_folder.PACKAGES_VERSION),
    "provenance.json": ("benchwright-provenance", run_folder.PROVENANCE_VERSION),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.name)


def read(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_text())
    return body


def machine_of(sample: Path) -> Machine:
    return msgspec.convert(read(sample / "machine.json"), Machine)


def planned_job(sample: Path, plan: StoredPlan) -> Job:
    """The one job of the sample, planned again from its plan.json."""
    planned = make_plan(
        plan.benchmarks,
        machine_of(sample),
        plan.options,
        kind_of,
        folder=str(sample),
        probe_path=None,
        usable_cores=[0],
    )
    ((job,),) = planned.launches
    return job


def recorded_again(sample: Path) -> Run:
    """The run as today's code derives it from plan.json and the stream."""
    plan = RunFolder(sample).read_plan()
    (benchmark,) = plan.benchmarks
    job = planned_job(sample, plan)
    launch = record_stream(job.stream, job, benchmark, kind_of)
    result = Result(benchmark=benchmark, status=launch.status, launches=(launch,))
    result = msgspec.structs.replace(result, checks=check(result, plan.options.validations))
    written = read(sample / "run.json")
    return Run(
        id=written["id"],
        uid=plan.uid,
        name=plan.name,
        started=plan.started,
        ended=written["ended"],
        folder=written["folder"],
        status=Status.OK,
        machine=machine_of(sample),
        results=(result,),
        labels=plan.labels,
        revisions=revisions_of(RunFolder(sample).read_history()),
    )


@every_sample
def test_a_plan_is_read_and_makes_the_same_job_again(sample: Path) -> None:
    plan = RunFolder(sample).read_plan()
    (benchmark,) = plan.benchmarks
    assert (benchmark.name, [m.name for m in benchmark.metrics]) == ("small_loop", ["speed", "loss"])
    assert (plan.options.repeat, plan.labels) == (1, {"purpose": "sample"})
    job = planned_job(sample, plan)
    assert Path(job.stream).is_file()
    assert job.argv == ("python", "small_loop.py")
    assert job.probe == {"warmup": {"steps": 12}, "stop": {"steps": 290}}


@every_sample
def test_a_stream_gives_the_numbers_that_its_run_json_holds(sample: Path) -> None:
    again = recorded_again(sample)
    summaries = {"small_loop": summarize(again.results[0].counted)}
    today = json.loads(json.dumps(run_body(again, summaries)))
    today["notes"] = read(sample / "run.json")["notes"]  # of the moment it ran; in no stream
    written = read(sample / "run.json")
    for launch in (launch for result in written["results"] for launch in result["launches"]):
        launch.setdefault("launch", launch.pop("repeat", None))  # what earlier versions called it
        for note in launch["notes"]:
            note.setdefault("remedy", None)  # which notes of earlier versions had not
    assert written.pop("format") == "benchwright-run"
    written.pop("version")
    assert written.pop("state") == "ended"
    written.pop("headline", None)  # made by the report
    assert today == written


@every_sample
def test_a_run_is_read_from_its_folder_with_and_without_the_jobs_that_were_planned(
    sample: Path, tmp_path: Path
) -> None:
    run = read_run(RunFolder(sample), kind_of)
    assert (run.status, run.results[0].launches[0].job) == (Status.OK, "small_loop.D0")
    older = tmp_path / sample.name
    shutil.copytree(sample, older)
    (older / "jobs.json").unlink(missing_ok=True)
    assert read_run(RunFolder(older), kind_of) == msgspec.structs.replace(run, folder=str(older))


@every_sample
def test_both_forms_of_a_given_column_are_in_the_stream_and_are_read(sample: Path) -> None:
    (path,) = sample.glob("*.data")
    assert is_complete(path)
    events = list(read_events(path))
    assert all(event["event"] != "unreadable" for event in events)
    columns = [event["given"]["loss"] for event in events if "loss" in event.get("given", {})]
    assert {isinstance(values, dict) for _, values in columns} == {True, False}
    loss = next(m for m in recorded_again(sample).results[0].launches[0].measurements if m.source == "give")
    assert loss.warmup_samples == tuple(1.0 / n for n in range(1, 13))
    assert loss.samples == tuple(1.0 / n for n in range(13, 303))


@every_sample
def test_what_a_run_was_begun_with_is_read(sample: Path) -> None:
    history = RunFolder(sample).read_history()
    assert history is not None
    assert [Path(path).name for path in history.began.files if path.endswith(".py")] == ["small_loop.py"]
    assert history.resumed == ()


@every_sample
def test_a_log_is_read(sample: Path) -> None:
    (log,) = choose_logs(sample, "small_loop")
    lines = b"".join(read_log(log)).splitlines()
    assert lines == [b"Speed: 1024.5 items/sec", b"Speed: 1023.5 items/sec", b"loss=0.003125"]


@every_sample
def test_the_drivers_result_file_holds_what_the_stream_gives(sample: Path) -> None:
    written = read(sample / "dlbenchmark_result.json")
    uptime = written["small_loop.uptime_in_seconds"]
    (result,) = recorded_again(sample).results
    assert written == driver_result(result, aggregate=aggregate, uptime_s=uptime)
    assert written["small_loop.speed"] == 1024.0


@every_sample
def test_the_fingerprint_of_a_machine_has_not_changed(sample: Path) -> None:
    """It says which results can be compared: a machine must not become another one with a new benchwright."""
    assert machine_of(sample).fingerprint == read(sample / "machine.json")["fingerprint"]
    assert read(sample / "run.json")["machine"] == read(sample / "machine.json")["fingerprint"]


def test_the_newest_sample_has_the_versions_that_are_written_now() -> None:
    for name, (kind, version) in VERSIONS.items():
        body = read(NEWEST / name)
        assert (body["format"], body["version"]) == (kind, version), name
    (path,) = NEWEST.glob("*.data")
    events = {event["event"]: event for event in read_events(path)}
    assert events["stream"]["version"] == stream.VERSION
    assert events["probe"]["version"] == benchprobe.stream.events.STREAM_VERSION


def test_a_plan_of_another_version_is_refused(tmp_path: Path) -> None:
    body = read(NEWEST / "plan.json")
    (tmp_path / "plan.json").write_text(json.dumps(body | {"version": body["version"] + 1}))
    with pytest.raises(InvalidInput, match="format version"):
        RunFolder(tmp_path).read_plan()


def test_what_is_written_today_has_the_keys_of_the_newest_sample(tmp_path: Path) -> None:
    run = measured_now(tmp_path)
    for name in (*VERSIONS, "dlbenchmark_result.json"):
        assert keys_of(read(run / name)) == keys_of(read(NEWEST / name)), f"{name}: see the top of this file"
    (now,), (then,) = run.glob("*.data"), NEWEST.glob("*.data")
    assert event_keys(now) == event_keys(then), "the stream: see the top of this file"


def measured_now(base: Path) -> Path:
    spec = importlib.util.spec_from_file_location("take_sample", FORMATS / "take_sample.py")
    assert spec is not None
    assert spec.loader is not None
    take_sample = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(take_sample)
    run: Path = take_sample.measure(base)
    return run


# Maps whose keys are names of things, and what depends on the moment or on the machine.
_FREE = {"changes", "labels", "environments", "parameters", "accelerators", "notes", "files", "variables", "packages"}


def keys_of(value: Any, where: str = "") -> set[str]:
    """The path of every key below `value`, such as results[].metrics[].unit."""
    if isinstance(value, list):
        return {path for element in value for path in keys_of(element, where + "[]")}
    if not isinstance(value, dict):
        return set()
    found = {f"{where}.{key}" for key in value}
    return found.union(*(keys_of(below, f"{where}.{key}") for key, below in value.items() if key not in _FREE))


# Only under some circumstances: a tiny program's memory is a bound, a device's samples name it.
_SOMETIMES = {"max_rss_is_bound", "device", "processes"}


def event_keys(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for event in read_events(path):
        if event["event"] == "tick":  # only if the program takes its time
            continue
        kind = event["event"]
        if kind != "message":
            found.setdefault(kind, set()).update(event.keys() - _SOMETIMES)
    return found
