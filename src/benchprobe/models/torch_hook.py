"""Sees calls of torch modules: the code of `nn.Module.__call__` is exchanged as soon as torch.nn is imported.

Only the outermost call counts (or those down to a depth); inside of it the hook stands aside, at the cost of one look
into a set. Functions of torch stay the objects they were, so whatever compares or compiles them works as before.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from _thread import get_ident
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Set

from benchprobe.models.found import Watcher
from benchprobe.models.frameworks import HookOptions, Uncalled
from benchprobe.models.imports import ImportWatch
from benchprobe.models.patches import Patches, code_in_place_of, with_code
from benchprobe.models.torch_calls import TorchCalls
from benchprobe.models.torch_outermost import general, quick

PREFIX = "_benchprobe_"
CALL = f"""\
def {{name}}(self, *args, **kwargs):
    if {PREFIX}thread() not in {PREFIX}inside: return {PREFIX}outermost(self, args, kwargs)
    if self._compiled_call_impl is not None:
        return self._compiled_call_impl(*args, **kwargs)
    return self._call_impl(*args, **kwargs)
"""
CALL_OF_ANOTHER_TORCH = f"""\
def {{name}}(self, *args, **kwargs):
    if {PREFIX}thread() not in {PREFIX}inside: return {PREFIX}outermost(self, args, kwargs)
    return {PREFIX}original(self, *args, **kwargs)
