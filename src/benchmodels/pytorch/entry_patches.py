"""Runs before and after each outermost call of a torch module, and records it.

Written for speed, since a tiny training loop feels it, and so that none of our frames is on the stack while the module runs:
`enter` is called before the module's own code; `failed` and `leave` after it, with the token that `enter` returned.
"""

from __future__ import annotations

from _thread import get_ident
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from benchmodels.discover.model_entries import ModelEntry
from benchmodels.hooks.import_watch import error_text
from benchmodels.measure.generation import GENERATE
from benchmodels.pytorch.calls import TorchCalls
from benchmodels.pytorch.models import unwrap
from benchmodels.types import Module

Token = Any  # a ModelEntry or _Uncounted; None: ignore the call


class EntryPatches(NamedTuple):
    """`enter(module, args, kwargs)`, then `failed(token, error)` and `leave(token)` unless the token is None."""

    enter: Callable[..., Token]
    failed: Callable[[Token, BaseException], None]
    leave: Callable[[Token], None]


class _Generating:
    """A call of `generate`; the calls of the model in it count by themselves."""

    __slots__ = ("entry",)

    def __init__(self, entry: Optional[ModelEntry]) -> None:
        self.entry = entry


class _Uncounted:
    """A call without an entry. `again`: the call to examine when it is over, since the module has no parameters yet."""

    __slots__ = ("again",)

    def __init__(self, again: Optional[Tuple[Any, ...]] = None) -> None:
        self.again = again


def _failed(token: Token, error: BaseException) -> None:
    entry = token.entry if type(token) is _Generating else token
    if type(entry) is ModelEntry:
        entry.failures += 1
        entry.failure = error_text(error)


def _leave_alone(calls: TorchCalls, module: Module, error: BaseException) -> None:
    """Keeps our own exceptions from the program; lets the program's and Ctrl-C pass."""
    if not isinstance(error, Exception):
        raise error
    try:
        calls.complain_of(module, error)
    except RecursionError:  # the stack is too deep to report it
        pass


def quick(
    calls: TorchCalls,
    inside: Set[int],
    tensor_types: Any,
    function_modes: Callable[[], bool],
    held: List[Callable[[], None]],
) -> EntryPatches:
    """For `nn.Module.__call__`, where sub-modules do not count."""
    find, key_of, add, discard = calls.records.get, calls.key, inside.add, inside.discard
    state_of, tracing, gradients, autocast = calls.state_of, calls.tracing, calls.gradients, calls.in_autocast

    def enter(module: Module, args: Any, kwargs: Any) -> Token:
        if held:
            held[0]()
        if tracing() is not None:  # even reading a shape would be traced
            return None
        thread = get_ident()
        try:
            record = find(id(module))
            if record is None or record.ref() is not module:
                record = calls.record(module)
            if record.ignored:
                if not record.internal:
                    return None
                add(thread)
                return _Uncounted()
            add(thread)
            if record.changes != calls.changes:
                calls.look_again(record)
            plain = not kwargs and len(args) == 1 and type(args[0]) in tensor_types
            if not plain or function_modes() or autocast():
                key = key_of(args, kwargs)
            else:
                tensor = args[0]
                key = None if tensor.is_nested else (tensor.shape, tensor.dtype, tensor.layout)
            entry = record.entries.get(key)
            if entry is None:
                again, entry = calls.unknown(record, key, args, kwargs)
                return _Uncounted((record, args, kwargs) if again else None) if entry is None else entry
            entry.calls += 1
            if gradients() and state_of(module).get("training"):
                entry.graded += 1
                if entry.undecided > 0:
                    calls.await_backward(entry, record)
            return entry
        except BaseException as error:
            discard(thread)
            _leave_alone(calls, module, error)
            return None

    def leave(token: Token) -> None:
        discard(get_ident())
        if type(token) is _Uncounted and token.again is not None:
            record, args, kwargs = token.again
            calls.unknown(record, key_of(args, kwargs), args, kwargs)

    return EntryPatches(enter, _failed, leave)


def general(
    calls: TorchCalls,
    inside: Set[int],
    stacks: Dict[int, List[Any]],
    depth: int,
    held: List[Callable[[], None]],
) -> EntryPatches:
    """For any depth and any method; `via` names the method that takes the inputs."""
    generating: Set[int] = set()  # threads inside `generate`

    def enter(module: Module, args: Any, kwargs: Any, via: Optional[str] = None) -> Token:
        thread = get_ident()
        if thread in inside or calls.tracing() is not None:
            return None
        if via == GENERATE:
            if thread in generating or stacks.get(thread) or not calls.is_module(module):
                return None
            token = _begun(calls, inside, module, args, kwargs)
            if token is not None:
                generating.add(thread)
            return token
        if held:
            held[0]()
        try:
            stack = stacks.setdefault(thread, [])
            if not calls.is_module(module) or (stack and unwrap(stack[-1]).module is module):
                return None
            inside.add(thread)
            again, entry = calls.note(module, args, kwargs, via)
            if len(stack) < depth:
                inside.discard(thread)
            stack.append(module)
            return entry if entry is not None else _Uncounted((module, args, kwargs, via) if again else None)
        except BaseException as error:
            inside.discard(thread)
            _leave_alone(calls, module, error)
            return None

    def leave(token: Token) -> None:
        thread = get_ident()
        if type(token) is _Generating:
            generating.discard(thread)
            return
        stacks[thread].pop()
        try:
            if type(token) is _Uncounted and token.again is not None:
                inside.add(thread)
                calls.note(*token.again)
        finally:
            inside.discard(thread)

    return EntryPatches(enter, _failed, leave)


def _begun(calls: TorchCalls, inside: Set[int], module: Module, args: Any, kwargs: Any) -> Optional[_Generating]:
    """The token of a generation. To count its arithmetic calls the model, and these calls are not the program's."""
    thread = get_ident()
    inside.add(thread)
    try:
        return _Generating(calls.note_generation(module, args, kwargs))
    except BaseException as error:
        _leave_alone(calls, module, error)
        return None
    finally:
        inside.discard(thread)


# The program's own functions get the next three as constants. Such a function may be pickled with its code, as cloudpickle
# does, and unpickled in a process without a hook, where these do nothing.
installed: List[EntryPatches] = []


def enter(module: Module, args: Any, kwargs: Any, via: str) -> Token:
    return installed[-1].enter(module, args, kwargs, via) if installed else None


def failed(token: Token, error: BaseException) -> None:
    if installed:
        installed[-1].failed(token, error)


def leave(token: Token) -> None:
    if installed:
        installed[-1].leave(token)
