"""Runs a script until it calls the wanted model, then takes over with that model and its inputs."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Iterator, NoReturn, Optional, Sequence

from benchmodels import compat
from benchmodels.discover.model_entries import Call, HookOptions, ModelEntry, Watcher
from benchmodels.hooks.imports import ImportWatch, seed_on_import
from benchmodels.identity.identity import uncompiled
from benchmodels.identity.signatures import positional_names
from benchmodels.identity.weights import weights_digest
from benchmodels.measure.generation import GENERATE, whole_generation
from benchmodels.pytorch.hook import TorchHook
from benchmodels.pytorch.models import autocast_of
from benchmodels.reports import Reports, complainer, put
from benchmodels.runtimes.base import Captured
from benchmodels.script_runner import run_script, script_name
from benchmodels.settings import ModelSettings
from benchmodels.types import Module, Value
from benchprobe.stream.events import message_event

Then = Callable[[Captured], Any]
OTHER_THREADS = "the model was called in a thread: the script's other threads kept running during the measurement"


def run_until_call(settings: ModelSettings, script: str, args: Sequence[str], then: Then) -> int:
    """Calls `then` at the first call of the model `settings.identity`, in the middle of the script.

    By then every hook is removed, gradients are on, inference mode and autocast are off. The process ends with `then`.
    Returns only if the script ended without that call, which is reported as a failure.
    """
    capture = _Capture(settings, script_name(script), then)
    capture.begin()
    code: Any = 0
    try:
        code = run_script(script, args)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        capture.fail(
            "script", "error", f"the script failed before it called the model: {type(error).__name__}: {error}"
        )
        raise
    finally:
        capture.wait_for_thread()
    if code not in (None, 0):
        capture.fail("script", "error", f"the script exited with {code!r} before it called the model")
    return 0


class _Capture:
    """Waits for one call."""

    def __init__(self, settings: ModelSettings, script: str, then: Then) -> None:
        self._settings = settings
        self._then = then
        self._complain = complainer()
        self._watcher = Watcher(settings.max_shapes, self._on_new)
        options = HookOptions.of(settings, script, everything=False, complain=self._complain)
        self._hook = TorchHook(self._watcher, options)
        self._imports = ImportWatch(self._complain)
        self._process = os.getpid()
        self._reports = Reports(put)
        self._done = False
        self._taken_by: Optional[threading.Thread] = None

    def begin(self) -> None:
        seed_on_import(self._imports, self._settings.seed)
        self._hook.install(self._imports)
        compat.install()
        os.register_at_fork(after_in_child=self._uninstall)
        atexit.register(self.not_found)  # runs after the script's threads and its own atexit handlers
        self._exit = os._exit
        os._exit = self._leave

    def _on_new(self, entry: ModelEntry, call: Call) -> None:
        wanted = self._settings.identity
        if os.getpid() == self._process and entry.identity.startswith(wanted[: len(entry.identity)]):
            self._take(entry, call)

    def _take(self, entry: ModelEntry, call: Call) -> NoReturn:
        """Never returns to the script."""
        self._done = True
        self._taken_by = threading.current_thread()
        code = 1
        try:
            self._uninstall()
            if self._taken_by is not threading.main_thread():
                put(message_event("models", OTHER_THREADS))
                os._exit = self._leave  # the script's other threads may end it
            _leave_removed_folder()
            autocast = autocast_of(call.module)
            with modes_off():
                self._then(self._captured(entry, call)._replace(autocast=autocast))
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException as error:
            traceback.print_exc()
            self._report("capture", "error", f"{type(error).__name__}: {error}")
        _flush_output()
        self._exit(code)
        raise AssertionError("unreachable")

    def _captured(self, entry: ModelEntry, call: Call) -> Captured:
        _undo_compilation(call.module)
        expected = self._settings.weights_digest
        weights = weights_digest(call.module) if self._settings.digest_weights or expected is not None else None
        if expected is not None and weights != expected:
            text = f"the model's weights have changed since it was found ({weights} instead of {expected})"
            put(message_event("models", text))
        args, kwargs = _plain(tuple(call.args)), _plain(dict(call.kwargs))
        names = positional_names(call.function, len(args))
        module = whole_generation(call.module) if entry.facts.get("method") == GENERATE else call.module
        return Captured(module, args, kwargs, names, entry.identity, weights, call.signature)

    def _uninstall(self) -> None:
        self._imports.stop()
        self._hook.uninstall()
        if os._exit == self._leave:
            os._exit = self._exit

    def wait_for_thread(self) -> None:
        """At the end of the script: if one of its threads called the model, that thread will end the process."""
        taken_by = self._taken_by
        if taken_by not in (None, threading.current_thread()) and os.getpid() == self._process:
            while taken_by.is_alive():
                time.sleep(0.1)

    def _leave(self, status: int) -> NoReturn:
        self.wait_for_thread()
        self.not_found()
        self._exit(status)
        raise AssertionError("unreachable")

    def not_found(self) -> None:
        """The process ends without a call of the model."""
        called = [f"{entry.facts['class']} {entry.identity} ({entry.signature})" for entry in self._watcher.reported()]
        found = f"it called {', '.join(called[:8])}" if called else "it called no model"
        self.fail("capture", "not_found", f"the script ended without calling model {self._settings.identity}; {found}")

    def fail(self, stage: str, kind: str, text: str) -> None:
        if not self._done and os.getpid() == self._process:
            self._done = True
            self._report(stage, kind, text)

    def _report(self, stage: str, kind: str, text: str) -> None:
        self._reports.failure(kind, text[:2000], stage)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed or replaced by the script
            pass


def _leave_removed_folder() -> None:
    """A script may delete its working directory; exporters and compilers need one that exists."""
    try:
        os.getcwd()
    except OSError:
        os.chdir("/")


@contextmanager
def modes_off() -> Iterator[None]:
    """As at the top of a script: gradients on, no inference mode, no autocast."""
    torch = sys.modules["torch"]
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if device == "cpu" or torch.cuda.is_available():
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _undo_compilation(module: Module) -> None:
    """Removes `torch.compile` from a module and its parts, so that it can be run, exported or compiled afresh."""
    for part in list(module.modules()):
        if part.__dict__.get("_compiled_call_impl") is not None:
            part._compiled_call_impl = None
        for name, inner in list(part._modules.items()):
            if inner is not None and uncompiled(inner) is not inner:
                part._modules[name] = uncompiled(inner)


def _plain(value: Value) -> Any:
    """Inputs without their autograd history; objects of other classes stay as they are."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        if value.is_inference():
            return value.clone()
        return value.detach() if value.requires_grad else value
    if type(value) in (list, tuple):
        return type(value)(_plain(part) for part in value)
    if type(value) is dict:
        return {name: _plain(part) for name, part in value.items()}
    return value
