"""`history`: series never mix machines or settings, disturbed runs do not decide, and changes name their commits."""

from __future__ import annotations

import itertools
import json
import math
import random
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import builders
import msgspec
import numpy as np
import pytest
from builders import benchmark, launch, measurement, result
from command_line import CommandLine
from msgspec.structs import replace
from stored_runs import rich_run

from benchwright.analysis.summary import summarize
from benchwright.core.benchmark import Benchmark
from benchwright.core.comparison import Verdict
from benchwright.core.conditions import undecided
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Accelerator
from benchwright.core.metric import is_cpu_time, is_of_the_machine
from benchwright.core.metric_history import HistoryPoint
from benchwright.core.note import Note
from benchwright.core.provenance import CodeRevision, revision_words
from benchwright.core.run import Run
from benchwright.regress.notify.notice import Finding, NoticeOutcome
from benchwright.regress.run_history import HistoryOrder, failing, histories, history_notice
from benchwright.report.tables.history_table import history_text
from benchwright.report.text.metrics import chosen_metric
from benchwright.results.kept_runs import Results
from benchwright.runs.base_folder import BaseFolder
from benchwright.store.base import StoreEntry

START = datetime(2026, 11, 1, tzinfo=UTC)


def measured(number: int, value: float, of: Benchmark | None = None, *, busy: bool = False, **fields: Any) -> Run:
    """One run of three launches, an hour after the one before."""
    notes = (Note(text="busy", kind="busy"),) if busy else ()
    took = [
        measurement(value * (1 + 0.001 * k), metric="process.duration", unit="s", source="process") for k in range(3)
    ]
    launches = [launch(one, job=f"b.{k}", notes=notes) for k, one in enumerate(took)]
    started = (START + timedelta(hours=number)).isoformat()
    commit = CodeRevision(root="/r", commit=f"{number + 1:040x}"[::-1], branch="main", time=started, modified=False)
    given: dict[str, Any] = {"id": f"train.{number:03d}", "uid": f"{number:03d}", "started": started, "ended": started}
    return builders.run(result(of or benchmark("train"), *launches), **(given | {"revisions": (commit,)} | fields))


def levels(*parts: tuple[int, float], seed: int = 0) -> list[float]:
    rng = np.random.default_rng(seed)
    return [level * (1 + 0.01 * float(rng.standard_normal())) for count, level in parts for _ in range(count)]


def kept(base: Path, runs: Sequence[Run]) -> Results:
    found = Results(BaseFolder(base), str(base / "store.db"))
    base.mkdir(parents=True, exist_ok=True)
    found.store.ingest_all([StoreEntry(run=run, digest=run.unique_id) for run in runs])
    return found


def test_a_change_names_the_commits_between_which_it_lies(tmp_path: Path) -> None:
    runs = [measured(n, value) for n, value in enumerate(levels((30, 1.0), (30, 1.2)))]
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    (change,) = series.changes
    assert change.place == 30
    assert change.verdict is Verdict.REGRESSED
    assert change.ratio == pytest.approx(1.2, abs=0.02)
    assert series.commits(change) == (runs[29].revisions[0].commit, runs[30].revisions[0].commit)
    assert failing([series], "regressed")


def test_a_metric_that_should_be_high_improves_when_it_rises(tmp_path: Path) -> None:
    runs = []
    for n, value in enumerate(levels((30, 100.0), (30, 120.0))):
        one = result("train", launch(measurement(value, metric="rate")))
        runs.append(builders.run(one, id=f"r.{n:03d}", uid=f"{n}", started=(START + timedelta(hours=n)).isoformat()))
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    assert [change.verdict for change in series.changes] == [Verdict.IMPROVED]
    assert not failing([series], "regressed")
    assert failing([series], "changed")


def test_machines_are_never_mixed(tmp_path: Path) -> None:
    slow, fast = builders.machine(hostname="slow"), builders.machine(hostname="fast", cpu="other")
    runs = [measured(n, value, machine=fast) for n, value in enumerate(levels((30, 1.0)))]
    runs += [measured(n + 30, value, machine=slow) for n, value in enumerate(levels((30, 2.0)))]
    found = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    assert [(series.host, len(series.points), series.changes) for series in found] == [
        ("fast", 30, ()),
        ("slow", 30, ()),
    ]


