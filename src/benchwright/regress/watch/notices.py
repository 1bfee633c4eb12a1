"""Notices about a commit."""

from __future__ import annotations

from benchwright.regress.notify.notice import Finding, Notice, NoticeOutcome, NoticeVerdict
from benchwright.regress.watch.records import FAILURES, CommitOutcome, CommitRecord, EffectRecord
from benchwright.report.text.metrics import metric_name

_SHORT = 10


def is_news(record: CommitRecord) -> bool:
    """Whether somebody should look at it: a regression that an earlier commit was called for is known already."""
    return bool(record.called) or record.outcome in FAILURES - {CommitOutcome.REGRESSED}


def notice_of_commit(record: CommitRecord, repository: str) -> Notice:
    """`repository`: its name."""
    place = f" on {record.place}" if record.place else ""
    return Notice(
        title=f"{repository} {record.commit[:_SHORT]}{place}: {record.outcome.value} ({record.subject})",
        outcome=_outcome(record),
        verdicts=(*(_verdict(record, effect) for effect in record.effects), *_failures(record)),
        details=tuple(details_of(record)),
        topic=f"watch {repository}{place}",
    )


def change_words(effect: EffectRecord) -> str:
    """`+5.2 % [+4.1, +6.3]`."""
    change = f"{100 * (effect.ratio - 1):+.1f} %"
    if effect.low is None or effect.high is None:
        return change
    return f"{change} [{100 * (effect.low - 1):+.1f}, {100 * (effect.high - 1):+.1f}]"


def details_of(record: CommitRecord) -> list[str]:
    """Its control, its runs, and its notes."""
    found = []
    if record.control is not None:
        found.append(f"compared with {record.control[:_SHORT]}, the {record.control_is}")
    if record.runs:
        found.append(", ".join(f"{made.purpose.value} run: {made.run}" for made in record.runs))
    found += record.notes
    if record.log is not None:
        found.append(f"the output of the build is in {record.log}")
    return found


def _outcome(record: CommitRecord) -> NoticeOutcome:
    if record.outcome is CommitOutcome.REGRESSED:
        return NoticeOutcome.REGRESSED
    unknown = record.outcome in FAILURES or record.outcome is CommitOutcome.NOT_MEASURED
    return NoticeOutcome.NOT_MEASURED if unknown else NoticeOutcome.FINE


def _verdict(record: CommitRecord, effect: EffectRecord) -> NoticeVerdict:
    finding, reason = Finding(effect.verdict.value), ""
    if effect.called:
        finding = Finding.REGRESSED
        reason = "" if effect.since is None else f"since {effect.since[:_SHORT]}"
        if effect.acknowledged:
            finding, reason = Finding.INCONCLUSIVE, f"{reason}, acknowledged"
    elif record.outcome is CommitOutcome.SAME_COMMIT:
        finding, reason = Finding.INCONCLUSIVE, "control and treatment are the same commit"
    elif finding is Finding.REGRESSED:
        finding, reason = Finding.INCONCLUSIVE, "not confirmed by a second run"
    return NoticeVerdict(
        benchmark=effect.benchmark,
        metric=metric_name(effect.metric, effect.labels, beside=effect.beside),
        verdict=finding,
        text=change_words(effect),
        reason=reason,
        ratio=effect.ratio,
        low=effect.low,
        high=effect.high,
    )


def _failures(record: CommitRecord) -> list[NoticeVerdict]:
    reasons = record.broken
    if record.outcome is CommitOutcome.BUILD_FAILED:
        reasons = (f"build: {'; '.join(record.notes)}",)
    parts = [reason.partition(": ") for reason in reasons]
    return [
        NoticeVerdict(benchmark=name, metric="comparison", verdict=Finding.NOT_MEASURED, reason=reason)
        for name, _, reason in parts
    ]
