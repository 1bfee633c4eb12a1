"""Notes about a run: failures and their causes, reasons to doubt numbers, and remedies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.core.conditions import DISTURBING
from benchwright.core.job import readable_job
from benchwright.core.launches import noted_of
from benchwright.core.note import Note
from benchwright.core.run import CheckStatus, Result, Run, culprit
from benchwright.core.status import Reason, Status
from benchwright.core.summary import Summary
from benchwright.report.base import Report
from benchwright.report.document import Callout, LogTail, MentionedBenchmark
from benchwright.report.text.metrics import NOISY, efficiency_doubts, metric_name
from benchwright.report.text.numbers import counted, percent
from benchwright.report.text.one_line import titled

BUSY = "busy"  # the kind of note
_FEWEST_FOR_INTERVAL = 6
_MOST_PLACES = 12  # benchmarks that a shared note names
_OF_LAUNCHES = "few_launches"  # the same for all metrics of a benchmark
_REMEDIES = {
    Reason.CRASHED: "Read the last lines of its log, then run the command by itself.",
    Reason.OUT_OF_MEMORY: "Use a smaller batch or model, or a machine with more memory.",
    Reason.DISK_FULL: "Free some disk space, then continue with --resume: this launch is repeated.",
    Reason.SIGNALLED: "Something outside ended it: look for the kernel's out-of-memory killer, a quota or a job limit.",
    Reason.TIMED_OUT: "Give it more time with --timeout, or measure less of it with --stop.",
    Reason.NO_DATA: "Compare the metric's pattern with what the program prints (its log is below).",
    Reason.BUILD_FAILED: "The runtime cannot run this model as it is: try another runtime or version, or change the operator.",
    Reason.INVALID: "The program ran, but its numbers cannot be true: check its inputs before its speed.",
    Reason.AGENT_LOST: "How it ended is unknown: measure it again.",
    Reason.LACKS_DEVICES: "Run it on a machine that has the devices, or ask for fewer.",
    Reason.DISABLED: "It is disabled in the file it was read from.",
}
_KINDS = {
    "step": "The level changed during the run",
    "trend": "Launches drift",
    "correlated": "Neighbouring launches are correlated",
    "two_groups": "Launches fall into two groups",
    "outliers": "Single launches stand out; they stay in every figure",
    "noisy": "Noisy",
    "far_apart": "Values are far apart",
    "drift_within": "Samples drift within launches",
    "two_groups_within": "Samples fall into two groups within launches",
}
# What launches that differ have in common is what helps against it, so it is said once, below all of them.
_VARIATION = frozenset({"step", "trend", "correlated", "outliers", "noisy"})
_DOCTOR = "('bw doctor' measures the noise)"
_QUIET = f"stop other work on the machine or pin free cores with --cores {_DOCTOR}, then measure again"
_STEADY = f"use more launches (--repeat), and a quieter machine or cores pinned with --cores {_DOCTOR}"
_FIRST_LAUNCH = "; where only the first launch stands out, use --warmup-runs 1"
_NOTE_REMEDIES = (
    ("busy", titled(f"{_QUIET}.")),
    ("lowered its clock", "Let the device cool down or raise its power limit; rates before and after do not compare."),
    ("used by another program", "End it, wait, or choose another GPU with CUDA_VISIBLE_DEVICES, then measure again."),
    ("no loop is instrumented", "Wrap the loop in benchprobe.iterate."),
    ("reached its cap", "Allow more with --stop, or accept the wider interval."),
    ("stabilised", "Give it more steps, or set the length of the warm-up with --warmup."),
)


def metric_notes(summary: Summary) -> list[Note]:
    """Oddities in the numbers of one metric."""
    return [note for note in summary.remarks if note.kind != _OF_LAUNCHES]


def bare(note: Note) -> Note:
    """Without a remedy that `common_remedy` gives for the whole run."""
    return replace(note, remedy=None) if note.kind in _VARIATION else note


def common_remedy(report: Report) -> str | None:
    """The remedy for a busy machine and launches that differ, once for all benchmarks; None if none is needed."""
    if not _can_be_disturbed(report.run):
        return None
    numbers = [n for n in range(len(report.run.results)) if n not in report.added.shown]
    kinds = {note.kind for n in numbers for s in report.headline(n) for note in metric_notes(s)} & _VARIATION
    noted = [*report.run.notes, *(note for n in numbers for note in result_notes(report.run.results[n]))]
    busy = any(note.kind == BUSY and note.remedy is None for note in noted)
    if not busy and not kinds:
        return None
    return (_QUIET if busy else _STEADY) + (_FIRST_LAUNCH if "outliers" in kinds else "")


def machine_notes(report: Report) -> list[Note]:
    """Notes about the machine's state, apart from any benchmark: read before everything else."""
    return [note for note in _relevant(report.run) if note.kind in DISTURBING]


