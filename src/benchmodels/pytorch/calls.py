"""Counts each call of a torch module that the hook has seen, making an entry for a new kind of call."""

from __future__ import annotations

import hashlib
import sys
import weakref
from _thread import get_ident
from dataclasses import dataclass, field
from types import FrameType, FunctionType, MethodType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchmodels.discover.callers import outermost_forward, place_of_call
from benchmodels.discover.model_entries import Call, HookOptions, ModelEntry, Uncalled, Watcher
from benchmodels.hooks.import_watch import (
    ABSENT,
    attribute,
    attributes_of,
    class_attribute,
    error_text,
    is_a,
    pass_on_signal,
)
from benchmodels.identity.identity import structure_of
from benchmodels.identity.signatures import key_maker, signature_of, tensors_in
from benchmodels.identity.weights import weights_digest
from benchmodels.measure.batch import of_known_task
from benchmodels.measure.generation import GENERATE
from benchmodels.pytorch import models as torch_models
from benchmodels.pytorch.module_registry import MadeModules, described
from benchmodels.pytorch.unrecorded import Undescribed, unrecorded
from benchmodels.types import Details, Module, Value

MAX_KEYS = 10_000  # of one module; calls beyond these are examined each time
MAX_LOOKS = 8  # how often a called model is examined again after the program has made or converted modules
BY_FORWARD = ".forward()"
UNSEEN_INPUTS = "called through .forward() with inputs that could not be seen; call the module itself"
SKIPPED = "its calls were skipped: {}"
# A call's entry, if it has one. True: the module has no parameters yet, so note the call again when it is over.
Noted = Tuple[bool, Optional[ModelEntry]]


@dataclass(eq=False)
class Record:
    """One module object. `target`: the module it wraps, or itself; both share their entries."""

    ref: Callable[[], Any]
    target: Callable[[], Any]
    wrappers: Tuple[str, ...] = ()
    entries: Dict[Any, ModelEntry] = field(default_factory=dict)
    ignored: bool = False
    internal: bool = False  # no model, and nothing inside it is one
    last: Optional[ModelEntry] = None  # of its last call, where sub-modules count
    structure: Optional[str] = None  # when last examined
    changes: int = 0  # value of TorchCalls.changes at that time
    devices: Details = field(default_factory=dict)  # that hold it, when last examined
    elsewhere: List[ModelEntry] = field(default_factory=list)  # of its calls before it was moved to another device
    looks: int = MAX_LOOKS
    full: Dict[Any, str] = field(default_factory=dict)  # its structure, once it has no room: see `TorchCalls._sort`
    skipped: Optional[str] = None  # why a call of it could not be described


