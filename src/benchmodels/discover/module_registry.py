"""The modules that a program made: where, inside which others, and which were never called. Keeps none of them alive."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from benchmodels.discover.callers import place_of_call
from benchmodels.hooks.looking import attribute, is_a, members_of
from benchmodels.types import Details, Module

MAX_MADE = 200_000


@dataclass(eq=False)
class Made:
    """One module: where it was made, and what was seen of it since."""

    ref: Any
    place: Optional[Details]
    called: bool = False
    seen: Optional[Details] = None  # its description, taken while it was alive and not part of another module


class Parent(NamedTuple):
    """The outermost module that contains another one, and the path from it."""

    module: Module
    path: str


class MadeModules:
    """`script`: the file whose lines are reported. `is_wrapper`: such as a compiled model, which is nobody's parent."""

    def __init__(self, script: str, is_wrapper: Callable[[Any], bool]) -> None:
        self._script = script
        self._is_wrapper = is_wrapper
        self._made: Dict[int, Made] = {}
        self.gone: List[Made] = []  # described, never called, and garbage-collected since

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
            self.gone.append(made)

    def mark_called(self, module: Module) -> None:
        made = self.find(module)
        if made is not None:
            made.called = True

    def find(self, module: Module) -> Optional[Made]:
        made = self._made.get(id(module))
        return made if made is not None and made.ref() is module else None

    def _alive(self) -> List[Tuple[Made, Any]]:
        pairs = [(made, made.ref()) for made in list(self._made.values())]
        return [(made, module) for made, module in pairs if module is not None]

    def uncalled_roots(self) -> List[Tuple[Made, Any]]:
        """Modules that were never called and are not part of another one."""
        alive = self._alive()
        parts = {id(part) for _, module in alive for part in _children(module).values()}
        return [(made, module) for made, module in alive if not made.called and id(module) not in parts]

    def parent(self, module: Module) -> Optional[Parent]:
        """The outermost living module that contains it; None if there is none."""
        above: Dict[int, Tuple[Any, str]] = {}
        for _, holder in self._alive():
            if self._is_wrapper(holder):
                continue
            for name, part in _children(holder).items():
                above.setdefault(id(part), (holder, name))
        names: List[str] = []
        seen: Set[int] = set()
        top = module
        while id(top) in above and id(top) not in seen:
            seen.add(id(top))
            top, name = above[id(top)]
            names.insert(0, name)
        return Parent(top, ".".join(names)) if names else None


def _children(module: Module) -> Details:
    parts = attribute(module, "_modules")
    return {str(name): part for name, part in members_of(parts) if part is not None} if is_a(parts, dict) else {}