def _relevant(run: Run) -> list[Note]:
    """The notes of a run, without the machine's state where that made no difference."""
    return [note for note in run.notes if _can_be_disturbed(run) or note.kind not in DISTURBING]


def _can_be_disturbed(run: Run) -> bool:
    """Not where all failed by themselves: no number was measured, and no time ran out."""
    return any(r.counted or r.reason is Reason.TIMED_OUT or r.status is not Status.FAILED for r in run.results)


def shared_notes(summaries: Sequence[Summary], report: Report) -> list[Note]:
    """Notes common to all metrics of a benchmark, once; none if the whole run has them anyway."""
    if any(note.kind == _OF_LAUNCHES for note in report.remarks):
        return []
    found = (note for summary in summaries for note in summary.remarks if note.kind == _OF_LAUNCHES)
    return list({note.text: note for note in found}.values())


def result_notes(result: Result) -> list[Note]:
    """Notes from reading the benchmark, checks that warn, failed warm-ups, and each note of its launches once."""
    warned = [f"{c.layer}: {c.explanation}" for c in result.checks if c.status is CheckStatus.WARNED]
    found = [Note(text=text, severity="info") for text in result.benchmark.notes]
    found += [Note(text=text) for text in warned]
    warmups = [x for x in result.launches if x.warmup]
    if failed := [x for x in warmups if x.status is Status.FAILED]:
        found.append(Note(text=f"{len(failed)} of {len(warmups)} warm-up launches failed: {failed[0].detail}"))
    return found + noted_of(result.launches)


def notes_text(run: Run, result: Result) -> str:
    """Reasons to doubt a number, from its benchmark, its launches and its run: each once, separated by semicolons."""
    return "; ".join(dict.fromkeys([*map(str, result_notes(result)), *(note.text for note in run.notes)]))


def benchmark_notes(number: int, report: Report) -> list[Note]:
    """Everything but what stands out in single metrics."""
    result = report.run.results[number]
    doubts = efficiency_doubts(report.efficiency.get(result.benchmark.name, ()))
    shared = shared_notes(report.headline(number), report)
    return [*shared, *(Note(text=text) for text in doubts), *result_notes(result)]


class SharedNote(NamedTuple):
    """A note that says the same of several benchmarks: `number` counts these notes from 1, `places` are name and evidence."""

    number: int
    note: Note
    places: tuple[tuple[str, str], ...]

    def text(self, name: Callable[[str], str] = str, words: Callable[[str], str] = str) -> str:
        """`what: a (evidence), b (evidence) and 3 more; remedy`. `name` and `words` write names, and all else, in a format."""
        shown = [f"{name(n)} ({words(said)})" if said else name(n) for n, said in self.places[:_MOST_PLACES]]
        more = f" and {len(self.places) - _MOST_PLACES} more" if len(self.places) > _MOST_PLACES else ""
        remedy = f"; {words(self.note.remedy)}" if self.note.remedy else ""
        return f"{words(self.note.text)}: {', '.join(shown)}{more}{remedy}"


def shared_by_several(report: Report) -> dict[str, SharedNote]:
    """The notes that are the same for two benchmarks or more, by their text; what kinds say in their own sections apart."""
    same: dict[str, tuple[Note, dict[str, str]]] = {}
    for number, result in enumerate(report.run.results):
        for note in benchmark_notes(number, report) if number not in report.added.shown else ():
            same.setdefault(note.text, (note, {}))[1].setdefault(result.benchmark.name, note.evidence or "")
    several = [(note, places) for note, places in same.values() if len(places) > 1]
    return {
        note.text: SharedNote(number, note, tuple(places.items())) for number, (note, places) in enumerate(several, 1)
    }


def merged_texts(notes: Sequence[Note]) -> list[str]:
    """Notes of the form `name: what`, in words: the same note of several becomes one, with the names."""
    same: dict[str, list[tuple[str, Note]]] = {}
    for note in notes:
        name, colon, what = note.text.partition(": ")
        same.setdefault(what if colon else note.text, []).append((name if colon else "", note))
    found = []
    for what, said in same.items():
        if len(said) == 1:
            found.append(str(said[0][1]))
            continue
        places = "; ".join(" ".join(filter(None, (name, f"({n.evidence})" if n.evidence else ""))) for name, n in said)
        remedy = f"; {said[0][1].remedy}" if said[0][1].remedy else ""
        found.append(f"{what}: {places}{remedy}" if places.strip("; ") else f"{what}{remedy}")
    return found