def test_hosts_of_one_make_are_joined_only_if_asked(tmp_path: Path) -> None:
    hosts = [builders.machine(hostname=name) for name in ("ci-1", "ci-2")]
    runs = [measured(n, value, machine=hosts[n % 2]) for n, value in enumerate(levels((40, 1.0)))]
    results = kept(tmp_path, runs)
    assert len(histories(results, HistoryOrder(benchmark="train")).series) == 2
    assert len(histories(results, HistoryOrder(benchmark="train", any_host=True)).series) == 1


@pytest.mark.parametrize(
    "changes",
    [{"parameters": {"size": "2"}}, {"labels": {"mode": "fast"}}, {"env": {"THREADS": "4"}}],
    ids=["parameters", "labels", "environment"],
)
def test_other_settings_are_another_series(tmp_path: Path, changes: dict[str, Any]) -> None:
    runs = [measured(n, value) for n, value in enumerate(levels((30, 1.0)))]
    other = benchmark("train", **changes)
    runs += [measured(n + 30, value, other) for n, value in enumerate(levels((30, 1.5)))]
    found = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    assert [series.changes for series in found] == [(), ()]
    assert len(found[1].setting) == 1


def test_commands_that_differ_in_every_run_are_one_history(tmp_path: Path) -> None:
    def named(file: str) -> Benchmark:
        return benchmark("train", "python", "train.py", "--out", file)

    runs = [measured(n, 1.0, named(f"/tmp/{n}")) for n in range(4)]
    (series,) = histories(kept(tmp_path / "a", runs), HistoryOrder(benchmark="train")).series
    assert [point.run for point in series.points] == [run.id for run in runs]
    assert series.setting == {"command": "another one in every run"}
    twice = [*runs, measured(4, 1.0, named("/tmp/0"))]
    assert len(histories(kept(tmp_path / "b", twice), HistoryOrder(benchmark="train")).series) == 4


def test_disturbed_runs_are_shown_but_do_not_decide(tmp_path: Path) -> None:
    values = levels((40, 1.0), (12, 1.5))
    runs = [measured(n, value, busy=n >= 40) for n, value in enumerate(values)]
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    assert (len(series.points), series.trusted, series.changes) == (52, 40, ())


def test_the_cpu_time_of_busy_runs_decides(tmp_path: Path) -> None:
    """Waiting for a core costs none; a pair of such launches counts for it, too."""
    runs = []
    for number, value in enumerate(levels((30, 1.0), (30, 1.1))):
        made = measured(number, value, busy=True)
        (of,) = made.results
        cpu = [msgspec.structs.replace(x.measurements[0], metric="process.cpu_time") for x in of.launches]
        both = zip(of.launches, cpu, strict=True)
        launches = tuple(msgspec.structs.replace(x, measurements=(*x.measurements, more)) for x, more in both)
        runs.append(msgspec.structs.replace(made, results=(msgspec.structs.replace(of, launches=launches),)))
    found = kept(tmp_path, runs)
    (by_cpu,) = histories(found, HistoryOrder(benchmark="train", metric="process.cpu_time")).series
    (by_time,) = histories(found, HistoryOrder(benchmark="train", metric="process.duration")).series
    assert [change.place for change in by_cpu.changes] == [30]
    assert (by_cpu.trusted, by_time.trusted, by_time.changes) == (60, 0, ())


def test_a_change_after_disturbed_runs_is_placed_at_the_right_run(tmp_path: Path) -> None:
    values = levels((30, 1.0), (30, 1.3))
    runs = [measured(n, value, busy=n in (3, 7, 11)) for n, value in enumerate(values)]
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    assert [change.place for change in series.changes] == [30]


