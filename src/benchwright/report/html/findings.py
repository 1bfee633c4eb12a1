"""What stands out in a run, in words: what failed and why, what makes numbers doubtful, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchwright.core.results.summary import Summary
from benchwright.core.run import Launch, Result, culprit
from benchwright.core.status import Reason, Status
from benchwright.report.base import Report
from benchwright.report.html.figures import counted, is_noisy, metric_name, percent, shown_first, spread
from benchwright.report.models.rows import telling
from benchwright.report.text.remarks import remarks_of_metric

_FEWEST_FOR_INTERVAL = 6
_REMEDIES = {
    Reason.CRASHED: "Read the last lines of its log; then run the command by itself.",
    Reason.OUT_OF_MEMORY: "Use a smaller batch or model, or a machine with more memory.",
    Reason.DISK_FULL: "Free some disk space, then resume the run with --resume: this launch is repeated.",
    Reason.SIGNALLED: "Something outside ended it: look for the kernel's out-of-memory killer, a quota or a job limit.",
    Reason.TIMED_OUT: "Give it more time with --timeout, or measure less of it with --stop.",
    Reason.NO_DATA: "Compare the metric's pattern with what the program prints (its log is below).",
    Reason.BUILD_FAILED: "The runtime cannot run this model as it is: try another runtime or version, or change the operator.",
    Reason.INVALID: "The program ran, but its numbers cannot be true; check its inputs before its speed.",
    Reason.AGENT_LOST: "Nothing is known of its end; measure it again.",
    Reason.LACKS_DEVICES: "Run it on a machine that has the devices, or ask for fewer.",
    Reason.DISABLED: "It is switched off in the file it was read from.",
}
_KINDS = {
    "step": "The level changed in mid-run",
    "trend": "Launches drift",
    "correlated": "Launches resemble the ones before them",
    "two_groups": "Launches fall into two groups",
    "outliers": "Single launches stand out; they stay in every figure",
    "noisy": "Noisy",
    "drift_within": "Samples drift within launches",
    "two_groups_within": "Samples fall into two groups within launches",
}
_NOTE_REMEDIES = (
    ("busy", "Stop other work on the machine or pin free cores with --cores; then measure again."),
    ("lowered its clock", "Let the device cool down or raise its power limit; rates before and after do not compare."),
    ("used by another program", "End it, wait, or choose another GPU with CUDA_VISIBLE_DEVICES; then measure again."),
    ("no loop is instrumented", "Wrap the loop in benchprobe.iterate."),
    ("reached its cap", "Allow more with --stop, or accept the wider interval."),
    ("settled", "Give it more steps, or say how long the warm-up is with --warmup."),
)


class Place(msgspec.Struct, frozen=True):
    """A benchmark a finding is about, by its number in the run, and the figure it has there."""

    benchmark: int
    name: str
    figure: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`severity`: failed, warning or info."""

    severity: str
    text: str
    places: tuple[Place, ...] = ()
    remedy: str | None = None
    detail: str | None = None
    log: tuple[str, ...] = ()
    log_of: str | None = None


def findings(report: Report) -> list[Finding]:
    """Failures first, then what else did not end and what makes numbers doubtful, then advice."""
    results = report.run.results
    found = [
        *(_failure(number, r, report.log_tails) for number, r in enumerate(results) if r.status is Status.FAILED),
        *_unfinished(report),
        *_notes(report),
        *_remarks(results, report.summaries),
        *_noise(results, report.summaries),
        *_too_few(results),
        *_few(results, report.summaries),
    ]
    return sorted(found, key=lambda f: ("failed", "warning", "info").index(f.severity))


def _failure(number: int, result: Result, log_tails: Mapping[str, Sequence[str]]) -> Finding:
    measured = [x for x in result.launches if not x.warmup]
    failed = [x for x in measured if x.status is Status.FAILED]
    reason = result.reason.value.replace("_", " ") if result.reason else "failed"
    share = f", {len(failed)} of {counted(len(measured), 'launch', 'launches')}" if len(measured) > 1 else ""
    bad = culprit(measured)
    return Finding(
        severity="failed",
        text=f"{reason}{share}",
        places=(Place(number, result.benchmark.name),),
        detail=result.detail or (bad.detail if bad else None),
        remedy=_REMEDIES.get(result.reason) if result.reason else None,
        log=tuple(log_tails.get(bad.job, ())) if bad else (),
        log_of=bad.job if bad else None,
    )


def _unfinished(report: Report) -> list[Finding]:
    found = []
    go_on = f"Go on with: benchwright run --resume={report.run.id}"
    for status, text in ((Status.INTERRUPTED, "Interrupted"), (Status.PENDING, "Not measured yet")):
        if places := _places(report.run.results, _has(status)):
            found.append(Finding(severity="warning", text=text, places=places, remedy=go_on))
    skipped: dict[tuple[Reason | None, str], list[Place]] = {}
    for number, r in enumerate(report.run.results):
        if r.status is Status.SKIPPED:
            skipped.setdefault((r.reason, r.detail or ""), []).append(Place(number, r.benchmark.name))
    for (reason, detail), where in skipped.items():
        text = f"Skipped: {detail or (reason.value.replace('_', ' ') if reason else 'no reason given')}"
        remedy = _REMEDIES.get(reason) if reason else None
        found.append(Finding(severity="info", text=text, places=tuple(where), remedy=remedy))
    return found


