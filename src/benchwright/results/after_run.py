"""After a run: summaries, report, exit code, files, and the store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from benchwright.agent.machine.fingerprint import machine_uptime_s
from benchwright.analysis.efficiency import run_efficiencies
from benchwright.analysis.remarks import far_apart, few_launches, remarks, thinned
from benchwright.analysis.roofline import rooflines
from benchwright.analysis.summary import FEWEST_FOR_INTERVAL, summarize
from benchwright.core.aggregates import aggregate
from benchwright.core.comparison import Comparison
from benchwright.core.efficiency import Peak, Work
from benchwright.core.errors import BenchwrightError, InvalidInput, StoreAway, StoreTrouble
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run, culprit
from benchwright.core.secrets import redact_text
from benchwright.core.status import Reason, Status
from benchwright.core.summary import Summary
from benchwright.kinds.registry import added_by_kinds, kind_of
from benchwright.report.base import Report
from benchwright.report.run_json import run_body
from benchwright.report.run_list import headline_words
from benchwright.report.text.numbers import format_value
from benchwright.results.scores import Scoring, scores_of
from benchwright.runs.logs import OF_SCRIPTS, script_tails, tail_texts
from benchwright.runs.read_run import commands_of, plan_of
from benchwright.runs.run_folder import RunFolder

_LOG_LINES = 8
_OF_ALL_SAMPLES = ("median", "average", "average_aggregate")
_SHOWN_LOG_LINES = 60
_KNOWN_TO_THE_EXECUTOR = (Reason.AGENT_LOST, Reason.DISK_FULL, Reason.STOPPED)


def summaries_of(run: Run) -> dict[str, list[Summary]]:
    """For each benchmark its metrics, summarised over the counted launches, with remarks."""
    return {r.benchmark.name: [_noticed(s, r) for s in summarize(r.counted, run.workers)] for r in run.results}


def _noticed(summary: Summary, result: Result) -> Summary:
    """Remarks are made on what a program reports and on its duration; for other metrics they would only repeat these."""
    telling = summary.source in ("log", "import") or summary.metric.rpartition(".")[2] in ("rate", "duration")
    if not telling:
        return summary
    same = [
        m for x in result.counted for m in x.measurements if m.metric == summary.metric and m.labels == summary.labels
    ]
    if summary.launches >= FEWEST_FOR_INTERVAL:
        return msgspec.structs.replace(summary, remarks=remarks(summary.values, [m.samples for m in same]))
    shown = partial(format_value, unit=summary.unit)
    apart = far_apart(summary.values, "launches", shown)
    if apart is None and same[0].value is None and same[0].aggregate in _OF_ALL_SAMPLES:
        apart = far_apart(thinned(same[0].samples), "values of a launch", shown)
    return summary if apart is None else msgspec.structs.replace(summary, remarks=(apart,))


def run_remarks(run: Run) -> tuple[Note, ...]:
    """The note about too few launches, once per run; what was only built needs no more of them."""
    measured = [r for r in run.results if r.status is Status.OK and not any("built" in x.facts for x in r.counted)]
    launches = [len({x.position for x in r.counted}) for r in measured]
    remark = few_launches(max(launches)) if launches else None
    return () if remark is None else (remark,)


def report_of(
    run: Run,
    *,
    width: int = 80,
    with_logs: bool = False,
    scoring: Scoring | None = None,
    peaks: Mapping[Work, Peak] | None = None,
    comparisons: Sequence[Comparison] = (),
    stored_logs: Mapping[str, list[str]] | None = None,
) -> Report:
    """Everything a reporter may want to show of `run`.

    `with_logs`: also its settings and the last lines of every job, not only of failed ones. `peaks`: as another run
    on the same machine reached, where this one has none. `comparisons`: between its own benchmarks. `stored_logs`: see `log_tails`.
    """
    scoring = scoring or Scoring()
    tails = log_tails(run, stored_logs)
    if tails or any(r.reason is Reason.CRASHED for r in run.results):
        from benchwright.results.missing_module import with_missing_modules

        run = with_missing_modules(run, tails)
    efficiency = run_efficiencies(run.results, peaks)
    scores = scores_of(run, scoring, efficiency)
    folder = RunFolder(Path(run.folder))
    options = None
    if with_logs:
        with suppress(InvalidInput):  # an imported run, or one whose folder is elsewhere
            options = folder.read_plan().options
    jobs = [x.job for r in run.results for x in r.launches] if with_logs else []
    report = Report(
        run=run,
        summaries=summaries_of(run),
        aggregate=aggregate,
        log_tails=tails,
        logs=_without_secrets(tail_texts(folder.path, jobs, _SHOWN_LOG_LINES)),
        remarks=run_remarks(run),
        options=options,
        commands=commands_of(run, kind_of),
        efficiency=efficiency,
        rooflines=tuple(rooflines(efficiency)),
        score=scores.ours,
        by_rule=scores.by_rule,
        compared=scores.compared,
        comparisons=tuple(comparisons),
        against=None if scoring.against is None else _compared(scoring.against, run),
        per_device=scoring.per_device,
        width=width,
        workers=run.workers,
        uptime_s=machine_uptime_s(),
    )
    return msgspec.structs.replace(report, added=added_by_kinds(report))


def _compared(control: Run, run: Run) -> Comparison | None:
    """None for a run that would be compared with itself."""
    from benchwright.analysis.comparison.compare import DEFAULT_MARGIN
    from benchwright.results.compare import compare_runs

    if control.unique_id == run.unique_id:
        return None
    return compare_runs(
        [control, run], between=None, margin=DEFAULT_MARGIN, metrics=(), all_metrics=False, anyway=True
    )[0]


def written_body(run: Run) -> dict[str, object]:
    """The content of run.json."""
    efficiency = run_efficiencies(run.results)
    score = scores_of(run, Scoring(), efficiency).ours
    report = Report(
        run=run, summaries=summaries_of(run), aggregate=aggregate, efficiency=efficiency, score=score, brief=True
    )
    report = msgspec.structs.replace(report, added=added_by_kinds(report))
    body = run_body(run, report.summaries, efficiency, report.added.bodies)
    return {"headline": headline_words(report)} | body


def headline_of(run: Run) -> str:
    """The same as in run.json, of a run that has none."""
    return str(written_body(run)["headline"])


def sorted_by(run: Run, order: str) -> Run:
    """The same run with its benchmarks in another order: by `name`, or `duration`, the longest first."""
    if order == "name":
        return msgspec.structs.replace(run, results=tuple(sorted(run.results, key=lambda r: r.benchmark.name)))
    if order == "duration":
        took = {r.benchmark.name: sum(x.duration_s or 0.0 for x in r.launches) for r in run.results}
        return msgspec.structs.replace(
            run, results=tuple(sorted(run.results, key=lambda r: took[r.benchmark.name], reverse=True))
        )
    return run


def log_tails(run: Run, stored: Mapping[str, list[str]] | None = None) -> dict[str, list[str]]:
    """The last lines printed by each benchmark's first failed launch, by job; by name those of a script that failed while its
    models were looked for. `stored`: what a store kept of them, for a run whose folder is elsewhere."""
    bad = [x.job for r in run.results if (x := culprit(r.launches)) is not None]
    tails = tail_texts(Path(run.folder), bad, _LOG_LINES) | script_tails(run, _LOG_LINES)
    scripts = [r.benchmark.name for r in run.results if not r.launches]
    kept = {job: stored[job][-_LOG_LINES:] for job in (*bad, *scripts) if stored and job in stored}
    return _without_secrets(kept | tails)


def _without_secrets(logs: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Reports are shared, so secrets are redacted; the log itself stays as printed."""
    return {job: [redact_text(line) for line in lines] for job, lines in logs.items()}


