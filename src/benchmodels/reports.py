"""Events of a process that measures or builds a model, each written at once."""

from __future__ import annotations

import contextlib
from time import perf_counter_ns
from typing import Callable, Iterator, List, Mapping, Optional, Sequence, Set

from benchmodels.types import Details, Value
from benchprobe import active_probe
from benchprobe.stream.events import Event, message_event

EXIT_PATIENCE_S = 0.5


def put(event: Event) -> None:
    """Does nothing if this process is not recorded."""
    probe = active_probe()
    if probe is not None:
        probe.writer.emit(event)
        probe.writer.flush()


def complainer(put: Callable[[Event], None] = put) -> Callable[[str], None]:
    """Reports benchwright's own problems, each text once."""
    reported: Set[str] = set()

    def complain(text: str) -> None:
        if text not in reported and len(reported) < 100:
            reported.add(text)
            put(message_event("models", text))

    return complain


LOWER, HIGHER = "lower", "higher"
# Build steps that belong to another stage.
STAGES = {"optimise": "convert", "reference": "check", "verify": "load"}


def stage_of(step: str) -> str:
    """A step of a build sequence, such as `convert.shrink`, belongs to the stage it is named after."""
    return STAGES.get(step, step.partition(".")[0])


class Reports:
    """`put` writes an event, by default through this process's probe. `stage`: the current stage, for a failure report."""

    def __init__(self, put: Callable[[Event], None] = put) -> None:
        self._put = put
        self.stage = "load"
        self.failed = False

    def event(self, event: str, /, **values: Value) -> None:
        self._put({"event": event, "t": perf_counter_ns(), **values})

    def measured(
        self,
        metric: str,
        values: Sequence[float],
        unit: Optional[str] = "s",
        direction: str = LOWER,
        labels: Optional[Mapping[str, str]] = None,
    ) -> None:
        """Figures from outside a loop."""
        self.event(
            "measured", metric=metric, unit=unit, direction=direction, values=list(values), labels=dict(labels or {})
        )

    def message(self, text: str, severity: str = "warning") -> None:
        self._put(message_event("models", text, severity))

    def failure(self, kind: str, text: str, stage: Optional[str] = None, operator: Optional[str] = None) -> None:
        """Reports the failure as the result. Only the first one counts."""
        if not self.failed:
            self.failed = True
            self.event("failure", stage=stage or self.stage, kind=kind, text=text, operator=operator)

    @contextlib.contextmanager
    def at(self, stage: str) -> Iterator[None]:
        """Failures inside belong to `stage`, which stays current if the block fails."""
        before, self.stage = self.stage, stage
        yield
        self.stage = before


class BuildSteps:
    """The steps of a build: announces, times and reports each. Passed to a runtime as its `steps`."""

    def __init__(self, reports: Reports, versions: Optional[Mapping[str, str]] = None) -> None:
        self._reports = reports
        self._versions = dict(versions or {})
        self.done: List[Details] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._reports.event("build_begin", step=name)
        began = perf_counter_ns()
        with self._reports.at(stage_of(name)):
            try:
                yield
            except BaseException as error:
                self._tell(name, began, False, f"{type(error).__name__}: {error}"[:2000])
                raise
        self._tell(name, began, True, None)

    @property
    def seconds(self) -> float:
        return float(sum(step["seconds"] for step in self.done))

    def _tell(self, name: str, began_ns: int, ok: bool, detail: Optional[str]) -> None:
        seconds = (perf_counter_ns() - began_ns) / 1e9
        fields = {"step": name, "seconds": seconds, "ok": ok, "detail": detail, "versions": self._versions}
        self.done.append(fields)
        self._reports.event("build_step", cached=False, **fields)