def test_of_an_ab_the_treatments_are_the_history_of_its_name(tmp_path: Path) -> None:
    runs = []
    for n, value in enumerate(levels((20, 1.0), (20, 1.3))):
        folder = benchmark("train", f"/builds/{n}/train")
        sides = [folder.on_side(side, f"c{n}") for side in ("control", "treatment")]
        both = [measured(n, 1.0, sides[0]).results[0], measured(n, value, sides[1]).results[0]]
        runs.append(_with(measured(n, value), both))
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    (change,) = series.changes
    assert series.benchmark == "train treatment"
    assert series.commits(change) == ("c19", "c20")
    assert len(histories(kept(tmp_path, []), HistoryOrder(benchmark="train *")).series) == 2


def _with(run: Run, results: Sequence[Any]) -> Run:
    return msgspec.structs.replace(run, results=tuple(results))


def test_runs_can_be_ordered_by_their_commits(tmp_path: Path) -> None:
    values = levels((20, 1.0), (20, 1.3))
    runs = [measured(n, value) for n, value in enumerate(values)]
    backwards = [_with(measured(40 - n, 1.0, revisions=run.revisions), run.results) for n, run in enumerate(runs)]
    results = kept(tmp_path, backwards)
    (by_commit,) = histories(results, HistoryOrder(benchmark="train", by_commit=True)).series
    (by_run,) = histories(results, HistoryOrder(benchmark="train")).series
    assert by_commit.changes[0].verdict is Verdict.REGRESSED
    assert by_run.changes[0].verdict is Verdict.IMPROVED


def test_what_was_never_measured_is_an_error_that_helps(tmp_path: Path) -> None:
    results = kept(tmp_path, [measured(0, 1.0)])
    with pytest.raises(InvalidInput, match=r"no run measured 'trian'; did you mean 'train'\?"):
        histories(results, HistoryOrder(benchmark="trian"))
    with pytest.raises(InvalidInput, match=r"process\.duration"):
        histories(results, HistoryOrder(benchmark="train", metric="process.durations"))


def test_a_run_that_cannot_be_loaded_any_more_still_has_its_number(tmp_path: Path) -> None:
    kept(tmp_path, [measured(n, value) for n, value in enumerate(levels((20, 1.0)))]).close()
    before = histories(kept(tmp_path, []), HistoryOrder(benchmark="train"))
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("UPDATE documents SET data = x'00' WHERE run = (SELECT key FROM runs WHERE id = '007')")
    assert histories(kept(tmp_path, []), HistoryOrder(benchmark="train")) == before


def test_runs_without_summaries_are_loaded_and_damaged_ones_named(tmp_path: Path) -> None:
    kept(tmp_path, [measured(n, value) for n, value in enumerate(levels((20, 1.0)))]).close()
    before = histories(kept(tmp_path, []), HistoryOrder(benchmark="train"))
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("DELETE FROM summaries WHERE run IN (SELECT key FROM runs WHERE id IN ('007', '011'))")
        database.execute("UPDATE runs SET summarized = 0 WHERE id IN ('007', '011')")
    assert histories(kept(tmp_path, []), HistoryOrder(benchmark="train")) == before
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("UPDATE documents SET data = x'00' WHERE run = (SELECT key FROM runs WHERE id = '007')")
    found = histories(kept(tmp_path, []), HistoryOrder(benchmark="train"))
    assert found.unreadable == ["train.007"]
    assert [point.uid for point in found.series[0].points] == [f"{n:03d}" for n in range(20) if n != 7]


def test_only_the_newest_runs_count_if_asked(tmp_path: Path) -> None:
    results = kept(tmp_path, [measured(n, 1.0 + n) for n in range(9)])
    (series,) = histories(results, HistoryOrder(benchmark="train", limit=3)).series
    assert [point.uid for point in series.points] == ["006", "007", "008"]


