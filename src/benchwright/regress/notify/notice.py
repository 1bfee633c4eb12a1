"""A Notice: what one A/B, pass or look at the history found, in the words that every receiver gets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import Enum

import msgspec

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.report.comparison import comparison_markdown, count_words
from benchwright.report.tables.comparison import change, launches_words, metric_words, small_print, sorted_effects
from benchwright.report.text.numbers import format_value, plain_number


class Finding(str, Enum):
    """The verdict on one metric of one benchmark, in a notice."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"
    NOT_MEASURED = "not measured"  # it failed, or one side lacks it


class NoticeOutcome(str, Enum):
    """The whole, as the exit code says it."""

    FINE = "fine"  # 0
    REGRESSED = "regressed"  # 1
    NOT_MEASURED = "not measured"  # 3


class NoticeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a notice. `text`: the figures in words; `reason`: why there is no verdict, or what makes it doubtful."""

    benchmark: str
    metric: str  # with what tells it apart
    verdict: Finding
    text: str = ""
    reason: str = ""
    file: str | None = None  # of the project, for annotations
    ratio: float | None = None  # treatment ÷ control, from `low` to `high`
    low: float | None = None
    high: float | None = None


class NoticeLink(msgspec.Struct, frozen=True):
    title: str
    url: str


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`topic` is the same for every notice about the same thing: a comment with it replaces the one before."""

    title: str
    outcome: NoticeOutcome
    verdicts: tuple[NoticeVerdict, ...] = ()
    details: tuple[str, ...] = ()  # sentences: revisions, why nothing was measured
    links: tuple[NoticeLink, ...] = ()
    markdown: str = ""  # more for those who show it: tables
    topic: str = ""
    time: str = ""  # ISO 8601, UTC; `notify` fills it in

    @property
    def identity(self) -> str:
        """The same each time it is sent: it may arrive twice."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]

    def of(self, *findings: Finding) -> list[NoticeVerdict]:
        return [each for each in self.verdicts if each.verdict in findings]


def notice_of(
    comparisons: Sequence[Comparison],
    *,
    title: str = "",
    details: Sequence[str] = (),
    links: Sequence[NoticeLink] = (),
    topic: str = "",
    file: str | None = None,
) -> Notice:
    """The notice of an A/B or of runs that were compared. What the treatment lost, or no effect at all, is no success.

    `title`: without one, what was compared and the number of verdicts. `file`: of the project, for annotations.
    """
    verdicts: list[NoticeVerdict] = []
    for comparison in comparisons:
        verdicts += [_verdict(e, comparison, file) for e in sorted_effects(comparison.effects)]
        verdicts += [_gap(text, comparison, file) for text in comparison.missing]
        if not comparison.effects and not comparison.missing:
            verdicts.append(_gap(f"{comparison.treatment}: nothing to compare", comparison, file, lost=True))
    title = title or _title(comparisons)
    if not comparisons:
        verdicts.append(_nothing(title, file))
    return Notice(
        title=title,
        outcome=outcome_of(verdicts),
        verdicts=tuple(verdicts),
        details=tuple(details),
        links=tuple(links),
        markdown="\n".join(comparison_markdown(c) for c in comparisons),
        topic=topic,
    )


def _title(comparisons: Sequence[Comparison]) -> str:
    lines = [f"{c.control} → {c.treatment}: {count_words(c)}" for c in comparisons]
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{lines[0]}{more}" if lines else "nothing was compared"


def outcome_of(verdicts: Sequence[NoticeVerdict]) -> NoticeOutcome:
    """A regression first; without one, whatever could not be measured."""
    found = {each.verdict for each in verdicts}
    if Finding.REGRESSED in found:
        return NoticeOutcome.REGRESSED
    return NoticeOutcome.NOT_MEASURED if Finding.NOT_MEASURED in found or not found else NoticeOutcome.FINE


def _verdict(effect: Effect, comparison: Comparison, file: str | None) -> NoticeVerdict:
    figures = f"{format_value(effect.control, effect.unit)} → {format_value(effect.treatment, effect.unit)}"
    undecided = effect.verdict is Verdict.INCONCLUSIVE
    return NoticeVerdict(
        benchmark=_without_side(effect.benchmark, comparison),
        metric=metric_words(effect),
        verdict=Finding(effect.verdict.value),
        text=f"{change(effect)}, {figures}, {launches_words(effect)}",
        reason="; ".join(small_print(effect)) or ("the interval is too wide for a verdict" if undecided else ""),
        file=file,
        ratio=plain_number(effect.ratio),
        low=None if effect.interval is None else plain_number(effect.interval.low),
        high=None if effect.interval is None else plain_number(effect.interval.high),
    )


def _gap(text: str, comparison: Comparison, file: str | None, *, lost: bool = False) -> NoticeVerdict:
    """A gap in the comparison; it counts against the treatment only if the treatment lost it."""
    name, _, reason = text.partition(": ")
    counts = lost or text in comparison.lost
    return NoticeVerdict(
        benchmark=_without_side(name, comparison),
        metric="comparison",
        verdict=Finding.NOT_MEASURED if counts else Finding.INCONCLUSIVE,
        reason=reason or text,
        file=file,
    )


def _nothing(title: str, file: str | None) -> NoticeVerdict:
    reason = "nothing was measured"
    return NoticeVerdict(benchmark=title, metric="comparison", verdict=Finding.NOT_MEASURED, reason=reason, file=file)


def _without_side(name: str, comparison: Comparison) -> str:
    """The two sides of an A/B are `NAME control` and `NAME treatment`."""
    shared = comparison.control.removesuffix(" control")
    both = comparison.control == f"{shared} control" and comparison.treatment == f"{shared} treatment"
    return shared if both and name in (comparison.control, comparison.treatment) else name
