"""Training scripts, measured by their steps: how they are recognised, when they stop, and what no step means."""

from __future__ import annotations

import ast

import msgspec

from benchwright.core.benchmark import Benchmark, Script
from benchwright.core.measurement import Measurement
from benchwright.core.model import ModelScript, ScriptDiscovery
from benchwright.core.note import Note
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.record.base import Gatherer
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict

# Precise enough to see one percent, but bounded: training may go on for days.
USUAL_STOP = StopRule(precision=0.01, min_steps=30, max_seconds=60.0)
_TRAINERS = ("Trainer", "SFTTrainer", "Seq2SeqTrainer")
_NO_STEP = (
    "no optimizer of torch stepped in this process; measure its models with --as models, or all of it with --as command"
)


class TrainingGatherer(Gatherer):
    """Keeps how steps were recognised and how the training was ended; without steps, says why nothing was measured."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}

    def add(self, event: Event) -> None:
        if event["event"] == "training":
            note = Note(text=str(event["text"]), severity="info")
        elif event["event"] == "training_ended":
            self.stopped_early = True
            note = _ended(str(event["ended"]), int(event["steps"]), float(event["grace_s"]))
        else:
            return
        self._notes[note.text] = note  # every rank says the same

    def notes(self) -> list[Note]:
        return [*self._notes.values()]

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        if any(m.metric == "rate" and m.source == "loop" for m in found):
            return None
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, _NO_STEP)


def _ended(what: str, steps: int, grace_s: float) -> Note:
    """`what` was ended: the loader, the optimizer's step, or the whole process."""
    if what == "process":
        text = f"killed {grace_s:g} s after its training had been stopped; the rest of the script did not run"
        return Note(text=text, remedy="give it longer with --stop-grace")
    rest = "training" if what == "loader" else "script"
    text = f"stopped after {steps} steps; the rest of the {rest} did not run"
    return Note(text=text, remedy="--stop never runs it whole", severity="info")


def looks_like_training(tree: ast.Module) -> bool:
    """Whether a script takes gradients and optimizer steps itself, or hands its model to a trainer."""
    called = {_called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {"backward", "step"} <= called or (bool(called & {*_TRAINERS}) and bool(called & {"train", "fit"}))


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def training_of(asked: Benchmark, discovery: ScriptDiscovery) -> list[Benchmark]:
    """The training of a script as a separate benchmark, if its optimizer stepped during discovery."""
    script = asked.workload
    if not isinstance(script, ModelScript) or not discovery.optimizer_steps or script.select:
        return []
    work = Script(path=script.path, args=script.args, cwd=script.cwd, python=script.python, training=True)
    stop = asked.stop or USUAL_STOP
    return [msgspec.structs.replace(asked, workload=work, stop=stop, labels=discovery.labels | asked.labels)]
