"""What a module keeps from one call to the next: buffers, and tensors and numbers among its attributes."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

from benchmodels.arrays import is_tensor

NUMBERS = (bool, int, float, complex, str, type(None))
OF_TORCH = ("_parameters", "_modules", "_buffers")
MAX_PARTS = 1000  # of one list or dictionary

Mark = Tuple[Any, Any]  # a value and, of a tensor, how often it was written to


class ModuleState:
    """As it was when this was made. Nothing is copied: a tensor counts its writes."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._before = _marks(module)

    def changed(self) -> Optional[str]:
        """The name of what has changed since; None: nothing that could be seen."""
        after = _marks(self._module)
        names = [*after, *(name for name in self._before if name not in after)]
        return next((name for name in names if not _same(self._before.get(name), after.get(name))), None)


def _marks(module: Any) -> Dict[str, Mark]:
    try:
        parts = list(module.named_modules())
        return {name: (value, _writes(value)) for path, part in parts for name, value in _kept(path, part)}
    except Exception:  # a module of its own sort; it is then taken to keep nothing
        return {}


def _kept(path: str, part: Any) -> Iterator[Tuple[str, Any]]:
    own = {name: value for name, value in vars(part).items() if name not in OF_TORCH}
    for name, value in [*dict(part._buffers).items(), *own.items()]:
        place = f"{path}.{name}" if path else name
        if isinstance(value, (list, tuple)):
            inside = list(enumerate(value[:MAX_PARTS]))
        elif type(value) is dict:
            inside = list(value.items())[:MAX_PARTS]
        else:
            inside = []
            if is_tensor(value) or isinstance(value, NUMBERS):
                yield place, value
        for key, one in inside:
            if is_tensor(one) or isinstance(one, NUMBERS):
                yield f"{place}.{key}", one


def _writes(value: Any) -> Any:
    try:
        return value._version if is_tensor(value) else None
    except RuntimeError:  # made in inference mode, where nobody counts
        return None


def _same(before: Optional[Mark], after: Optional[Mark]) -> bool:
    if before is None or after is None:
        return before is after
    if is_tensor(before[0]) or is_tensor(after[0]):
        return before[0] is after[0] and before[1] == after[1]
    return type(before[0]) is type(after[0]) and bool(before[0] == after[0] or before[0] is after[0])
