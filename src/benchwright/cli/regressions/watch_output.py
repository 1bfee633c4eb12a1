"""Output of `benchwright watch`: a few lines for each commit, or a line of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright.cli.answer import in_json
from benchwright.cli.terminal import coloured, show, terminal_width
from benchwright.core.comparison import Verdict
from benchwright.core.quantities import format_duration
from benchwright.regress.notify.notify import notify
from benchwright.regress.watch.notices import change_words, details_of, is_news, notice_of_commit
from benchwright.regress.watch.records import CommitOutcome, time_of
from benchwright.report.tables.comparison import MARKS
from benchwright.report.text.layout import wrapped
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.one_line import clip

if TYPE_CHECKING:
    from pathlib import Path

    from benchwright.regress.notify.targets import Target
    from benchwright.regress.repository import Commit
    from benchwright.regress.watch.control import Control
    from benchwright.regress.watch.records import CommitRecord
    from benchwright.regress.watch.watch import PendingCommit
    from benchwright.regress.watch.work import WatchPlace
    from benchwright.runner.progress import Progress

_SHORT, _INDENT = 10, 12
_WIDEST = max(len(outcome.value) for outcome in CommitOutcome)


class WatchScreen:
    """Shows what a watch does, and tells those whom `--notify` names. `lost`: notices that nobody will get."""

    def __init__(self, progress: Progress, *, quiet: bool) -> None:
        self._progress = progress
        self._in_json = in_json()
        self._quiet = quiet or self._in_json
        self._targets: list[Target] = []
        self._repository = ""
        self._bisect: Callable[[CommitRecord], str] | None = None
        self._spool: Path | None = None
        self._is_idle = False  # and has said so
        self.lost = 0

    def tell(self, targets: list[Target], repository: str, spool: Path) -> None:
        """From now on. `spool`: where notices wait for a receiver that is down."""
        self._targets, self._repository, self._spool = targets, repository, spool

    def advise(self, bisect: Callable[[CommitRecord], str]) -> None:
        """`bisect`: the line to type for a commit that was called."""
        self._bisect = bisect

    def on_commits(self, commits: Sequence[Commit]) -> None:
        if commits:
            self.on_note(f"{len(commits)} new commit{'s' if len(commits) > 1 else ''}")
        elif not self._is_idle:
            self.on_note("nothing new")

    def on_commit(self, commit: Commit, control: Control | None, place: WatchPlace) -> None:
        if self._quiet:
            return
        where = f" on {place.name}" if place.name else ""
        against = "" if control is None else f" against {control.commit.short}, the {control.why}"
        if control is not None and control.is_treatment:
            against = " against itself (A/A): differences are noise"
        self._say(clip(f"measuring {commit.short}{where}{against}: {commit.subject}", terminal_width()))

    def on_record(self, record: CommitRecord) -> None:
        self._progress.on_step_done("")
        with self._progress.aside():
            show(_json(record) if self._in_json else coloured(self._text(record, terminal_width())), nl=True)
        targets = [target for target in self._targets if is_news(record) or not target.is_remote]
        if targets:
            notice = notice_of_commit(record, self._repository)
            self.lost += notify(notice, targets, self._progress, spool=self._spool).lost

    def on_waiting(self, seconds: float, *, nothing_new: bool) -> None:
        """Said once, until something is new."""
        self._progress.on_step_done("")
        if not self._is_idle:
            self.on_note(
                f"waiting {format_duration(seconds)}" + (" at a time until something is new" if nothing_new else "")
            )
        self._is_idle = nothing_new

    def on_note(self, text: str) -> None:
        if not self._quiet:
            self._say(text)

    def on_trouble(self, text: str) -> None:
        self._progress.on_trouble(text)

    def show_list(self, pending: Sequence[PendingCommit]) -> None:
        """The commits that would be measured."""
        with self._progress.aside():
            for each in pending:
                click.echo(_listed_json(each) if self._in_json else _listed(each, terminal_width()))
            if not pending and not self._in_json:
                click.echo("nothing new")

    def _text(self, record: CommitRecord, width: int) -> str:
        text = commit_text(record, width)
        if not record.called or self._bisect is None:
            return text
        return f"{text}\n{' ' * _INDENT}if it may have been an earlier commit: {self._bisect(record)}"

    def _say(self, text: str) -> None:
        with self._progress.aside():
            click.echo(text, err=True)


def commit_text(record: CommitRecord, width: int) -> str:
    """A line for the commit, then its details."""
    place = f" [{record.place}]" if record.place else ""
    head = f"{record.commit[:_SHORT]}  {record.outcome.value:<{_WIDEST}}  {record.subject}{place}"
    lines = [each for line in _lines(record) for each in wrapped(line, max(width, 2 * _INDENT), " " * _INDENT)]
    return "\n".join([clip(head, width), *lines])


def marked_text(record: CommitRecord, mark: str) -> str:
    """`7be0bd1c6e  acknowledged  bench.py: time +5.2 %`: what was said about a commit that had been called."""
    if in_json():
        return msgspec.json.encode({"commit": record.commit, "mark": mark}).decode()
    lost = "; ".join(
        f"{e.benchmark}: {metric_name(e.metric, e.labels, beside=e.beside)} {change_words(e)}" for e in record.called
    )
    return clip(f"{record.commit[:_SHORT]}  {mark:<{_WIDEST}}  {lost}", terminal_width())


def _lines(record: CommitRecord) -> Iterator[str]:
    for effect in record.effects:
        if effect.beside and effect.verdict in (Verdict.SAME, Verdict.INCONCLUSIVE):
            continue
        verdict = f"{MARKS[effect.verdict]} {effect.verdict.value}"
        about = f", since {effect.since[:_SHORT]}" if effect.since else ""
        about += ", acknowledged" if effect.acknowledged else ""
        yield f"{verdict}  {effect.benchmark}: {metric_name(effect.metric, effect.labels, beside=effect.beside)} {change_words(effect)}{about}"
    yield from (f"fails: {reason}" for reason in record.broken)
    yield from details_of(record)


def _json(record: CommitRecord) -> bytes:
    return msgspec.json.encode(record)


def _listed(each: PendingCommit, width: int) -> str:
    against = "" if each.control is None else f"against {each.control.commit.short}"
    return clip(f"{each.commit.short}  {time_of(each.commit)}  {against:<18}  {each.commit.subject}", width)


def _listed_json(each: PendingCommit) -> bytes:
    control = each.control
    return msgspec.json.encode(
        {
            "commit": each.commit.hash,
            "commit_time": time_of(each.commit),
            "subject": each.commit.subject,
            "control": None if control is None else control.commit.hash,
            "control_is": None if control is None else control.why,
        }
    )