def exit_code(run: Run) -> int:
    """0 all went well · 1 something ran and failed · 3 nothing could be measured at all."""
    launches: list[Launch] = [x for r in run.results for x in r.launches]
    # A script that failed while its models were looked for was started, too.
    ran = any(x.facts.get("started") for x in launches) or any(
        not r.launches and r.reason in OF_SCRIPTS for r in run.results
    )
    if not ran or all(r.status is Status.SKIPPED for r in run.results):
        return 3
    # Interrupted although nobody asked benchwright to stop: something else ended it.
    bad = (Status.FAILED, Status.INTERRUPTED, Status.PENDING)
    return 1 if any(r.status in bad for r in run.results) else 0


def keep_in_store(run: Run, base: str | os.PathLike[str] | None, store: str | None) -> list[str]:
    """Adds a finished run to the store; returns what went wrong. Nothing is lost then: the run folder has everything."""
    from benchwright.results.kept_runs import Results
    from benchwright.results.run_digest import is_passing, remember_unstored, unstored

    try:
        with Results.choose(base, store, os.environ) as results:
            try:
                results.ingest(RunFolder(Path(run.folder)), run if _is_as_written(run) else None)
            except StoreTrouble as error:
                if not is_passing(error) or not remember_unstored(results.base, results.url, run.id):
                    raise
                message = f"{error.where}: {error.what}; the next benchwright command adds it"
                if isinstance(error, StoreAway):
                    count = len(unstored(results.base, results.url))
                    waiting = "it waits" if count == 1 else f"{count} runs wait"
                    message = f"{message}, or 'benchwright store send': {waiting}"
                return [f"{run.id} is complete, but not in the store yet: {message}"]
    except Exception as error:  # no error of the store may make a complete run look failed
        words = str(error) if isinstance(error, BenchwrightError) else f"{type(error).__name__}: {error}"
        return [f"{run.id} is complete, but not in the store: {words}"]
    return []


def save_scaling(run: Run) -> str | None:
    """Adds the run's memory use by batch size to the file that --save-scaling named; says so, or why not. None: none was.

    A file that cannot be written costs nothing else: the run is complete.
    """
    folder = RunFolder(Path(run.folder))
    try:
        paths = folder.read_plan().options.suite_paths
        if paths is None or not paths.sizing.save:
            return None
        from benchwright.kinds.suite.batch_size_file import add_observations
        from benchwright.kinds.suite.batch_sizes import observations_of

        found = observations_of(run, plan_of(folder, kind_of))
        if not found:
            return f"nothing added to {paths.sizing.save}: no benchmark uses auto_batch"
        saved = add_observations(paths.sizing.save, found)
    except (BenchwrightError, OSError) as error:
        return f"{run.id} is complete, but its batch sizes could not be saved: {error}"
    count = f"{saved.observations} observation{'' if saved.observations == 1 else 's'}"
    comments = "; its comments were dropped" if saved.lost_comments else ""
    return f"{count} added to {saved.path}{comments}"


def _is_as_written(run: Run) -> bool:
    """Whether its folder says the same; how a launch without an end in its stream ended, only the executor knew."""
    return not any(x.reason in _KNOWN_TO_THE_EXECUTOR for r in run.results for x in r.launches)
