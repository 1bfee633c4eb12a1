"""What every stream dialect must do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import builders
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.reported import Reported
from benchwright.core.status import Reason, Status
from benchwright.core.stream_dialect import STREAM_DIALECTS, StreamDialect
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.registry import kind_of
from benchwright.record.launch import record_stream

# What its instrument writes for a rate, and to be ended.
RATE = {"voir": '{"task": "train", "rate": %s}', "key-value": "train rate=%s"}
STOP = {"voir": '{"$event": "stop", "$data": null}', "key-value": "train done"}


@pytest.fixture(params=variants(STREAM_DIALECTS))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def dialect(name: str) -> StreamDialect:
    return STREAM_DIALECTS.load(name)()


def test_rates_are_read_and_an_early_stop_is_seen(name: str, dialect: StreamDialect) -> None:
    reported = Reported(dialect=name)
    for t, line in enumerate([RATE[name] % 5.0, RATE[name] % 6.0, STOP[name], RATE[name] % 7.0]):
        dialect.read(line, t, reported)
    assert [(seen.t, seen.value) for seen in reported.rates["train"]] == [(0, 5.0), (1, 6.0), (3, 7.0)]
    assert (reported.stopped, reported.stops, reported.lines, reported.unreadable) == (True, {"train": 2}, 4, 0)


def test_a_glance_sees_the_same(name: str, dialect: StreamDialect) -> None:
    seen = dialect.glance(RATE[name] % 5.0)
    assert seen is not None
    assert (seen.newest, seen.stop_asked) == ({"rate": 5.0}, False)
    stop = dialect.glance(STOP[name])
    assert stop is not None
    assert stop.stop_asked


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.sampled_from([*RATE.values(), *STOP.values()]).flatmap(lambda line: st.just(line[:-3])))
def test_no_line_is_too_strange(name: str, dialect: StreamDialect, line: str) -> None:
    reported = Reported(dialect=name)
    dialect.read(line, 1, reported)
    dialect.glance(line)
    assert reported.lines == 1


def test_it_says_why_there_is_no_rate(name: str, dialect: StreamDialect) -> None:
    assert name in dialect.no_rate(Reported(dialect=name))


@pytest.mark.parametrize("says_rates", [True, False])
def test_what_a_program_writes_to_its_descriptor_is_measured(
    name: str, plugin_folder: Path, tmp_path: Path, says_rates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(plugin_folder), prepend=os.pathsep)  # for the agent
    said = [RATE[name] % (100 + n) for n in range(5)] if says_rates else ["?"]
    text = "".join(f"{line}\n" for line in said)
    code = f"import os; os.write(int(os.environ['DATA_FD']), {text!r}.encode())"
    job = builders.job(
        sys.executable, "-c", code, folder=tmp_path, id="b", dialect=name, data_file=str(tmp_path / "b.lines")
    )
    with LocalExecutor() as executor:
        executor.run([job], Listener())
    benchmark = Benchmark(name="b", source="test", workload=Command(argv=job.argv, cwd=str(tmp_path)))
    launch = record_stream(job.stream, job, benchmark, kind_of)
    rate = launch.measurement("rate")
    if says_rates:
        assert rate is not None
        assert (launch.status, rate.warmup_samples, rate.samples) == (Status.OK, (100.0,), (101.0, 102.0, 103.0, 104.0))
        assert launch.facts["reported"]["dialect"] == name
    else:
        assert (launch.status, launch.reason, rate) == (Status.FAILED, Reason.NO_DATA, None)
        assert name in (launch.detail or "")


def test_lines_of_a_dialect_that_is_not_installed_do_not_count(tmp_path: Path) -> None:
    stream = tmp_path / "b.data"
    stream.write_text('{"event": "reported", "t": 5, "dialect": "gone", "lines": ["a", "b"]}\n')
    job = builders.job(folder=tmp_path, id="b")
    benchmark = Benchmark(name="b", source="test", workload=Command(argv=job.argv, cwd=str(tmp_path)))
    texts = [note.text for note in record_stream(stream, job, benchmark, kind_of).notes]
    assert any("'gone' is not a stream dialect" in text for text in texts)
    assert any("could not be read and do not count" in text for text in texts)
