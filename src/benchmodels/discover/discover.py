"""Mode "discover": runs a script unchanged and reports which models it calls, with which inputs, and how often."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Callable, List, NoReturn, Optional, Sequence, Set

from benchmodels import compat
from benchmodels.build.build_key import content_digest
from benchmodels.discover.callers import own_modules
from benchmodels.discover.model_entries import Call, HookOptions, ModelEntry, Watcher, model_event, uncalled_event
from benchmodels.hooks.import_watch import error_text, pass_on_signal
from benchmodels.hooks.imports import ImportWatch, seed_on_import
from benchmodels.identity.weights import weights_digest
from benchmodels.notebooks import OPENED
from benchmodels.pytorch.hook import TorchHook
from benchmodels.reports import complainer, put
from benchmodels.script_runner import run_script, script_name
from benchmodels.settings import ModelSettings
from benchprobe import parameters
from benchprobe.stream.events import Event, message_event

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "ray")
HELPERS = ("resource_tracker", "forkserver", "compile_worker", "_inductor")  # started by Python and torch themselves
SHELLS = ("sh", "bash", "dash", "zsh", "env", "nohup", "nice")


class StartedProcesses:
    """Counts from `install` on. Uses no audit hook, which would slow down every `id()` and `open()` of the program."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.count = 0
        self._report = report
        self._reported = False
        self._process = os.getpid()

    def install(self, imports: ImportWatch) -> None:
        imports.after("subprocess", lambda module: self._watch(module.Popen, "__init__", 1, "args"))
        imports.after("multiprocessing.util", lambda module: self._watch(module, "spawnv_passfds", 1, "args"))
        for name, position in (("system", 0), ("posix_spawn", 1), ("posix_spawnp", 1)):
            self._watch(os, name, position, "command" if name == "system" else "argv")
        for name in ("execv", "execve"):  # the other variants call these
            self._watch(os, name, 1, "argv", replaces=True)

    def _watch(self, owner: Any, name: str, position: int, keyword: str, replaces: bool = False) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._look(args[position] if len(args) > position else kwargs.get(keyword), replaces)
            return original(*args, **kwargs)

        setattr(owner, name, watched)

    def _look(self, command: Any, replaces: bool) -> None:
        try:
            words = _words(command)
            if os.getpid() != self._process or not runs_python(words):
                return
            if replaces and not self._reported:  # `execvp` tries every folder of the path
                self._reported = True
                command = " ".join(words)[:200]
                self._report(f"the script replaced itself with another program ({command}), whose models are not seen")
            elif not replaces:
                self.count += 1
        except Exception as error:  # the wrapped function will complain about a bad argument
            pass_on_signal(error)


def runs_python(command: List[str]) -> bool:
    """Whether a command is a Python interpreter, a launcher of interpreters, or a shell that starts one."""
    if not command or any(helper in word for word in command for helper in HELPERS):
        return False
    names = [os.path.basename(word) for word in command]
    if names[0] in SHELLS:
        words = [word for text in command[1:] for word in text.split() if not word.startswith("-")]
        return any(_is_python(os.path.basename(word)) for word in words)  # no option such as -I/usr/include/python3.11
    return any(_is_python(name) for name in names[:2])


def _is_python(name: str) -> bool:
    return name.startswith(("python", "pypy")) or name in LAUNCHERS or name.endswith(".py")


def _words(command: Any) -> List[str]:
    if isinstance(command, (str, bytes)):
        command = ["sh", command]
    words = [command] if isinstance(command, os.PathLike) else command
    return [os.fsdecode(word) if isinstance(word, (str, bytes, os.PathLike)) else str(word) for word in words]


LONGEST_WAIT_S = 60.0
FRAMEWORKS = ("sklearn", "tensorflow", "jax", "xgboost", "lightgbm", "catboost", "mxnet", "paddle")  # other than torch
NO_INPUT = "; standard input is empty during discovery"


