"""A voirfile: scripts run by voir and measured together start and leave together.

$VOIRFILE names a copy of this file in the run folder, if a job runs together with others or
has several ranks. It replaces voir's early stop with its own, then loads the voirfiles that voir would have found. After its
first observation a process waits for the others; observations that include this wait are dropped. Then it measures exactly
as many as the early stop asks for, and runs on, unmeasured, until all are done. Ranks leave at the same step, and put their
rank into each line. If anything goes wrong here, voir works as usual.

Runs inside the measured program: imports benchprobe and voir only, and is Python 3.9.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from benchprobe.config import from_environment
from benchprobe.rendezvous.barrier import Meeting
from benchprobe.rendezvous.ranks import POLL_INTERVAL_S, RankGroup, RankLease, RankStore, distributed_group

BEGIN, END, LEFT = "measure_begin", "measure_end", "measure_left"
RANK = "$rank"  # in each line, if there are several
_FIRST = "__voir__"  # voir's name for the first file it loads
_LOOK_EVERY_S = 0.05  # how often to check whether the others are done
JOIN_S = 2.0  # at the end of the first step, ranks are as close as a collective makes them
ALL, SOME = 1, 2


class Together:
    """Early stop of processes that run together. `log` writes a line, `leave` ends the program."""

    def __init__(
        self,
        meeting: Optional[Meeting],
        n: int,
        log: Callable[[object], None],
        leave: Callable[[], None],
        ranks: Optional[RankAgreement] = None,
    ) -> None:
        self._meeting = meeting
        self._n = n
        self._log = log
        self._leave = leave
        self._ranks = ranks
        self._seen: Dict[str, int] = {}  # observations so far, by task
        self._met: Optional[float] = None  # when all were ready
        self._began_ns = 0
        self._since = 0  # observations made since then
        self._looked = 0.0
        self._left = False
        self.begun = False
        self.measured = 0
        self.done = False

    def observe(self, task: str = "", made: Optional[float] = None) -> None:
        """One observation, made at the time `made` if it was queued. The first is warm-up."""
        self._seen[task] = self._seen.get(task, 0) + 1
        if self._met is None:
            self._meet()
        elif not self.begun:
            self._pass_over(made)
        elif not self.done:
            self.measured += 1
            if self.measured >= self._n:
                self._finish()

    def step(self) -> None:
        """A step has ended."""
        if self._ranks is not None and not self._left and not self._ranks.go_on(self._all_done):
            self._go()

    def look(self) -> None:
        """Leaves if all are done."""
        now = time.monotonic()
        if not self.done or self._left or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        if (self._ranks is None or not self._ranks.leaves_by_step) and self._all_done():
            self._go()

    def _meet(self) -> None:
        alone = self._meeting is None
        try:
            if self._meeting is not None:
                self._meeting.wait_until_all_ready()
        except OSError as error:
            self._alone(error)
        self._met = time.time()
        self._began_ns = time.perf_counter_ns()
        if alone:
            self._begin()

    def _pass_over(self, made: Optional[float]) -> None:
        """Drops the observation that includes the wait. One made by a timer may come before it."""
        if made is not None and self._met is not None and made <= self._met:
            return  # made during the wait, from earlier steps
        self._since += 1
        if self._since >= (1 if made is None else 2):
            self._begin()

    def _begin(self) -> None:
        self.begun = True
        self._mark(BEGIN, self._began_ns)

    def _finish(self) -> None:
        self.done = True
        self._mark(END, time.perf_counter_ns())
        if self._ranks is not None:
            self._ranks.say_done()
        try:
            if self._meeting is not None:
                self._meeting.say_done()
        except OSError as error:
            self._alone(error)

    def _go(self) -> None:
        self._left = True
        self._mark(LEFT, time.perf_counter_ns())
        self._leave()

    def _mark(self, event: str, now_ns: int) -> None:
        """With the number of observations, since this line and the last observation may come in either order."""
        self._log({"$event": event, "$data": {"t": now_ns, "rates": dict(self._seen)}})

    def _all_done(self) -> bool:
        try:
            return self._meeting is None or self._meeting.all_done()
        except OSError as error:
            self._alone(error)
            return True

    def _alone(self, error: OSError) -> None:
        self._meeting = None
        print(f"benchprobe: barrier: {error}; measuring alone from here on", file=sys.stderr)


def _wait(condition: Callable[[], bool], limit_s: float) -> bool:
    give_up = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


class RankAgreement:
    """Lets ranks leave at the same step, if all are instrumented; joined at the end of the first step. Never raises.

    Often only one rank is instrumented: the others do not answer, and the program has to be ended from outside.
    """

    def __init__(
        self, name: str, find: Callable[[], Optional[RankGroup]] = distributed_group, patience_s: float = JOIN_S
    ) -> None:
        self._name = name
        self._find = find
        self._patience_s = patience_s
        self._steps = -1  # the first step ended before joining
        self._store: Optional[RankStore] = None
        self._lease: Optional[RankLease] = None
        self._lost = False
        self.is_alone = False  # the other ranks are not instrumented

    @property
    def leaves_by_step(self) -> bool:
        """Whether `go_on` says when to leave."""
        return self._lease is not None or self._lost

    def go_on(self, others_done: Callable[[], bool]) -> bool:
        """A step has ended. False: all ranks leave here."""
        self._steps += 1
        try:
            if self._steps == 0:
                self._join(self._find())
            return self._lease is None or self._lease.renew(self._steps, others_done)
        except Exception as error:
            self._lose(error)
            return True

    def say_done(self) -> None:
        """This rank has been measured enough."""
        try:
            if self._lease is not None:
                self._lease.say_done()
            elif self._store is not None:
                self._store.add(f"benchprobe/{self._name}/done", 1)
        except Exception as error:
            self._lose(error)

    def _join(self, group: Optional[RankGroup]) -> None:
        """Rank 0 checks whether all are here, and says so."""
        if group is None:
            return
        self._store, rank, size = group
        here, answered = f"benchprobe/{self._name}/here", f"benchprobe/{self._name}/told"
        add = self._store.add
        add(here, 1)
        if rank == 0:
            everybody = _wait(lambda: add(here, 0) >= size, self._patience_s)
            answer = add(answered, ALL if everybody else SOME)
        else:
            _wait(lambda: add(answered, 0) > 0, self._patience_s + 1)
            answer = add(answered, 0)
        if answer == ALL:
            self._lease = RankLease(self._store, rank, size, self._name)
        else:
            self.is_alone = True

    def _lose(self, error: Exception) -> None:
        self._lease = None
        self._lost = True
        text = f"benchprobe: cannot reach the other ranks ({type(error).__name__}: {error})"
        print(f"{text}; the program runs to its own end", file=sys.stderr)


def early_stop_for(meeting: Optional[Meeting], ranks: int = 1) -> Callable[..., object]:
    """Replaces `voir.instruments.early_stop`; called the same way."""
    stop_program = importlib.import_module("voir.phase").StopProgram

    def early_stop(key: str, n: int, task: Optional[str] = None, signal: Any = stop_program) -> Any:
        def instrument(ov: Any) -> Any:
            agreement = RankAgreement(f"voir-{task}-{key}") if ranks > 1 else None

            def leave() -> None:
                if isinstance(signal, str):
                    ov.log({"$event": signal})
                elif agreement is not None and agreement.is_alone:  # the other ranks would wait for it forever
                    ov.log({"$event": "stop"})
                else:
                    raise signal(None)

            together = Together(meeting, n, ov.log, leave, agreement)

            def observed(data: object) -> None:
                together.observe(_task(data), data.get("$queued") if isinstance(data, dict) else None)
                if together.measured and not together.done:
                    ov.give(task="early_stop", progress=(together.measured, n))

            def given(data: object) -> None:
                if isinstance(data, dict) and key in data:
                    return  # an observation, which may not be written yet
                if _ends_step(data, task):
                    together.step()
                together.look()

            yield ov.phases.init
            stream = ov.given if task is None else ov.given.where(task=task)
            stream.where(key).subscribe(observed)
            ov.given.subscribe(given)

        return instrument

    return early_stop


def _task(data: object) -> str:
    name = data.get("task") if isinstance(data, dict) else None
    return name if isinstance(name, str) else "main"


def _ends_step(data: object, task: Optional[str]) -> bool:
    """As in voir's `rate`: the end of a wrapped step, or a given batch."""
    if not isinstance(data, dict) or "task" not in data or (task is not None and data["task"] != task):
        return False
    wrap = data.get("$wrap")
    if isinstance(wrap, dict):
        return wrap.get("name") == "step" and wrap.get("step") == "end"
    return "batch" in data or "batch_size" in data


