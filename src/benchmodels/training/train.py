"""Mode "train": runs a script unchanged and records its training steps as a loop named "train"."""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Any, Optional, Sequence

import benchprobe
from benchmodels.hooks.imports import ImportWatch, seed_on_import
from benchmodels.process_exit import end_children, leave
from benchmodels.reports import complainer
from benchmodels.script_runner import run_script
from benchmodels.settings import ModelSettings
from benchmodels.training.hooks import TrainingHooks
from benchmodels.training.steps import INTERVAL_NS, TrainingSteps
from benchprobe.loop.loop_pass import LoopPass
from benchprobe.loop.probe import TRAIN, Probe

NO_STEP = "no optimizer stepped in this process, so there is no training step to measure"
WORTH_TELLING_S = 0.01
OWN_LOOP = "training steps counted by the script's own loop 'train'"


def train(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """Returns the script's exit code. If enough has been measured before the script's end, ends its training, and the process
    if that takes longer than `stop_grace_s`."""
    probe = benchprobe.active_probe()
    if probe is None:
        return run_script(script, args)
    loop = RecordedSteps(probe)
    steps = TrainingSteps(loop)
    ending = EarlyEnd(probe, loop, steps, settings.stop_grace_s)
    imports = ImportWatch(complainer())
    seed_on_import(imports, settings.seed)
    hooks = TrainingHooks(steps, ending.begin, complainer())
    hooks.install(imports)
    try:
        return run_script(script, args)
    finally:
        hooks.report()
        steps.finish()
        loop.close()
        if not steps.steps:
            probe.message("training", NO_STEP)
        elif (text := left_out_text(steps.left_out_ns)) is not None:
            loop.explain(text)


def left_out_text(times_ns: Sequence[int]) -> Optional[str]:
    """A note about time spent outside training; None if it is negligible."""
    total_s = sum(times_ns) / 1e9
    if total_s < WORTH_TELLING_S:
        return None
    times = "once" if len(times_ns) == 1 else f"{len(times_ns)} times"
    return f"left out: {total_s:.3g} s between training loops ({times}), such as evaluation and checkpoints"


class RecordedSteps:
    """Records steps as benchprobe records those of `iterate`; none in a loop of the script's own, which has recorded them."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._pass: Optional[LoopPass] = None
        self._began_ns = 0
        self._in_chunk = self._unmarked = 0
        self._has_own = False  # the script says itself what its steps are
        self.catching_up = False

    @property
    def steps_at_once(self) -> int:
        """Steps left in the open chunk, or until the next event of the device, which must come right after its last step."""
        if self._pass is None:
            return 0
        left = self._pass.budget - self._in_chunk
        return min(left, self._pass.stride - self._unmarked) if self._pass.stride else left

    def begin(self, at_ns: int) -> None:
        now_ns = perf_counter_ns()
        if self._pass is None:
            self._has_own = getattr(self._probe.current.get(), "name", None) == TRAIN
            if self._has_own:
                return
            self._pass = LoopPass(self._probe, TRAIN, None)
            self._pass.event_interval_ns = INTERVAL_NS
            self._pass.open()
        else:
            self._turn_over(now_ns)
        self._begin_earlier(now_ns - at_ns)

    def step(self, waited_ns: int, items: Optional[int], loss: Any) -> None:
        recorded = self._pass
        if recorded is None:
            return
        recorded.append(self._began_ns + waited_ns)  # of all its batches, recorded at its beginning
        recorded.append_size(items)
        if loss is None:
            return
        if type(loss) is float:
            recorded.append(loss)
            return
        if self._unmarked:  # of short steps that share an event, one loss is kept
            return
        values = {"loss": loss}  # as `give` would, but in a fraction of the time
        recorded.defer(values)
        recorded.append(values)

    def add(self, ends_ns: Sequence[int], waits_ns: Sequence[int], items: Sequence[Optional[int]], loss: Any) -> bool:
        recorded, before = self._pass, len(ends_ns) - 1
        self.step(waits_ns[0], items[0], loss)
        if recorded is not None and before:
            append, append_size = recorded.append, recorded.append_size
            for end_ns, wait_ns, size in zip(ends_ns, waits_ns[1:], items[1:]):
                append(end_ns)
                append(end_ns + wait_ns)
                append_size(size)
            self._in_chunk += before
            self._unmarked += before if recorded.stride else 0
        return self.end(ends_ns[-1])

    def end(self, at_ns: int) -> bool:
        recorded = self._pass
        if recorded is None:
            return True
        if recorded.stride:
            self._unmarked += 1
            if self._unmarked == recorded.stride:
                recorded.mark_device()
                self._unmarked = 0
        recorded.append(at_ns)
        self._began_ns = at_ns
        self._in_chunk += 1
        if self._in_chunk < recorded.budget and (at_ns < recorded.due or self.catching_up):
            return True
        now_ns, has_device = perf_counter_ns(), recorded.stride > 0
        going = self._turn_over(at_ns)
        # On a device, what followed the step is part of the time between two events.
        self._begin_earlier(0 if has_device else now_ns - at_ns)
        return going

    def pause(self) -> bool:
        """Ends the chunk: on a device, what follows must not lie before its last event."""
        if self._pass is None or not self._in_chunk:
            return True
        going = self._turn_over(self._began_ns)
        self._begin_earlier(0)
        return going

    def explain(self, text: str) -> None:
        text = OWN_LOOP if self._has_own else text
        self._probe.writer.emit({"event": "training", "t": perf_counter_ns(), "text": text})

    def close(self) -> None:
        if self._pass is not None:
            self._pass.close()

    def _begin_earlier(self, lead_ns: int) -> None:
        assert self._pass is not None
        self._pass.begin_earlier(lead_ns)
        self._began_ns = perf_counter_ns() if self._pass.chunk is None else self._pass.chunk.ask

    def _turn_over(self, now_ns: int) -> bool:
        assert self._pass is not None
        steps, self._in_chunk, self._unmarked = self._in_chunk, 0, 0
        return self._pass.turn_over(now_ns, steps)


class EarlyEnd:
    """Enough has been measured: what the script still does besides training has `grace_s` left."""

    def __init__(self, probe: Probe, loop: RecordedSteps, steps: TrainingSteps, grace_s: float) -> None:
        self._probe = probe
        self._loop = loop
        self._steps = steps
        self._grace_s = grace_s

    def begin(self) -> None:
        self._loop.close()  # from here on nothing that was measured can be lost
        self._tell("loader" if self._steps.has_loader else "optimizer")
        timer = threading.Timer(self._grace_s, self._end_process)
        timer.daemon = True
        timer.start()

    def _end_process(self) -> None:
        self._tell("process")
        end_children()
        leave(0)

    def _tell(self, ended: str) -> None:
        about = {"ended": ended, "steps": self._steps.steps, "grace_s": self._grace_s}
        self._probe.writer.emit({"event": "training_ended", "t": perf_counter_ns(), **about})
