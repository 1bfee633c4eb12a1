"""What happens before and after a call of a torch module that is not inside of another one: it is noted.

Written for speed, since a tiny training loop feels it, and so that nothing of ours is on the stack while the module runs:
`enter` is called before the module's own code, and what it returned is given to `failed` and `leave` after it.
"""

from __future__ import annotations

from _thread import get_ident
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from benchmodels.discover.model_entries import ModelEntry
from benchmodels.hooks.looking import error_text
from benchmodels.pytorch.calls import TorchCalls
from benchmodels.pytorch.models import unwrap
from benchmodels.types import Module

Token = Any  # None: the call does not count. An Entry, or an _Uncounted


class Doors(NamedTuple):
    """`enter(module, args, kwargs)`, `failed(token, error)`, `leave(token)`; the last two for a token that is not None."""

    enter: Callable[..., Token]
    failed: Callable[[Token, BaseException], None]
    leave: Callable[[Token], None]


class _Uncounted:
    """A call without an entry. `again`: what to look at when it is over, since the module has no parameters yet."""

    __slots__ = ("again",)

    def __init__(self, again: Optional[Tuple[Any, ...]] = None) -> None:
        self.again = again


def _failed(token: Token, error: BaseException) -> None:
    if type(token) is ModelEntry:
        token.failures += 1
        token.failure = error_text(error)


def _leave_alone(calls: TorchCalls, module: Module, error: BaseException) -> None:
    """What was raised while a call was looked at must not reach the program, unless it is the program's own, or control-C."""
    if not isinstance(error, Exception):
        raise error
    try:
        calls.complain_of(module, error)
    except RecursionError:  # no room left on the stack to say so
        pass


def quick(
    calls: TorchCalls,
    inside: Set[int],
    tensor_types: Any,
    gradients: Callable[[], bool],
    function_modes: Callable[[], bool],
    held: List[Callable[[], None]],
) -> Doors:
    """For calls of nn.Module itself, where sub-modules do not count."""
    find, key_of, add, discard = calls.records.get, calls.key, inside.add, inside.discard
    state_of, tracing = calls.state_of, calls.tracing

    def enter(module: Module, args: Any, kwargs: Any) -> Token:
        if held:
            held[0]()
        if tracing() is not None:  # even a look at a shape would be part of what is traced
            return None
        thread = get_ident()
        try:
            record = find(id(module))
            if record is None or record.ref() is not module:
                record = calls.record(module)
            if record.ignored:
                return None
            add(thread)
            if record.changes != calls.changes:
                calls.look_again(record)
            if kwargs or len(args) != 1 or type(args[0]) not in tensor_types or function_modes():
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

    return Doors(enter, _failed, leave)


def general(
    calls: TorchCalls,
    inside: Set[int],
    stacks: Dict[int, List[Any]],
    max_depth: int,
    held: List[Callable[[], None]],
) -> Doors:
    """For any depth and any method: `via` is the name of the one that takes the inputs."""

    def enter(module: Module, args: Any, kwargs: Any, via: Optional[str] = None) -> Token:
        thread = get_ident()
        if thread in inside or calls.tracing() is not None:
            return None
        if held:
            held[0]()
        try:
            stack = stacks.setdefault(thread, [])
            if not calls.is_module(module) or (stack and unwrap(stack[-1]).module is module):
                return None
            inside.add(thread)
            again, entry = calls.note(module, args, kwargs, via)
            if len(stack) < max_depth:
                inside.discard(thread)
            stack.append(module)
            return entry if entry is not None else _Uncounted((module, args, kwargs, via) if again else None)
        except BaseException as error:
            inside.discard(thread)
            _leave_alone(calls, module, error)
            return None

    def leave(token: Token) -> None:
        thread = get_ident()
        stacks[thread].pop()
        try:
            if type(token) is _Uncounted and token.again is not None:
                inside.add(thread)
                calls.note(*token.again)
        finally:
            inside.discard(thread)

    return Doors(enter, _failed, leave)
