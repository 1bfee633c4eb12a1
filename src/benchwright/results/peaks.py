"""The machine's peak performance from other runs, for reports of runs that measured no peak."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta

from benchwright.analysis.efficiency import PEAK_TAG, peaks_of, run_efficiencies
from benchwright.core.efficiency import Peak, Work
from benchwright.core.errors import BenchwrightError
from benchwright.core.run import Run
from benchwright.results.kept_runs import Results
from benchwright.store.base import RunFilter

_RUNS = 3  # the newest ones that are looked at: loading one takes a while
_OLDEST = timedelta(days=30)  # drivers, libraries and settings change: what was true longer ago proves nothing


def peaks_for(runs: Sequence[Run], results: Results) -> dict[str, dict[Work, Peak]]:
    """For each run, by its id, the highest trusted peaks of the newest runs with a benchmark tagged `peak` on the same
    machine and with the same driver, measured at most 30 days apart.

    Empty, and the store is not opened, for a run that needs none. A store that cannot be used is no reason to show less
    than is known without it.
    """
    found: dict[str, dict[Work, Peak]] = {}
    known: dict[str, list[Run]] = {}
    for run in runs:
        if not needs_peaks(run):
            continue
        try:
            fingerprint = run.machine.fingerprint
            if fingerprint not in known:
                known[fingerprint] = _measured_on(fingerprint, results)
        except BenchwrightError:
            return found
        for other in known[fingerprint]:
            near = _are_near(run.started, other.started) and _drivers(run) == _drivers(other)
            if other.unique_id == run.unique_id or not near:
                continue
            for work, peak in peaks_of(other.results, other.id).items():
                best = found.setdefault(run.id, {})
                if peak.doubt is None and (work not in best or peak.value > best[work].value):
                    best[work] = peak
    return found


def _drivers(run: Run) -> list[str | None]:
    return [gpu.driver for gpu in run.machine.accelerators]


def _are_near(one: str, other: str) -> bool:
    """Both times are known and at most 30 days apart."""
    try:
        apart = datetime.fromisoformat(one).timestamp() - datetime.fromisoformat(other).timestamp()
    except (ValueError, OverflowError, OSError):
        return False
    return abs(apart) <= _OLDEST.total_seconds()


def peaks_of_base(run: Run, base: str | os.PathLike[str] | None, store: str | None) -> dict[Work, Peak]:
    """The same for one run that was just made, from the store it will be put into."""
    if not needs_peaks(run):
        return {}
    try:
        with Results.choose(base, store, os.environ) as results:
            return peaks_for([run], results).get(run.id, {})
    except Exception:  # problems of the store are reported when the run is stored
        return {}


def needs_peaks(run: Run) -> bool:
    """Whether a benchmark reports work for which the run has no trusted peak."""
    found = run_efficiencies(run.results)
    return any(e.peak is None or e.peak.doubt is not None for each in found.values() for e in each)


def _measured_on(fingerprint: str, results: Results) -> list[Run]:
    store = results.existing_store
    rows = store.runs(RunFilter(machine=fingerprint, tags=(PEAK_TAG,)), limit=_RUNS)
    return [store.load(row.uid) for row in rows if row.machine == fingerprint]