def test_a_history_is_the_same_as_from_all_samples(tmp_path: Path) -> None:
    """What `report` would say of each run, one by one."""
    rng = random.Random(4)
    gpu = builders.machine(Accelerator(index=0, name="H", memory_bytes=1 << 37), hostname="lab-1")
    runs = []
    for n in range(12):
        launches = [
            launch(
                measurement(*(rng.lognormvariate(3, 0.1) for _ in range(9)), warmup_samples=(1.0,)),
                measurement(rng.random(), rng.random(), metric="loss", unit=None, labels={"rank": "1"}),
                measurement(rng.random(), metric="loss", unit=None),
                measurement(rng.random(), metric="process.cpu_time", unit="s", source="process"),
                *(
                    measurement(rng.random() * 60, 3.0, metric=f"cpu.{m}", unit="%", source="sampler")
                    for m in ("others", "idle", "steal")
                ),
                notes=(Note(text="busy", kind="busy", evidence="0.5"),) if rng.random() < 0.3 else (),
                warmup=k == 0,
            )
            for k in range(8)
        ]
        train = benchmark("train", env={"A": None, "B": str(n % 2)}, labels={"x": "y"}, parameters={"size": "2"})
        runs.append(
            replace(
                measured(n, 1.0 + n, machine=gpu, workers=2),
                results=(result(train, *launches), result("b", *launches[:3])),
            )
        )
    results = kept(tmp_path, [*runs, rich_run()])
    for name, metric in itertools.product(("train", "b", "resnet", "*"), (None, "rate", "loss", "process.cpu_time")):
        try:
            found = histories(results, HistoryOrder(benchmark=name, metric=metric)).series
        except InvalidInput:
            found = []
        shown = sorted(((s.benchmark, s.metric, s.unit, s.host, p) for s in found for p in s.points), key=str)
        assert shown == sorted(from_samples([*runs, rich_run()], name, metric), key=str)
        assert shown or name == "resnet"


def from_samples(runs: Sequence[Run], name: str, metric: str | None) -> Iterator[tuple[object, ...]]:
    """As histories were made before there were summaries."""
    for run in runs:
        for each in run.results:
            summary = chosen_metric(summarize(each.counted, run.workers), metric)
            if not fnmatchcase(each.benchmark.name, name) or summary is None or not math.isfinite(summary.value):
                continue
            timed = is_of_the_machine(summary.metric, summary.unit) and not is_cpu_time(summary.metric, summary.unit)
            doubt = undecided(each.counted, run.notes) if timed else None
            code = run.revisions[0] if run.revisions else None
            yield (
                each.benchmark.name,
                summary.metric,
                summary.unit,
                run.machine.hostname,
                HistoryPoint(
                    run=run.id,
                    uid=run.unique_id,
                    started=run.started,
                    value=summary.value,
                    revision=revision_words(run.revisions),
                    commit=None if code is None else code.commit,
                    commit_time=None if code is None else code.time,
                    doubt=None if doubt is None else str(doubt),
                ),
            )


def test_a_notice_tells_the_last_change(tmp_path: Path) -> None:
    runs = [measured(n, value) for n, value in enumerate(levels((30, 1.0), (30, 1.2)))]
    series = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    notice = history_notice(series, "train")
    assert notice.outcome is NoticeOutcome.REGRESSED
    assert [verdict.verdict for verdict in notice.verdicts] == [Finding.REGRESSED]
    calm = histories(kept(tmp_path / "calm", runs[:30]), HistoryOrder(benchmark="train")).series
    assert history_notice(calm, "train").outcome is NoticeOutcome.FINE


def test_the_command_draws_the_history_and_fails_on_a_regression(bw: CommandLine, tmp_path: Path) -> None:
    kept(bw.base, [measured(n, value) for n, value in enumerate(levels((30, 0.01), (30, 0.012)))]).close()
    shown = bw("history", "train")
    assert "▼" in shown.stdout
    assert "regressed" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    failed = bw("history", "train", "--fail-on", "regressed", code=1)
    assert "--fail-on regressed" in failed.stderr
    bw("history", "train", "--fail-on", "regressed", "--limit", "25")
    (body,) = json.loads(bw("history", "train", "--json").stdout)
    assert len(body["points"]) == 60
    assert [change["verdict"] for change in body["changes"]] == ["regressed"]
    assert bw("history", "train", "--format", "csv").stdout.count("\n") == 2
    assert "| regressed |" in bw("history", "train", "--format", "markdown").stdout
    page = tmp_path / "history.html"
    bw("history", "train", "-o", str(page), "--notify", f"junit:{tmp_path / 'junit.xml'}")
    assert page.read_text().count("<circle") == 2 * 60  # one drawing is for phones
    assert "failure" in (tmp_path / "junit.xml").read_text()
    bw("history", "nothing", code=2)


