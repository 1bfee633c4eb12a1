"""A benchmark over the runs that measured it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from benchwright.app.after_run import summaries_of
from benchwright.app.results.kept_runs import Results
from benchwright.app.results.listing import list_runs
from benchwright.core.errors import InvalidInput
from benchwright.report.plots import PastResult, chosen
from benchwright.report.text.metrics import headline_metrics


def past_results(results: Results, glob: str, metric: str | None, limit: int) -> dict[str, list[PastResult]]:
    """For each benchmark that `glob` names, what the newest `limit` runs measured, oldest first; unreadable runs are left out."""
    found: dict[str, list[PastResult]] = {}
    listed = list_runs(results, limit=limit, benchmark=glob)
    if not listed.rows and listed.trouble is not None:
        raise listed.trouble
    for row in reversed(listed.rows):
        try:
            run = results.run(row.id)
        except InvalidInput:
            continue  # `runs` lists it with the reason
        summaries = summaries_of(run)
        for result in run.results:
            name = result.benchmark.name
            if fnmatchcase(name, glob):
                summary = chosen(summaries[name], headline_metrics(summaries[name]), metric)
                found.setdefault(name, []).append(PastResult(run, result, summary))
    return found
