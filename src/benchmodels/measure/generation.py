"""Whole generations: a call of a model's `generate`, from the prompt to its last token, as one thing to measure."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from importlib import import_module
from time import perf_counter_ns
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.reports import Reports
from benchmodels.runtimes.base import Unsupported
from benchmodels.types import Details, Module, Tensor, Value

GENERATE = "generate"
MOST_TIMES = 20_000  # between tokens, that are kept of a loop
ONLY_IN_TORCH = "a generation is a loop in Python, which no file can hold; measure it with --runtime torch-eager"
PROMPTS = ("input_ids", "inputs", "idx")  # arguments that the sequences begin with, unless the model has an encoder


class TimedCall(NamedTuple):
    """One generation: seconds to the end of the model's first call, seconds in all, new tokens of all its sequences, of the
    longest of them, and the seconds between its tokens, where each call of the model gives one."""

    first_s: Optional[float]
    whole_s: float
    tokens: Optional[int]
    longest: Optional[int]
    between_s: Optional[List[float]]


def whole_generation(module: Module) -> Module:
    """A module whose call is `module.generate`, and which times its calls."""
    base: Any = import_module("torch").nn.Module

    class WholeGeneration(base):  # type: ignore[misc]
        def __init__(self, generator: Module) -> None:
            super().__init__()
            self.generator = generator
            self.timed_calls: List[TimedCall] = []
            self.kept_times = 0
            self.train(any(part.training for part in generator.modules()))

        def forward(self, *args: Value, **kwargs: Value) -> Value:
            clock = _GenerationClock(self.generator)
            result = self.generator.generate(*args, **kwargs)
            clock.end()
            sequences = getattr(result, "sequences", result)
            new = new_tokens(self.generator, sequences, args, kwargs)
            between = clock.between_s() if clock.calls == new[1] and self.kept_times < MOST_TIMES else None
            self.kept_times += len(between or ())
            self.timed_calls.append(TimedCall(clock.first_s, clock.whole_s, *new, between))
            return sequences

    return WholeGeneration(module)


class _GenerationClock:
    """Notes when the model's first call ends (the prompt has been read, the first token is known) and when each call begins.

    The loop has read a token before it calls the model for the next: no waiting for the device is added between them.
    """

    def __init__(self, module: Module) -> None:
        self._wait = _wait_for(module)
        self.first_s: Optional[float] = None
        self.whole_s = 0.0
        self._begins_ns: List[int] = []
        self._hook = module.register_forward_hook(self._note)
        self._each = module.register_forward_pre_hook(lambda *_: self._begins_ns.append(perf_counter_ns()))
        self._began_ns = perf_counter_ns()

    @property
    def calls(self) -> int:
        return len(self._begins_ns)

    def between_s(self) -> List[float]:
        """From each token to the next, the last one's end of the generation included."""
        ends_ns = [*self._begins_ns[2:], self._began_ns + round(self.whole_s * 1e9)]
        return [(end - begin) / 1e9 for begin, end in zip(self._begins_ns[1:], ends_ns)]

    def _note(self, *_: Value) -> None:
        self._hook.remove()
        self._wait()
        self.first_s = (perf_counter_ns() - self._began_ns) / 1e9

    def end(self) -> None:
        self._wait()
        self.whole_s = (perf_counter_ns() - self._began_ns) / 1e9
        self._hook.remove()
        self._each.remove()


def _wait_for(module: Module) -> Callable[[], Any]:
    """Waits until its device has done everything."""
    torch = sys.modules["torch"]
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    found: Callable[[], Any] = (
        getattr(torch, device.type).synchronize if device.type in ("cuda", "xpu", "mps") else lambda: None
    )
    return found


def new_tokens(
    module: Module, sequences: Value, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Tuple[Optional[int], Optional[int]]:
    """Of all sequences together, and of the longest; None if what was returned is no sequences of tokens.

    A sequence ends with its end-of-sequence token; what follows is padding.
    """
    torch = sys.modules["torch"]
    if not isinstance(sequences, torch.Tensor) or sequences.dim() not in (1, 2) or sequences.is_floating_point():
        return None, None
    rows = sequences if sequences.dim() == 2 else sequences[None]
    new = rows[:, _prompt_length(module, rows, args, kwargs) :]
    if new.shape[0] == 1 or not new.shape[1]:  # a single one ends where the tensor ends
        return int(new.numel()), int(new.shape[1])
    ends = _end_tokens(module, kwargs)
    if not ends:
        return int(new.numel()), int(new.shape[1])
    ended = torch.isin(new, torch.tensor(ends, device=new.device, dtype=new.dtype))
    before = (ended.cumsum(1) - ended.long()) == 0  # up to the first end, and that
    counts = before.sum(1)
    return int(counts.sum()), int(counts.max())


def _prompt_length(module: Module, rows: Tensor, args: Sequence[Value], kwargs: Mapping[str, Value]) -> int:
    torch = sys.modules["torch"]
    config = getattr(module, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        start = kwargs.get("decoder_input_ids")
        return int(start.shape[1]) if isinstance(start, torch.Tensor) else 1  # the token it starts with
    for prompt in (*(kwargs[name] for name in PROMPTS if name in kwargs), *args[:1]):
        if isinstance(prompt, torch.Tensor) and prompt.dim() == 2 and not prompt.is_floating_point():
            length = int(prompt.shape[1])
            if length <= rows.shape[1] and torch.equal(rows[:1, :length], prompt[:1].to(rows.device)):
                return length
    return 0  # such as embeddings, which the sequences do not repeat


def _end_tokens(module: Module, kwargs: Mapping[str, Value]) -> List[int]:
    places = (
        kwargs.get("generation_config"),
        getattr(module, "generation_config", None),
        getattr(module, "config", None),
    )
    for found in (kwargs.get("eos_token_id"), *(getattr(place, "eos_token_id", None) for place in places)):
        if found is not None:
            return [int(each) for each in (found if isinstance(found, (list, tuple)) else [found])]
    return []


def with_results_read(module: Module) -> Module:
    """A module whose call reads all that the `forward` of this one yields; itself, if that is no generator."""
    if not inspect.isgeneratorfunction(getattr(module, "forward", None)):
        return module
    base: Any = import_module("torch").nn.Module

    class ReadThrough(base):  # type: ignore[misc]
        def __init__(self, generator: Module) -> None:
            super().__init__()
            self.generator = generator
            self.train(any(part.training for part in generator.modules()))

        def forward(self, *args: Value, **kwargs: Value) -> Value:
            return list(self.generator(*args, **kwargs))

    return ReadThrough(module)


def refuse_unread(result: Value) -> None:
    """Unsupported if a call returned before it had computed anything."""
    if isinstance(result, (Awaitable, AsyncIterator, Iterator)):
        close = getattr(result, "close", None)
        if close is not None:
            close()  # or Python warns that it was never awaited
        text = f"a call returns a {type(result).__name__}, which computes when it is read; return a list or tensors"
        raise Unsupported("run", text)


def timed_calls(session: Any) -> Optional[List[TimedCall]]:
    """Calls of a generating session so far; None if the session does not generate."""
    found: Optional[List[TimedCall]] = getattr(getattr(session, "call", None), "timed_calls", None)
    return found


def is_generation(module: Module) -> bool:
    return hasattr(module, "timed_calls")


def tell_generations(reports: Reports, calls: Sequence[TimedCall]) -> None:
    """The calls of the loop, its warm-up too: readers know where that ends."""
    columns: Details = {name: [getattr(call, name) for call in calls] for name in TimedCall._fields}
    reports.event("generations", **columns)