def test_what_slowly_became_worse_is_told_everywhere(bw: CommandLine, tmp_path: Path) -> None:
    noise = random.Random(1)
    values = [0.01 * (1 + 0.005 * max(0, n - 40)) * noise.gauss(1, 0.01) for n in range(100)]
    kept(bw.base, [measured(n, value) for n, value in enumerate(values)]).close()
    said = " ".join(bw("history", "train").stdout.split())
    assert "100 runs; 1 gradual change" in said
    assert "the level moved gradually, so no single run or commit made the change." in said
    (body,) = json.loads(bw("history", "train", "--json").stdout)
    (change,) = body["changes"]
    assert change["drifting"]
    assert change["verdict"] == "regressed"
    assert abs(change["place"] - 40) <= 5
    assert change["end"] == 99
    assert change["ratio"] == pytest.approx(1.3, abs=0.03)
    begin = f"train.{change['place']:03d}"
    row = bw("history", "train", "--format", "csv").stdout.splitlines()[1]
    assert row.startswith(f"{begin},train.099,")
    assert f"`{begin}`" in bw("history", "train", "--format", "markdown").stdout
    failed = bw("history", "train", "--fail-on", "regressed", "--notify", f"junit:{tmp_path / 'junit.xml'}", code=1)
    since = f"since {body['points'][change['place']]['commit'][:10]}"
    assert "regressed slowly +" in failed.stderr
    assert "regressed slowly" in said
    assert since in failed.stderr
    assert since in (tmp_path / "junit.xml").read_text()
    page = tmp_path / "history.html"
    bw("history", "train", "-o", str(page))
    line, _of_phones = (part for part in page.read_text().split("<line") if 'class="change regressed"' in part)
    ends = {name: float(line.split(f'{name}="')[1].split('"')[0]) for name in ("x1", "x2", "y1", "y2")}
    assert ends["x2"] > ends["x1"] + 300
    assert ends["y2"] < ends["y1"] - 50


def test_a_trend_from_the_first_run_on_begins_there(tmp_path: Path) -> None:
    runs = [measured(n, value * (1 + 0.005 * n)) for n, value in enumerate(levels((100, 1.0)))]
    (series,) = histories(kept(tmp_path, runs), HistoryOrder(benchmark="train")).series
    (change,) = series.changes
    assert change.drifting
    assert change.last_before <= change.place <= 3
    assert history_notice([series], "train").outcome is NoticeOutcome.REGRESSED
    assert "slowly" in history_notice([series], "train").title


def test_names_in_a_page_are_escaped(bw: CommandLine, tmp_path: Path) -> None:
    odd = benchmark("<b>train</b>")
    kept(bw.base, [measured(n, value, odd) for n, value in enumerate(levels((15, 1.0)))]).close()
    page = tmp_path / "history.html"
    bw("history", "<b>*", "-o", str(page))
    assert "<b>train" not in page.read_text()


def test_run_folders_without_a_store_have_a_history(bw: CommandLine) -> None:
    for _ in range(3):
        bw("run", "--name", "quick", "--", "true")
    (bw.base / "store.db").unlink()
    (series,) = json.loads(bw("history", "*", "--json").stdout)
    assert len(series["points"]) == 3
    assert series["changes"] == []


@pytest.mark.parametrize(
    ("unit", "shown"), [("s", " 1.5 s ┤"), ("items/s", "time on host, in items/s, lower is better")]
)
def test_a_picture_says_in_which_unit_its_axis_is(tmp_path: Path, unit: str, shown: str) -> None:
    results = kept(tmp_path, [measured(number, 1.0 + number) for number in range(2)])
    (series,) = histories(results, HistoryOrder(benchmark="train")).series
    assert shown in history_text([msgspec.structs.replace(series, unit=unit, host="host")], 80)
