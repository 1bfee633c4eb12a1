"""Runs as folders of FAI-PEP's local reporter, and read back."""

from __future__ import annotations

import json
import math
import multiprocessing
import platform
from pathlib import Path
from typing import Any

import builders
import numpy as np
import pytest
from builders import benchmark, launch
from hypothesis import given
from hypothesis import strategies as st

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.compat.faipep.local_folder import export_faipep
from benchwright.compat.faipep.names import file_name, platform_of
from benchwright.compat.faipep.reports import reports_of
from benchwright.core.errors import CannotWrite, InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.revision import CONTROL, TREATMENT, RevisionInfo
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.spec.spec_test import SpecTest, with_spec
from benchwright.runs.importers import import_results

REAL = Path(__file__).parents[3] / "compat" / "imports" / "faipep"
NOON = 1_521_460_800.0  # 2018-03-19 12:00 UTC
finite = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(1e-12, 1e6)


def latency(*samples: float, warm: tuple[float, ...] = (), **fields: Any) -> Measurement:
    base: dict[str, Any] = {"metric": "latency", "unit": "s", "source": "log", "warmup_samples": warm}
    return builders.measurement(*samples, direction=Direction.LOWER, **(base | fields))


def printed(unit: str = "us", **more: Any) -> dict[str, Any]:
    return {"records": [{"type": "NET", "metric": "latency", "unit": unit, "as": "latency", **more}]}


def spec_test(side: str | None = None, commit: str = "0f2a9c4", **fields: Any) -> SpecTest:
    given_: dict[str, Any] = {
        "path": "/specs/squeezenet.json",
        "line": 3,
        "model": "squeezenet",
        "identifier": "squeezenet-0",
        "framework": "caffe2",
        "commands": ("{program} --net {files.predict}",),
        "revision": RevisionInfo(commit=commit, commit_time=NOON),
        "side": side,
    }
    return SpecTest(**(given_ | fields))


def result(*launches: Any, test: SpecTest | None = None, **fields: Any) -> Result:
    test = test or spec_test()
    name = "squeezenet-0" + (f" {test.side}" if test.side else "")
    what = with_spec(benchmark(name, kind="spec", pair="pair" if test.side else ""), test)
    return builders.result(what, *launches, **fields)


def written(run: Run, folder: Path) -> Path:
    """The folder of its only test."""
    assert export_faipep([run], folder) == ()
    (meta,) = folder.rglob("meta.txt")
    return meta.parent


def body(path: Path) -> Any:
    return json.loads(path.read_text())


def test_the_folders_and_files_are_named_as_fai_pep_names_them(tmp_path: Path) -> None:
    ops = latency(1e-4, metric="op.time", labels={"op": "Conv/0 (big)"})
    made = builders.run(result(launch(latency(0.00125, 0.00126), ops, facts=printed())), machine=builders.MACHINE)
    folder = written(made, tmp_path)
    assert folder.relative_to(tmp_path).as_posix() == (
        "Linux-6.1-x86_64-processor/caffe2/squeezenet/delay/squeezenet-0/2018/3/19/0f2a9c4/0"
    )
    assert {path.name for path in folder.iterdir()} == {"meta.txt", "NET-latency.txt", "Conv-0-big-latency.txt"}
    record = body(folder / "NET-latency.txt")
    assert (record["type"], record["metric"], record["unit"], record["num_runs"]) == ("NET", "latency", "us", 2)
    assert record["values"] == [1250.0, 1260.0]
    assert record["summary"]["p50"] == 1255.0
    assert body(folder / "Conv-0-big-latency.txt")["type"] == "Conv/0 (big)"


def test_meta_says_what_was_measured_where_and_when(tmp_path: Path) -> None:
    test = spec_test(group="cnn", run_type="verify", metric="delay", backend="mkl")
    meta = body(written(builders.run(result(launch(latency(1.0)), test=test)), tmp_path) / "meta.txt")
    wanted = {
        "backend": "mkl",
        "framework": "caffe2",
        "platform": "Linux-6.1-x86_64-processor",
        "platform_hash": "host",
        "command": "{program} --net {files.predict}",
        "net_name": "squeezenet",
        "group": "cnn",
        "metric": "delay",
        "identifier": "squeezenet-0",
        "commit": "0f2a9c4",
        "commit_time": NOON,
        "run_type": "verify",
        "run": "run.1",
    }
    assert {key: meta[key] for key in wanted} == wanted
    assert meta["time"] == 1_794_736_800.0