def _notes(report: Report) -> list[Finding]:
    """Notes of the run, then each note of benchmarks and launches once, with where it was noted."""
    found = [
        Finding(severity=_severity(n.severity), text=_sentence(n.text, n.evidence), remedy=_note_remedy(n.text))
        for n in report.run.notes
    ]
    where: dict[str, list[Place]] = {}
    severities: dict[str, str] = {}
    for number, result in enumerate(report.run.results):
        for text in result.benchmark.notes:
            where.setdefault(text, []).append(Place(number, result.benchmark.name))
        warmups = [x for x in result.launches if x.warmup]
        if failed := [x for x in warmups if x.status is Status.FAILED]:
            share = f"{len(failed)} of {len(warmups)}: {failed[0].detail}"
            where.setdefault("warm-up launches failed", []).append(Place(number, result.benchmark.name, share))
            severities["warm-up launches failed"] = "warning"
        for text, figure, severity in launch_notes(result.launches):
            where.setdefault(text, []).append(Place(number, result.benchmark.name, figure))
            severities[text] = severity
    for text, places in where.items():
        severity = _severity(severities.get(text, "info"))
        found.append(Finding(severity=severity, text=_sentence(text), places=tuple(places), remedy=_note_remedy(text)))
    return found


def launch_notes(launches: Sequence[Launch]) -> list[tuple[str, str, str]]:
    """Each note of a benchmark's launches once: its text, how many it concerns with the worst figure, its severity."""
    measured = [x for x in launches if not x.warmup]
    seen: dict[str, list[str]] = {}
    severities: dict[str, str] = {}
    for launch in measured:
        for note in launch.notes:
            seen.setdefault(note.text, []).append(note.evidence or "")
            severities[note.text] = note.severity
    found = []
    for text, figures in seen.items():
        share = f"{len(figures)} of {counted(len(measured), 'launch', 'launches')}" if len(measured) > 1 else ""
        worst = min(filter(None, figures), default="")
        found.append((text, ", ".join(filter(None, (share, worst))), severities[text]))
    return found


def _remarks(results: Sequence[Result], summaries: Mapping[str, Sequence[Summary]]) -> list[Finding]:
    """What the analysis noticed; remarks of the same kind together."""
    same: dict[tuple[str, str], list[Place]] = {}
    for number, r in enumerate(results):
        for s in shown_first(telling(r, summaries.get(r.benchmark.name, ()))):
            for remark in remarks_of_metric(s):
                place = Place(number, r.benchmark.name, f"{metric_name(s.metric, s.labels)} {remark.text}")
                same.setdefault((remark.kind or "", remark.remedy or ""), []).append(place)
    return [
        Finding(
            severity="warning",
            text=_KINDS.get(kind, _sentence(kind.replace("_", " "))),
            places=tuple(places),
            remedy=_sentence(advice),
        )
        for (kind, advice), places in same.items()
    ]


def _noise(results: Sequence[Result], summaries: Mapping[str, Sequence[Summary]]) -> list[Finding]:
    noisy: list[tuple[float, Place]] = []
    for number, r in enumerate(results):
        for s in shown_first(telling(r, summaries.get(r.benchmark.name, ()))):
            said = any(remark.kind == "noisy" for remark in s.remarks)
            if not said and is_noisy(s) and (apart := spread(s)) is not None:
                noisy.append(
                    (apart, Place(number, r.benchmark.name, f"{metric_name(s.metric, s.labels)} ± {percent(apart)}"))
                )
    if not noisy:
        return []
    noisy.sort(key=lambda pair: -pair[0])
    return [
        Finding(
            severity="warning",
            text="Noisy: launches differ by more than 5 %, so smaller changes cannot be seen",
            places=tuple(place for _, place in noisy),
            remedy="Measure on a quiet machine, pin cores with --cores, and raise --repeat; "
            "to compare two commands, interleave them (-c … -c …).",
        )
    ]


def _too_few(results: Sequence[Result]) -> list[Finding]:
    few = _places(
        results, lambda r: r.status is Status.OK and len({x.position for x in r.counted}) < _FEWEST_FOR_INTERVAL
    )
    if not few:
        return []
    return [
        Finding(
            severity="info",
            text=f"No confidence interval: fewer than {_FEWEST_FOR_INTERVAL} launches",
            places=few,
            remedy=f"Measure with --repeat {_FEWEST_FOR_INTERVAL} or more. Samples within one launch do not replace launches.",
        )
    ]


def _few(results: Sequence[Result], summaries: Mapping[str, Sequence[Summary]]) -> list[Finding]:
    """Benchmarks whose launches give an interval but are too few to show that they depend on each other."""
    places: dict[str, list[Place]] = {}
    for number, r in enumerate(results):
        found = (x for s in summaries.get(r.benchmark.name, ()) for x in s.remarks if x.kind == "few_launches")
        if remark := next(found, None):
            count = counted(len({x.position for x in r.counted}), "launch", "launches")
            places.setdefault(remark.remedy or "", []).append(Place(number, r.benchmark.name, count))
    return [
        Finding(
            severity="info",
            text="With so few launches, slow drift can go unnoticed and the interval may be too narrow",
            places=tuple(where),
            remedy=_sentence(advice),
        )
        for advice, where in places.items()
    ]


def _has(status: Status) -> Callable[[Result], bool]:
    return lambda result: result.status is status


def _places(results: Sequence[Result], chosen: Callable[[Result], bool]) -> tuple[Place, ...]:
    return tuple(Place(number, r.benchmark.name) for number, r in enumerate(results) if chosen(r))


def _severity(word: str) -> str:
    return {"error": "failed", "warning": "warning"}.get(word, "info")


def _sentence(text: str, figure: str | None = None) -> str:
    whole = f"{text} ({figure})" if figure else text
    return whole[:1].upper() + whole[1:]


def _note_remedy(text: str) -> str | None:
    return next((remedy for words, remedy in _NOTE_REMEDIES if words in text), None)
