"""Sees calls of torch modules: swaps the code of `nn.Module.__call__` as soon as torch.nn is imported.

Only the outermost call counts (or those down to a depth); inside it the hook costs one set lookup per call. Torch's
functions remain the same objects and run in their usual frames, so code that compares, compiles or traces them, or
inspects the stack, works as before.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from _thread import get_ident
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from benchmodels.discover.model_entries import HookOptions, Uncalled, Watcher
from benchmodels.hooks.bytecode_patch import Patches, arguments_text, woven
from benchmodels.hooks.import_watch import class_attribute, pass_on_signal
from benchmodels.hooks.imports import ImportWatch
from benchmodels.measure.generation import GENERATE
from benchmodels.pytorch import entry_patches
from benchmodels.pytorch.calls import TorchCalls
from benchmodels.pytorch.entry_patches import EntryPatches
from benchmodels.types import Module

LONGEST_WAIT_S = 1.0  # for a call in progress when the interpreter ends
TRACED = "skipped calls made under sys.settrace: the trace function would have seen the hook"
AROUND = """
_benchprobe_enter = GIVEN.enter
_benchprobe_call = _benchprobe_enter(ARGUMENTS)
try:
    BODY
except BaseException as _benchprobe_error:
    if _benchprobe_call is not None:
        _benchprobe_failed = GIVEN.failed
        _benchprobe_failed(_benchprobe_call, _benchprobe_error)
    raise
finally:
    if _benchprobe_call is not None:
        _benchprobe_leave = GIVEN.leave
        _benchprobe_leave(_benchprobe_call)
"""
# A trace function written in Python would see our frames: skip the call, and report that at the end.
AROUND_CALL = f"""
_benchprobe_thread = GIVEN.thread
_benchprobe_inside = GIVEN.inside
if _benchprobe_inside(_benchprobe_thread()):
    BODY
    return
_benchprobe_trace = GIVEN.gettrace
_benchprobe_type = GIVEN.type
if _benchprobe_type(_benchprobe_trace()) in GIVEN.tracers:
    _benchprobe_traced = GIVEN.traced
    _benchprobe_traced(1)
    BODY
    return
{AROUND.replace("ARGUMENTS", "self, args, kwargs")}
"""
AFTER = """
_benchprobe_type = GIVEN.type
_benchprobe_trace = GIVEN.gettrace
try:
    BODY
finally:
    if _benchprobe_type(_benchprobe_trace()) not in GIVEN.tracers:
        _benchprobe_note = GIVEN.note
        _benchprobe_note(ARGUMENT)