def say_rank(rank: int) -> None:
    """Puts the rank into each line, since lines of several ranks get mixed."""
    logger = importlib.import_module("voir.overseer").JsonlFileLogger
    log = logger.log

    def log_with_rank(self: object, data: object) -> None:
        log(self, {**data, RANK: rank} if isinstance(data, dict) else data)

    logger.log = log_with_rank


def load() -> List[object]:
    """The instruments of the voirfiles that voir would have found."""
    config = from_environment()
    barrier = None if config is None else config.barrier
    rank, ranks = _number("RANK", 0), _number("WORLD_SIZE", 1)
    manage = importlib.import_module("voir.instruments.manage")
    instruments = importlib.import_module("voir.instruments")
    if (barrier is not None or ranks > 1) and hasattr(manage, "early_stop"):
        replacement = early_stop_for(None if barrier is None else Meeting(barrier), ranks)
        manage.early_stop = replacement  # type: ignore[attr-defined]
        instruments.early_stop = replacement  # type: ignore[attr-defined]
    if ranks > 1:
        say_rank(rank)
    cli = importlib.import_module("voir.cli")
    found: List[object] = cli.collect_instruments(cli.find_voirfiles("."))
    return [_put_back(sys.modules.get(_FIRST)), *found]


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else otherwise


def _put_back(module: Any) -> Callable[[Any], None]:
    """Restores the module name that voir gave to this file to the user's first voirfile, whose classes are looked up there."""

    def instrument(ov: Any) -> None:
        if module is not None:
            sys.modules[_FIRST] = module

    return instrument


if __name__ == _FIRST:
    __instruments__ = load()
