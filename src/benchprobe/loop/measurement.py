"""The phases of the loop that counts: warm-up, meeting the others, measured steps, running on for them, the end."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter_ns, process_time_ns
from typing import Any, Callable, Mapping, Optional, Sequence

from benchprobe.rendezvous.barrier import Meeting
from benchprobe.rendezvous.ranks import RankLease
from benchprobe.rules.base import OPEN_BUDGET, LoopRule
from benchprobe.rules.stop_rules import stop_rule
from benchprobe.rules.warmup_rules import warmup_rule
from benchprobe.stream.events import Event, message_event

WARMUP, MEASURED, AFTER, STOPPED = "warmup", "measured", "after", "stopped"
AFTER_POLL_NS = 20_000_000  # how often a process that is done checks on the others


class LoopMeasurement:
    """Updated between chunks, in the loop's own thread. Lives as long as the process: the next epoch continues it.

    A rule or barrier that fails is reported and no longer used; the loop goes on.
    """

    def __init__(
        self,
        warmup: Mapping[str, Any],
        stop: Optional[Mapping[str, Any]],
        meeting: Optional[Meeting],
        emit: Callable[[Event], None],
        agreement: Optional[RankLease] = None,
    ) -> None:
        self.loop = 0  # the number of its loop
        self.steps = 0  # all steps of the loop so far
        self.phase = WARMUP
        self._emit = emit
        self._meeting = meeting
        self._agreement = agreement
        self._measured = 0
        self._paused_ns = 0  # while others had their turn: it counts for no stop rule
        self._warmup: LoopRule = self._made(lambda: warmup_rule(dict(warmup)), lambda: warmup_rule({}))
        self._stop: LoopRule = self._made(lambda: stop_rule(stop), lambda: stop_rule(None))
        self._began = self._ranks_reported = self._lost_ranks = False

    @property
    def has_met(self) -> bool:
        """Whether it has met the processes it is measured together with."""
        return self._meeting is not None and self.phase != WARMUP

    def begin(self, now_ns: int, total: Optional[int] = None) -> None:
        """The loop, or its next epoch, is about to start. `total`: the number of its steps, if known."""
        if not self._began:
            self._began = True
            self._warmup.begin(now_ns)
        self._warmup.expect(total if self.steps == 0 else None)
        if self.phase == WARMUP and self._warmup.budget() == 0:
            self.add((), now_ns)

    def budget(self) -> int:
        """The most steps until `add` must be called."""
        rule = self._warmup if self.phase == WARMUP else self._stop
        budget = OPEN_BUDGET if self.phase == AFTER else rule.budget()
        if self._agreement is not None:
            budget = min(budget, self._agreement.left(self.steps))
        return max(1, budget)

    def deadline_ns(self) -> Optional[int]:
        """The first step that ends after this should be followed by `add`."""
        if self.phase == AFTER:
            return perf_counter_ns() + AFTER_POLL_NS
        if self.phase == WARMUP:
            return self._warmup.deadline_ns()
        deadline_ns = self._stop.deadline_ns()
        return None if deadline_ns is None else deadline_ns + self._paused_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> None:
        """Steps of the present phase that ended by `now_ns`; may lead to the next phase."""
        self.steps += len(step_ns)
        try:
            if self.phase == WARMUP:
                warm = self._warmup.add(step_ns, now_ns)
                if warm is not None:
                    self._begin_measuring(warm)
            elif self.phase == MEASURED:
                self._measured += len(step_ns)
                if self._stop.add(step_ns, now_ns - self._paused_ns):
                    self.phase = AFTER
                    self._emit_stop("rule")
                    if self._meeting is not None:
                        self._meeting.say_done()
                else:
                    self._let_others(now_ns)
            if self.phase == AFTER and self._agreement is None and self._others_done():
                self.phase = STOPPED
        except Exception as error:
            self._give_up(error)

    def keep_to_agreement(self) -> None:
        """The loop is about to continue: a rank says when it is done, and stops where all do.

        If the others cannot be reached, no rule may end the loop.
        """
        if self._agreement is None:
            return
        try:
            if self.phase == AFTER and not self._ranks_reported:
                self._ranks_reported = True
                self._agreement.say_done()
            if not self._agreement.renew(self.steps, self._others_done):
                self.phase = STOPPED
        except Exception as error:
            self._agreement = None
            self._lost_ranks = True
            self._stop = stop_rule(None)
            text = f"cannot reach the other ranks ({type(error).__name__}: {error}); the loop runs to its own end"
            self._emit(message_event("ranks", text, "error"))

    def end(self) -> None:
        """The process ends. A rule that is not satisfied yet reports what it knows."""
        takes_turns = self._meeting is not None and bool(self._meeting.details())
        if self.phase == MEASURED and (self._stop.name != "none" or takes_turns):
            self._emit_stop("loop")
        if self._meeting is not None:
            with suppress(OSError):
                self._meeting.leave()

    def withdraw(self) -> None:
        """Another loop counts from here on: nobody may wait for this one."""
        if self.has_met and self.phase == MEASURED and self._meeting is not None:
            with suppress(OSError):
                self._meeting.say_done()

    def _let_others(self, now_ns: int) -> None:
        if self._meeting is None:
            return
        try:
            self._paused_ns += self._meeting.let_others(now_ns)
        except OSError as error:
            self._meeting = None
            self._emit(
                message_event("turns", f"{error}; from here on other processes may run at the same time", "error")
            )

    def _begin_measuring(self, warmup: str) -> None:
        arrived_ns = perf_counter_ns()
        if self._meeting is not None:
            try:
                self._meeting.wait_until_all_ready()
            except OSError as error:
                self._meeting = None
                self._emit(message_event("barrier", f"{error}; measuring alone from here on", "error"))
        now_ns = perf_counter_ns()
        self.phase = MEASURED
        self._stop.begin(now_ns)
        self._emit({"event": "measure", "t": now_ns, "loop": self.loop, "step": self.steps, "warmup": warmup,
                    "waited_ns": now_ns - arrived_ns if self._meeting is not None else 0,
                    "cpu_ns": process_time_ns()})  # fmt: skip

    def _others_done(self) -> bool:
        return not self._lost_ranks and (self._meeting is None or self._meeting.all_done())

    def _emit_stop(self, by: str) -> None:
        cpu_ns = process_time_ns()
        detail = self._stop.detail()  # takes a while: before the time is read, and after the CPU time
        turns = self._meeting.details() if self._meeting is not None else {}
        self._emit({"event": "stop", "t": perf_counter_ns(), "loop": self.loop, "step": self.steps, "rule": self._stop.name,
                    "steps": self._measured, "detail": detail, **turns, "by": by, "cpu_ns": cpu_ns})  # fmt: skip

    def _give_up(self, error: Exception) -> None:
        """A rule failed: warm-up ends as if at its limit, a stop rule never stops, and nobody is waited for."""
        failed = self.phase
        self._emit(message_event("stop_rules", f"{failed}: {type(error).__name__}: {error}; that rule is off", "error"))
        if failed == WARMUP:
            self._begin_measuring("cap")
        elif failed == MEASURED:
            self._stop = stop_rule(None)
        else:
            self.phase = STOPPED

    def _made(self, wanted: Callable[[], Any], instead: Callable[[], Any]) -> Any:
        try:
            return wanted()
        except Exception as error:
            self._emit(message_event("stop_rules", f"{error}; ignored", "error"))
            return instead()