def test_the_day_is_the_commits_in_utc_and_the_runs_where_no_commit_is_known(tmp_path: Path) -> None:
    late = spec_test(revision=RevisionInfo(commit="a", commit_time=NOON + 12 * 3600 - 1))
    unknown = spec_test(revision=None)
    for test, day in ((late, "2018/3/19/a"), (unknown, "2026/11/15/interactive")):
        folder = written(builders.run(result(launch(latency(1.0)), test=test)), tmp_path / day)
        assert folder.parent.as_posix().endswith(day)


def test_both_sides_are_in_one_record_with_opposite_percentiles(tmp_path: Path) -> None:
    control = result(launch(latency(1.0, 2.0, 3.0), facts=printed()), test=spec_test(CONTROL, "77aa01b"))
    treatment = result(launch(latency(2.0, 4.0, 9.0), facts=printed()), test=spec_test(TREATMENT))
    folder = written(builders.run(control, treatment), tmp_path)
    record = body(folder / "NET-latency.txt")
    assert record["control_values"] == [1e6, 2e6, 3e6]
    assert record["control_summary"]["stdev"] == pytest.approx(np.std([1e6, 2e6, 3e6]))
    assert record["diff_summary"]["p0"] == 2e6 - 3e6
    assert record["diff_summary"]["p100"] == 9e6 - 1e6
    assert record["diff_summary"]["p90"] == pytest.approx(8e6 - 1.2e6)
    meta = body(folder / "meta.txt")
    assert (meta["commit"], meta["control_commit"], meta["control_commit_time"]) == ("0f2a9c4", "77aa01b", NOON)


def test_regressed_types_are_marked_in_a_run_of_that_type_only(tmp_path: Path) -> None:
    for number, (run_type, types, marked) in enumerate(
        [("regress", ("NET",), True), ("regress", ("NET latency",), True), ("regress", ("Conv",), False)]
    ):
        test = spec_test(run_type=run_type, regressed_types=types)
        made = builders.run(result(launch(latency(1.0)), test=test))
        record = body(written(made, tmp_path / str(number)) / "NET-latency.txt")
        assert record.get("regressed") == (1 if marked else None)


def test_what_benchwright_measured_itself_is_left_out_where_the_program_reported(tmp_path: Path) -> None:
    own = latency(2.0, metric="process.duration", source="process")
    folder = written(builders.run(result(launch(latency(1.0), own))), tmp_path / "a")
    assert {path.stem for path in folder.iterdir()} == {"meta", "NET-latency"}
    plain = builders.result("sleep", launch(own))
    folder = written(builders.run(plain), tmp_path / "b")
    assert {path.stem for path in folder.iterdir()} == {"meta", "NET-process.duration"}


