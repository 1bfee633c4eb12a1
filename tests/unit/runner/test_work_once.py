"""A run is planned once and each of its streams is folded once, however often it is shown or stored afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.run import Run
from benchwright.executors.fake import FakeExecutor
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.results.after_run import keep_in_store, report_of
from benchwright.results.kept_runs import Results
from benchwright.runner import measure as measuring
from benchwright.runner import recorder
from benchwright.runs import read_run as reading
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.run_folder import RunFolder

NAMES = ("a", "b", "c")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counted: Counter[str] = Counter()

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            counted[function.__name__] += 1
            return function(*args, **kwargs)

        return call

    for module in (measuring, recorder, reading):
        for name in ("make_plan", "record_stream", "assemble"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, counting(getattr(module, name)))
    return counted


def made(folder: Path, **fields: Any) -> Run:
    workload = Command(argv=("true", "--token", "sk-1234567890abcdefghij1234"), cwd="/")
    benchmarks = [Benchmark(name=name, workload=workload, source="test", **fields) for name in NAMES]
    executor = FakeExecutor({name: [0.1, 0.2] for name in NAMES})
    return measuring.measure(benchmarks, Options(), base=BaseFolder(folder), name="x", executor=executor)


def test_a_run_that_is_reported_and_stored_is_planned_once_and_its_streams_are_folded_once(
    tmp_path: Path, calls: Counter[str]
) -> None:
    run = made(tmp_path)
    report_of(run)
    assert keep_in_store(run, tmp_path, None) == []
    assert calls == {"make_plan": 1, "record_stream": 3, "assemble": 2}  # when it began, and when it had ended


def test_reading_a_run_plans_nothing_and_gives_what_the_store_got(tmp_path: Path, calls: Counter[str]) -> None:
    run = made(tmp_path)
    keep_in_store(run, tmp_path, None)
    calls.clear()
    assert reading.read_run(RunFolder(Path(run.folder)), kind_of) == run
    assert calls == {"record_stream": 3, "assemble": 1}
    with Results.choose(tmp_path, None, {}) as results:
        assert results.store.load(run.uid) == run
        assert not results.ingest(RunFolder(Path(run.folder)))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 99, "launches": []}', '{"launches": [[{"id": "../x"}]]}']
)
def test_a_damaged_or_newer_jobs_json_is_planned_again(tmp_path: Path, calls: Counter[str], content: str) -> None:
    run = made(tmp_path)
    calls.clear()
    (Path(run.folder) / "jobs.json").write_text(content)
    assert reading.read_run(RunFolder(Path(run.folder)), kind_of) == run
    assert calls["make_plan"] == 1


def test_a_moved_run_folder_finds_its_streams(tmp_path: Path) -> None:
    run = made(tmp_path / "here")
    there = tmp_path / "there"
    Path(run.folder).rename(there)
    assert [r.status for r in reading.read_run(RunFolder(there), kind_of).results] == [r.status for r in run.results]


def test_no_secret_is_in_the_stored_jobs(tmp_path: Path) -> None:
    run = made(tmp_path, env={"API_TOKEN": "hush-hush", "PLAIN": "value"})
    text = (Path(run.folder) / "jobs.json").read_text()
    assert "hush-hush" not in text
    assert "sk-1234567890" not in text
    assert '"--token"' in text
