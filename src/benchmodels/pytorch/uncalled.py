"""Torch modules that a script made and never called, with the likely reason."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Callable, Iterator, Optional, Set

from benchmodels.discover.model_entries import Uncalled
from benchmodels.discover.module_registry import Made, MadeModules
from benchmodels.hooks.looking import pass_on_signal
from benchmodels.identity.identity import structure_of
from benchmodels.pytorch import models as torch_models
from benchmodels.pytorch.module_parts import parts_of
from benchmodels.pytorch.quietly import quietly
from benchmodels.types import Details, Module

NOT_CALLED = "built but not called, or called only inside something that is not a model"
IN_COMPILED = " (calls inside a function compiled by torch.compile are not seen)"


class UncalledModules:
    """`has_entry`: whether a call of a module was seen."""

    def __init__(self, made: MadeModules, has_entry: Callable[[Any], bool]) -> None:
        self._made = made
        self._has_entry = has_entry

    def describe(self) -> None:
        """Describes uncalled modules now, since they may be gone at the end."""
        for made, module in self._made.uncalled_roots():
            try:
                with quietly():
                    if made.seen is None and _counts(module):
                        made.seen = described(module, made)
            except Exception as error:  # an unusual module, or one under construction
                pass_on_signal(error)

    def reported(self) -> Iterator[Uncalled]:
        """At the end of the script: each kind of model once."""
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
        reason = NOT_CALLED + (IN_COMPILED if any(counters.values()) else "")
        seen: Set[str] = set()
        for made, module in self._made.uncalled_roots():
            try:
                found = self._described(module, made, reason)
            except Exception as error:  # an unusual module, which was never called
                pass_on_signal(error)
                continue
            if found is not None and found.identity not in seen:
                seen.add(found.identity)
                yield found
        for made in list(self._made.gone):
            facts = made.seen or {}
            name = f"{facts.get('qualified')} {facts.get('made_at')} {facts.get('parameters')}"
            identity = hashlib.sha256(name.encode()).hexdigest()
            if identity not in seen:
                seen.add(identity)
                yield Uncalled(identity, facts, reason)

    def _described(self, module: Module, made: Made, reason: str) -> Optional[Uncalled]:
        with quietly():
            if not _counts(module):
                return None
            return Uncalled(structure_of(module), described(module, made), self._parts_reason(module) or reason)

    def _parts_reason(self, module: Module) -> Optional[str]:
        names = [name for name, part in parts_of(module) if name and self._has_entry(part)]
        return f"never called itself, only parts of it ({', '.join(names[:4])})" if names else None


def described(module: Module, made: Optional[Made]) -> Details:
    """Keys of the event for a module without a known call."""
    return {**torch_models.facts_of(module), "made_at": None if made is None else made.place}


def _counts(module: Module) -> bool:
    kind = type(module)
    if kind.__module__.startswith(("torch.fx", "torch._", "torch.jit")) or torch_models.is_wrapper(module):
        return False
    return torch_models.has_state(module) and not torch_models.is_loss(module) and not torch_models.is_lazy(module)
