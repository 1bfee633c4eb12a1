"""What becomes of a call of a torch module that the hook has seen: it is counted in its entry, or a new entry is made."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from types import FrameType, FunctionType, MethodType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from benchmodels.discover.callers import outermost_forward, place_of_call
from benchmodels.discover.frameworks import HookOptions, Uncalled
from benchmodels.discover.model_entries import Call, ModelEntry, Watcher
from benchmodels.discover.module_registry import MadeModules
from benchmodels.hooks.looking import (
    ABSENT,
    attribute,
    attributes_of,
    class_attribute,
    error_text,
    is_a,
    pass_on_signal,
)
from benchmodels.identity.identity import structure_of
from benchmodels.identity.signatures import key_maker, signature_of
from benchmodels.identity.weights import weights_digest
from benchmodels.measure.batch import of_known_task
from benchmodels.pytorch import models as torch_models
from benchmodels.pytorch.quietly import Undescribed, quietly
from benchmodels.pytorch.uncalled import UncalledModules, described
from benchmodels.types import Details, Module, Value

MAX_KEYS = 10_000  # of one module; calls with more of them are looked at each time
MAX_LOOKS = 8  # so often a model that was called is looked at again, after something in the program has changed
BY_FORWARD = ".forward()"
UNSEEN_INPUTS = "it was called through .forward(), with inputs that could not be seen; call the module itself"
LEFT_ALONE = "it was called, and left alone: {}"


class Record:
    """One module object. `target` is what it wraps, or itself; it shares the entries of that."""

    __slots__ = (
        *("changes", "entries", "full", "ignored", "last", "left_alone", "looks"),
        *("ref", "structure", "target", "wrappers"),
    )

    def __init__(self, ref: Any, target: Any, wrappers: Tuple[str, ...], entries: Dict[Any, ModelEntry]) -> None:
        self.ref = ref
        self.target = target
        self.wrappers = wrappers
        self.entries = entries
        self.ignored = False
        self.last: Optional[ModelEntry] = None  # of its last call, where sub-modules count
        self.structure: Optional[str] = None  # when it was last looked at
        self.changes = 0  # how many there had been in the program by then
        self.looks = MAX_LOOKS
        self.full: Dict[bool, str] = {}  # its structure, once it has no room for more calls without or with gradients
        self.left_alone: Optional[str] = None  # why a call of it could not be described


class TorchCalls:
    """`stacks`: the modules that each thread is in. `hook_forward` makes calls of a class's `forward` count from then on."""

    def __init__(
        self, watcher: Watcher, options: HookOptions, stacks: Dict[int, List[Any]], hook_forward: Callable[[Any], None]
    ) -> None:
        self._watcher = watcher
        self._options = options
        self._stacks = stacks
        self._hook_forward = hook_forward
        self.records: Dict[int, Record] = {}
        self._made = MadeModules(options.script, torch_models.is_wrapper)
        self._uncalled = UncalledModules(self._made, self._has_entry)
        # Called with gradients since the last backward, which will tell whether that was training.
        self.pending: List[Tuple[ModelEntry, Any]] = []
        self._by_forward: List[Any] = []  # weak references to models that were called through `forward`
        self.made = self._made.note
        self.changes = 0  # modules that were made or converted outside of any model: a model may be another one since

    def begin(self, module_class: Any, tensor_types: FrozenSet[type]) -> None:
        """torch.nn is there now."""
        self._module_class = module_class
        self.state_of: Callable[[Any], Dict[str, Any]] = class_attribute(module_class, "__dict__").__get__
        self.gradients: Callable[[], bool] = torch_models.torch()._C.is_grad_enabled
        self.tracing: Callable[[], Any] = torch_models.torch()._C._get_tracing_state
        self._key = key_maker(tensor_types)

    def is_module(self, value: Value) -> bool:
        return is_a(value, self._module_class)

    def note(
        self, module: Module, args: Any, kwargs: Any, via: Optional[str] = None
    ) -> Tuple[bool, Optional[ModelEntry]]:
        """Counts a call, and gives its entry, if it has one. True: the module has no parameters yet, so this is to be asked
        again when the call is over."""
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

    def look_again(self, record: Record) -> None:
        """A script may change a model between two calls: other layers in it, another precision."""
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

    def complain_of(self, module: Module, error: Exception) -> None:
        """A module, or a call of it, was left alone. The program must go on as if we were not there."""
        pass_on_signal(error)
        try:
            text = str(error) if is_a(error, Undescribed) else error_text(error)
            self._options.complain(f"a call of {type(module).__name__} was left alone: {text}")
        except Exception as another:  # such as no room left on the stack
            pass_on_signal(another)

    def key(self, args: Any, kwargs: Any) -> Any:
        """The same for calls with the same signature; None where there is no telling."""
        try:
            with quietly():
                return self._key(args, kwargs)
        except Exception as error:  # told when the call is looked at
            pass_on_signal(error)
            return None

    def unknown(
        self, record: Record, key: Any, args: Any, kwargs: Any, via: Optional[str] = None
    ) -> Tuple[bool, Optional[ModelEntry]]:
        """As `note`, for a call that this module has not had yet."""
        module = record.target()
        try:
            if module is None:
                return False, None
            graded = bool(self.gradients() and self.state_of(module).get("training"))
            if graded in record.full and key is not None:
                self._watcher.other_shape(record.full[graded], hash(key))
                return False, None
            with quietly():
                lazy = torch_models.is_lazy(module)
            if lazy:
                return True, None
            record.last = entry = self._first(record, key, args, kwargs, via, graded)
            if entry is not None:
                self._count(entry, record, module)
            return False, entry
        except Exception as error:
            self.complain_of(module, error)
            record.left_alone = str(error) if is_a(error, Undescribed) else error_text(error)
            return False, None

    def _count(self, entry: ModelEntry, record: Record, module: Module) -> None:
        entry.calls += 1
        if self.gradients() and self.state_of(module).get("training"):
            entry.graded += 1
            if entry.undecided > 0:
                self.await_backward(entry, record)

    def await_backward(self, entry: ModelEntry, record: Record) -> None:
        """The next backward will tell whether this was training."""
        entry.undecided = -entry.undecided
        self.pending.append((entry, record.target))

    def trained(self) -> None:
        """A backward has just ended: what gradients have reached is being trained."""
        pending = self.pending[:]
        self.pending.clear()
        for entry, target in pending:
            module = target()
            entry.undecided = -entry.undecided - 1
            if module is not None and torch_models.got_gradients(module):
                entry.undecided, entry.trained = 0, True
                self._watcher.changed(entry)

    def uncalled(self) -> Iterator[Uncalled]:
        """At the end: what was made or called and has no entry."""
        left = {id(r.ref()): r.left_alone for r in list(self.records.values()) if r.left_alone and not r.entries}
        yield from self._uncalled.told()
        for record in list(self.records.values()):
            module = record.target()
            if module is not None and id(module) in left:
                yield from self._told(module, LEFT_ALONE.format(left[id(module)]), called=True)
        for owner in [ref() for ref in self._by_forward]:
            if owner is not None and not self._has_entry(owner) and id(owner) not in left:
                yield from self._told(owner, UNSEEN_INPUTS, called=True)

    def _told(self, module: Module, reason: str, called: bool) -> Iterator[Uncalled]:
        try:
            with quietly():
                told = Uncalled(self._structure(module), described(module, self._made.find(module)), reason, called)
        except Exception as error:
            self.complain_of(module, error)
        else:
            yield told

    def _structure(self, module: Module) -> str:
        with quietly():
            structure = structure_of(module)
            return f"{structure} {weights_digest(module)}" if self._options.weights else structure

    def _has_entry(self, module: Module) -> bool:
        record = self.records.get(id(module))
        return record is not None and record.ref() is module and bool(record.entries)

    def record(self, module: Module) -> Record:
        """Of a module that is called for the first time."""
        try:
            with quietly():
                return self._new_record(module)
        except Exception as error:  # such as a module that was never initialised: the call itself will say so
            self.complain_of(module, error)
            record = Record(lambda: module, lambda: module, (), {})
            record.ignored = True
            return record

    def _new_record(self, module: Module) -> Record:
        key = id(module)
        target, wrappers = torch_models.unwrap(module)
        entries: Dict[Any, ModelEntry] = {}
        if target is not module:
            inner = self.records.get(id(target))
            entries = (inner if inner is not None and inner.ref() is target else self.record(target)).entries
        record = Record(
            weakref.ref(module, lambda _: self.records.pop(key, None)), weakref.ref(target), wrappers, entries
        )
        record.changes = self.changes
        record.ignored = torch_models.is_loss(target) or (bool(self._stack()) and not torch_models.has_state(target))
        self.records[key] = record
        self._made.mark_called(module)
        self._made.mark_called(target)
        return record

    def _stack(self) -> List[Any]:
        return self._stacks.get(get_ident(), [])

    def _first(self, record: Record, key: Any, args: Any, kwargs: Any, via: Any, graded: bool) -> Optional[ModelEntry]:
        """The entry of a call that this module has not had yet; None: it does not count, or there is no room."""
        with self._watcher.lock:
            module = record.target()
            with quietly():
                real = torch_models.is_real_call(module, args, kwargs, sys._getframe(1))
            if not real:
                return None
            if not self._stack() and self._is_part_of_forward(module):
                return None
            entry = self._entry(record, args, kwargs, _method(module, via or "forward"), graded)
            if entry is not None and key is not None and len(record.entries) < MAX_KEYS:
                record.entries[key] = entry
            elif entry is None:
                record.full[graded] = self._structure(module)
                self._watcher.other_shape(record.full[graded], hash(key))
            return entry

    def _entry(
        self, record: Record, args: Any, kwargs: Any, function: Any, graded: bool, frame: Optional[FrameType] = None
    ) -> Optional[ModelEntry]:
        """The entry for such a call of the module; None: there is no room for another one."""
        module = record.target()
        signature = signature_of(function, args, kwargs)
        structure = record.structure = self._structure(module)
        known = self._watcher.known(structure, signature)
        if known is not None:
            known.objects += known not in record.entries.values()
            return known
        if not self._watcher.has_room(structure, graded):
            return None
        with quietly():
            facts = {**torch_models.facts_of(module), **self._places(module, frame or sys._getframe(1))}
            batch = of_known_task(module, signature)
            facts["items"], facts["items_from"] = (None, None) if batch is None else batch
            facts["wrappers"] = [*record.wrappers, *torch_models.autocast_note(), *((BY_FORWARD,) if frame else ())]
            hidden = not torch_models.has_state(module)
        # Not quietly: whoever waits for this very call goes on from here, in the middle of the script.
        entry = self._watcher.add(Call(module, args, kwargs, function, signature, structure, facts, hidden, graded))
        if self._options.everything and not self._stack():
            self._uncalled.describe()
        return entry

    def _places(self, module: Module, frame: FrameType) -> Details:
        """Where it was called and made, and whose part it is."""
        called = place_of_call(self._options.script, frame)
        made = self._made.find(module)
        made_at = None if made is None else made.place
        parent = self._made.parent(module)
        stack = self._stack()
        above = self.records.get(id(stack[-1])) if stack else None
        return {
            "place": None if called is None else called.as_dict(),
            "made_at": None if made_at is None else made_at.as_dict(),
            "depth": len(stack),
            "parent": above.last.identity if above is not None and above.last is not None else None,
            "path": "" if parent is None else parent.path,
        }

    def _is_part_of_forward(self, module: Module) -> bool:
        """Whether a `forward` calls it that somebody called by itself: then that is the model, and counts as called."""
        found = outermost_forward(sys._getframe(1), self._module_class)
        if found is None or found.module is module:
            return False
        owner = found.module
        if not any(ref() is owner for ref in self._by_forward):
            self._by_forward.append(weakref.ref(owner))
            self._hook_forward(type(owner))
            record = self.record(owner)
            if found.arguments is not None and found.caller is not None:
                self._note_forward(record, owner, *found.arguments, found.caller)
        return True

    def _note_forward(self, record: Record, owner: Any, args: Any, kwargs: Any, frame: FrameType) -> None:
        graded = bool(self.gradients() and self.state_of(owner).get("training"))
        entry = self._entry(record, args, kwargs, _method(owner, "forward"), graded, frame)
        if entry is not None:
            record.entries[self.key(args, kwargs)] = entry
            self._count(entry, record, owner)


def _method(module: Module, name: str) -> Any:
    """The function that takes the inputs, as a method of the module: one that was put into it, or its class's."""
    found = attribute(module, name, ABSENT)
    if is_a(found, FunctionType) and name not in attributes_of(module):
        return MethodType(found, module)
    if type(module).__module__.startswith("torch.jit"):
        return getattr(module, name)
    return None if found is ABSENT else found