"""
LONGEST_WAIT_S = 1.0  # for a call that is being made when the interpreter ends
KNOWN_NAMES = ("_compiled_call_impl", "_call_impl")


class TorchHook:
    """The framework torch."""

    def __init__(self, watcher: Watcher, options: HookOptions) -> None:
        self._options = options
        self._patches = Patches()
        self._inside: Set[int] = set()  # threads that are inside of a model
        self._stacks: Dict[int, List[Any]] = {}  # what each thread is in, where sub-modules count, too
        self._calls = TorchCalls(watcher, options, self._stacks, self._called_by_forward)
        self._module: Any = None
        self._function: Any = None
        self._forwards: Set[Any] = set()
        self._held = False

    def install(self, imports: ImportWatch) -> None:
        imports.after("torch.nn.modules.module", self._hook_modules)
        if self._options.everything:
            imports.after("torch", self._hook_backward)
        # Dynamo must not compile what it finds of ours on the stack, nor look into our code as if it were torch's.
        imports.after("torch._dynamo.trace_rules", lambda rules: rules.add("benchprobe"))
        imports.after("torch._dynamo.convert_frame", self._stand_aside_in_dynamo)

    def uninstall(self) -> None:
        self._patches.undo()

    def lost(self) -> bool:
        if self._module is None:
            return False
        return vars(self._module).get("__call__") is not self._function or self._function.__code__ is not self._code

    def uncalled(self) -> Iterator[Uncalled]:
        return self._calls.uncalled() if self._module is not None else iter(())

    def hold_threads(self) -> None:
        if self._module is None:
            return
        names, name = self._function.__globals__, PREFIX + "outermost"
        outermost = names.get(name)

        def held(*call: Any) -> Any:
            while threading.current_thread().daemon:
                time.sleep(1)
            return outermost(*call)

        if outermost is not None and not self._held:
            names[name], self._held = held, True
        until = time.monotonic() + LONGEST_WAIT_S
        while self._inside - {get_ident()} and time.monotonic() < until:
            time.sleep(0.001)

    def _hook_modules(self, torch_module: ModuleType) -> None:
        self._module = module = torch_module.Module
        self._function = function = vars(module)["__call__"]
        if not isinstance(function, FunctionType) or function.__closure__:
            raise RuntimeError("this version of torch calls modules in a way that is not known; no model is found")
        self._original = original = with_code(function, function.__code__)
        known = function.__code__.co_names == KNOWN_NAMES
        self._code = code_in_place_of(
            function, (CALL if known else CALL_OF_ANOTHER_TORCH).format(name=function.__name__)
        )
        types = frozenset((sys.modules["torch"].Tensor, sys.modules["torch.nn.parameter"].Parameter))
        self._calls.begin(module, types)
        self._general = general(self._calls, self._inside, self._stacks, self._options.max_depth, original)
        outermost = self._general
        if known and not self._options.max_depth:
            outermost = quick(self._calls, self._inside, types, self._calls.gradients)
        added = {"thread": get_ident, "inside": self._inside, "outermost": outermost, "original": original}
        for name, value in added.items():
            self._patches.set_global(function.__globals__, PREFIX + name, value)
        self._patches.swap_code(function, self._code)
        self._hook_classes(module)
        self._hook_constructor(module)
        self._hook_conversions(module)

    def _stand_aside_in_dynamo(self, convert_frame: ModuleType) -> None:
        """While dynamo traces a frame, nn.Module.__call__ has its own code."""
        compile_frame = convert_frame._compile
        function, ours = self._function, self._code

        @functools.wraps(compile_frame)
        def _compile(*args: Any, **kwargs: Any) -> Any:
            if function.__code__ is not ours:
                return compile_frame(*args, **kwargs)
            function.__code__ = self._original.__code__
            try:
                return compile_frame(*args, **kwargs)
            finally:
                function.__code__ = ours

        self._patches.set_attribute(convert_frame, "_compile", _compile)

    def _hook_classes(self, module: Any) -> None:
        """A class that has its own `__call__` is hooked there, since it need not come to the one of nn.Module."""
        before = getattr(module.__init_subclass__, "__func__", None)  # of a torch that has one

        def __init_subclass__(cls: Any, /, **options: Any) -> None:
            if before is not None:
                before(cls, **options)
            else:
                super(module, cls).__init_subclass__(**options)
            self._hook_own_call(cls)

        for cls in _subclasses(module):
            self._hook_own_call(cls)
        self._patches.set_attribute(module, "__init_subclass__", classmethod(__init_subclass__))

    def _hook_own_call(self, cls: Any) -> None:
        owner = next(one for one in cls.__mro__ if "__call__" in vars(one))
        if owner is not cls and issubclass(owner, self._module):
            return  # nn.Module itself, or a class that is hooked already
        own = vars(owner)["__call__"]
        if isinstance(own, FunctionType) and not cls.__module__.startswith("torch."):
            self._patches.set_attribute(cls, "__call__", self._around(own))

    def _called_by_forward(self, cls: Any) -> None:
        """From now on a call of this class's `forward` counts as one of the model."""
        owner = next((one for one in cls.__mro__ if isinstance(vars(one).get("forward"), FunctionType)), None)
        if owner is not None and owner not in self._forwards:
            self._forwards.add(owner)
            self._patches.set_attribute(owner, "forward", self._around(vars(owner)["forward"]))

    def _around(self, own: FunctionType) -> Callable[..., Any]:
        inside, outermost = self._inside, self._general

        @functools.wraps(own)
        def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() in inside:
                return own(self, *args, **kwargs)
            return outermost(self, args, kwargs, own, own)

        return hooked

    def _hook_constructor(self, module: Any) -> None:
        original, calls, inside = module.__init__, self._calls, self._inside
        note = calls.made if self._options.everything else lambda made: None

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            note(self)
            if get_ident() not in inside:
                calls.changes += 1

        self._patches.set_attribute(module, "__init__", __init__)

    def _hook_conversions(self, module: Any) -> None:
        """What `half`, `to` and the like come to."""
        original, calls, inside = module._apply, self._calls, self._inside

        @functools.wraps(original)
        def _apply(self: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() not in inside:
                calls.changes += 1
            return original(self, *args, **kwargs)

        self._patches.set_attribute(module, "_apply", _apply)

    def _hook_backward(self, torch: ModuleType) -> None:
        original, pending, trained = torch.autograd.backward, self._calls.pending, self._calls.trained

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            if not pending:
                return original(*args, **kwargs)
            result = original(*args, **kwargs)
            trained()
            return result

        self._patches.set_attribute(torch.autograd, "backward", backward)


def _subclasses(cls: Any) -> Iterator[Any]:
    for one in cls.__subclasses__():
        yield one
        yield from _subclasses(one)
