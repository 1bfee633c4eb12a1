"""Runs actions as soon as a script has imported a module, without importing it itself; above all, seeds random numbers."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence

from benchmodels.hooks.import_watch import pass_on_signal


def seed_on_import(imports: ImportWatch, seed: Optional[int]) -> None:
    """Does nothing for None. A script's own seeding comes later and takes precedence."""
    if seed is None:
        return
    imports.after("random", lambda random: random.seed(seed))
    imports.after("numpy.random", lambda random: random.seed(seed % (1 << 32)))
    imports.after("torch", lambda torch: torch.manual_seed(seed))


Action = Callable[[ModuleType], object]


class ImportWatch:
    """The first import finder. It delegates to the others, and wraps the loaders of the modules it waits for."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._waiting: Dict[str, List[Action]] = {}
        self._complain = complain

    def after(self, name: str, action: Action) -> None:
        """Calls `action` with the module `name` right after its execution; now, if it is already imported."""
        module = sys.modules.get(name)
        if module is not None:
            self._do(name, [action], module)
            return
        self._waiting.setdefault(name, []).append(action)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def stop(self) -> None:
        """Stops waiting for modules."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Optional[ModuleSpec]:
        if name not in self._waiting:
            return None
        for finder in list(sys.meta_path[sys.meta_path.index(self) + 1 :]):
            find = getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(name, path, target) if find is not None else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _WatchedLoader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def executed(self, module: ModuleType) -> None:
        self._do(module.__name__, self._waiting.pop(module.__name__, []), module)

    def _do(self, name: str, actions: List[Action], module: ModuleType) -> None:
        for action in actions:
            try:
                action(module)
            except Exception as error:  # the program must go on
                pass_on_signal(error)
                self._complain(f"{name}: {type(error).__name__}: {error}")


class _WatchedLoader:
    """Loads with the module's own loader, restores that, and reports to the watch."""

    def __init__(self, loader: Any, watch: ImportWatch) -> None:
        self._loader = loader
        self._watch = watch

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        made: Optional[ModuleType] = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._watch.executed(module)
