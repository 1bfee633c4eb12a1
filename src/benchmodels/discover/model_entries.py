"""The models found in a script so far: one entry per model and kind of call, reported as soon as it is known."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from benchmodels.identity.identity import LENGTH, identity_of
from benchmodels.identity.signatures import Signature
from benchmodels.measure.batch import varying_dimensions
from benchmodels.settings import ModelSettings
from benchmodels.types import Details, Module, Value
from benchprobe.stream.events import Event

INFERENCE, TRAINING, NEVER_CALLED = "inference", "training", "never_called"
MAX_INPUTS_LISTED = 64
MAX_OTHERS = 100_000  # further kinds of calls that are counted for one model
FORKED = "called in a process that the script started, not in the script itself"
ON_META = "on the meta device, where weights have no values; build it on cpu or cuda to measure it"
UNKNOWN: Details = {  # keys of a `model` event, where nothing is known
    **dict.fromkeys(("weights", "content", "flops", "bytes", "flops_note", "items", "items_from")),
    **{"place": None, "made_at": None, "method": "", "parent": None, "path": "", "depth": 0, "wrappers": []},
    **{"inputs": [], "varying": [], "training_calls": 0, "main_process": True, "other_shapes": 0, "objects": 1},
    "other_devices": [],
}


class HookOptions(NamedTuple):
    """`script`: its file. `everything` False: look for calls only, not for training or models that are never called."""

    script: str
    depth: int
    everything: bool
    complain: Callable[[str], None]
    weights: bool = False  # whether they are part of an identity

    @classmethod
    def of(
        cls, settings: ModelSettings, script: str, *, everything: bool, complain: Callable[[str], None]
    ) -> HookOptions:
        return cls(script, settings.max_depth, everything, complain, settings.weights_in_identity)


class Uncalled(NamedTuple):
    """A model that cannot be measured; `reason` says why. `called`: it was called, but not in a usable way."""

    identity: str
    facts: Details
    reason: str
    called: bool = False


class Call(NamedTuple):
    """One call of a model, seen for the first time. Do not keep it: it holds the inputs."""

    module: Module
    args: Sequence[Value]
    kwargs: Dict[str, Value]
    function: Any  # the method that takes the inputs
    signature: Signature
    structure: str
    facts: Details  # keys of the event that the hook knows
    hidden: bool = False  # reported only if nothing better is found
    graded: bool = False  # in training mode, with gradients


@dataclass(eq=False)
class ModelEntry:
    """Calls of one model with one signature; the hook counts them here."""

    identity: str
    group: str  # the model's structure
    signature: Signature
    facts: Details
    hidden: bool
    begun_graded: bool
    calls: int = 0
    failures: int = 0  # calls that raised an exception
    failure: str = ""  # the last of these exceptions
    graded: int = 0  # calls in training mode, with gradients
    trained: bool = False  # a backward pass has reached it
    undecided: int = 3  # how many more backward passes to examine; negative while waiting for one
    objects: int = 1  # modules with this identity

    @property
    def training_calls(self) -> int:
        return self.graded if self.trained else 0

    @property
    def mode(self) -> str:
        return TRAINING if self.trained and self.graded == self.calls else INFERENCE


class ShapeGroup:
    """Entries of models with the same structure, and further kinds of calls by hash."""

    def __init__(self) -> None:
        self.entries: List[ModelEntry] = []
        self.others: Set[int] = set()


class Watcher:
    """Calls `on_new` with each new entry and its call, before the call goes on; `on_change` when it proves to be training."""

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
        """Whether one more kind of call of this model gets an entry; training and inference have separate limits."""
        group = self._groups.get(structure)
        return group is None or sum(entry.begun_graded == graded for entry in group.entries) < self._max_shapes

    def other_shape(self, structure: str, key: int) -> None:
        """Counts a further kind of call, known by its hash, that gets no entry."""
        others = self._groups[structure].others
        if len(others) < MAX_OTHERS:
            others.add(key)

    def add(self, call: Call) -> ModelEntry:
        """Makes the entry of a call that is not known yet."""
        identity = identity_of(call.structure, call.signature)[:LENGTH]
        facts = dict(call.facts)
        entry = ModelEntry(identity, call.structure, call.signature, facts, call.hidden, call.graded)
        self._entries[identity] = entry
        self._groups.setdefault(call.structure, ShapeGroup()).entries.append(entry)
        self._on_new(entry, call)
        return entry

    def reported(self) -> List[ModelEntry]:
        """All entries but hidden ones; those too if there are no others."""
        return [entry for entry in self.entries if not entry.hidden] or self.entries

    def signatures_beside(self, entry: ModelEntry) -> List[Signature]:
        """Signatures of other calls of the same model."""
        return [each.signature for each in self._groups[entry.group].entries if each is not entry]

    def others_of(self, entry: ModelEntry) -> int:
        """How many further kinds of calls its model had; reported once, with the model's first entry."""
        group = self._groups[entry.group]
        return len(group.others) if group.entries[0] is entry else 0


def model_event(entry: ModelEntry, other_shapes: int, in_main_process: bool, others: Sequence[Signature] = ()) -> Event:
    """The entry as known so far. `others`: signatures of further calls of the same model."""
    inputs = [leaf.as_dict() for leaf in entry.signature.leaves]
    if len(inputs) > MAX_INPUTS_LISTED:
        rest = len(inputs) - MAX_INPUTS_LISTED
        inputs = [*inputs[:MAX_INPUTS_LISTED], {"name": "…", "value": f"and {rest} more"}]
    return _event(
        entry.identity,
        entry.facts,
        inputs=inputs,
        varying=[[list(each) for each in dimensions] for dimensions in varying_dimensions(entry.signature, others)],
        calls=max(entry.calls, 1),  # the first one is about to be made
        training_calls=entry.training_calls,
        mode=entry.mode,
        reason=_reason(entry) if in_main_process else FORKED,
        main_process=in_main_process,
        other_shapes=other_shapes,
        shape_group=entry.group[:LENGTH],
        objects=entry.objects,
    )


def uncalled_event(one: Uncalled) -> Event:
    """For a model without inputs to measure it with."""
    identity, mode = one.identity[:LENGTH], INFERENCE if one.called else NEVER_CALLED
    return _event(identity, one.facts, calls=int(one.called), mode=mode, reason=one.reason, shape_group=identity)


def _event(identity: str, facts: Details, **values: Any) -> Event:
    return {"event": "model", "t": perf_counter_ns(), "identity": identity, **UNKNOWN, **facts, **values}


def _reason(entry: ModelEntry) -> Optional[str]:
    """Why it will not be measured; None if it will."""
    if entry.failures and entry.failures == entry.calls:
        calls = "its only call" if entry.calls == 1 else f"each of its {entry.calls} calls"
        return f"{calls} raised an exception: {entry.failure}"
    if entry.facts.get("device") == "meta":
        return ON_META
    if entry.mode != TRAINING:
        return None
    steps = f"{entry.training_calls} training step{'s' if entry.training_calls != 1 else ''}"
    return f"called in {steps} only ({entry.signature}), with gradients and a backward pass; that is not inference"