def run_notes(report: Report) -> list[Note]:
    """Notes about the whole run, the machine's state first."""
    first = machine_notes(report)
    return [*first, *(note for note in _relevant(report.run) if note not in first), *report.remarks]


def log_of(result: Result, report: Report) -> LogTail | None:
    """Of a failed benchmark the last lines of the log that tells most."""
    bad = culprit(result.launches)
    job = result.benchmark.name if bad is None else bad.job
    lines = report.log_tails.get(job, ())
    return LogTail(readable_job(job), tuple(lines)) if lines else None


def callouts(report: Report) -> list[Callout]:
    """All that stands out, once for each remedy with the benchmarks it is about: failures, the machine's state, doubts, advice.

    Notes in a kind's own section are not repeated.
    """
    results = [(n, r) for n, r in enumerate(report.run.results) if n not in report.added.shown]
    found = [_failure(n, r, report) for n, r in enumerate(report.run.results) if r.status is Status.FAILED]
    found += [Callout(_sentence(note)) for note in _relevant(report.run)]
    found += [*_unfinished(report), *_noted(results), *_remarked(results, report), *_noisy(results, report)]
    found += [*_too_few(report), *_few(results, report)]
    found.sort(key=lambda c: (("error", "warning", "info").index(c.note.severity), c.note.kind not in DISTURBING))
    return _by_remedy(found)


def _by_remedy(found: Sequence[Callout]) -> list[Callout]:
    """One callout for each remedy, under the first one's text; failures stay apart. Launches that differ join a busy machine."""
    groups: dict[object, list[Callout]] = {}
    busy = any(c.note.kind == BUSY for c in found)
    for number, each in enumerate(found):
        varies = busy and each.note.kind in _VARIATION
        remedy = titled(f"{_QUIET}.") if varies else each.note.remedy
        apart = each.note.severity == "error" or not remedy
        groups.setdefault(number if apart else remedy, []).append(each)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[Callout]) -> Callout:
    """Of one benchmark all that is said of it; what is said of the whole run stands in the text."""
    first, *others = group
    if not others:
        return first
    whole = [c for c in others if not c.mentions]
    names = {m.benchmark: m.name for c in group for m in c.mentions}
    said: dict[int, list[str]] = {number: [] for number in names}
    for c in group:
        for m in c.mentions:
            what = "" if c is first or c.note.kind in _VARIATION else c.note.text[0].lower() + c.note.text[1:]
            said[m.benchmark].append(f"{what} ({m.evidence})" if what and m.evidence else what or m.evidence)
    mentions = tuple(MentionedBenchmark(n, names[n], "; ".join(filter(None, texts))) for n, texts in said.items())
    text = ". ".join([str(replace(c.note, remedy=None)) for c in (first, *whole)])
    return replace(first, note=replace(first.note, text=text, evidence=None), mentions=mentions)


def _failure(number: int, result: Result, report: Report) -> Callout:
    measured = [x for x in result.launches if not x.warmup]
    failed = [x for x in measured if x.status is Status.FAILED]
    reason = result.reason.words if result.reason else "failed"
    share = f", {len(failed)} of {counted(len(measured), 'launch', 'launches')}" if len(measured) > 1 else ""
    bad = culprit(measured)
    remedy = _REMEDIES.get(result.reason) if result.reason else None
    note = Note(text=f"{reason}{share}", severity="error", remedy=remedy)
    detail = result.detail or (bad.detail if bad else None)
    return Callout(note, (MentionedBenchmark(number, result.benchmark.name),), detail, log_of(result, report))


def _unfinished(report: Report) -> list[Callout]:
    found = []
    remedy = f"Continue with: benchwright run --resume={report.run.id}"
    for status, text in ((Status.INTERRUPTED, "Interrupted"), (Status.PENDING, "Not measured yet")):
        if mentions := _mentions(report, lambda r, status=status: r.status is status):  # type: ignore[misc]
            found.append(Callout(Note(text=text, remedy=remedy), mentions))
    skipped: dict[tuple[Reason | None, str], list[MentionedBenchmark]] = {}
    for number, r in enumerate(report.run.results):
        if r.status is Status.SKIPPED:
            skipped.setdefault((r.reason, r.detail or ""), []).append(MentionedBenchmark(number, r.benchmark.name))
    for (reason, detail), where in skipped.items():
        text = f"Skipped: {detail or (reason.words if reason else 'no reason given')}"
        note = Note(text=text, severity="info", remedy=_REMEDIES.get(reason) if reason else None)
        found.append(Callout(note, tuple(where)))
    return found


