"""Values that `give` accepts: numbers, texts, and tensors with one number, without waiting for a device.

A tensor on a device is kept as a reference and read at the loop's next synchronisation. If it was changed in place since, it
is not recorded.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

Complain = Callable[[str, str], None]  # the name given, and what is wrong with its value

PLAIN = frozenset({float, int, bool, str, type(None)})
LARGEST = 1 << 63  # whole numbers of the stream fit 64 bits, so that every reader of JSON can read them


class Unusable(Exception):
    """The value cannot be recorded; the text says why."""


class Deferred:
    """One number on a device, to be read later."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Any, version: Optional[int]) -> None:
        self.tensor = tensor
        self.version = version  # None: it cannot change

    @property
    def changed(self) -> bool:
        return self.version is not None and bool(self.tensor._version != self.version)


def accept(values: Dict[str, Any], complain: Complain) -> Tuple[Dict[str, Any], bool]:
    """`values` with every tensor replaced by its number or a Deferred, and whether there is a Deferred.

    Leaves out, with a complaint, what JSON in UTF-8 cannot hold: numbers too large, lone surrogates.
    """
    accepted: Dict[str, Any] = {}
    deferred = False
    for name, value in values.items():
        kind = type(value)
        if (kind is float or (kind is int and -LARGEST <= value < LARGEST)) and name.isascii():  # nearly always
            accepted[name] = value
            continue
        try:
            _check_text(name)
            taken = _plain(value) if kind in PLAIN else _take(value)
        except Exception as error:
            text = str(error) if isinstance(error, Unusable) else f"{type(error).__name__}: {error}"
            complain(whole_characters(name), whole_characters(text))
            continue
        deferred = deferred or type(taken) is Deferred
        accepted[name] = taken
    return accepted, deferred


def settle(waiting: Iterable[Dict[str, Any]], complain: Complain) -> None:
    """Replaces every Deferred by its number. Waits for the device: not called during timed steps."""
    groups: Dict[Any, List[Tuple[Dict[str, Any], str]]] = {}
    for values in waiting:
        for name, value in list(values.items()):
            if type(value) is not Deferred:
                continue
            if value.changed:
                del values[name]
                complain(name, "the tensor was changed in place before it was read; give a copy: .clone()")
            else:
                tensor = value.tensor
                kind = (getattr(tensor, "device", None), getattr(tensor, "dtype", None))
                groups.setdefault(kind, []).append((values, name))
    for group in groups.values():
        try:
            numbers = _read([values[name].tensor for values, name in group])
        except Exception as error:
            numbers = [None] * len(group)
            complain(group[0][1], f"{type(error).__name__}: {error}")
        for (values, name), number in zip(group, numbers):
            values[name] = number


def _take(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _take_tensor(value)
    if hasattr(value, "item"):
        if getattr(value, "size", 1) != 1:
            raise Unusable("it holds more than one number; give its mean or sum")
        if type(value).__module__.partition(".")[0] == "numpy":
            return _plain(value.item())
        return Deferred(value, None)  # an array of another framework: reading it could wait for a device
    if isinstance(value, (bool, str)):
        return _plain(bool(value) if isinstance(value, bool) else str(value))
    if hasattr(value, "__float__") or hasattr(value, "__index__"):
        return _plain(int(value) if isinstance(value, int) else float(value))
    raise Unusable(f"a {type(value).__name__} is not a number")


def _take_tensor(tensor: Any) -> Any:
    if tensor.numel() != 1:
        raise Unusable(f"a tensor of {tensor.numel()} numbers; give its mean or sum")
    if tensor.device.type == "cpu":
        return _plain(tensor.item())
    kept = tensor.detach()
    if kept.is_inference():  # such tensors do not count their changes
        return Deferred(kept.clone(), None)
    return Deferred(kept, kept._version)


def _plain(value: Any) -> Any:
    """The value in a form the stream can hold."""
    kind = type(value)
    if kind not in PLAIN:
        raise Unusable(f"a {kind.__name__} is not a number")
    if kind is str:
        _check_text(value)
    elif kind is int and not -LARGEST <= value < LARGEST:
        try:
            return float(value)
        except OverflowError:
            raise Unusable("the number is too large: nothing above 1.8e308 can be kept") from None
    return value


def _check_text(text: str) -> None:
    if not text.isascii() and whole_characters(text) != text:
        raise Unusable("the text is not valid Unicode: it contains a lone surrogate")


def whole_characters(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, replaced."""
    return text.encode("utf-8", "replace").decode()


def _read(tensors: List[Any]) -> List[Any]:
    """The numbers in tensors of one device and type, with one transfer if the framework can."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensors[0], torch.Tensor):
        return [_plain(tensor.item()) for tensor in tensors]
    with torch.no_grad():
        numbers: List[Any] = (
            torch.stack([tensor if tensor.dim() == 0 else tensor.reshape(()) for tensor in tensors]).cpu().tolist()
        )
    return [_plain(number) for number in numbers]
