"""Runs in MLflow: an experiment for each name of a run, a run of MLflow for each benchmark."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchwright.analysis.summary import summarize
from benchwright.core.errors import BenchwrightError
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.notes import notes_text
from benchwright.report.tables.results import revision_of

_UNSAFE = re.compile(r"[^\w./ :-]+")
_LONGEST = 4000  # characters of a tag; MLflow takes 8000
_ENDED = {Status.OK: "FINISHED", Status.FAILED: "FAILED"}


class MlflowExporter:
    """An SQLite file, or the tracking server of a URL."""

    suffix = None

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        return export_mlflow(runs, target if "://" in target else Path(target))  # a Path would lose a slash


def export_mlflow(runs: Sequence[Run], target: Path | str) -> tuple[str, ...]:
    """Adds the runs to an SQLite file, or to the tracking server of a URL. Runs already in it are left unchanged.

    A metric has the median over launches; `.low` and `.high` the ends of its 95 % interval, `.launch` each launch as a step.
    """
    client, exception = _client(target if isinstance(target, str) else f"sqlite:///{target.resolve()}")
    known: list[str] = []
    try:
        for run in map(run_without_secrets, runs):
            experiment = _experiment(client, run.name)
            query = f"tags.`benchwright.run` = '{run.uid or run.id}'"
            if client.search_runs([experiment], query, max_results=1):
                known.append(f"{run.id} is in MLflow already")
                continue
            for result in run.results:
                _add(client, experiment, run, result)
    except exception as error:
        raise BenchwrightError(f"{target}: MLflow refused it: {str(error).splitlines()[0]}") from error
    return tuple(known)


def _experiment(client: Any, name: str) -> str:
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found is not None else client.create_experiment(name))


def _add(client: Any, experiment: str, run: Run, result: Result) -> None:
    started = _milliseconds(run.started)
    tags = {
        "mlflow.runName": result.benchmark.name,
        "benchwright.run": run.uid or run.id,
        "benchwright.id": run.id,
        "benchwright.status": " ".join(filter(None, (result.status.value, result.reason and result.reason.words))),
        "benchwright.detail": result.detail or "",
        "benchwright.notes": notes_text(run, result),
        "benchwright.machine": run.machine.fingerprint,
        "benchwright.revision": revision_of(run, result),
        **{f"label.{_name(key)}": value for key, value in (run.labels | result.benchmark.labels).items()},
    }
    kept = {key: str(value)[:_LONGEST] for key, value in tags.items() if value}
    made = client.create_run(experiment, start_time=started, tags=kept).info.run_id
    for key, given in result.benchmark.parameters.items():
        client.log_param(made, _name(key), given)
    for name, value, step in _metrics(run, result):
        client.log_metric(made, name, value, timestamp=started, step=step)
    client.set_terminated(made, _ENDED.get(result.status, "KILLED"), end_time=_milliseconds(run.ended or run.started))


def _metrics(run: Run, result: Result) -> Iterator[tuple[str, float, int]]:
    """Name, value and step; a failure has none, and what is not finite is left out."""
    for summary in summarize(result.counted, run.workers, percentiles=False):
        name = _name(" ".join([summary.metric, *(f"{key}:{value}" for key, value in summary.labels.items())]))
        values = [(name, summary.value, 0)]
        if summary.interval is not None:
            values += [(f"{name}.low", summary.interval.low, 0), (f"{name}.high", summary.interval.high, 0)]
        values += [(f"{name}.launch", value, number) for number, value in enumerate(summary.values)]
        yield from (each for each in values if math.isfinite(each[1]))


def _name(text: str) -> str:
    return _UNSAFE.sub("_", text)


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000) if moment else 0


def _client(uri: str) -> tuple[Any, type[Exception]]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is reported home
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise BenchwrightError(
            "writing to MLflow needs mlflow, which is not installed; pip install mlflow-skinny"
        ) from error
    return MlflowClient(tracking_uri=uri), MlflowException
