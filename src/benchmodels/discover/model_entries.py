"""What was found in a script so far: an entry for each kind of call of each model, reported as soon as it is known."""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from benchmodels.identity.identity import LENGTH, identity_of
from benchmodels.identity.signatures import Signature
from benchmodels.measure.batch import varying_dimensions
from benchmodels.types import Details, Module, Value
from benchprobe.stream.events import Event

INFERENCE, TRAINING, NEVER_CALLED = "inference", "training", "never_called"
MAX_INPUTS_TOLD = 64
MAX_OTHERS = 100_000  # kinds of calls of one model that are told apart
FORKED = "it was called in a process that the script started, not in the script's own"


class Call(NamedTuple):
    """One call of a model, seen for the first time. It must not be kept: it holds the inputs."""

    module: Module
    args: Sequence[Value]
    kwargs: Dict[str, Value]
    function: Any  # the method that takes the inputs
    signature: Signature
    structure: str
    facts: Details  # those keys of the event that the framework knows
    hidden: bool = False  # told only if nothing better is found
    graded: bool = False  # made in training mode, with gradients


class ModelEntry:
    """Calls of one model with one signature. The hook counts in it."""

    __slots__ = (
        "begun_graded",
        "calls",
        "facts",
        "failure",
        "failures",
        "graded",
        "group",
        "hidden",
        "identity",
        "objects",
        "signature",
        "trained",
        "undecided",
    )

    def __init__(self, identity: str, call: Call, facts: Details) -> None:
        self.identity = identity
        self.facts = facts
        self.group = call.structure
        self.hidden = call.hidden
        self.signature = call.signature
        self.begun_graded = call.graded
        self.calls = 0
        self.failures = 0  # calls that ended with an exception, and the last one's
        self.failure = ""
        self.graded = 0  # in training mode, with gradients
        self.trained = False  # a backward has reached it
        self.undecided = 3  # so many more backwards are looked at to tell; negative while one is awaited
        self.objects = 0  # so many modules with this identity

    @property
    def training_calls(self) -> int:
        return self.graded if self.trained else 0

    @property
    def mode(self) -> str:
        return TRAINING if self.trained and self.graded == self.calls else INFERENCE


class ShapeGroup:
    """Entries of models with the same structure, and how many more kinds of calls there were."""

    def __init__(self) -> None:
        self.entries: List[ModelEntry] = []
        self.others: Set[int] = set()


class Watcher:
    """`on_new` is called with each new entry and its call, before the call goes on; `on_change` when it turns out to be training."""

    def __init__(
        self,
        max_shapes: int,
        on_new: Callable[[ModelEntry, Call], None],
        on_change: Callable[[ModelEntry], None] = lambda entry: None,
    ) -> None:
        self._max_shapes = max(1, max_shapes)
        self._on_new = on_new
        self.changed = on_change
        self._entries: Dict[str, ModelEntry] = {}
        self._groups: Dict[str, ShapeGroup] = {}
        self.lock = threading.RLock()

    @property
    def entries(self) -> List[ModelEntry]:
        return list(self._entries.values())

    def known(self, structure: str, signature: Signature) -> Optional[ModelEntry]:
        return self._entries.get(identity_of(structure, signature)[:LENGTH])

    def has_room(self, structure: str, graded: bool) -> bool:
        """Whether another kind of call of this model gets an entry. Training must not take the room of inference."""
        group = self._groups.get(structure)
        return group is None or sum(entry.begun_graded == graded for entry in group.entries) < self._max_shapes

    def other_shape(self, structure: str, key: int) -> None:
        """A further kind of call, known by a hash, that gets no entry."""
        others = self._groups[structure].others
        if len(others) < MAX_OTHERS:
            others.add(key)

    def add(self, call: Call) -> ModelEntry:
        """The entry of a call that is not known yet."""
        identity = identity_of(call.structure, call.signature)[:LENGTH]
        entry = self._entries[identity] = ModelEntry(identity, call, dict(call.facts))
        entry.objects = 1
        self._groups.setdefault(call.structure, ShapeGroup()).entries.append(entry)
        self._on_new(entry, call)
        return entry

    def told(self) -> List[ModelEntry]:
        """The entries that count: hidden ones only if there are no others."""
        return [entry for entry in self.entries if not entry.hidden] or self.entries

    def signatures_beside(self, entry: ModelEntry) -> List[Signature]:
        """Of other calls of the same model."""
        return [each.signature for each in self._groups[entry.group].entries if each is not entry]

    def others_of(self, entry: ModelEntry) -> int:
        """Told once for each model, with its first entry."""
        group = self._groups[entry.group]
        return len(group.others) if group.entries[0] is entry else 0


def model_event(entry: ModelEntry, other_shapes: int, in_main_process: bool, others: Sequence[Signature] = ()) -> Event:
    """What is known of an entry now. `others`: of further calls of the same model."""
    inputs = [leaf.as_dict() for leaf in entry.signature.leaves]
    if len(inputs) > MAX_INPUTS_TOLD:
        rest = len(inputs) - MAX_INPUTS_TOLD
        inputs = [*inputs[:MAX_INPUTS_TOLD], {"name": "…", "value": f"and {rest} more"}]
    return {
        "event": "model",
        "t": perf_counter_ns(),
        "identity": entry.identity,
        **entry.facts,
        "inputs": inputs,
        "varying": [[list(each) for each in dimensions] for dimensions in varying_dimensions(entry.signature, others)],
        "calls": max(entry.calls, 1),  # the one that is just about to be made
        "training_calls": entry.training_calls,
        "mode": entry.mode,
        "reason": _reason(entry) if in_main_process else FORKED,
        "main_process": in_main_process,
        "other_shapes": other_shapes,
        "shape_group": entry.group[:LENGTH],
        "objects": entry.objects,
    }


def _reason(entry: ModelEntry) -> Optional[str]:
    """Why it will not be measured; None: it will."""
    if entry.failures and entry.failures == entry.calls:
        times = f"{entry.calls} time{'s' if entry.calls != 1 else ''}"
        return f"it was called {times}, always with an exception: {entry.failure}"
    if entry.mode != TRAINING:
        return None
    steps = f"{entry.training_calls} training step{'s' if entry.training_calls != 1 else ''}"
    return f"it was called in {steps} only ({entry.signature}), with gradients and backward; a training step is not an inference"


def uncalled_event(identity: str, facts: Details, reason: str, called: bool = False) -> Event:
    """For a model that has no inputs to measure it with."""
    return {
        "event": "model",
        "t": perf_counter_ns(),
        "identity": identity[:LENGTH],
        **facts,
        "inputs": [],
        "varying": [],
        "calls": int(called),
        "training_calls": 0,
        "mode": INFERENCE if called else NEVER_CALLED,
        "reason": reason,
        "main_process": True,
        "other_shapes": 0,
        "shape_group": identity[:LENGTH],
        "objects": 1,
    }
