"""What the machine can do, from another run: for reports of runs that measured no peak of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence

from benchwright.analysis.efficiency import PEAK_TAG, peaks_of, run_efficiencies
from benchwright.domain.efficiency import LEAST_GOT, Peak, Work
from benchwright.domain.errors import BenchwrightError
from benchwright.domain.run import Run
from benchwright.pipeline.results import Results

_RUNS = 3  # the newest ones that are looked at: loading one takes a while


def peaks_for(runs: Sequence[Run], results: Results) -> dict[str, dict[Work, Peak]]:
    """For each run, by its id, the highest peaks of the newest runs with a benchmark tagged `peak` on the same machine.

    A peak that had to share the cores with others then is none now. Empty, and the store is not opened, for a run that needs none. A store that cannot be used is no reason to show less
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
            for work, peak in peaks_of(other.results, other.id).items() if other.id != run.id else ():
                best = found.setdefault(run.id, {})
                if peak.got >= LEAST_GOT and (work not in best or peak.value > best[work].value):
                    best[work] = peak
    return found


def peaks_of_base(run: Run, base: str | os.PathLike[str] | None, store: str | None) -> dict[Work, Peak]:
    """The same for one run that was just made, from the store it will be put into."""
    if not needs_peaks(run):
        return {}
    try:
        with Results.choose(base, store, os.environ) as results:
            return peaks_for([run], results).get(run.id, {})
    except Exception:  # whatever is wrong with the store is said when the run is put into it
        return {}


def needs_peaks(run: Run) -> bool:
    """Whether a benchmark tells of work that no benchmark of the run has a peak of."""
    found = run_efficiencies(run.results)
    return any(e.peak is None for each in found.values() for e in each)


def _measured_on(fingerprint: str, results: Results) -> list[Run]:
    from benchwright.stores.base import RunFilter

    store = results.existing_store
    rows = store.runs(RunFilter(machine=fingerprint, tags=(PEAK_TAG,)), limit=_RUNS)
    return [store.load(row.id) for row in rows if row.machine == fingerprint]