"""


class TorchHook:
    """Reports models to a Watcher. Never imports torch: waits until the script does."""

    def __init__(self, watcher: Watcher, options: HookOptions) -> None:
        self._options = options
        self._patches = Patches()
        self._inside: Set[int] = set()  # threads inside a model
        self._stacks: Dict[int, List[Any]] = {}  # the modules each thread is in, where sub-modules count
        self._calls = TorchCalls(watcher, options, self._stacks, self._called_by_forward)
        self._module: Any = None
        self._call: Any = None
        self._hooked: Set[Any] = set()  # the program's own functions
        self._exchanged: List[Tuple[FunctionType, CodeType, CodeType]] = []  # with the code before and now
        self._held: List[Callable[[], None]] = []
        self._traced: Set[int] = set()
        self._own_doors: Optional[EntryPatches] = None

    def install(self, imports: ImportWatch) -> None:
        """Watches calls of modules from torch's import on."""
        imports.after("torch.nn.modules.module", self._hook_modules)
        if self._options.everything:
            imports.after("torch", self._hook_backward)
        imports.after("torch._dynamo.trace_rules", self._keep_dynamo_out)
        imports.after("torch._dynamo.convert_frame", self._stand_aside_in_dynamo)

    def uninstall(self) -> None:
        """Leaves torch as the script left it."""
        if self._own_doors in entry_patches.installed:
            entry_patches.installed.remove(self._own_doors)
        self._patches.undo()

    def lost(self) -> bool:
        """Whether the script has replaced our hook, so that models may have been missed."""
        if self._module is None:
            return False
        call = vars(self._module).get("__call__")
        return call is not self._call or call.__code__ is not self._call_code

    def uncalled(self) -> Iterator[Uncalled]:
        """At the end of the script: models without a usable call."""
        if self._traced:
            self._options.complain(TRACED)
        return self._calls.uncalled() if self._module is not None else iter(())

    def hold_threads(self) -> None:
        """Before the interpreter ends: blocks daemon threads at their next call, since one that is stopped inside torch
        takes the process with it."""
        if self._module is None:
            return

        def hold() -> None:
            while threading.current_thread().daemon:
                time.sleep(1)

        if not self._held:
            self._held.append(hold)
        until = time.monotonic() + LONGEST_WAIT_S
        while self._inside - {get_ident()} and time.monotonic() < until:
            time.sleep(0.001)

    def _hook_modules(self, torch_module: ModuleType) -> None:
        self._module = module = torch_module.Module
        tensor, parameter = sys.modules["torch"].Tensor, sys.modules["torch.nn.parameter"].Parameter
        types = frozenset((tensor, parameter))
        self._calls.begin(module, types)
        doors = entry_patches.general(self._calls, self._inside, self._stacks, self._options.depth, self._held)
        self._own_doors = doors
        entry_patches.installed.append(doors)
        if not self._options.depth:
            modes = getattr(sys.modules["torch"]._C, "_is_torch_function_mode_enabled", lambda: True)
            doors = entry_patches.quick(self._calls, self._inside, types, modes, self._held)
        self._hook_call(module, doors)
        self._hook_classes(module)
        note = self._calls.made if self._options.everything else None
        self._put_after(module, "__init__", "self", functools.partial(_made, note, self._calls, self._inside))
        # `half`, `to` and the like all call this.
        self._put_after(module, "_apply", "self", functools.partial(_made, None, self._calls, self._inside))

    def _hook_call(self, module: Module, doors: EntryPatches) -> None:
        function = vars(module)["__call__"]
        if not isinstance(function, FunctionType) or function.__closure__:
            raise RuntimeError("this version of torch calls modules in an unknown way; no models can be found")
        # Constants of a code object must be hashable: methods of the sets, not the sets.
        inside, traced = self._inside.__contains__, self._traced.add
        given = {"thread": get_ident, "inside": inside, "traced": traced, **doors._asdict()}
        if not self._weave(function, AROUND_CALL, given):
            function = _wrapper(function, doors)
            self._patches.set_attribute(module, "__call__", function)
        self._call, self._call_code = function, function.__code__

    def _weave(self, function: FunctionType, around: str, given: Dict[str, Any]) -> bool:
        tracing = {"gettrace": sys.gettrace, "type": type, "tracers": (FunctionType, MethodType)}
        before = function.__code__
        code = woven(function, around, {**tracing, **given})
        if code is None:
            return False
        self._patches.swap_code(function, code)
        self._exchanged.append((function, before, code))
        return True

    def _put_after(self, owner: Any, name: str, argument: str, note: Callable[[Any], None]) -> None:
        """Calls `note` with the function's first argument when the function has ended."""
        original = vars(owner)[name]
        if isinstance(original, FunctionType) and self._weave(
            original, AFTER.replace("ARGUMENT", argument), {"note": note}
        ):
            return

        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            finally:
                note(args[0] if args else None)

        self._patches.set_attribute(owner, name, noted)

    def _keep_dynamo_out(self, rules: ModuleType) -> None:
        """Dynamo must neither compile our frames nor inline our functions, as long as the hook calls them: models that are
        exported later are parts of modules of ours, which it must trace."""
        folders = getattr(rules, "SKIP_DIRS", [])
        before = [*folders]
        for name in ("benchprobe", "benchmodels"):
            rules.add(name)
        ours = [folder for folder in folders if folder not in before]

        def undo() -> None:
            folders[:] = [folder for folder in folders if folder not in ours]
            for name in ("_recompile_re", "clear_lru_cache"):
                getattr(rules, name, lambda: None)()

        self._patches.when_undone(undo)

    def _stand_aside_in_dynamo(self, convert_frame: ModuleType) -> None:
        """Gives every function its original code while dynamo traces a frame."""
        compile_frame = convert_frame._compile

        @functools.wraps(compile_frame)
        def _compile(*args: Any, **kwargs: Any) -> Any:
            ours = [each for each in self._exchanged if each[0].__code__ is each[2]]
            for function, own, _ in ours:
                function.__code__ = own
            try:
                return compile_frame(*args, **kwargs)
            finally:
                for function, _, code in ours:
                    function.__code__ = code

        self._patches.set_attribute(convert_frame, "_compile", _compile)

    def _hook_classes(self, module: Module) -> None:
        """Hooks classes at their own `__call__`, which need not call that of nn.Module, and at `generate`."""
        before = getattr(module.__init_subclass__, "__func__", None)  # if this torch has one

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
        try:
            own = class_attribute(cls, "__call__")
            torchs = cls.__module__.startswith("torch.")
            if own is not self._call and isinstance(own, FunctionType) and not torchs:
                self._hook_method(cls, own, "__call__")
            generate = class_attribute(cls, GENERATE)
            if isinstance(generate, FunctionType) and not torchs:
                self._hook_method(cls, generate, GENERATE)
        except Exception as error:  # the program must go on undisturbed
            pass_on_signal(error)
            self._options.complain(f"calls of {cls.__name__} may be missing: {type(error).__name__}: {error}")

    def _called_by_forward(self, cls: Any) -> None:
        """From now on a call of this class's `forward` counts as a call of the model."""
        own = class_attribute(cls, "forward")
        if isinstance(own, FunctionType):
            self._hook_method(cls, own, "forward")

    def _hook_method(self, cls: Any, own: FunctionType, name: str) -> None:
        if own in self._hooked:
            return
        arguments = arguments_text(own)
        doors = EntryPatches(entry_patches.enter, entry_patches.failed, entry_patches.leave)
        around = AROUND.replace("ARGUMENTS", f"{arguments}, GIVEN.name")
        self._hooked.add(own)
        if arguments is None or not self._weave(own, around, {**doors._asdict(), "name": name}):
            hooked = _wrapper(own, doors, name)
            self._hooked.add(hooked)
            owner = next(one for one in cls.__mro__ if vars(one).get(name) is own)
            self._patches.set_attribute(owner, name, hooked)

    def _hook_backward(self, torch: ModuleType) -> None:
        pending, trained = self._calls.pending, self._calls.trained

        def note(_: Any) -> None:
            if pending:
                trained()

        self._put_after(torch.autograd, "backward", "None", note)


def _made(note: Optional[Callable[[Any], None]], calls: TorchCalls, inside: Set[int], module: Module) -> None:
    """A module was made or converted; outside any model, that may have changed a model that was called before."""
    if note is not None:
        try:
            note(module)
        except Exception as error:
            calls.complain_of(module, error)
    if get_ident() not in inside:
        calls.changes += 1


def _wrapper(function: FunctionType, doors: EntryPatches, *via: str) -> Any:
    """For a function without source: adds a frame to the stack."""

    @functools.wraps(function)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = doors.enter(self, args, kwargs, *via)
        if token is None:
            return function(self, *args, **kwargs)
        try:
            return function(self, *args, **kwargs)
        except BaseException as error:
            doors.failed(token, error)
            raise
        finally:
            doors.leave(token)

    return hooked


def _subclasses(cls: Any) -> Iterator[Any]:
    for one in type.__subclasses__(cls):
        yield one
        yield from _subclasses(one)
