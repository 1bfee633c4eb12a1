"""What every kind must do with any target, and with the benchmarks it makes of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from builders import MACHINE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import variants
from suites import PATHS, machine_with

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.status import Reason
from benchwright.kinds.base import Kind
from benchwright.kinds.registry import KINDS, kind_for, kind_named, kind_of
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.record import record_launch

EXAMPLES = {
    "suite": ("a.yaml", "one:\n  definition: .\n  plan: {method: njobs, n: 2}\n  argv: {--lr: 0.1, --fast: true}\n"),
    "tasks": (
        "a.cfg",
        "[one]\npatterns = ['x (\\d+)']\nmetrics = ['x']\ncompute_method = ['last']\ncommand_to_execute = true\nnum_gpus = 0\n",
    ),
    "script": ("loop.py", "from benchprobe import iterate\n"),
    "spec": ("a.json", '{"model": {"name": "net"}, "tests": [{"identifier": "one", "command": "true"}]}'),
    "bench-list": ("one.bench", "one: true\n"),
    "model": ("net.onnx", "any bytes: only a runtime knows"),
}
GIVEN = ("command", "endpoint", "zoo")  # no files: given as such, an address, and tests/contracts/test_zoo_contract.py


@pytest.fixture(params=[name for name in variants(KINDS) if name not in GIVEN])
def kind(request: pytest.FixtureRequest, plugins: None) -> Kind:
    return kind_named(request.param)


def test_its_own_kind_is_recognised_and_read_without_writing(kind: Kind, tmp_path: Path) -> None:
    name, text = EXAMPLES[kind.name]
    path = tmp_path / name
    path.write_text(text)
    assert kind.recognises(str(path))
    found = kind_for(str(path))
    assert found is not None
    assert found.name == kind.name
    benchmarks = kind.read(str(path), Options())
    assert len(benchmarks) == 1
    assert msgspec.json.decode(msgspec.json.encode(benchmarks[0]), type=Benchmark) == benchmarks[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_what_is_not_there_is_not_recognised(kind: Kind, tmp_path: Path) -> None:
    for target in ("", "absent.cfg", "absent.py", str(tmp_path), "a\nb"):
        assert not kind.recognises(target)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace"))))
def test_any_content_is_benchmarks_or_a_placed_error(kind: Kind, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / EXAMPLES[kind.name][0]
    path.write_bytes(content)
    try:
        found = kind.read(str(path), Options())
    except InvalidInput as error:
        found, said = [], str(error)
    else:
        said = str(path)
    assert said.startswith(str(path))
    assert all(isinstance(b, Benchmark) for b in found)


@pytest.fixture
def read(kind: Kind, tmp_path: Path) -> list[Benchmark]:
    name, text = EXAMPLES[kind.name]
    (tmp_path / name).write_text(text)
    return [msgspec.structs.replace(b, kind=kind.name) for b in kind.read(str(tmp_path / name), Options())]


def test_its_benchmarks_become_jobs_and_what_they_write_becomes_launches(kind: Kind, read: list[Benchmark]) -> None:
    how = Options(suite_paths=PATHS, repeat=2)
    plan = make_plan(read, machine_with(0), how, kind_of, folder="/runs/x", probe_path=None, usable_cores=[0])
    assert not plan.skipped
    assert len(plan.launches) == 2
    for job in (job for jobs in plan.launches for job in jobs):
        assert job.argv
        ended = [{"event": "start", "t": 0, "pid": 1}, {"event": "end", "t": 9, "exit_code": 1, "duration_s": 1.0}]
        assert record_launch(ended, job, read[0], kind_of).reason is Reason.CRASHED


def test_it_answers_what_is_asked_before_and_after_a_run(kind: Kind, read: list[Benchmark]) -> None:
    how = Options(suite_paths=PATHS)
    assert set(kind.not_ready(read, how)) <= {b.name for b in read}
    assert all(isinstance(text, str) for text in kind.warnings(read, how))
    assert all(isinstance(path, str) for b in read for path in kind.code_files(b))
    assert all(kind.option_sorts(b) for b in read), "else every option that is only for some targets is refused"


def test_a_run_of_a_kind_that_is_not_installed_can_be_recorded_but_not_planned() -> None:
    gone = Benchmark(name="b", workload=Command(argv=("x",), cwd="/"), source="t", kind="elsewhere")
    job = Job(id="b", benchmark="b", argv=("x",), cwd="/", stream="/s", log="/l")
    assert record_launch([], job, gone, kind_of).reason is Reason.AGENT_LOST
    with pytest.raises(InvalidInput, match="'elsewhere' is not installed"):
        make_plan([gone], MACHINE, Options(), kind_of, folder="/x", probe_path=None, usable_cores=[0])
