"""The one way to send a notice: a few attempts for each target, and the spool for a receiver that is down.

The verdict never depends on a receiver: undelivered notices are reported, and kept for the next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from benchwright.artifacts.outbox import USUAL_LIMITS, Rejected, SendLimits, SpoolFolder, claimed, sent_in_time
from benchwright.core.errors import BenchwrightError
from benchwright.executors.observer import Observer
from benchwright.regress.notify.notice import Notice
from benchwright.regress.notify.targets import Target

FORMAT, VERSION = "benchwright-waiting-notice", 1


class WaitingNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that waits for its receiver, which only whoever names it again can tell."""

    format: str = FORMAT
    version: int = VERSION
    receiver: str  # the target's key
    notice: Notice


class Notified(msgspec.Struct, frozen=True, kw_only=True):
    """How many targets have it, how many will get it with the next notice, and how many never do."""

    delivered: int = 0
    waiting: int = 0
    lost: int = 0

    def exit_code(self, code: int) -> int:
        """`code`, the verdict's; a success whose notice is lost is none."""
        return 3 if code == 0 and self.lost else code


class _NoticeSpool(SpoolFolder[WaitingNotice]):
    def is_ours(self, content: WaitingNotice) -> bool:
        return content.format == FORMAT and content.version == VERSION


def notify(
    notice: Notice,
    targets: Sequence[Target],
    observer: Observer | None = None,
    *,
    spool: Path | None = None,
    limits: SendLimits = USUAL_LIMITS,
    pause: Callable[[float], None] = time.sleep,
) -> Notified:
    """Sends `notice` to each target, after what waited for it. Raises nothing: the observer hears of what went wrong.

    `spool`: the base folder; without one, what a receiver does not take is lost.
    """
    observer = observer or Observer()
    if not notice.time:
        notice = msgspec.structs.replace(notice, time=datetime.now(UTC).isoformat(timespec="seconds"))
    kept = None if spool is None else _NoticeSpool(spool / "notices", WaitingNotice)
    deadline = time.monotonic() + limits.total_s
    sender = _Sender(limits, deadline, pause, kept, observer)
    counts = {"delivered": 0, "waiting": 0, "lost": 0}
    for target in targets:
        counts[sender.send(notice, target)] += 1
    return Notified(**counts)


class _Sender:
    def __init__(
        self,
        limits: SendLimits,
        deadline: float,
        pause: Callable[[float], None],
        spool: _NoticeSpool | None,
        observer: Observer,
    ) -> None:
        self._limits, self._deadline, self._pause = limits, deadline, pause
        self._spool, self._observer = spool, observer

    def send(self, notice: Notice, target: Target) -> str:
        """The name of the count that it adds to."""
        if target.is_remote and self._spool is not None:
            try:
                return self._send_spooled(notice, target, self._spool)
            except BenchwrightError as error:
                self._observer.on_trouble(f"{target}: cannot be kept for later: {error}")
        return self._send_now(notice, target)

    def _send_now(self, notice: Notice, target: Target) -> str:
        try:
            self._try(notice, target)
        except (Rejected, BenchwrightError) as error:
            self._observer.on_trouble(f"{target}: not notified: {error}")
            return "lost"
        self._observer.on_note(f"notified: {target}")
        return "delivered"

    def _send_spooled(self, notice: Notice, target: Target, spool: _NoticeSpool) -> str:
        """Kept first, so that a kill while sending loses nothing; what waited before goes first."""
        own = spool.keep(WaitingNotice(receiver=target.key, notice=notice))
        why: str | None = None  # the receiver takes nothing more
        left = 0
        for each in spool.every():
            if each.content.receiver != target.key:
                continue
            with claimed(each.path) as mine:
                if not mine:
                    continue  # another process sends it
                refusal = None if why else self._refusal(each.content.notice, target)
                if why is None and refusal is None:
                    with suppress(FileNotFoundError):
                        each.path.unlink()
                    continue
                left += 1
                if refusal is not None and (each.path == own or not refusal.alone):
                    why = str(refusal)
        delivered = not own.exists()
        if left:
            words = "1 notice waits" if left == 1 else f"{left} notices wait"
            what = "an earlier notice was not taken" if delivered else f"not notified: {why}"
            self._observer.on_trouble(f"{target}: {what}; {words} in {spool.folder} for the next one to this receiver")
        if delivered:
            self._observer.on_note(f"notified: {target}")
        return "delivered" if delivered else "waiting"

    def _refusal(self, notice: Notice, target: Target) -> Rejected | None:
        try:
            self._try(notice, target)
        except Rejected as refusal:
            return refusal
        return None

    def _try(self, notice: Notice, target: Target) -> None:
        send = partial(target.deliver, notice, timeout_s=self._limits.timeout_s)
        sent_in_time(send, self._limits, self._deadline, self._pause)
