"""Counts the Python processes a script starts, in which models are not looked for: interpreters and their launchers."""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, List

from benchmodels.hooks.import_watch import pass_on_signal
from benchmodels.hooks.imports import ImportWatch

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
