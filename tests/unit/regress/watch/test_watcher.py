"""The loop of a watch, on a real repository, with builds and measurements that take no time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from small_repository import SmallRepository

from benchwright.core.comparison import Verdict
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput, UnknownMetric
from benchwright.core.metric import Direction
from benchwright.regress.builds import BuiltRevision, RevisionNotBuilt
from benchwright.regress.repository import Commit, GitRepository
from benchwright.regress.watch.control import Against, Control
from benchwright.regress.watch.examination import Measured
from benchwright.regress.watch.records import CallMark, CommitOutcome, CommitRecord, EffectRecord
from benchwright.regress.watch.state import CommitFile, Journal
from benchwright.regress.watch.watcher import WatchLoop
from benchwright.regress.watch.work import Pulled, WatchPlace, WatchPlan, WatchTrial


class Bench:
    """A watched repository and everything a watch is handed. `speeds`: subject → how slow the commit is."""

    def __init__(self, folder: Path) -> None:
        self.small = SmallRepository(folder / "repository")
        self.repository = GitRepository(self.small.folder)
        self.commit_file = CommitFile(folder / "last")
        self.journal = Journal(folder / "journal.jsonl")
        self.speeds: dict[str, float] = {}
        self.unbuildable: set[str] = set()
        self.failing: set[str] = set()  # programs that fail
        self.silent: set[str] = set()  # programs that measure something else
        self.offline = False
        self.first: str | None = None
        self.broken_machine = False
        self.steps: list[str] = []
        self.said: list[str] = []
        self.records: list[CommitRecord] = []
        self.time = 0.0
        self.waited: list[float] = []
        self.idle: list[bool] = []
        self.stop_after: Callable[[list[str]], bool] = lambda steps: False
        self.on_wait: Callable[[], None] = lambda: None
        self.all_places: Sequence[WatchPlace] = (WatchPlace(),)
        self.measuring = threading.Event()
        self.building_stopped = False

    def commit(self, subject: str, speed: float = 1.0) -> str:
        self.speeds[subject] = speed
        return self.small.commit(subject)

    def watch(self, **plan: object) -> int:
        self.steps.clear()
        self.records.clear()
        return self.watcher(**plan).run()

    def watcher(self, **plan: object) -> WatchLoop:
        return WatchLoop(
            self.repository,
            WatchPlan(**plan),  # type: ignore[arg-type]
            self,
            commit_file=self.commit_file,
            journal=self.journal,
            clock=self,
            observer=self,
        )

    @property
    def outcomes(self) -> dict[str, str]:
        return {record.subject: record.outcome.value for record in self.records}

    # -- work ----------------------------------------------------------------------------------------------------

    def pull(self) -> Pulled:
        self.steps.append("pull")
        if self.offline:
            raise CannotMeasure("git fetch origin: could not resolve host")
        first = None if self.first is None else self.repository.commit(self.first, "--commit")
        return Pulled(tip=self.repository.commit("main"), first=first)

    def places(self) -> Sequence[WatchPlace]:
        return self.all_places

    def build(self, commit: Commit, platform: str | None) -> BuiltRevision:
        beside = " beside a measurement" if self.measuring.is_set() else ""
        self.steps.append(f"build {commit.subject}{f' for {platform}' if platform else ''}{beside}")
        if commit.subject in self.unbuildable:
            raise RevisionNotBuilt(
                f"{commit.short} could not be built (exit code 2)", Path("/logs/build.log"), ("no rule",)
            )
        return BuiltRevision(commit=commit)

    def stop_building(self) -> None:
        self.building_stopped = True

    def measure(self, trial: WatchTrial) -> Measured:
        control = trial.control.commit.subject if trial.control else "nothing"
        self.steps.append(f"{trial.purpose.value} {trial.treatment.commit.subject} against {control}")
        self.measuring.set()
        try:
            return self._measured(trial)
        finally:
            self.measuring.clear()

    def _measured(self, trial: WatchTrial) -> Measured:
        if self.broken_machine:
            raise CannotMeasure("the agent died")
        treatment = trial.treatment.commit.subject
        if treatment in self.silent:
            raise UnknownMetric("r did not measure 'time'", metric="time", remedy="it measured process.duration")
        if trial.control is None:
            return Measured(run="r", broken={"loop": "exit code 1"} if treatment in self.failing else {})
        control = trial.control.commit.subject
        if treatment in self.failing or control in self.failing:
            if treatment in self.failing and control in self.failing:
                raise CannotMeasure("nothing could be measured")
            reason = {"loop": "exit code 1"}
            return Measured(run="r", **{"broken" if treatment in self.failing else "control_broken": reason})
        ratio = self.speeds[treatment] / self.speeds[control]
        verdict = Verdict.REGRESSED if ratio > 1.02 else Verdict.IMPROVED if ratio < 0.98 else Verdict.SAME
        found = EffectRecord(
            benchmark="loop",
            metric="time",
            ratio=ratio,
            verdict=verdict,
            direction=Direction.LOWER,
            low=ratio - 0.01,
            high=ratio + 0.01,
        )
        return Measured(run=f"run-{len(self.steps)}", effects=(found,))

    # -- clock ---------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += seconds
        self.on_wait()

    def is_stopping(self) -> bool:
        return self.stop_after(self.steps)

    # -- observer ------------------------------------------------------------------------------------------------

    def on_commits(self, commits: Sequence[Commit]) -> None: ...

    def on_commit(self, commit: Commit, control: Control | None, place: WatchPlace) -> None: ...

    def on_record(self, record: CommitRecord) -> None:
        self.records.append(record)

    def on_waiting(self, seconds: float, *, nothing_new: bool) -> None:
        self.idle.append(nothing_new)

    def on_note(self, text: str) -> None:
        self.said.append(text)

    def on_trouble(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def started(bench: Bench) -> str:
    """After a first pass over one commit, which is recorded."""
    first = bench.commit("first")
    assert bench.watch() == 0
    assert bench.commit_file.read() == first
    return first


def test_the_first_commit_is_compared_with_itself_and_that_is_said(bench: Bench) -> None:
    started(bench)
    assert bench.steps == ["pull", "build first", "benchmark first against first"]
    assert bench.outcomes == {"first": "A/A"}


def test_new_commits_are_measured_in_order_and_recorded(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    last = bench.commit("third")
    assert bench.watch() == 0
    assert [step for step in bench.steps if "against" in step] == [
        "benchmark second against first",
        "benchmark third against first",
    ]
    assert bench.outcomes == {"second": "same", "third": "same"}
    assert bench.commit_file.read() == last
    assert [record.subject for record in bench.journal.read()] == ["first", "second", "third"]


def test_nothing_new_is_no_failure(bench: Bench) -> None:
    started(bench)
    assert bench.watch() == 0
    assert bench.steps == ["pull"]


def test_a_slow_down_is_verified_called_once_and_known_from_then_on(bench: Bench) -> None:
    started(bench)
    bench.commit("slow", 1.1)
    bench.commit("after")
    bench.speeds["after"] = 1.1
    assert bench.watch() == 1
    assert [step for step in bench.steps if "against" in step] == [
        "benchmark slow against first",
        "verify slow against first",
        "regress slow against first",
        "benchmark after against first",
    ]
    slow, after = bench.records
    assert (slow.outcome, after.outcome) == (CommitOutcome.REGRESSED, CommitOutcome.REGRESSED)
    assert len(slow.called) == 1
    assert after.called == ()
    assert after.effects[0].since == slow.commit
    assert [made.purpose.value for made in slow.runs] == ["benchmark", "verify", "regress"]


def test_a_regression_is_known_after_a_restart_and_forgotten_once_it_is_repaired(bench: Bench) -> None:
    started(bench)
    bench.commit("slow", 1.1)
    assert bench.watch() == 1
    bench.commit("still", 1.1)
    assert bench.watch() == 1
    assert bench.records[0].called == ()
    bench.commit("repaired", 1.0)
    assert bench.watch() == 0
    bench.commit("slow again", 1.1)
    assert bench.watch() == 1
    assert len(bench.records[0].called) == 1


def test_a_failed_build_is_a_record_and_no_stop(bench: Bench) -> None:
    started(bench)
    bench.commit("broken")
    last = bench.commit("good")
    bench.unbuildable = {"broken"}
    assert bench.watch() == 1
    assert bench.outcomes == {"broken": "build failed", "good": "same"}
    assert bench.records[0].log == "/logs/build.log"
    assert bench.records[0].notes[1:] == ("no rule",)
    assert bench.commit_file.read() == last


def test_nothing_but_failed_builds_means_that_nothing_was_measured(bench: Bench) -> None:
    started(bench)
    bench.commit("broken")
    bench.unbuildable = {"broken"}
    assert bench.watch() == 3


def test_a_commit_that_cannot_be_measured_is_told_once_and_comes_again(bench: Bench) -> None:
    started(bench)
    second = bench.commit("second")
    bench.broken_machine = True
    assert bench.watch() == 3
    assert bench.outcomes == {"second": "not measured"}
    assert bench.records[0].notes == ("the agent died",)
    assert [step for step in bench.steps if "against" in step] == [
        "benchmark second against first"
    ]  # not at once again
    assert bench.watch() == 3
    assert bench.records == []
    bench.broken_machine = False
    assert bench.watch() == 0
    assert bench.outcomes == {"second": "same"}
    assert bench.commit_file.read() == second
    assert bench.watch() == 0
    assert bench.steps == ["pull"]


def test_a_commit_without_a_metric_that_others_have_is_not_measured_and_the_next_follows(bench: Bench) -> None:
    bench.commit("base")
    bench.silent.add("base")
    with pytest.raises(InvalidInput, match="did not measure 'time'"):  # no commit is known to have it
        bench.watch()
    bench.silent.clear()
    bench.watch()
    bench.silent.add("silent")
    bench.commit("silent")
    bench.commit("after")
    assert bench.watch() == 3
    assert bench.outcomes == {"silent": "not measured", "after": "same"}
    assert bench.records[0].notes == ("--metric: r did not measure 'time'; it measured process.duration",)


def test_where_nothing_can_be_had_the_next_commit_follows_and_then_it_comes_back(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    third = bench.commit("third")
    measure, tries = bench.measure, []

    def busy_at_first(trial: WatchTrial) -> Measured:
        tries.append(trial.treatment.commit.subject)
        if tries.count("second") == 1 and tries[-1] == "second":
            raise CannotMeasure("nothing could be compared")
        return measure(trial)

    bench.measure = busy_at_first  # type: ignore[method-assign]
    assert bench.watch() == 0
    assert tries == ["second", "third", "second"]
    assert [(r.subject, r.outcome.value) for r in bench.records] == [
        ("second", "not measured"),
        ("third", "same"),
        ("second", "same"),
    ]
    assert bench.commit_file.read() == third


def test_with_an_interval_it_comes_back_while_nothing_is_new(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.commit("third")
    bench.broken_machine = True
    bench.on_wait = lambda: setattr(bench, "broken_machine", len(bench.waited) < 4)
    bench.stop_after = lambda steps: len(bench.waited) >= 8
    assert bench.watch(interval_s=60) == 0
    assert [(r.subject, r.outcome.value) for r in bench.records] == [
        ("second", "not measured"),
        ("third", "not measured"),
        ("second", "same"),
        ("third", "same"),
    ]


def test_an_unmeasured_commit_that_left_the_branch_is_let_go(bench: Bench) -> None:
    first = started(bench)
    bench.commit("second")
    bench.broken_machine = True
    assert bench.watch() == 3
    bench.small.git("reset", "-q", "--hard", first)
    bench.commit("other")
    bench.broken_machine = False
    assert bench.watch() == 0
    assert bench.outcomes == {"other": "same"}


def test_what_a_late_commit_shows_is_not_blamed_on_a_later_one(bench: Bench) -> None:
    started(bench)
    slow = bench.commit("slow", 1.1)
    bench.commit("after", 1.1)
    measure, tries = bench.measure, []

    def busy_at_first(trial: WatchTrial) -> Measured:
        tries.append(trial.treatment.commit.subject)
        if tries == ["slow"]:
            raise CannotMeasure("nothing could be compared")
        return measure(trial)

    bench.measure = busy_at_first  # type: ignore[method-assign]
    assert bench.watch() == 1
    assert bench.records[-1].subject == "slow"
    assert len(bench.records[-1].called) == 1
    bench.commit("still", 1.1)
    bench.watch()
    assert bench.records[0].effects[0].since == slow
    assert bench.records[0].called == ()


def test_a_regression_that_left_the_branch_is_nobodys_cause(bench: Bench) -> None:
    first = started(bench)
    slow = bench.commit("slow", 1.1)
    assert bench.watch() == 1
    bench.small.git("reset", "-q", "--hard", first)
    bench.commit("rewritten", 1.1)
    assert bench.watch() == 1
    assert len(bench.records[0].called) == 1
    assert all(effect.since != slow for effect in bench.records[0].effects)


def test_a_regression_that_an_interval_excludes_has_ended(bench: Bench) -> None:
    """The commit that repairs it is inconclusive, but not as bad."""
    started(bench)
    slow = bench.commit("slow", 1.1)
    assert bench.watch() == 1
    measure = bench.measure

    def unclear(trial: WatchTrial) -> Measured:
        found = measure(trial)
        wide = (replace(e, verdict=Verdict.INCONCLUSIVE, low=0.97, high=1.04) for e in found.effects)
        return replace(found, effects=tuple(wide))

    bench.measure = unclear  # type: ignore[method-assign]
    bench.commit("repair", 1.005)
    assert bench.watch() == 0
    assert bench.records[0].notes == (f"loop: time +10.0 %, since {slow[:10]}, was repaired",)
    bench.measure = measure  # type: ignore[method-assign]
    bench.commit("new loss", 1.03)
    assert bench.watch() == 1
    assert [made.purpose.value for made in bench.records[0].runs] == ["benchmark", "verify", "regress"]
    assert len(bench.records[0].called) == 1


def test_a_regression_that_somebody_accepted_fails_nothing_until_it_gets_worse(bench: Bench) -> None:
    started(bench)
    slow = bench.commit("slow", 1.1)
    assert bench.watch() == 1
    bench.journal.add(CallMark(mark="acknowledged", commit=slow, marked="2026-11-17T20:00:00Z"))
    bench.commit("still", 1.1)
    assert bench.watch() == 0
    assert bench.outcomes == {"still": "acknowledged"}
    bench.commit("worse", 1.2)
    assert bench.watch() == 1
    assert len(bench.records[0].called) == 1


def test_a_regression_that_was_forgotten_is_called_anew(bench: Bench) -> None:
    started(bench)
    slow = bench.commit("slow", 1.1)
    assert bench.watch() == 1
    bench.journal.add(CallMark(mark="forgotten", commit=slow, marked="2026-11-17T20:00:00Z"))
    bench.commit("still", 1.1)
    assert bench.watch() == 1
    assert len(bench.records[0].called) == 1


def test_a_regression_found_before_a_failure_to_measure_is_not_forgotten(bench: Bench) -> None:
    started(bench)
    bench.commit("slow", 1.1)
    bench.commit("next")
    bench.stop_after = lambda steps: setattr(bench, "broken_machine", any("regress slow" in s for s in steps)) or False
    assert bench.watch() == 1
    assert bench.outcomes == {"slow": "regressed", "next": "not measured"}


def test_a_killed_watch_goes_on_at_the_commit_it_was_at(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    third = bench.commit("third")

    class Killed(BaseException):
        pass

    measure = bench.measure

    def dies(trial: WatchTrial) -> Measured:
        if trial.treatment.commit.subject == "third":
            raise Killed
        return measure(trial)

    bench.measure = dies  # type: ignore[method-assign]
    with pytest.raises(Killed):
        bench.watch()
    bench.measure = measure  # type: ignore[method-assign]
    assert bench.watch() == 0
    assert bench.outcomes == {"third": "same"}
    assert bench.commit_file.read() == third


def test_an_interrupt_ends_the_watch_at_once_and_records_nothing(bench: Bench) -> None:
    first = started(bench)
    bench.commit("second")

    def interrupted(trial: WatchTrial) -> Measured:
        raise Interrupted("stopped")

    bench.measure = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        bench.watch(interval_s=60)
    assert bench.commit_file.read() == first


@pytest.mark.parametrize(
    ("after", "done", "measured"),
    [
        ("pull", ["pull"], []),
        ("build second", ["pull", "build second"], []),
        ("build first", ["pull", "build second", "build first"], []),
        (
            "benchmark second against first",  # and so is what verifies it
            [
                *("pull", "build second", "build first", "benchmark second against first"),
                *("verify second against first", "regress second against first"),
            ],
            ["second"],
        ),
    ],
)
def test_asked_to_stop_it_finishes_the_commit_in_hand(
    bench: Bench, after: str, done: list[str], measured: list[str]
) -> None:
    started(bench)
    bench.commit("second", 1.1)
    bench.commit("third")
    bench.stop_after = lambda steps: after in steps
    assert bench.watch(interval_s=60) == (1 if measured else 0)
    assert bench.steps == done
    assert list(bench.outcomes) == measured


def test_asked_to_stop_before_it_began_it_does_not_even_pull(bench: Bench) -> None:
    bench.commit("first")
    bench.stop_after = lambda steps: True
    assert bench.watch() == 0
    assert bench.steps == []


def test_the_interval_is_the_least_time_between_runs(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.commit("third")
    bench.stop_after = lambda steps: steps.count("pull") == 4
    assert bench.watch(interval_s=60) == 0
    runs_and_pulls = [step for step in bench.steps if "against" in step or step == "pull"]
    assert runs_and_pulls == [
        *("pull", "benchmark second against first"),
        *("pull", "benchmark third against first"),
        *("pull", "pull"),
    ]
    assert bench.waited == [60, 60, 60]
    assert bench.idle == [False, False, True]


def test_time_spent_measuring_counts_towards_the_interval(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    measure = bench.measure

    def slowly(trial: WatchTrial) -> Measured:
        bench.time += 45
        return measure(trial)

    bench.measure = slowly  # type: ignore[method-assign]
    bench.stop_after = lambda steps: steps.count("pull") == 2
    bench.watch(interval_s=60)
    assert bench.waited == [15]


def test_a_remote_that_is_down_ends_a_single_pass_and_is_retried_with_an_interval(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.offline = True
    assert bench.watch() == 3
    assert "could not resolve host" in bench.said[-1]
    bench.on_wait = lambda: setattr(bench, "offline", False)
    bench.stop_after = lambda steps: any("against" in step for step in steps)
    assert bench.watch(interval_s=60) == 0
    assert bench.outcomes == {"second": "same"}


def test_with_an_interval_a_failure_to_measure_is_retried_too(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.broken_machine = True
    bench.on_wait = lambda: setattr(bench, "broken_machine", False)
    bench.stop_after = lambda steps: len([step for step in steps if "against" in step]) == 2
    assert bench.watch(interval_s=60) == 0
    assert bench.outcomes == {"second": "same"}


def test_a_commit_file_with_something_else_in_it_is_said_and_ignored(bench: Bench) -> None:
    bench.commit("first")
    bench.commit_file.path.write_text("not a hash\n")
    assert bench.watch() == 0
    assert any("'not a hash' is no commit of this repository" in text for text in bench.said)
    assert bench.outcomes == {"first": "A/A"}


def test_a_rewritten_branch_goes_on_after_what_is_left_of_it(bench: Bench) -> None:
    first = started(bench)
    bench.commit("second")
    bench.watch()
    bench.small.git("reset", "-q", "--hard", first)
    bench.commit("second, amended")
    bench.commit("third")
    assert bench.watch() == 0
    assert list(bench.outcomes) == ["second, amended", "third"]
    assert any("rewritten" in text for text in bench.said)


def test_a_control_that_cannot_be_built_is_replaced_by_the_next_commit(bench: Bench) -> None:
    started(bench)
    bench.unbuildable = {"first"}
    bench.commit("second")
    bench.commit("third")
    assert bench.watch() == 0
    assert bench.outcomes == {"second": "A/A", "third": "same"}
    assert "benchmark third against second" in bench.steps
    assert any("cannot be the control" in text for text in bench.said)
    assert bench.steps.count("build first") == 1


def test_a_control_that_cannot_be_run_is_replaced_too(bench: Bench) -> None:
    started(bench)
    bench.failing = {"first"}
    bench.commit("second")
    bench.commit("third")
    assert bench.watch() == 0
    assert bench.outcomes == {"second": "A/A", "third": "same"}


def test_a_commit_whose_program_fails_is_broken_and_no_stop(bench: Bench) -> None:
    started(bench)
    bench.failing = {"second"}
    bench.commit("second")
    bench.commit("third")
    assert bench.watch() == 1
    assert bench.outcomes == {"second": "broken", "third": "same"}


def test_a_machine_on_which_nothing_runs_measures_nothing(bench: Bench) -> None:
    started(bench)
    bench.failing = {"first", "second"}
    bench.commit("second")
    assert bench.watch() == 3
    assert bench.outcomes == {"second": "not measured"}


def test_without_a_comparison_each_commit_is_measured_alone(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.failing = {"third"}
    bench.commit("third")
    assert bench.watch(compare=False) == 1
    assert bench.outcomes == {"second": "measured", "third": "broken"}
    assert "build first" not in bench.steps


def test_against_the_parent_a_slow_down_is_called_once_only(bench: Bench) -> None:
    started(bench)
    bench.commit("slow", 1.1)
    bench.commit("after", 1.1)
    assert bench.watch(against=Against.PARENT) == 1
    assert bench.outcomes == {"slow": "regressed", "after": "same"}


def test_every_platform_has_a_build_and_a_record_of_its_own(bench: Bench) -> None:
    started(bench)
    bench.all_places = (WatchPlace("host", "host"), WatchPlace("phone", "android"))
    second = bench.commit("second", 1.1)
    assert bench.watch() == 1
    assert [record.place for record in bench.records] == ["host", "phone"]
    assert "build second for android" in bench.steps
    assert bench.commit_file.read() == second


def test_asked_to_stop_it_finishes_the_commit_in_hand_on_every_platform(bench: Bench) -> None:
    started(bench)
    bench.all_places = (WatchPlace("host", "host"), WatchPlace("phone", "android"))
    second = bench.commit("second")
    bench.commit("third")
    bench.stop_after = lambda steps: any("against" in step for step in steps)
    assert bench.watch() == 0
    assert [(record.subject, record.place) for record in bench.records] == [("second", "host"), ("second", "phone")]
    assert bench.commit_file.read() == second


def test_builds_never_overlap_measurements_on_the_same_host(bench: Bench) -> None:
    started(bench)
    for subject in ("second", "third", "fourth"):
        bench.commit(subject)
    bench.watch()
    assert not [step for step in bench.steps if "beside" in step]


def test_elsewhere_the_next_commit_is_built_while_one_is_measured(bench: Bench) -> None:
    started(bench)
    for subject in ("second", "third", "fourth"):
        bench.commit(subject)
    measure, build, built_beside = bench._measured, bench.build, threading.Event()

    def build_in_a_thread(commit: Commit, platform: str | None) -> BuiltRevision:
        is_beside = threading.current_thread() is not threading.main_thread()
        if is_beside:
            assert bench.measuring.wait(300), "nothing is being measured"
        found = build(commit, platform)
        if is_beside:
            built_beside.set()
        return found

    def measure_until_built(trial: WatchTrial) -> Measured:
        if trial.treatment.commit.subject != "fourth":
            assert built_beside.wait(300), "nothing is being built"
            built_beside.clear()
        return measure(trial)

    bench._measured = measure_until_built  # type: ignore[method-assign]
    bench.build = build_in_a_thread  # type: ignore[method-assign]
    assert bench.watch(overlap=True) == 0
    assert [step for step in bench.steps if "beside" in step] == [
        "build third beside a measurement",
        "build fourth beside a measurement",
    ]
    assert bench.steps.count("build third") == 0
    assert list(bench.outcomes) == ["second", "third", "fourth"]


def test_a_failed_build_beside_a_measurement_is_the_record_of_its_own_commit(bench: Bench) -> None:
    started(bench)
    bench.commit("second")
    bench.commit("broken")
    bench.unbuildable = {"broken"}
    assert bench.watch(overlap=True) == 1
    assert bench.outcomes == {"second": "same", "broken": "build failed"}


def test_a_step_skips_commits(bench: Bench) -> None:
    started(bench)
    for number in range(2, 7):
        bench.commit(str(number))
    assert bench.watch(step=2) == 0
    assert list(bench.outcomes) == ["3", "5"]


def test_from_a_hash_on_all_are_measured(bench: Bench) -> None:
    bench.first = bench.commit("first")
    bench.commit("second")
    assert bench.watch() == 0
    assert list(bench.outcomes) == ["first", "second"]


@pytest.mark.parametrize("interval_s", [None, 60])
def test_a_first_commit_that_does_not_exist_is_an_error_of_the_user(bench: Bench, interval_s: float | None) -> None:
    bench.commit("first")
    bench.first = "f" * 40
    with pytest.raises(InvalidInput, match="no commit"):
        bench.watch(interval_s=interval_s)


def test_a_recorded_commit_may_come_with_the_first_pull(bench: Bench, tmp_path: Path) -> None:
    started(bench)
    recorded = bench.commit("second")
    bench.commit("third")
    bench.commit_file.write(recorded)
    bench.small.git("clone", "-q", "--bare", str(bench.small.folder), str(tmp_path / "remote"))
    bench.small.git("clone", "-q", "--depth", "1", f"file://{tmp_path / 'remote'}", str(tmp_path / "clone"))
    bench.repository = GitRepository(tmp_path / "clone")
    pull = bench.pull

    def unshallow() -> Pulled:
        bench.small.git("fetch", "-q", "--unshallow", folder=tmp_path / "clone")
        return pull()

    bench.pull = unshallow  # type: ignore[method-assign]
    assert bench.watch() == 0
    assert list(bench.outcomes) == ["third"]
