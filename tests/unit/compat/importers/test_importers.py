"""What is in the files of other tools, and what becomes of it. The files were written by the tools themselves."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from mutants import STRANGE

from benchwright.analysis.summary import summarize
from benchwright.compat.milabench.data_file import read_job_file
from benchwright.compat.milabench.run_folder import MilabenchImporter
from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.runs.foreign_json import MOST_JSON_BYTES, MOST_LINES_BYTES
from benchwright.runs.importers import import_results, importer_named

SAMPLES = Path(__file__).parents[3] / "compat" / "imports"
ASV = [SAMPLES / f"asv_v{version}" / "sample-machine" / "e0a94ef3-existing-py3.11.json" for version in (1, 2)]
both_versions_of_asv = pytest.mark.parametrize("path", ASV, ids=["version 1", "version 2"])


def read(tool: str, path: Path | str) -> Run:
    (run,) = importer_named(tool).read(SAMPLES / path)
    return run


def body_of(path: Path | str) -> Any:
    return json.loads((SAMPLES / path).read_text())


def only_launch(run: Run, name: str, metric: str) -> Measurement:
    (launch,) = run.result(name).launches
    found = launch.measurement(metric)
    assert found is not None
    return found


def edited(tool: str, body: Any, folder: Path) -> Run:
    path = folder / "edited.json"
    path.write_text(json.dumps(body))
    (run,) = importer_named(tool).read(path)
    return run


class TestHyperfine:
    def test_every_time_is_a_launch(self) -> None:
        run = read("hyperfine", "hyperfine.json")
        for result, raw in zip(run.results, body_of("hyperfine.json")["results"], strict=True):
            assert result.benchmark.name == raw["command"]
            durations = [x.measurement("process.duration") for x in result.launches]
            assert [m.samples for m in durations if m] == [(t,) for t in raw["times"]]
            (summary,) = [s for s in summarize(result.counted) if s.metric == "process.duration"]
            assert summary.value == pytest.approx(raw["median"])
            assert summary.interval is not None  # six launches give one

    def test_launches_of_all_commands_are_in_the_order_they_ran(self) -> None:
        run = read("hyperfine", "hyperfine.json")
        assert [x.position for r in run.results for x in r.launches] == list(range(12))

    def test_a_mean_over_all_launches_counts_once(self) -> None:
        run = read("hyperfine", "hyperfine.json")
        raw = body_of("hyperfine.json")["results"][0]
        (cpu,) = [s for s in summarize(run.results[0].counted) if s.metric == "process.cpu_time"]
        assert cpu.launches == 1
        assert cpu.value == pytest.approx(raw["user"] + raw["system"])

    def test_parameters_and_ignored_failures_are_kept(self) -> None:
        run = read("hyperfine", "hyperfine_parameters.json")
        assert [r.benchmark.parameters for r in run.results] == [{"n": "1"}, {"n": "2"}]
        assert [x.exit_code for x in run.results[1].launches] == [2] * 4
        assert "4 of 4 launches had a non-zero exit code" in run.results[0].benchmark.notes[0]

    def test_times_that_the_shell_has_eaten_are_remarked(self) -> None:
        (note,) = read("hyperfine", "hyperfine_shell.json").results[0].benchmark.notes
        assert note.startswith("3 of 4 times are 0")

    def test_commands_of_the_same_name_are_told_apart(self, tmp_path: Path) -> None:
        body = body_of("hyperfine_parameters.json")
        body["results"] = [raw | {"command": "same"} for raw in body["results"] + body["results"][1:]]
        run = edited("hyperfine", body, tmp_path)
        assert [r.benchmark.name for r in run.results] == ["same", "same (n=2)", "same (n=2) #2"]

    def test_memory_of_newer_versions_is_read(self, tmp_path: Path) -> None:
        body = body_of("hyperfine.json")
        body["results"][0]["memory_usage_byte"] = [1024, 2048, 1024, 1024, 1024, 1024]
        launch = edited("hyperfine", body, tmp_path).results[0].launches[1]
        memory = launch.measurement("memory.peak_rss")
        assert memory is not None
        assert (memory.samples, memory.unit) == ((2048.0,), "B")

    def test_what_the_file_does_not_say_is_unknown_and_said_to_be(self, tmp_path: Path) -> None:
        path = tmp_path / "h.json"
        path.write_bytes((SAMPLES / "hyperfine.json").read_bytes())
        os.utime(path, (1_700_000_000, 1_700_000_000))
        (run,) = importer_named("hyperfine").read(path)
        assert run.started == "2023-11-14T22:13:20+00:00"
        assert not run.machine.known
        assert (run.machine.hostname, run.machine.cores) == ("unknown", 0)
        notes = " ".join(note.text for note in run.notes)
        assert "when it measured" in notes
        assert "which machine" in notes


class TestPytestBenchmark:
    def test_rounds_are_the_samples_of_one_launch(self) -> None:
        run = read("pytest-benchmark", "pytest_benchmark.json")
        for raw in body_of("pytest_benchmark.json")["benchmarks"]:
            time = only_launch(run, raw["fullname"], "time")
            assert list(time.samples) == raw["stats"]["data"]
            assert (time.unit, time.direction) == ("s", Direction.LOWER)
        assert run.notes == ()

    def test_parameters_group_warm_up_and_extra_information_are_kept(self) -> None:
        run = read("pytest-benchmark", "pytest_benchmark.json")
        sort = run.result("test_sorting.py::test_sort[100]")
        assert sort.benchmark.parameters == {"size": "100"}
        assert sort.benchmark.warmup.steps == 0
        assert sort.launches[0].facts["extra_info"] == {"order": "reversed"}
        join = run.result("test_sorting.py::test_join").benchmark
        assert join.labels == {"group": "joining"}
        assert join.warmup.steps == 10

    def test_the_machine_and_the_time_are_those_of_the_file(self) -> None:
        run = read("pytest-benchmark", "pytest_benchmark.json")
        assert run.started == body_of("pytest_benchmark.json")["datetime"][:19] + "+00:00"
        assert run.machine.known
        assert (run.machine.hostname, run.machine.system, run.machine.cores_total) == ("host", "Linux", 2)

    def test_without_rounds_the_median_is_kept_and_that_is_said(self) -> None:
        run = read("pytest-benchmark", "pytest_benchmark_storage.json")
        raw = body_of("pytest_benchmark_storage.json")["benchmarks"][0]
        assert only_launch(run, raw["fullname"], "time").samples == (raw["stats"]["median"],)
        assert "--benchmark-save-data" in run.notes[0].text

    def test_the_revision_is_a_label(self, tmp_path: Path) -> None:
        body = body_of("pytest_benchmark.json")
        body["commit_info"] = {"id": "abc", "dirty": True, "branch": "main"}
        body["datetime"] = "2015-08-11T02:25:06"  # old versions: UTC, without a zone
        run = edited("pytest-benchmark", body, tmp_path)
        assert (run.labels["revision"], run.labels["branch"]) == ("abc+dirty", "main")
        assert run.started == "2015-08-11T02:25:06+00:00"


class TestGoogleBenchmark:
    def test_repetitions_are_samples_and_aggregates_are_not(self) -> None:
        run = read("google-benchmark", "google_benchmark.json")
        rows = body_of("google_benchmark.json")["benchmarks"]
        raw = [row for row in rows if row["name"] == "BM_Copy/8"]
        assert len(raw) == 3
        time = only_launch(run, "BM_Copy/8", "time")
        assert list(time.samples) == pytest.approx([row["real_time"] * 1e-9 for row in raw])
        assert [r.benchmark.name for r in run.results] == [
            "BM_Copy/8",
            "BM_Copy/4096",
            "BM_Micro/threads:2",
            "BM_Broken",
        ]

    @pytest.mark.parametrize(
        ("file", "name", "scale"),
        [
            ("google_benchmark.json", "BM_Micro/threads:2", 1e-6),
            ("google_benchmark_python.json", "sum_million", 1e-3),
        ],
    )
    def test_every_unit_becomes_seconds(self, file: str, name: str, scale: float) -> None:
        rows = [r for r in body_of(file)["benchmarks"] if r["name"] == name]
        assert list(only_launch(read("google-benchmark", file), name, "time").samples) == pytest.approx(
            [row["real_time"] * scale for row in rows]
        )

    def test_counters_are_metrics(self) -> None:
        run = read("google-benchmark", "google_benchmark.json")
        rate = only_launch(run, "BM_Copy/8", "bytes_per_second")
        assert (rate.unit, rate.direction) == ("B/s", Direction.HIGHER)
        assert only_launch(run, "BM_Copy/8", "chunks").samples == (3.0, 3.0, 3.0)

    def test_an_error_is_a_failure_with_its_message(self) -> None:
        run = read("google-benchmark", "google_benchmark.json")
        broken = run.result("BM_Broken")
        assert (broken.status, broken.detail, broken.launches) == (Status.FAILED, "no such file", ())
        assert run.status is Status.FAILED

    def test_aggregates_alone_give_the_median_as_one_number(self) -> None:
        run = read("google-benchmark", "google_benchmark_aggregates.json")
        (median,) = [
            row
            for row in body_of("google_benchmark_aggregates.json")["benchmarks"]
            if row["aggregate_name"] == "median"
        ]
        assert only_launch(run, "BM_Copy/8", "time").samples == (pytest.approx(median["real_time"] * 1e-9),)
        assert "no repetitions" in run.result("BM_Copy/8").benchmark.notes[0]

    def test_old_files_tell_aggregates_by_their_names(self, tmp_path: Path) -> None:
        row = {"iterations": 1, "real_time": 5, "cpu_time": 5, "time_unit": "ns"}
        rows = [row | {"name": name} for name in ("BM", "BM", "BM_mean", "BM_stddev")]
        body = {"context": {"date": "2015/03/17-18:40:25", "num_cpus": 40}, "benchmarks": rows}
        run = edited("google-benchmark", body, tmp_path)
        assert only_launch(run, "BM", "time").samples == pytest.approx((5e-9, 5e-9))
        assert run.started == "2015-03-17T18:40:25+00:00"

    def test_an_estimate_of_complexity_is_no_benchmark(self, tmp_path: Path) -> None:
        body = body_of("google_benchmark_python.json")
        body["benchmarks"].append(
            {"name": "BM_BigO", "run_name": "BM", "run_type": "aggregate", "aggregate_name": "BigO", "big_o": "N"}
        )
        assert "BM" not in {r.benchmark.name for r in edited("google-benchmark", body, tmp_path).results}

    def test_two_benchmarks_of_one_name_are_not_mixed(self, tmp_path: Path) -> None:
        row = {"name": "BM", "run_name": "BM", "run_type": "iteration", "per_family_instance_index": 0}
        times = ((0, 0, 1.0), (1, 0, 50.0), (0, 1, 1.1), (1, 1, 51.0))
        rows = [row | {"family_index": f, "repetition_index": r, "real_time": time} for f, r, time in times]
        run = edited("google-benchmark", {"context": {}, "benchmarks": rows}, tmp_path)
        assert {r.benchmark.name: r.launches[0].measurements[0].samples for r in run.results} == {
            "BM": pytest.approx((1e-9, 1.1e-9)),
            "BM #2": pytest.approx((5e-8, 5.1e-8)),
        }

    def test_a_counter_called_time_is_not_taken_for_the_time(self, tmp_path: Path) -> None:
        row = {"name": "BM", "run_name": "BM", "run_type": "iteration", "real_time": 5.0, "cpu_time": 4.0, "time": 77.0}
        run = edited("google-benchmark", {"context": {}, "benchmarks": [row]}, tmp_path)
        found = summarize(run.results[0].counted)
        assert [(s.metric, s.launches, s.labels) for s in found] == [
            ("time", 1, {}),
            ("cpu_time", 1, {}),
            ("time", 1, {"counter": "time"}),
        ]

    def test_a_library_built_for_debugging_is_remarked(self) -> None:
        notes = [note.text for note in read("google-benchmark", "google_benchmark.json").notes]
        assert any("debug build" in note for note in notes)


class TestAsv:
    @both_versions_of_asv
    def test_parameters_are_expanded_into_benchmarks(self, path: Path) -> None:
        run = read("asv", path)
        lists = [r for r in run.results if "Lists" in r.benchmark.name]
        assert [r.benchmark.name for r in lists] == [
            f"benchmarks.Lists.time_order({p})"
            for p in ("10, 'sort'", "10, 'reverse'", "1000, 'sort'", "1000, 'reverse'")
        ]
        assert lists[0].benchmark.parameters == {"size": "10", "way": "'sort'"}
        assert lists[0].benchmark.warmup.seconds == 0.01
        assert [r.status for r in lists] == [Status.OK, Status.SKIPPED, Status.OK, Status.FAILED]

    @both_versions_of_asv
    def test_samples_are_raw_and_their_median_is_asvs_result(self, path: Path) -> None:
        entry = body_of(path)["results"]["benchmarks.time_range"]
        (value,) = entry["result"] if isinstance(entry, dict) else entry[0]
        time = only_launch(read("asv", path), "benchmarks.time_range", "time")
        assert len(time.samples) == 8
        assert statistics.median(time.samples) == pytest.approx(value)
        assert (time.unit, time.direction) == ("s", Direction.LOWER)

    @both_versions_of_asv
    def test_every_kind_has_its_metric_and_unit(self, path: Path) -> None:
        run = read("asv", path)
        assert only_launch(run, "benchmarks.mem_list", "memory").unit == "B"
        assert only_launch(run, "benchmarks.peakmem_list", "peak_memory").unit == "B"
        loss = only_launch(run, "benchmarks.track_loss", "value")
        assert (loss.samples, loss.unit, loss.direction) == ((0.25,), "nats", Direction.LOWER)

    @both_versions_of_asv
    def test_what_failed_or_was_left_out_is_kept_as_such(self, path: Path) -> None:
        run = read("asv", path)
        assert run.result("benchmarks.time_broken").status is Status.FAILED
        assert run.result("benchmarks.track_nothing").status is Status.SKIPPED

    @both_versions_of_asv
    def test_machine_revision_and_time(self, path: Path) -> None:
        run = read("asv", path)
        machine = run.machine
        assert (machine.hostname, machine.system, machine.kernel) == ("sample-machine", "Linux", "6.1")
        # Version 1 was written by an asv that counts memory in KiB.
        assert (machine.cores_total, machine.memory_bytes) == (2, 8440721408)
        assert run.labels["revision"].startswith("e0a94ef3")
        assert run.started.startswith("2026-11-15T03:44")
        assert [note.text.split()[0] for note in run.notes] == ["asv"]

    @both_versions_of_asv
    def test_a_file_alone_is_read_too(self, path: Path, tmp_path: Path) -> None:
        run = edited("asv", body_of(path), tmp_path)
        assert run.id != ""
        assert only_launch(run, "benchmarks.time_range", "time").unit == "s"
        assert only_launch(run, "benchmarks.track_loss", "value").unit is None
        assert run.results[0].benchmark.parameters == {"param1": "10", "param2": "'sort'"}

    def test_without_samples_asvs_number_is_kept_and_that_is_said(self, tmp_path: Path) -> None:
        body = body_of(ASV[1])
        body["results"] = {"time_x": [[0.5]]}
        run = edited("asv", body, tmp_path)
        assert only_launch(run, "time_x", "time").samples == (0.5,)
        assert any("--record-samples" in note.text for note in run.notes)
        assert any("that of the commit" in note.text for note in run.notes)

    def test_a_wrong_number_of_results_is_refused(self, tmp_path: Path) -> None:
        body = body_of(ASV[1])
        body["results"] = {"time_x": [[0.5], [["1", "2"]]]}
        with pytest.raises(InvalidInput, match="'time_x' has 1 results for 2 combinations"):
            edited("asv", body, tmp_path)

    def test_an_unknown_version_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="version 3 of asv"):
            edited("asv", body_of(ASV[1]) | {"version": 3}, tmp_path)


class TestDriver:
    def test_one_number_for_each_metric(self) -> None:
        run = read("driver", "driver_result.json")
        (result,) = run.results
        assert result.benchmark.name == "small_loop"
        found = {m.metric: (m.samples, m.unit, m.direction) for m in result.launches[0].measurements}
        assert found["speed"] == ((1024.0,), None, Direction.HIGHER)
        assert found["cpu_memory_usage"] == ((13600.0,), "KiB", Direction.LOWER)
        assert found["uptime_in_seconds"][1:] == ("s", Direction.NEITHER)

    def test_dots_in_tasks_metrics_and_suffixes_are_told_apart_by_the_drivers_own_metrics(self, tmp_path: Path) -> None:
        body = {
            "mxnet.resnet.v1.top1.acc.fp16": 0.7,
            "mxnet.resnet.v1.uptime_in_seconds.fp16": 5,
            "mxnet.resnet.v1.top1.acc.fp32": 0.8,
            "mxnet.resnet.v1.cpu_memory_usage.fp32": 6,
            "other.speed": 3,
        }
        run = edited("driver", body, tmp_path)
        found = {r.benchmark.name: [m.metric for m in r.launches[0].measurements] for r in run.results}
        assert found == {
            "mxnet.resnet.v1.fp16": ["top1.acc", "uptime_in_seconds"],
            "mxnet.resnet.v1.fp32": ["top1.acc", "cpu_memory_usage"],
            "other": ["speed"],
        }


def test_guidellms_inter_token_latency_is_our_time_per_token() -> None:
    """Its time per output token, 11 ms here, includes the first token."""
    (run,) = import_results(SAMPLES / "guidellm.json").runs
    found = {m.metric: m.samples for m in run.results[0].launches[0].measurements}
    assert found["time.per_token"] == pytest.approx([0.010])
    assert "time.chunk_gap" not in found


def test_aiperf_says_when_it_measured() -> None:
    (run,) = import_results(SAMPLES / "aiperf.json").runs
    assert run.started == "2026-11-18T16:13:05+00:00"


class TestFolders:
    def test_every_result_file_below_a_folder_is_read_once(self, tmp_path: Path) -> None:
        (tmp_path / "again").mkdir()
        for path in ("hyperfine.json", "again/copy.json"):
            (tmp_path / path).write_bytes((SAMPLES / "hyperfine.json").read_bytes())
        (tmp_path / "package.json").write_text('{"name": "x"}')
        assert [run.labels["imported_from"] for run in import_results(tmp_path).runs] == ["hyperfine"]

    def test_all_samples_are_found_by_their_content(self) -> None:
        tools = [run.labels["imported_from"] for run in import_results(SAMPLES).runs]
        assert {tool: tools.count(tool) for tool in tools} == {
            "aiperf": 1,
            "asv": 2,
            "driver": 1,
            "fai-pep": 1,
            "google-benchmark": 3,
            "guidellm": 1,
            "hyperfine": 3,
            "milabench": 2,
            "pytest-benchmark": 2,
            "vllm": 1,
        }

    def test_a_damaged_file_in_a_folder_is_a_problem_and_the_others_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "good.json").write_bytes((SAMPLES / "hyperfine.json").read_bytes())
        (tmp_path / "bad.json").write_text('{"results": [{"command": "x", "mean": "slow"}]}')
        imported = import_results(tmp_path)
        assert len(imported.runs) == 1
        (problem,) = imported.problems
        assert "bad.json: not a file of hyperfine" in problem
        assert "$.results[0].mean" in problem

    def test_a_folder_without_results_is_refused_with_what_can_be_imported(self, tmp_path: Path) -> None:
        with pytest.raises(
            InvalidInput, match=r"no known result file in this folder.*hyperfine, milabench, pytest-benchmark"
        ):
            import_results(tmp_path)

    def test_a_file_that_is_no_json_is_refused_with_the_place(self, tmp_path: Path) -> None:
        path = tmp_path / "cut.json"
        path.write_text('{"results": [{"command": "x", "mean"')
        with pytest.raises(InvalidInput, match=r"cut\.json:1:\d+: this is not JSON"):
            import_results(path)

    def test_a_file_is_read_again_when_it_has_changed(self, tmp_path: Path) -> None:
        path = tmp_path / "h.json"
        for time in (1.0, 2.5):
            path.write_text(json.dumps({"results": [{"command": "x", "mean": time, "times": [time]}]}))
            (run,) = import_results(path).runs
            assert run.results[0].launches[0].measurements[0].samples == (time,)

    def test_a_missing_path_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="there is no such file"):
            import_results(tmp_path / "x.json")

    def test_an_unknown_tool_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(InvalidInput, match="did you mean 'hyperfine'"):
            importer_named("hyperfin")


@pytest.mark.parametrize("strange", ["a pipe", "an endless device"])
@pytest.mark.parametrize("name", ["x.json", "x.data", "x.txt"])
def test_only_plain_files_are_read(tmp_path: Path, strange: str, name: str) -> None:
    STRANGE[strange](tmp_path / name)
    with pytest.raises(InvalidInput, match="Not a regular file; write it to a file first"):
        import_results(tmp_path / name)
    with pytest.raises(InvalidInput, match="Not a regular file"):
        import_results(tmp_path / name, tool="milabench")
    with pytest.raises(InvalidInput):
        import_results(tmp_path)
    with pytest.raises(InvalidInput):
        MilabenchImporter().read(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    for name, size in (("x.json", MOST_JSON_BYTES + 1), ("x.data", MOST_LINES_BYTES + 1)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)  # takes no room on the disk
        with pytest.raises(InvalidInput, match=r"result files of up to .* are read"):
            import_results(tmp_path / name)


def test_lines_of_milabench_are_read_one_after_another(tmp_path: Path) -> None:
    """Memory grows with what is kept, not with the file."""
    start = b'{"event": "start", "data": {"time": 1.0}, "pipe": null}\n'
    line = b'{"event": "line", "data": "' + b"x" * 1000 + b'", "pipe": "stdout"}\n'
    with open(tmp_path / "x.data", "wb") as file:
        file.write(start)
        for _ in range(40):
            file.write(line * 1000)
    tracemalloc.start()
    try:
        job = read_job_file(tmp_path / "x.data")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert job.starts == 1
    assert peak_bytes < 2 << 20
    assert job.digest == hashlib.sha256((tmp_path / "x.data").read_bytes()).hexdigest()
