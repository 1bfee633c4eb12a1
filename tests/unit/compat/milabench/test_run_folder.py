"""milabench's run folders: what becomes of their files, whatever state they are in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.analysis.summary import summarize
from benchwright.compat.milabench.run_folder import MilabenchImporter
from benchwright.compat.milabench.score import milabench_score
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Accelerator
from benchwright.core.run import Launch, Run
from benchwright.core.status import Reason, Status
from benchwright.runs.importers import import_results

SAMPLES = Path(__file__).parents[3] / "compat" / "imports" / "milabench"
REAL = SAMPLES / "rijubigo.2023-03-24"
fast = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
MIB = 2**20


def event(kind: str, data: Any, pipe: str | None = "data") -> dict[str, Any]:
    return {"event": kind, "data": data, "pipe": pipe}


def job_lines(**change: Any) -> list[Any]:
    """A process of 2025, with everything in it; a key of `change` replaces that part, None leaves it out."""
    config = {"name": "bert", "tag": ["bert", "R1", "D3"], "device": 3, "weight": 2.5, "enabled": True}
    config |= {"tags": ["nlp"], "group": "hf", "max_duration": 600, "run_name": "x.2025"}
    gpus = {"3": {"product": "H100", "memory": {"used": 1, "total": 81920.0}}}
    meta = {
        "os": {"sysname": "Linux", "nodename": "n1", "release": "6.1", "machine": "x86_64"},
        "cpu": {"count": 64, "brand": "EPYC"},
        "accelerators": {"arch": "cuda", "gpus": gpus, "system": {"DRIVER_VERSION": "535"}},
        "milabench": {"commit": "abc", "tag": "v1"},
        "pytorch": {"torch": "2.7"},
    }
    gpu = {"3": {"memory": [1000, 81920.0], "load": 0.5, "temperature": 40, "power": 300.5}}
    parts: dict[str, Any] = {
        "config": event("config", config, None),
        "meta": event("meta", meta),
        "start": event("start", {"command": ["voir", "main.py"], "time": 1750000000.5}, None),
        "phase": event("phase", {"name": "init"}),
        "line": event("line", "hello\n", "stdout"),
        "rate0": event("data", {"task": "train", "rate": 10.0, "units": "items/s", "time": 1750000002.0}),
        "rate1": event("data", {"task": "train", "rate": 20.0, "units": "items/s", "time": 1750000004.0}),
        "eval": event("data", {"task": "eval", "rate": 7.0, "units": "items/s"}),
        "loss": event("data", {"loss": 0.5}),
        "gpu": event("data", {"task": "main", "gpudata": gpu, "time": 1750000003.0}),
        "same gpu": event("data", {"task": "main", "gpudata": gpu, "time": 1750000003.0}),
        "peak": event("data", {"memory_peak": 2048, "units": "MiB"}),
        "end": event("end", {"command": ["voir"], "time": 1750000010.5, "return_code": 0}, None),
    }
    return [part for part in (parts | change).values() if part is not None]


def write(folder: Path, name: str, lines: list[Any]) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path = folder / f"{name}.data"
    path.write_text(text)
    return path


@pytest.fixture
def one(tmp_path: Path) -> Callable[..., Launch]:
    def make(**change: Any) -> Launch:
        write(tmp_path / "run", "bert.R1.D3", job_lines(**change))
        (run,) = MilabenchImporter().read(tmp_path / "run")
        (launch,) = run.results[0].launches
        return launch

    return make


def samples(launch: Launch, metric: str) -> tuple[float, ...]:
    found = launch.measurement(metric)
    assert found is not None, metric
    return found.samples


class TestTheRealRun:
    def test_it_gives_milabenchs_own_figures(self) -> None:
        (run,) = import_results(REAL).runs
        score = milabench_score(run)
        (row,) = score.rows
        assert (row.n, row.fail) == (4, 0)
        assert row.perf == pytest.approx(7979.82, abs=0.005)
        assert row.score == pytest.approx(7979.82, abs=0.005)
        assert round(row.sem * 100, 1) == 2.9
        assert round(row.std * 100, 1) == 17.2
        assert score.value == pytest.approx(7980.82, abs=0.005)

    def test_processes_that_ran_together_are_launches_at_one_place(self) -> None:
        (run,) = import_results(REAL).runs
        (result,) = run.results
        assert [(x.job, x.launch, x.position) for x in result.launches] == [
            ("benchio.0.R0", 0, 0),
            ("benchio.1.R0", 0, 0),
            ("benchio.0.R1", 1, 1),
            ("benchio.1.R1", 1, 1),
        ]
        assert [x.measurements[0].labels["job"] for x in result.launches] == ["0", "1", "0", "1"]
        assert (run.started, run.name) == ("2023-03-24T17:45:27+00:00", "rijubigo.2023-03-24")

    def test_its_own_importer_is_found_for_the_folder_and_for_one_above(self) -> None:
        (below,) = (run for run in import_results(SAMPLES).runs if run.name == REAL.name)
        assert below.id == import_results(REAL).runs[0].id

    @pytest.mark.parametrize(
        ("replay", "status", "reason", "theirs"),
        [
            ("early_stop", Status.OK, None, True),
            ("ensure_rate", Status.FAILED, Reason.NO_DATA, False),
            ("error", Status.FAILED, Reason.CRASHED, False),
            ("loss", Status.FAILED, Reason.INVALID, False),
            ("no_usage", Status.FAILED, Reason.NO_DATA, False),
        ],
    )
    def test_single_processes_are_judged(
        self, replay: str, status: Status, reason: Reason | None, theirs: bool
    ) -> None:
        (run,) = MilabenchImporter().read(SAMPLES / "replays" / f"{replay}.data")
        (launch,) = run.results[0].launches
        assert (launch.status, launch.reason, launch.facts["milabench"]["success"]) == (status, reason, theirs)

    def test_what_the_gpu_used_is_kept_in_bytes(self) -> None:
        (run,) = MilabenchImporter().read(SAMPLES / "replays" / "usage.data")
        (launch,) = run.results[0].launches
        assert samples(launch, "gpu.memory") == (29947.4375 * MIB,) * 5
        assert launch.measurement("gpu.power") is None


class TestAFile:
    def test_everything_in_it_is_kept(self, one: Callable[..., Launch], tmp_path: Path) -> None:
        launch = one()
        assert samples(launch, "rate") == (10.0, 20.0)
        assert samples(launch, "eval.rate") == (7.0,)
        assert samples(launch, "loss") == (0.5,)
        assert samples(launch, "gpu.memory") == (1000.0 * MIB,)  # said twice, counted once
        assert samples(launch, "gpu.load") == (50.0,)
        assert samples(launch, "gpu.power") == (300.5,)
        assert samples(launch, "gpu.temperature") == (40.0,)
        assert samples(launch, "gpu.memory_peak") == (2048.0 * MIB,)
        assert (launch.status, launch.launch, launch.devices, launch.duration_s) == (Status.OK, 1, (3,), 10.0)
        facts = launch.facts["milabench"]
        assert (facts["device"], facts["weight"], facts["counted"], facts["success"]) == (3, 2.5, True, True)

    def test_the_benchmark_and_the_machine_are_known(self, one: Callable[..., Launch], tmp_path: Path) -> None:
        one()
        (run,) = MilabenchImporter().read(tmp_path / "run")
        (result,) = run.results
        assert (result.benchmark.name, result.benchmark.weight, result.benchmark.tags) == ("bert", 2.5, ("nlp",))
        assert (run.machine.cpu, run.machine.cores, run.machine.hostname) == ("EPYC", 64, "n1")
        assert run.machine.accelerators == (Accelerator(index=0, name="H100", memory_bytes=81920 * MIB, driver="535"),)
        assert (run.labels["revision"], run.labels["torch"], run.labels["arch"]) == ("abc", "2.7", "cuda")
        assert run.ended == "2025-06-15T15:06:50+00:00"

    @pytest.mark.parametrize("missing", ["meta", "phase", "rate0", "eval", "loss", "gpu", "peak", "line"])
    def test_what_may_be_missing_is_not_missed(self, one: Callable[..., Launch], missing: str) -> None:
        assert one(**{missing: None}).status is Status.OK

    def test_a_broken_line_is_skipped_and_noted(self, one: Callable[..., Launch]) -> None:
        launch = one(broken='{"event": "data", "data": {"task": "tra', noise="no JSON at all")
        assert samples(launch, "rate") == (10.0, 20.0)
        assert [n.evidence for n in launch.notes if "skipped" in n.text] == ["2 lines"]

    def test_a_bare_nan_is_a_failure_of_ours_and_of_theirs(self, one: Callable[..., Launch]) -> None:
        launch = one(nan='{"event": "data", "data": {"loss": NaN}, "pipe": "data"}')
        assert math.isnan(samples(launch, "loss")[-1])
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
        assert launch.facts["milabench"]["success"] is False

    def test_what_they_call_success_after_an_early_stop_is_not_ours(self, one: Callable[..., Launch]) -> None:
        launch = one(stop=event("stop", None), nan='{"event": "data", "data": {"loss": NaN}, "pipe": "data"}')
        assert launch.facts["milabench"]["success"] is True
        assert launch.status is Status.FAILED

    @pytest.mark.parametrize(
        ("code", "reason", "detail"),
        [
            (1, Reason.CRASHED, "exit code 1: ValueError: no"),
            ("ERROR", Reason.CRASHED, "exit code ERROR: ValueError: no"),
            (-9, Reason.SIGNALLED, "ended by signal 9: ValueError: no"),
        ],
    )
    def test_an_error_is_told_with_how_it_ended(
        self, one: Callable[..., Launch], code: int | str, reason: Reason, detail: str
    ) -> None:
        end = event("end", {"time": 1750000011.0, "return_code": code}, None)
        launch = one(error=event("error", {"type": "ValueError", "message": "no"}), end=end)
        assert (launch.status, launch.reason, launch.detail) == (Status.FAILED, reason, detail)

    def test_a_file_without_an_end_is_no_success(self, one: Callable[..., Launch]) -> None:
        launch = one(end=None)
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)
        assert launch.facts["milabench"]["counted"] is False

    @pytest.mark.parametrize(
        ("config", "ngpu"),
        [
            ({"device": 3, "devices": [3], "plan": {"method": "per_gpu"}}, 1),
            ({"devices": [0, 1, 2, 3], "plan": {"method": "njobs", "n": 1}}, 4),
            ({"devices": [0, 1], "plan": {"method": "njobs", "n": 1}, "num_machines": 2}, 4),
            ({"plan": {"method": "njobs", "n": 2}}, 0),
            ({}, 1),
        ],
    )
    def test_ngpu_is_counted_for_each_process(
        self, one: Callable[..., Launch], config: dict[str, Any], ngpu: int
    ) -> None:
        launch = one(config=event("config", {"name": "bert", "tag": ["bert"], **config}, None))
        assert launch.facts["milabench"]["ngpu"] == ngpu

    def test_energy_is_the_power_of_its_own_device_over_the_time_between_samples(
        self, one: Callable[..., Launch]
    ) -> None:
        def seen(time: float | None, *watts: float | None) -> dict[str, Any]:
            gpus = {
                str(device): {"memory": [9, 99], "load": 0.5} | ({} if w is None else {"power": w})
                for device, w in enumerate(watts)
            }
            return event("data", {"task": "main", "gpudata": gpus} | ({} if time is None else {"time": time}))

        def energy(*gpus: dict[str, Any], **config: Any) -> Any:
            about = {"name": "bert", "tag": ["bert"], **config}
            parts = {f"gpu {n}": gpu for n, gpu in enumerate(gpus)} | {"gpu": None, "same gpu": None}
            return one(config=event("config", about, None), **parts).facts["milabench"]["energy"]

        samples = [seen(1750000001.0, 100, 7), seen(1750000003.0, 200, 5), seen(1750000007.0, 300, 10)]
        assert energy(*samples, device=0) == pytest.approx((1.6, 6.0))  # 2 s of 200 W, 4 s of 300 W
        assert energy(*samples, device=1) == pytest.approx((0.05, 6.0))
        assert energy(*samples) == pytest.approx((1.65, 6.0))
        assert energy(*samples, samples[-1]) == pytest.approx((1.65, 6.0))  # said twice
        assert energy(*samples[:1]) is None
        assert energy(*(seen(1750000001.0 + n, None) for n in range(3))) is None
        assert energy(*(seen(None, 100.0) for n in range(3))) is None
        assert energy() is None

    def test_no_data_is_expected_of_further_ranks(self, one: Callable[..., Launch]) -> None:
        silent: dict[str, Any] = dict.fromkeys(("rate0", "rate1", "eval", "loss", "gpu", "same gpu", "peak"))
        config = {"name": "bert", "tag": ["bert", "node1", "nolog"]}
        launch = one(config=event("config", config, None), **silent)
        assert (launch.status, launch.facts["milabench"]["success"]) == (Status.OK, True)
        assert one(**silent).status is Status.FAILED

    @pytest.mark.parametrize(
        ("stem", "name", "number", "device"),
        [
            ("bert.R2.D7", "bert", 2, 7),
            ("bert.0.R3", "bert", 3, None),
            ("bert-tf32.fp16.D0.node1", "bert-tf32.fp16", None, 0),
            ("bert", "bert", None, None),
        ],
    )
    def test_without_a_configuration_the_file_name_tells(
        self, tmp_path: Path, stem: str, name: str, number: int | None, device: int | None
    ) -> None:
        write(tmp_path / "run", stem, job_lines(config=None))
        (run,) = MilabenchImporter().read(tmp_path / "run")
        (result,) = run.results
        (launch,) = result.launches
        assert (result.benchmark.name, launch.launch, launch.facts["milabench"]["device"]) == (name, number, device)

    def test_the_share_of_common_time_is_told_where_rates_have_times(self, tmp_path: Path) -> None:
        for device, shift in ((0, 0.0), (1, 1.0)):
            config = {"name": "bert", "tag": ["bert", f"D{device}"], "device": device}
            rates = {
                f"rate{n}": event("data", {"task": "train", "rate": 5.0, "time": 1750000000.0 + shift + 2 * n})
                for n in range(2)
            }
            write(tmp_path / "run", f"bert.D{device}", job_lines(config=event("config", config, None), **rates))
        (run,) = MilabenchImporter().read(tmp_path / "run")
        assert run.results[0].overlap == pytest.approx(1 / 2)


def skip_message(name: str, condition: str) -> dict[str, Any]:
    text = f"Skip {name} because the following capability is not satisfied: {condition}"
    return event("message", {"message": text}, None)


class TestSkippedBenchmarks:
    """milabench writes a file with nothing but a message for each."""

    def test_they_are_skipped_with_the_condition_that_does_not_hold(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "bert.D0", job_lines())
        conditions = ("len(nodes) >= 2", "gpu['count'] > 1")
        write(tmp_path / "run", "llm-nodes", [skip_message("llm-nodes", c) for c in (*conditions, conditions[0])])
        (run,) = MilabenchImporter().read(tmp_path / "run")
        skipped = next(r for r in run.results if r.benchmark.name == "llm-nodes")
        assert (skipped.status, skipped.reason, skipped.launches) == (Status.SKIPPED, Reason.LACKS_CAPABILITY, ())
        assert skipped.detail == "needs len(nodes) >= 2 and gpu['count'] > 1, which did not hold there"
        assert run.status is Status.OK

    def test_they_do_not_lower_the_score(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "bert.D0", job_lines())
        alone = milabench_score(MilabenchImporter().read(tmp_path / "run")[0])
        write(tmp_path / "run", "llm-nodes", [skip_message("llm-nodes", "len(nodes) >= 2")])
        (run,) = MilabenchImporter().read(tmp_path / "run")
        score = milabench_score(run)
        assert (score.value, score.rows) == (alone.value, alone.rows)
        assert len(score.left_out) == 1
        weighed = milabench_score(run, weights={"bert": 1.0, "llm-nodes": 1.0})
        assert ([row.n for row in weighed.rows], weighed.left_out) == (
            [1, 0],
            (),
        )  # with the suite's weights it counts as 0, as theirs does

    def test_a_run_of_nothing_else_is_skipped(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "llm-nodes", [skip_message("llm-nodes", "len(nodes) >= 2")])
        (run,) = MilabenchImporter().read(tmp_path / "run")
        assert run.status is Status.SKIPPED

    def test_a_benchmark_that_ran_later_in_the_same_folder_is_not_skipped(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "bert", [skip_message("bert", "len(nodes) >= 2")])
        write(tmp_path / "run", "bert.D0", job_lines())
        (result,) = MilabenchImporter().read(tmp_path / "run")[0].results
        assert (result.status, [x.job for x in result.launches]) == (Status.OK, ["bert.D0"])

    def test_a_process_that_died_is_not_skipped_whatever_it_said(self, one: Callable[..., Launch]) -> None:
        launch = one(end=None, message=skip_message("bert", "len(nodes) >= 2"))
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)

    def test_an_error_before_the_start_is_told(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "bert", [event("error", {"type": "KeyError", "message": "plan"}, None)])
        (result,) = MilabenchImporter().read(tmp_path / "run")[0].results
        assert (result.reason, result.detail) == (Reason.CRASHED, "never started: KeyError: plan")


class TestFolders:
    def test_the_same_folder_gives_the_same_run_and_a_changed_one_another(self, tmp_path: Path) -> None:
        write(tmp_path / "a", "bert.D0", job_lines())
        write(tmp_path / "b", "bert.D0", job_lines())
        write(tmp_path / "c", "bert.D0", job_lines(line=None))
        first, second, third = (MilabenchImporter().read(tmp_path / name)[0].id for name in "abc")
        assert first == second != third

    def test_a_process_keeps_its_place_where_another_left_no_file(self, tmp_path: Path) -> None:
        """Else what device 2 did in the second repetition would be taken for device 1's."""
        for repeat, device in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]:
            tag = ["bert", f"R{repeat}", f"D{device}"]
            config = event("config", {"name": "bert", "tag": tag, "device": device}, None)
            write(tmp_path / "run", ".".join(tag), job_lines(config=config))
        (run,) = MilabenchImporter().read(tmp_path / "run")
        seats = {x.job: x.measurements[0].labels["job"] for x in run.results[0].launches}
        assert seats == {"bert.R0.D0": "0", "bert.R0.D1": "1", "bert.R0.D2": "2", "bert.R1.D0": "0", "bert.R1.D2": "2"}

    def test_many_runs_below_a_folder_are_all_read_and_other_phases_are_not(self, tmp_path: Path) -> None:
        for name in ("x.2025", "y.2025", "install.2025", "prepare.2025"):
            write(tmp_path / "runs" / name, "bert.D0", job_lines(line=event("line", name, "stdout")))
        imported = import_results(tmp_path)
        assert sorted(run.name for run in imported.runs) == ["x.2025", "y.2025"]
        assert imported.problems == ()

    def test_our_own_streams_are_not_taken_for_theirs(self, tmp_path: Path) -> None:
        (tmp_path / "train.R0.data").write_text('{"event":"stream","version":1,"job":"x"}\n{"event":"end"}\n')
        assert not MilabenchImporter().recognises(tmp_path)
        with pytest.raises(InvalidInput, match="no known result file in this folder"):
            import_results(tmp_path)

    def test_a_folder_of_replays_is_read_like_one_of_data_files(self, tmp_path: Path) -> None:
        for file in (SAMPLES / "replays").glob("*.data"):
            (tmp_path / "as-data").mkdir(exist_ok=True)
            (tmp_path / "as-data" / file.name).write_bytes(file.read_bytes())
            (tmp_path / "replays").mkdir(exist_ok=True)
            (tmp_path / "replays" / f"{file.stem}.txt").write_bytes(file.read_bytes())
        (tmp_path / "replays" / "requirements.txt").write_text("torch\n")
        (data,) = import_results(tmp_path / "as-data").runs
        (replays,) = import_results(tmp_path / "replays").runs
        assert (replays.id, len(replays.results)) == (data.id, len(data.results))
        assert not any("requirements" in note.text for note in replays.notes)
        assert [x.job for x in replays.results[0].launches] == [x.job for x in data.results[0].launches]

    def test_one_replay_is_a_run(self, tmp_path: Path) -> None:
        path = tmp_path / "loss.txt"
        path.write_bytes((SAMPLES / "replays" / "loss.data").read_bytes())
        (run,) = import_results(path).runs
        assert (run.name, run.results[0].reason) == ("loss", Reason.INVALID)

    def test_text_files_beside_data_files_are_not_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "run", "bert.D0", job_lines())
        (tmp_path / "run" / "copy.txt").write_bytes(path.read_bytes())
        (run,) = import_results(tmp_path).runs
        assert [x.job for x in run.results[0].launches] == ["bert.D0"]

    def test_other_text_files_are_no_results(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text('{"event": "x"}\nhello\n')
        with pytest.raises(InvalidInput, match="no known result file in this folder"):
            import_results(tmp_path)

    def test_a_file_that_is_none_of_theirs_is_left_out_with_a_note(self, tmp_path: Path) -> None:
        write(tmp_path / "run", "bert.D0", job_lines())
        (tmp_path / "run" / "junk.data").write_bytes(b"\xff\x00junk")
        (run,) = import_results(tmp_path).runs
        assert [note.text for note in run.notes if "junk.data" in note.text]


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just(10**400)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "tag", "0", "x"]), inner),
    max_leaves=6,
)


