"""What a call of a torch module goes through that is not inside of another one. Written for speed: a tiny training loop feels it."""

from __future__ import annotations

from _thread import get_ident
from typing import Any, Callable, Dict, List, Set

from benchprobe.models.torch_calls import TorchCalls
from benchprobe.models.torch_models import unwrap

Outermost = Callable[..., Any]


def quick(calls: TorchCalls, inside: Set[int], tensor_types: Any, gradients: Callable[[], bool]) -> Outermost:
    """For calls of nn.Module itself, where sub-modules do not count. Its last lines are those of nn.Module.__call__."""
    find, key_of, add, discard = calls.records.get, calls.key, inside.add, inside.discard

    def outermost(module: Any, args: Any, kwargs: Any) -> Any:
        record = find(id(module))
        if record is None or record.ref() is not module:
            record = calls.record(module)
        if record.ignored:
            if module._compiled_call_impl is not None:
                return module._compiled_call_impl(*args, **kwargs)
            return module._call_impl(*args, **kwargs)
        thread = get_ident()
        add(thread)
        try:
            if record.changes != calls.changes:
                calls.look_again(record)
            if kwargs or len(args) != 1 or type(args[0]) not in tensor_types:
                key = key_of(args, kwargs)
            else:
                key = (args[0].shape, args[0].dtype, args[0].layout)
            entry = record.entries.get(key)
            if entry is None:
                if calls.unknown(record, key, args, kwargs):
                    result = module._call_impl(*args, **kwargs)
                    calls.unknown(record, key, args, kwargs)
                    return result
            else:
                entry.calls += 1
                if gradients() and module.training:
                    entry.graded += 1
                    if entry.undecided > 0:
                        calls.await_backward(entry, record)
            if module._compiled_call_impl is not None:
                return module._compiled_call_impl(*args, **kwargs)
            return module._call_impl(*args, **kwargs)
        except BaseException as error:
            calls.failed(record, args, kwargs, error)
            raise
        finally:
            discard(thread)

    return outermost


def general(
    calls: TorchCalls, inside: Set[int], stacks: Dict[int, List[Any]], max_depth: int, original: Any
) -> Outermost:
    """For any depth and any function: `call` is what would have run without us, `via` the method that takes the inputs."""

    def outermost(module: Any, args: Any, kwargs: Any, call: Any = original, via: Any = None) -> Any:
        thread = get_ident()
        stack = stacks.setdefault(thread, [])
        if stack and unwrap(stack[-1]).module is module:
            return call(module, *args, **kwargs)
        inside.add(thread)
        try:
            again = calls.note(module, args, kwargs, via)
            if len(stack) < max_depth:
                inside.discard(thread)
            stack.append(module)
            try:
                result = call(module, *args, **kwargs)
            except BaseException as error:
                calls.failed(calls.records.get(id(module)), args, kwargs, error)
                raise
            finally:
                stack.pop()
            if again:
                calls.note(module, args, kwargs, via)
            return result
        finally:
            inside.discard(thread)

    return outermost
