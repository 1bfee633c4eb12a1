"""Mode "train": runs a script unchanged and records its training steps as a loop named "train"."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any, Optional, Sequence

import benchprobe
from benchmodels.ending import end_children, leave
from benchmodels.hooks.imports import ImportWatch, seed_on_import
from benchmodels.reports import complainer
from benchmodels.running import run_script
from benchmodels.settings import ModelSettings
from benchmodels.training.hooks import TrainingHooks
from benchmodels.training.steps import TrainingSteps
from benchprobe.loop.loop_pass import LoopPass
from benchprobe.loop.probe import TRAIN, Probe

NO_STEP = "no optimizer stepped in this process, so there is no training step to measure"

OWN_LOOP = "training steps counted by the script's own loop 'train'"


def train(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """Returns the script's exit code; ends the process instead if enough was measured before the script's end."""
    probe = benchprobe.active_probe()
    if probe is None:
        return run_script(script, args)
    loop = RecordedSteps(probe)
    steps = TrainingSteps(loop)
    imports = ImportWatch(complainer())
    seed_on_import(imports, settings.seed)
    TrainingHooks(steps, loop.leave, complainer()).install(imports)
    try:
        return run_script(script, args)
    finally:
        loop.end()
        if not steps.steps:
            probe.message("training", NO_STEP)


class RecordedSteps:
    """Records steps as benchprobe records those of `iterate`; none in a loop of the script's own, which has recorded them."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._pass: Optional[LoopPass] = None
        self._began_ns = 0
        self._in_chunk = 0
        self._has_own = False  # the script says itself what its steps are

    def begin(self) -> None:
        if self._pass is None:
            self._has_own = getattr(self._probe.current.get(), "name", None) == TRAIN
            if self._has_own:
                return
            self._pass = LoopPass(self._probe, TRAIN, None)
            self._pass.open()
        else:
            self._turn_over(perf_counter_ns())
        self._began_ns = perf_counter_ns()

    def step(self, waited_ns: int, ended_ns: int, items: Optional[int], loss: Any) -> bool:
        recorded = self._pass
        if recorded is None:
            return True
        # A step may fetch several batches: all the waiting is recorded at its beginning.
        recorded.append(min(self._began_ns + waited_ns, ended_ns))
        recorded.append_size(items)
        if loss is not None:
            benchprobe.give(loss=loss)
        recorded.mark_device()
        now_ns = perf_counter_ns()
        recorded.append(now_ns)
        self._in_chunk += 1
        going = True
        if self._in_chunk >= recorded.budget or now_ns >= recorded.due:
            going = self._turn_over(now_ns)
            now_ns = perf_counter_ns()
        self._began_ns = now_ns
        return going

    def explain(self, text: str) -> None:
        text = OWN_LOOP if self._has_own else text
        self._probe.writer.emit({"event": "training", "t": perf_counter_ns(), "text": text})

    def end(self) -> None:
        if self._pass is not None:
            self._pass.close()

    def leave(self) -> None:
        """Ends the program in the middle of its training."""
        self.end()
        end_children()
        leave(0)

    def _turn_over(self, now_ns: int) -> bool:
        assert self._pass is not None
        steps, self._in_chunk = self._in_chunk, 0
        return self._pass.turn_over(now_ns, steps)