def places(body: Any) -> list[tuple[Any, Any]]:
    if isinstance(body, dict):
        return [(body, k) for k in body] + [place for v in body.values() for place in places(v)]
    if isinstance(body, list):
        return [(body, i) for i in range(len(body))] + [place for v in body for place in places(v)]
    return []


def read_or_refuse(path: Path) -> tuple[list[Run], InvalidInput | None]:
    try:
        return MilabenchImporter().read(path), None
    except InvalidInput as error:
        return [], error


def use(run: Run) -> None:
    for result in run.results:
        summarize(result.counted)
    msgspec.json.encode(run)


@fast
@given(data=st.data())
def test_a_folder_with_anything_changed_gives_a_run_or_a_placed_error(data: st.DataObject, tmp_path: Path) -> None:
    lines = job_lines()
    for _ in range(data.draw(st.integers(1, 3))):
        where, key = data.draw(st.sampled_from(places(lines)))
        where[key] = data.draw(values)
    path = write(tmp_path / "run", "bert.R1.D3", lines)
    runs, refusal = read_or_refuse(path)
    assert refusal is None or refusal.where == str(path)
    for run in runs:
        use(run)


@fast
@given(cut=st.integers(0, 4000))
def test_a_file_that_is_cut_off_gives_what_it_still_holds(cut: int, tmp_path: Path) -> None:
    path = write(tmp_path / "run", "bert.R1.D3", job_lines())
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole))])
    runs, refusal = read_or_refuse(path)
    assert refusal is None or refusal.line == 1
    if refusal is not None:
        return
    (run,) = runs
    use(run)
    (launch,) = run.results[0].launches
    complete = whole[: min(cut, len(whole))].count(b'"rate": 10.0') + whole[: min(cut, len(whole))].count(
        b'"rate": 20.0'
    )
    found = launch.measurement("rate")
    assert complete - 1 <= (len(found.samples) if found else 0) <= complete