def discover(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """Returns the script's exit code; exceptions of the script go on to the interpreter."""
    discovery = ScriptSearch(settings, script_name(script))
    discovery.begin()
    try:
        return run_script(script, args)
    except SystemExit:
        raise
    except BaseException as error:
        hint = NO_INPUT if isinstance(error, EOFError) else ""
        discovery.exception = _printed(error) + hint
        raise


def _printed(error: BaseException) -> str:
    """As the interpreter prints it, which is about to do so."""
    try:
        return f"{type(error).__name__}: {error}"[:1000] if str(error) else type(error).__name__
    except Exception:  # of its own `__str__`
        return error_text(error)


class ScriptSearch:
    """Lasts from before the script begins until the process ends, in whatever way."""

    def __init__(self, settings: ModelSettings, script: str, put: Callable[[Event], None] = put) -> None:
        self._settings = settings
        self._put = put
        self._complain = complainer(put)
        self._watcher = Watcher(settings.max_shapes, self._on_new, self._report)
        options = HookOptions.of(settings, script, everything=True, complain=self._complain)
        self._hook = TorchHook(self._watcher, options)
        self._started = StartedProcesses(lambda text: self._put(message_event("models", text)))
        self._process = os.getpid()
        self._of_the_parent: Set[str] = set()  # in a forked child: identities that the parent reports
        self._ended = False
        self._optimizer_steps = 0
        self.exception: Optional[str] = None

    def begin(self) -> None:
        imports = ImportWatch(self._complain)
        seed_on_import(imports, self._settings.seed)
        self._hook.install(imports)
        self._started.install(imports)
        imports.after("torch.optim.optimizer", self._count_optimizer_steps)
        compat.install()
        os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self.end)
        self._report_before_exit()

    def _count_optimizer_steps(self, module: ModuleType) -> None:
        register = getattr(module, "register_optimizer_step_post_hook", None)  # since torch 2.0

        def count(*_: Any) -> None:
            self._optimizer_steps += 1

        if register is not None:
            register(count)

    def end(self) -> None:
        """Reports everything, with final counts."""
        if self._ended:
            return
        self._ended = True
        self._hold_threads()
        # Otherwise a thread could be stopped half-way through making an entry.
        waited = self._watcher.lock.acquire(timeout=LONGEST_WAIT_S)
        try:
            for entry in self._watcher.reported():
                self._report(entry)
            if self._in_main_process:
                self._report_the_rest()
        except Exception as error:
            self._complain(f"discovery could not report its last results: {type(error).__name__}: {error}")
        finally:
            if waited:
                self._watcher.lock.release()
            self._hold_threads()

    def _hold_threads(self) -> None:
        if self._in_main_process:
            self._hook.hold_threads()

    @property
    def _in_main_process(self) -> bool:
        return os.getpid() == self._process

    def _report_the_rest(self) -> None:
        for notebook in OPENED.values():
            if notebook.skipped:
                shown = ", ".join(notebook.skipped[:5]) + ("…" if len(notebook.skipped) > 5 else "")
                self._put(message_event("models", f"skipped what only IPython can run: {shown}"))
        uncalled = list(self._hook.uncalled())
        for one in uncalled:
            self._put(uncalled_event(one))
        asked = {name: value for name, value in parameters.asked.items() if type(value) in (int, float, str)}
        self._put(
            {
                "event": "discovery_end",
                "t": perf_counter_ns(),
                "models": len(self._watcher.reported()) + len(uncalled),
                "hook_lost": self._hook.lost(),
                "processes_started": self._started.count,
                "exception": self.exception,
                "optimizer_steps": self._optimizer_steps,
                "parameters": asked,
                "frameworks": [name for name in FRAMEWORKS if name in sys.modules],
                "modules": own_modules(),
            }
        )

    def _on_new(self, entry: ModelEntry, call: Call) -> None:
        if self._settings.digest_weights:
            entry.facts["weights"] = weights_digest(call.module)
            entry.facts["content"] = content_digest(call.module, call.args, call.kwargs)
        if self._settings.count_work:
            from benchmodels.measure.generation import GENERATE, whole_generation
            from benchmodels.measure.work import count_work

            whole = whole_generation(call.module) if entry.facts.get("method") == GENERATE else call.module
            work = count_work(whole, call.args, call.kwargs)
            entry.facts.update(flops=work.flops, bytes=work.bytes_, flops_note=work.note)
        if not entry.hidden:
            self._report(entry)

    def _report(self, entry: ModelEntry) -> None:
        if entry.identity not in self._of_the_parent:
            beside = self._watcher.signatures_beside(entry)
            self._put(model_event(entry, self._watcher.others_of(entry), self._in_main_process, beside))

    def _after_fork(self) -> None:
        self._watcher.lock = threading.RLock()
        self._of_the_parent |= {entry.identity for entry in self._watcher.entries}
        self._ended = False

    def _report_before_exit(self) -> None:
        """`os._exit` skips atexit handlers, so it is wrapped."""
        leave = os._exit

        def _exit(status: int) -> NoReturn:
            self.end()
            leave(status)

        _exit.__doc__ = leave.__doc__
        os._exit = _exit
