"""Runs a script until it calls one certain model, and takes that model with its inputs out of it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from time import perf_counter_ns
from typing import Any, Callable, List, NoReturn, Optional, Sequence

from benchmodels import compat
from benchmodels.discover.frameworks import Framework, HookOptions, open_frameworks
from benchmodels.discover.model_entries import Call, ModelEntry, Watcher
from benchmodels.hooks.imports import ImportWatch, seed_on_import
from benchmodels.identity.signatures import positional_names
from benchmodels.identity.weights import weights_digest
from benchmodels.pytorch.modes import as_outside_of_modes, plain_inputs, undo_compilation
from benchmodels.reports import complainer, put
from benchmodels.running import run_script, script_name
from benchmodels.runtimes.base import Captured
from benchmodels.settings import ModelSettings
from benchprobe.stream.events import message_event

Then = Callable[[Captured], Any]
OTHER_THREADS = "the model is called in a thread of the script: its other threads went on while it was measured"


def run_until_call(settings: ModelSettings, script: str, args: Sequence[str], then: Then) -> int:
    """At the first call of the model `settings.identity`, `then` gets it, in the middle of the script.

    Every hook is gone by then, gradients are on, inference mode and autocast are off, and `then` is not meant to return:
    if it does, the process ends. Returns only where the script ended without that call, which is told as a failure.
    """
    capture = _Capture(settings, script_name(script), then)
    capture.begin()
    code: Any = 0
    try:
        code = run_script(script, args)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        capture.script_failed(error)
        raise
    finally:
        capture.wait_for_thread()
    if code not in (None, 0):
        capture.fail("script", "error", f"the script ended with {code!r} before it called the model")
    return 0


class _Capture:
    """The wait for one call."""

    def __init__(self, settings: ModelSettings, script: str, then: Then) -> None:
        self._settings = settings
        self._then = then
        self._complain = complainer()
        self._watcher = Watcher(settings.max_shapes, self._on_new)
        options = HookOptions(script, settings.max_depth, False, self._complain, settings.weights_in_identity)
        self._frameworks: List[Framework] = open_frameworks(self._watcher, options)
        self._imports = ImportWatch(self._complain)
        self._process = os.getpid()
        self._told = False
        self._taken_by: Optional[threading.Thread] = None

    def begin(self) -> None:
        if self._settings.seed is not None:
            seed_on_import(self._imports, self._settings.seed)
        for framework in self._frameworks:
            framework.install(self._imports)
        compat.install()
        os.register_at_fork(after_in_child=self._uninstall)
        atexit.register(self.not_found)  # after the script's threads and its own last acts
        self._exit = os._exit
        os._exit = self._leave

    def _on_new(self, entry: ModelEntry, call: Call) -> None:
        wanted = self._settings.identity
        if os.getpid() == self._process and entry.identity.startswith(wanted[: len(entry.identity)]):
            self._take(entry, call)

    def _take(self, entry: ModelEntry, call: Call) -> NoReturn:
        """Never comes back into the script."""
        self._told = True
        self._taken_by = threading.current_thread()
        code = 1
        try:
            self._uninstall()
            if self._taken_by is not threading.main_thread():
                put(message_event("models", OTHER_THREADS))
                os._exit = self._leave  # the script's other threads may come to their end
            _leave_removed_folder()
            with as_outside_of_modes():
                self._then(self._captured(entry, call))
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException as error:
            traceback.print_exc()
            self.tell_failure("capture", "error", f"{type(error).__name__}: {error}")
        _flush_output()
        self._exit(code)
        raise AssertionError("unreachable")

    def _captured(self, entry: ModelEntry, call: Call) -> Captured:
        undo_compilation(call.module)
        weights = None
        if self._settings.weights or self._settings.weights_digest is not None:
            weights = weights_digest(call.module)
            expected = self._settings.weights_digest
            if expected is not None and weights != expected:
                text = f"the model's weights are not those it had when it was found ({weights} instead of {expected})"
                put(message_event("models", text))
        args, kwargs = plain_inputs(tuple(call.args), dict(call.kwargs))
        names = positional_names(call.function, len(args))
        return Captured(call.module, args, kwargs, names, entry.identity, weights, call.signature)

    def _uninstall(self) -> None:
        self._imports.stop()
        for framework in self._frameworks:
            framework.uninstall()
        if os._exit == self._leave:
            os._exit = self._exit

    def wait_for_thread(self) -> None:
        """The script has come to its end. Where a thread of it has called the model, that will end the process."""
        taken_by = self._taken_by
        if taken_by not in (None, threading.current_thread()) and os.getpid() == self._process:
            while taken_by.is_alive():
                time.sleep(0.1)

    def _leave(self, status: int) -> NoReturn:
        self.wait_for_thread()
        self.not_found()
        self._exit(status)
        raise AssertionError("unreachable")

    def script_failed(self, error: BaseException) -> None:
        self.fail("script", "error", f"the script failed before it called the model: {type(error).__name__}: {error}")

    def not_found(self) -> None:
        """The process ends, and the model was not called."""
        told = [f"{entry.facts['class']} {entry.identity} ({entry.signature})" for entry in self._watcher.told()]
        found = f"it called {', '.join(told[:8])}" if told else "it called no model"
        self.fail("capture", "not_found", f"the script ended without calling model {self._settings.identity}; {found}")

    def fail(self, stage: str, kind: str, text: str) -> None:
        if not self._told and os.getpid() == self._process:
            self._told = True
            self.tell_failure(stage, kind, text)

    @staticmethod
    def tell_failure(stage: str, kind: str, text: str) -> None:
        event = {"event": "failure", "t": perf_counter_ns(), "stage": stage, "kind": kind, "operator": None}
        put({**event, "text": text[:2000]})


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed or replaced by the script
            pass


def _leave_removed_folder() -> None:
    """A script may remove the folder it is in; exporters and compilers need one that is there."""
    try:
        os.getcwd()
    except OSError:
        os.chdir("/")
