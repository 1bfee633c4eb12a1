"""The torch modules that a program made: where, inside which others, and which were never called. Keeps none of them alive."""

from __future__ import annotations

import gc
import hashlib
import sys
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from benchmodels.discover.callers import place_of_call
from benchmodels.discover.model_entries import Uncalled
from benchmodels.hooks.import_watch import attribute, is_a, members_of, pass_on_signal
from benchmodels.identity.identity import structure_of
from benchmodels.pytorch.models import facts_of, has_state, is_internal, is_lazy, is_loss, is_wrapper
from benchmodels.pytorch.module_parts import parameters_of, parts_of
from benchmodels.pytorch.unrecorded import unrecorded
from benchmodels.types import Details, Module

MAX_MADE = 200_000
NOT_CALLED = "built but not called, or called only inside something that is not a model, or by .forward() without calling a part of it"
IN_COMPILED = " (calls inside a function compiled by torch.compile are not seen)"


@dataclass(eq=False)
class Made:
    """One module: where it was made, and what was seen of it since."""

    ref: Any
    place: Optional[Details]
    called: bool = False
    seen: Optional[Details] = None  # its description, taken while it was alive and not part of another module


class MadeModules:
    """`script`: the file whose lines are reported. `has_entry`: whether a call of a module was seen."""

    def __init__(self, script: str, has_entry: Callable[[Any], bool]) -> None:
        self._script = script
        self._has_entry = has_entry
        self._made: Dict[int, Made] = {}
        self._gone: List[Details] = []  # descriptions of modules that were never called and no longer exist

    def note(self, module: Module) -> None:
        """Records a new module, when `nn.Module.__init__` has run."""
        if len(self._made) > MAX_MADE:
            return
        key = id(module)
        place = place_of_call(self._script, sys._getframe(1), without=module)
        self._made[key] = Made(weakref.ref(module, lambda _: self._forget(key)), place)

    def _forget(self, key: int) -> None:
        made = self._made.pop(key, None)
        if made is not None and made.seen is not None and not made.called:
            self._gone.append(made.seen)

    def mark_called(self, module: Module) -> None:
        made = self._find(module)
        if made is not None:
            made.called = True

    def place(self, module: Module) -> Optional[Details]:
        """Where it was made."""
        made = self._find(module)
        return None if made is None else made.place

    def _find(self, module: Module) -> Optional[Made]:
        made = self._made.get(id(module))
        return made if made is not None and made.ref() is module else None

    def _alive(self) -> List[Tuple[Made, Any]]:
        pairs = [(made, made.ref()) for made in list(self._made.values())]
        return [(made, module) for made, module in pairs if module is not None]

    def path(self, module: Module) -> str:
        """The path from the outermost living module that contains it; empty if none does."""
        above: Dict[int, Tuple[Any, str]] = {}
        for _, holder in self._alive():
            if not is_wrapper(holder):
                for name, part in _children(holder).items():
                    above.setdefault(id(part), (holder, name))
        names: List[str] = []
        seen: Set[int] = set()
        while id(module) in above and id(module) not in seen:
            seen.add(id(module))
            module, name = above[id(module)]
            names.insert(0, name)
        return ".".join(names)

    def describe(self) -> None:
        """Describes uncalled modules now, since they may be gone at the end."""
        for made, module in self._uncalled():
            try:
                with unrecorded():
                    if made.seen is None and _counts(module):
                        made.seen = described(module, made.place)
            except Exception as error:  # an unusual module, or one under construction
                pass_on_signal(error)

    def uncalled(self) -> Iterator[Uncalled]:
        """At the end of the script: each kind of uncalled model once."""
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        reason = NOT_CALLED + (IN_COMPILED if any(counters.values()) else "")
        found: Dict[str, Uncalled] = {}
        for made, module in self._uncalled():
            try:
                with unrecorded():
                    if _counts(module):
                        why = self._parts_reason(module) or reason
                        one = Uncalled(structure_of(module), described(module, made.place), why)
                        found.setdefault(one.identity, one)
            except Exception as error:  # an unusual module, which was never called
                pass_on_signal(error)
        for facts in list(self._gone):
            name = f"{facts.get('qualified')} {facts.get('made_at')} {facts.get('parameters')}"
            identity = hashlib.sha256(name.encode()).hexdigest()
            found.setdefault(identity, Uncalled(identity, facts, reason))
        yield from found.values()

    def _uncalled(self) -> List[Tuple[Made, Any]]:
        """Modules that were never called, are not part of another one, and were not called in a converted form either."""
        alive = self._alive()
        parts = {id(part) for _, module in alive for part in _children(module).values()}
        converted = [_weights(module) for made, module in alive if made.called and _is_converted(module)]
        found = [
            (made, module)
            for made, module in alive
            if not made.called and id(module) not in parts and not (converted and _is_in(module, converted))
        ]
        failed = _failed_to_build([module for _, module in found])
        return [(made, module) for made, module in found if id(module) not in failed]

    def _parts_reason(self, module: Module) -> Optional[str]:
        names = [name for name, part in parts_of(module) if name and self._has_entry(part)]
        return f"never called itself, only parts of it ({', '.join(names[:4])})" if names else None


def described(module: Module, made_at: Optional[Details]) -> Details:
    """Keys of the event for a module without a known call."""
    return {**facts_of(module), "made_at": made_at}


def _failed_to_build(modules: List[Any]) -> Set[int]:
    """Modules whose constructor raised an exception that still exists: so does its frame, which would be gone otherwise."""
    holders = gc.get_referrers(*modules) if modules else []
    frames = [each for each in holders if type(each) is FrameType and each.f_code.co_name == "__init__"]
    return {id(frame.f_locals[name]) for frame in frames for name in frame.f_code.co_varnames[:1]}


def _counts(module: Module) -> bool:
    if type(module).__module__.startswith(("torch.fx", "torch._", "torch.jit")) or is_wrapper(module):
        return False
    return has_state(module) and not is_loss(module) and not is_internal(module) and not is_lazy(module)


def _is_converted(module: Module) -> bool:
    """By torch.jit.script, torch.jit.trace or torch.fx, whose modules share the weights of their source."""
    return type(module).__module__.startswith(("torch.jit", "torch.fx"))


def _is_in(module: Module, converted: List[Set[int]]) -> bool:
    weights = _weights(module)
    return bool(weights) and any(weights <= each for each in converted)


def _weights(module: Module) -> Set[int]:
    """Where they are in memory."""
    try:
        with unrecorded():
            return {tensor.data_ptr() for _, tensor in parameters_of(module)} - {0}
    except Exception as error:  # an unusual module or tensor, or one under construction
        pass_on_signal(error)
        return set()


def _children(module: Module) -> Details:
    """Empty for a module under construction."""
    parts = attribute(module, "_modules")
    return {str(name): part for name, part in members_of(parts) if part is not None} if is_a(parts, dict) else {}