def test_a_failed_test_has_no_records_and_is_named(tmp_path: Path) -> None:
    bad = result(status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 3")
    assert export_faipep([builders.run(bad)], tmp_path) == ("no records of squeezenet-0: crashed: exit code 3",)
    assert list(tmp_path.rglob("*.txt")) == []


def test_a_failed_control_is_named_and_the_treatment_stands_alone() -> None:
    control = result(status=Status.FAILED, reason=Reason.TIMED_OUT, test=spec_test(CONTROL))
    found = reports_of(builders.run(control, result(launch(latency(1.0)), test=spec_test(TREATMENT))))
    assert [line.partition(":")[0] for line in found.left_out] == ["squeezenet-0 control"]
    assert "control_values" not in found.reports[0].records[0]
    assert "control_commit" not in found.reports[0].meta


@given(name=st.text(max_size=300))
def test_any_name_is_one_folder_below(name: str) -> None:
    made = file_name(name)
    assert made
    assert "/" not in made
    assert made.strip(".")
    assert len(made.encode()) <= 200


def test_different_names_that_become_the_same_file_are_both_kept(tmp_path: Path) -> None:
    ops = [latency(float(n + 1), metric="op.time", labels={"op": op}) for n, op in enumerate(["a/b", "a-b", "A b"])]
    folder = written(builders.run(result(launch(*ops))), tmp_path)
    found = {body(path)["type"]: body(path)["values"] for path in folder.iterdir() if path.stem != "meta"}
    assert found == {"a/b": [1.0], "a-b": [2.0], "A b": [3.0]}


def test_the_platform_of_this_machine_is_what_python_calls_it() -> None:
    assert platform_of(read_machine()).startswith(file_name(platform.platform()))
    assert platform_of(builders.MACHINE) == "Linux-6.1-x86_64-processor"


def _write_many(folder: str, count: int) -> None:
    made = builders.run(result(launch(latency(1.0))))
    for _ in range(count):
        export_faipep([made], Path(folder))


@pytest.mark.unmeasured
def test_writers_at_the_same_time_get_numbers_of_their_own(tmp_path: Path) -> None:
    writers = [multiprocessing.Process(target=_write_many, args=(str(tmp_path), 8)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    (commit,) = {meta.parent.parent for meta in tmp_path.rglob("meta.txt")}
    assert sorted(int(path.name) for path in commit.iterdir()) == list(range(24))


def test_what_stands_there_is_never_replaced(tmp_path: Path) -> None:
    made = builders.run(result(launch(latency(1.0))))
    folder = written(made, tmp_path)
    (folder.parent / "1").write_text("somebody's file")
    (folder.parent / "2").mkdir()
    export_faipep([made], tmp_path)
    assert (folder.parent / "1").read_text() == "somebody's file"
    assert list((folder.parent / "2").iterdir()) == []
    assert (folder.parent / "3" / "meta.txt").exists()


def test_a_folder_that_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    made = builders.run(result(launch(latency(1.0))))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="not a folder"):
        export_faipep([made], tmp_path / "file")
    (tmp_path / "Linux-6.1-x86_64-processor").write_text("")
    with pytest.raises((CannotWrite, InvalidInput)):
        export_faipep([made], tmp_path)


series = st.lists(
    st.tuples(st.lists(times, max_size=3), st.lists(times, min_size=1, max_size=5)), min_size=1, max_size=3
)


@given(treatment=series, control=st.none() | series, unit=st.sampled_from(["s", "ms", "us", "ns"]))
def test_reading_back_gives_every_sample_exactly(
    treatment: list[Any], control: list[Any] | None, unit: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def launches(told: list[Any]) -> list[Any]:
        return [launch(latency(*samples, warm=tuple(warm)), facts=printed(unit)) for warm, samples in told]

    sides = [result(*launches(treatment), test=spec_test(None if control is None else TREATMENT))]
    if control is not None:
        sides.insert(0, result(*launches(control), test=spec_test(CONTROL)))
    made = builders.run(*sides)
    folder = tmp_path_factory.mktemp("out")
    export_faipep([made], folder)
    (again,) = import_results(folder, tool="fai-pep").runs
    assert [r.benchmark.name for r in again.results] == [r.benchmark.name for r in made.results]
    for before, after in zip(made.results, again.results, strict=True):
        kept = [(m.metric, m.unit, m.samples, m.warmup_samples) for x in before.launches for m in x.measurements]
        assert [(m.metric, m.unit, m.samples, m.warmup_samples) for x in after.launches for m in x.measurements] == kept


@given(values=st.lists(finite | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=5))
def test_numbers_of_any_size_read_back(values: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("out")
    score = builders.measurement(*values, metric="score", unit="points", source="log")
    export_faipep([builders.run(result(launch(score)))], folder)
    (again,) = import_results(folder, tool="fai-pep").runs
    (m,) = again.results[0].launches[0].measurements
    assert list(map(repr, m.samples)) == list(map(repr, values))


def test_what_the_real_tool_wrote_is_read_with_both_sides_and_its_operators() -> None:
    (run,) = import_results(REAL).runs
    assert [r.benchmark.name for r in run.results] == ["squeezenet-0 control", "squeezenet-0 treatment"]
    control, treatment = run.results
    net = treatment.launches[0].measurement("latency")
    assert net is not None
    assert (net.unit, net.samples[:2], len(net.samples)) == ("s", (0.0012345, 0.00124025), 5)
    op = treatment.launches[0].measurement("op.time")
    assert op is not None
    assert (op.labels, op.samples) == ({"op": "Conv_0"}, (0.0001005, 0.0001015, 0.0000995))
    assert [m.metric for m in control.launches[0].measurements] == ["latency"]
    assert (run.labels["revision"], run.labels["control_commit"]) == ("0f2a9c4", "77aa01b")
    assert (run.machine.hostname, run.started) == ("lab-7", "2018-03-19T19:00:00+00:00")
    assert control.benchmark.labels["commit"] == "77aa01b"


def test_a_folder_in_parts_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = written(
        builders.run(result(launch(latency(1.0), latency(2.0, metric="op.time", labels={"op": "c"})))), tmp_path
    )
    (folder / "c-latency.txt").write_text('{"type": "c", "metr')
    (folder / "meta.txt").unlink()
    (run,) = import_results(tmp_path).runs
    assert run.results[0].benchmark.name == "squeezenet-0"
    assert run.labels["revision"] == "0f2a9c4"
    assert any("c-latency.txt was left out" in note.text for note in run.notes)
    assert any("meta.txt" in note.text for note in run.notes)


def test_one_that_is_still_being_written_is_not_read(tmp_path: Path) -> None:
    folder = written(builders.run(result(launch(latency(1.0)))), tmp_path)
    folder.rename(folder.parent / ".new-123")
    with pytest.raises(InvalidInput, match="no known result file"):
        import_results(tmp_path)


def test_statistics_alone_give_their_median_and_say_so(tmp_path: Path) -> None:
    record = {"type": "NET", "metric": "latency", "unit": "ms", "summary": {"p50": 2.5, "mean": 3.0}}
    (tmp_path / "NET-latency.txt").write_text(json.dumps(record))
    (run,) = import_results(tmp_path).runs
    (m,) = run.results[0].launches[0].measurements
    assert m.samples == (0.0025,)
    assert any("statistics only" in note.text for note in run.notes)


def test_the_simple_reporters_one_file_is_read(tmp_path: Path) -> None:
    record = {"type": "NET", "metric": "latency", "unit": "us", "values": ["100.5", 101]}
    (tmp_path / "resnet").mkdir()
    (tmp_path / "resnet" / "data.txt").write_text(json.dumps({"NET latency": record}))
    (run,) = import_results(tmp_path).runs
    assert run.results[0].benchmark.name == "resnet"
    assert run.results[0].launches[0].measurements[0].samples == (0.0001005, 0.000101)


def test_an_output_compared_with_a_golden_one_is_a_record_of_both(tmp_path: Path) -> None:
    summary = {"p50": 1.0, "mean": 1.5}
    statistics = {"summary": summary, "control_summary": summary, "diff_summary": {"p0": -0.5, "p100": 0.25}}
    facts = {"goldens": {"softmax": {"figures": {"max_abs": 0.5}, "wrong": None, "statistics": statistics}}}
    error = builders.measurement(0.5, metric="error.max_abs", unit=None, source="model", labels={"output": "softmax"})
    folder = written(builders.run(result(launch(error, facts=facts), test=spec_test(metric="error"))), tmp_path)
    assert body(folder / "softmax-error.txt")["diff_summary"] == {"p0": -0.5, "p100": 0.25}
    assert body(folder / "softmax-error.max_abs.txt")["values"] == [0.5]
    (again,) = import_results(tmp_path).runs
    (back,) = again.results
    assert [(m.metric, m.labels, m.samples) for m in back.launches[0].measurements] == [
        ("error.max_abs", {"output": "softmax"}, (0.5,))
    ]


def test_statistics_of_outputs_and_goldens_are_an_error_and_no_comparison(tmp_path: Path) -> None:
    summary = {"p0": 1.0, "p50": 1.0, "p100": 2.0}
    record = {"type": "softmax", "num_runs": 9, "summary": summary, "control_summary": summary}
    (tmp_path / "softmax.txt").write_text(json.dumps(record | {"diff_summary": {"p0": -0.25, "p50": 0, "p100": 0.125}}))
    (run,) = import_results(tmp_path).runs
    (m,) = run.results[0].launches[0].measurements
    assert (len(run.results), m.metric, m.samples, m.labels) == (1, "error.max_abs", (0.25,), {"output": "softmax"})


def test_a_metric_in_two_units_keeps_each_with_its_own(tmp_path: Path) -> None:
    told = [{"type": "NET", "metric": "size", "unit": unit, "as": "size"} for unit in ("MB", "GB")]
    mega = builders.measurement(1.0, metric="size", unit="MB", source="log")
    giga = builders.measurement(2.0, metric="size", unit="GB", source="log", labels={"unit": "GB"})
    folder = written(builders.run(result(launch(mega, giga, facts={"records": told}))), tmp_path)
    found = {body(path)["unit"]: body(path)["values"] for path in folder.iterdir() if path.stem != "meta"}
    assert found == {"MB": [1.0], "GB": [2.0]}