def _noted(results: Sequence[tuple[int, Result]]) -> list[Callout]:
    """Each note of benchmarks and launches once, with where it was noted."""
    same: dict[str, tuple[Note, list[MentionedBenchmark]]] = {}
    for number, result in results:
        for note in result_notes(result):
            mention = MentionedBenchmark(number, result.benchmark.name, note.evidence or "")
            same.setdefault(note.text, (note, []))[1].append(mention)
    return [Callout(_sentence(replace(note, evidence=None)), tuple(where)) for note, where in same.values()]


def _remarked(results: Sequence[tuple[int, Result]], report: Report) -> list[Callout]:
    """Remarks of the analysis; notes of the same kind together."""
    same: dict[tuple[str, str], list[MentionedBenchmark]] = {}
    for number, r in results:
        for s in report.headline(number):
            for note in metric_notes(s):
                mention = MentionedBenchmark(number, r.benchmark.name, f"{metric_name(s.metric, s.labels)} {note.text}")
                same.setdefault((note.kind or "", bare(note).remedy or f"{_STEADY}."), []).append(mention)
    return [
        Callout(
            _sentence(Note(text=_KINDS.get(kind, kind.replace("_", " ")), remedy=titled(remedy), kind=kind)),
            tuple(where),
        )
        for (kind, remedy), where in same.items()
    ]


def _noisy(results: Sequence[tuple[int, Result]], report: Report) -> list[Callout]:
    noisy: list[tuple[float, MentionedBenchmark]] = []
    for number, r in results:
        for s in report.headline(number):
            apart = s.spread
            if apart is not None and apart > NOISY and not any(note.kind == "noisy" for note in s.remarks):
                evidence = f"{metric_name(s.metric, s.labels)} ± {percent(apart)}"
                noisy.append((apart, MentionedBenchmark(number, r.benchmark.name, evidence)))
    if not noisy:
        return []
    note = Note(
        text="Noisy: launches differ by more than 5 %, so smaller changes cannot be seen",
        remedy=titled(f"{_STEADY}."),
        kind="noisy",
    )
    return [Callout(note, tuple(mention for _, mention in sorted(noisy, key=lambda pair: -pair[0])))]


def _too_few(report: Report) -> list[Callout]:
    few = _mentions(
        report, lambda r: r.status is Status.OK and len({x.position for x in r.counted}) < _FEWEST_FOR_INTERVAL
    )
    note = Note(
        text=f"No confidence interval: fewer than {_FEWEST_FOR_INTERVAL} launches",
        severity="info",
        remedy=f"Use --repeat {_FEWEST_FOR_INTERVAL} or more. Samples within one launch do not replace launches.",
    )
    return [Callout(note, few)] if few else []


def _few(results: Sequence[tuple[int, Result]], report: Report) -> list[Callout]:
    """Benchmarks whose launches give an interval but are too few to show that they depend on each other."""
    same: dict[str, list[MentionedBenchmark]] = {}
    for number, r in results:
        summaries = report.summaries.get(r.benchmark.name, ())
        found = (x for s in summaries for x in s.remarks if x.kind == _OF_LAUNCHES)
        if note := next(found, None):
            count = counted(len({x.position for x in r.counted}), "launch", "launches")
            same.setdefault(note.remedy or "", []).append(MentionedBenchmark(number, r.benchmark.name, count))
    text = "With so few launches, slow drift can go unnoticed and the interval may be too narrow"
    return [
        Callout(Note(text=text, severity="info", remedy=titled(remedy)), tuple(where)) for remedy, where in same.items()
    ]


def _mentions(report: Report, chosen: Callable[[Result], bool]) -> tuple[MentionedBenchmark, ...]:
    return tuple(
        MentionedBenchmark(number, r.benchmark.name) for number, r in enumerate(report.run.results) if chosen(r)
    )


def _sentence(note: Note) -> Note:
    """With a capital, and a remedy if one is known."""
    known = next((remedy for words, remedy in _NOTE_REMEDIES if words in note.text), None)
    severity = note.severity if note.severity in ("error", "warning") else "info"
    return replace(note, text=titled(note.text), remedy=note.remedy or known, severity=severity)