class TorchCalls:
    """`stacks`: the modules each thread is in. `hook_forward`: makes calls of a class's `forward` count from then on."""

    def __init__(
        self, watcher: Watcher, options: HookOptions, stacks: Dict[int, List[Any]], hook_forward: Callable[[Any], None]
    ) -> None:
        self._watcher = watcher
        self._options = options
        self._stacks = stacks
        self._hook_forward = hook_forward
        self.records: Dict[int, Record] = {}
        self._made = MadeModules(options.script, self._has_entry)
        # Called with gradients since the last backward pass; the next one shows whether that was training.
        self.pending: List[Tuple[ModelEntry, Any]] = []
        self._by_forward: List[Any] = []  # weak references to models called through `forward`
        self.made = self._made.note
        self.changes = 0  # modules made or converted outside any model, any of which may have changed a model

    def begin(self, module_class: Any, tensor_types: FrozenSet[type]) -> None:
        """Called when torch.nn has been imported."""
        self._module_class = module_class
        self.state_of: Callable[[Any], Dict[str, Any]] = class_attribute(module_class, "__dict__").__get__
        self.gradients: Callable[[], bool] = torch_models.torch()._C.is_grad_enabled
        self.tracing: Callable[[], Any] = torch_models.torch()._C._get_tracing_state
        self.in_autocast: Callable[[], bool] = torch_models.autocast_switch()
        self._key = key_maker(tensor_types)

    def is_module(self, value: Value) -> bool:
        return is_a(value, self._module_class)

    def note(self, module: Module, args: Any, kwargs: Any, via: Optional[str] = None) -> Noted:
        """Counts a call."""
        record = self.records.get(id(module))
        if record is None or record.ref() is not module:
            record = self.record(module)
        if record.ignored:
            return False, None
        if record.changes != self.changes:
            self.look_again(record)
        key = self.key(args, kwargs)
        entry = record.entries.get(key)
        if entry is None:
            return self.unknown(record, key, args, kwargs, via)
        record.last = entry
        self._count(entry, record, module)
        return False, entry

    def note_generation(self, module: Module, args: Any, kwargs: Any) -> Optional[ModelEntry]:
        """Counts a call of its `generate`, beside the calls of the model that it makes; None: it gets no entry."""
        module = torch_models.unwrap(module).module
        function = _method(module, GENERATE)
        try:
            with self._watcher.lock:
                record = self.records.get(id(module))
                if record is None or record.ref() is not module:
                    record = self.record(module)
                key = (GENERATE, self.key(args, kwargs))
                entry = record.entries.get(key) or self._entry(record, args, kwargs, function, False, method=GENERATE)
                if entry is not None:
                    entry.calls += 1
                    if key[1] is not None and len(record.entries) < MAX_KEYS:
                        record.entries[key] = entry
                return entry
        except Exception as error:
            self.complain_of(module, error)
            return None

    def look_again(self, record: Record) -> None:
        """Checks whether the script has changed a model between two calls: other layers, another precision."""
        record.changes = self.changes
        module = record.target()
        if module is None or record.structure is None or not record.looks:
            return
        record.looks -= 1
        try:
            structure = self._structure(module)
        except Exception as error:
            self.complain_of(module, error)
            return
        if structure != record.structure:
            record.structure = structure
            record.entries.clear()
            record.full.clear()
        elif self._devices(module) != record.devices:
            record.elsewhere += record.entries.values()  # what is called from now on is called here
            record.entries.clear()

    def _devices(self, module: Module) -> Details:
        with unrecorded():
            facts = torch_models.facts_of(module)
        return {name: facts[name] for name in ("device", "other_devices")}

    def _note_device(self, entry: ModelEntry, now: Details) -> None:
        """A script may try a model on the processor and then use it on an accelerator, which is where it is measured."""
        if torch_models.is_rather_on(now["device"], entry.facts["device"]):
            entry.facts.update(now)
            self._watcher.changed(entry)

    def complain_of(self, module: Module, error: Exception) -> str:
        """Reports a skipped call without disturbing the program. Returns the cause."""
        pass_on_signal(error)
        text = ""
        try:
            text = str(error) if is_a(error, Undescribed) else error_text(error)
            self._options.complain(f"skipped a call of {type(module).__name__}: {text}")
        except Exception as another:  # such as RecursionError
            pass_on_signal(another)
        return text

    def key(self, args: Any, kwargs: Any) -> Any:
        """Equal keys mean equal signatures; None if there is no key."""
        try:
            with unrecorded():
                key = self._key(args, kwargs)
                return (torch_models.autocast_regions(), key) if self.in_autocast() else key
        except Exception as error:  # reported when the call is examined
            pass_on_signal(error)
            return None

    def unknown(self, record: Record, key: Any, args: Any, kwargs: Any, via: Optional[str] = None) -> Noted:
        """Like `note`, for a call whose key is new to this module."""
        module = record.target()
        try:
            if module is None:
                return False, None
            graded = self._is_graded(module)
            full = record.full.get(self._sort(graded))
            if full is not None and key is not None:
                self._watcher.other_shape(full, hash(key))
                return False, None
            with unrecorded():
                lazy = torch_models.is_lazy(module)
            if lazy:
                return True, None
            record.last = entry = self._first(record, key, args, kwargs, via, graded)
            if entry is not None:
                self._count(entry, record, module)
            return False, entry
        except Exception as error:
            record.skipped = self.complain_of(module, error)
            return False, None

    def _sort(self, graded: bool) -> Any:
        """Calls with and without gradients, and in different regions of autocast, have separate limits."""
        return graded, torch_models.autocast_regions() if self.in_autocast() else ()

    def _is_graded(self, module: Module) -> bool:
        return bool(self.gradients() and self.state_of(module).get("training"))

    def _count(self, entry: ModelEntry, record: Record, module: Module) -> None:
        entry.calls += 1
        if self._is_graded(module):
            entry.graded += 1
            if entry.undecided > 0:
                self.await_backward(entry, record)

    def await_backward(self, entry: ModelEntry, record: Record) -> None:
        """The next backward pass shows whether this was training."""
        entry.undecided = -entry.undecided
        self.pending.append((entry, record.target))

    def trained(self) -> None:
        """A backward pass has just ended: modules with gradients are being trained."""
        pending = self.pending[:]
        self.pending.clear()
        for entry, target in pending:
            module = target()
            entry.undecided = -entry.undecided - 1
            if module is not None and torch_models.got_gradients(module):
                entry.undecided, entry.trained = 0, True
                self._watcher.changed(entry)

    def uncalled(self) -> Iterator[Uncalled]:
        """At the end: modules that were made or called and have no entry."""
        skipped = {id(r.ref()): r.skipped for r in list(self.records.values()) if r.skipped and not r.entries}
        yield from self._made.uncalled()
        for record in list(self.records.values()):
            module = record.target()
            if module is not None and id(module) in skipped:
                yield from self._unusable(module, SKIPPED.format(skipped[id(module)]))
        for owner in [ref() for ref in self._by_forward]:
            if owner is not None and not self._has_entry(owner) and id(owner) not in skipped:
                yield from self._unusable(owner, UNSEEN_INPUTS)

    def _unusable(self, module: Module, reason: str) -> Iterator[Uncalled]:
        try:
            with unrecorded():
                found = Uncalled(self._structure(module), described(module, self._made.place(module)), reason, True)
        except Exception as error:
            self.complain_of(module, error)
        else:
            yield found

    def _structure(self, module: Module) -> str:
        with unrecorded():
            # Without values it is another model, which is not measured: the one with values may follow.
            structure = structure_of(module) + (" on meta" if torch_models.is_on_meta(module) else "")
            return f"{structure} {weights_digest(module)}" if self._options.weights else structure

    def _of_call(self, module: Module, structure: str, method: str = "") -> str:
        """Of a generation, and in a region of autocast, it is another model."""
        words = [word for word in (method, *torch_models.autocast_note(module)) if word]
        return hashlib.sha256(".".join((structure, *words)).encode()).hexdigest() if words else structure

    def _has_entry(self, module: Module) -> bool:
        record = self.records.get(id(module))
        return record is not None and record.ref() is module and bool(record.entries)

    def record(self, module: Module) -> Record:
        """Makes the record of a module that is called for the first time."""
        try:
            with unrecorded():
                return self._new_record(module)
        except Exception as error:  # such as an uninitialised module: the call itself will fail
            self.complain_of(module, error)
            return Record(lambda: module, lambda: module, ignored=True)

    def _new_record(self, module: Module) -> Record:
        key = id(module)
        target, wrappers = torch_models.unwrap(module)
        entries: Dict[Any, ModelEntry] = {}
        if target is not module:
            inner = self.records.get(id(target))
            entries = (inner if inner is not None and inner.ref() is target else self.record(target)).entries
        ref = weakref.ref(module, lambda _: self.records.pop(key, None))
        ignored = torch_models.is_loss(target) or (bool(self._stack()) and not torch_models.has_state(target))
        internal = torch_models.is_internal(target)
        record = Record(
            ref, weakref.ref(target), wrappers, entries, ignored or internal, internal, changes=self.changes
        )
        self.records[key] = record
        self._made.mark_called(module)
        self._made.mark_called(target)
        return record

    def _stack(self) -> List[Any]:
        return self._stacks.get(get_ident(), [])

    def _first(self, record: Record, key: Any, args: Any, kwargs: Any, via: Any, graded: bool) -> Optional[ModelEntry]:
        """The entry of a call whose key is new to this module; None: it does not count, or there is no room."""
        with self._watcher.lock:
            module = record.target()
            with unrecorded():
                real = torch_models.is_real_call(module, args, kwargs, sys._getframe(1))
            if not real:
                return None
            if not self._stack() and self._is_part_of_forward(module):
                return None
            entry = self._entry(record, args, kwargs, _method(module, via or "forward"), graded)
            if entry is not None and key is not None and len(record.entries) < MAX_KEYS:
                record.entries[key] = entry
            elif entry is None:
                full = record.full[self._sort(graded)] = self._of_call(module, self._structure(module))
                self._watcher.other_shape(full, hash(key))
            return entry

    def _entry(
        self,
        record: Record,
        args: Any,
        kwargs: Any,
        function: Any,
        graded: bool,
        frame: Optional[FrameType] = None,
        method: str = "",
    ) -> Optional[ModelEntry]:
        """The entry for such a call of the module; None if there is no room for another one."""
        module = record.target()
        signature = signature_of(function, args, kwargs)
        structure = record.structure = self._structure(module)
        record.devices = self._devices(module)
        structure = self._of_call(module, structure, method)
        known = self._watcher.known(structure, signature)
        if known is not None:
            known.objects += known not in (*record.entries.values(), *record.elsewhere)
            self._note_device(known, record.devices)
            return known
        if not self._watcher.has_room(structure, graded):
            return None
        with unrecorded():
            facts = {**torch_models.facts_of(module), **self._places(module, frame or sys._getframe(1))}
            if facts["device"] is None:
                facts.update(torch_models.device_facts([tensor for _, tensor in tensors_in(args, kwargs)]))
            batch = None if method else of_known_task(module, signature)
            if method:
                facts.update({"method": method, **{name: f"{facts[name]}.{method}" for name in ("class", "qualified")}})
            facts["items"], facts["items_from"] = (None, None) if batch is None else batch
            facts["wrappers"] = [
                *record.wrappers,
                *torch_models.autocast_note(module),
                *((BY_FORWARD,) if frame else ()),
            ]
            hidden = not torch_models.has_state(module)
        # Not quietly: a capture waiting for this very call takes over here, in the middle of the script.
        entry = self._watcher.add(Call(module, args, kwargs, function, signature, structure, facts, hidden, graded))
        if self._options.everything and not self._stack():
            self._made.describe()
        return entry

    def _places(self, module: Module, frame: FrameType) -> Details:
        """Where it was called and made, and what contains it."""
        stack = self._stack()
        above = self.records.get(id(stack[-1])) if stack else None
        return {
            "place": place_of_call(self._options.script, frame),
            "made_at": self._made.place(module),
            "depth": len(stack),
            "parent": above.last.identity if above is not None and above.last is not None else None,
            "path": self._made.path(module),
        }

    def _is_part_of_forward(self, module: Module) -> bool:
        """Whether a directly called `forward` calls it: then the owner of that `forward` is the model, and is counted."""
        found = outermost_forward(sys._getframe(1), self._module_class)
        if found is None or found.module is module:
            return False
        owner = found.module
        if not any(ref() is owner for ref in self._by_forward):
            self._by_forward.append(weakref.ref(owner))
            self._hook_forward(type(owner))
            record = self.record(owner)
            if found.arguments is not None and found.caller is not None:
                function, graded = _method(owner, "forward"), self._is_graded(owner)
                entry = self._entry(record, *found.arguments, function, graded, found.caller)
                if entry is not None:
                    record.entries[self.key(*found.arguments)] = entry
                    self._count(entry, record, owner)
        return True


def _method(module: Module, name: str) -> Any:
    """The method that takes the inputs: the module's own attribute, or its class's, bound."""
    found = attribute(module, name, ABSENT)
    if is_a(found, FunctionType) and name not in attributes_of(module):
        return MethodType(found, module)
    if type(module).__module__.startswith("torch.jit"):
        return getattr(module, name)
    return None if found is ABSENT else found
