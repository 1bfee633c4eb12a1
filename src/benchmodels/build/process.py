"""Builds a model in a child process and watches it: its steps, their time, how it ends."""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence

import benchprobe
from benchmodels.build.build import PARENT, build
from benchmodels.build.builder import FACTS, REFERENCE_STEP
from benchmodels.failures import ERROR, TIMED_OUT, ModelFailure, failure_of_ending, has_room, kernel_ooms
from benchmodels.reports import Reports, stage_of
from benchmodels.settings import BUILD, PART, ModelSettings, as_config, read_settings
from benchprobe.config import VARIABLE
from benchprobe.stream.events import Event

POLL_INTERVAL_S = 0.02


class BuildFailed(Exception):
    """There is no build; has the fields of a `failure` event."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.text)
        self.kind, self.text, self.stage, self.operator = failure


def build_in_child(
    settings: ModelSettings, script: str, args: Sequence[str], folder: str, reports: Reports, *, on_device: bool
) -> None:
    """Fills `folder`, or raises BuildFailed. Forwards the child's reports about its steps.

    A reference that takes too long is given up: a second child builds without it, and what it built is measured unchecked.

    `on_device`: the build uses an accelerator. Then it needs a process that is not a fork of this one, which has asked the
    driver whether there is one: CUDA refuses to start in such a fork.
    """
    forks = _is_warm() and not on_device
    try:
        _build_once(settings, script, args, folder, reports, forks=forks)
    except _SlowReference:
        _build_once(settings._replace(without_reference=True), script, args, folder, reports, forks=forks)
    if not os.path.isfile(os.path.join(folder, FACTS)):
        raise BuildFailed(ModelFailure(ERROR, "the build process left nothing behind", "capture"))


class _SlowReference(BuildFailed):
    """Nothing is wrong with the build: only its reference took too long."""


def _build_once(
    settings: ModelSettings, script: str, args: Sequence[str], folder: str, reports: Reports, *, forks: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="benchprobe-build-") as place:
        stream = os.path.join(place, "build.data")
        child = _start(settings, script, args, folder, stream, forks=forks)
        try:
            _Watch(child, stream, settings, reports).wait()
        except _SlowReference:
            raise
        except BuildFailed as failed:
            raise _with_want_of_room(failed, folder) from None
        finally:
            _end(child)


def _with_want_of_room(failed: BuildFailed, folder: str) -> BuildFailed:
    """Names a full disk as the reason: exporters and converters rarely do."""
    places = [os.path.dirname(folder), tempfile.gettempdir()]
    full = [place for place in places if not has_room(place)]
    if not full and os.strerror(errno.ENOSPC) not in failed.text:
        return failed
    text = f"no space left in {' or '.join(full or places)}; free some ({failed.text})"
    return BuildFailed(ModelFailure(ERROR, text, failed.stage, failed.operator))


def _is_warm() -> bool:
    """Whether torch is imported, and nothing was done with it yet."""
    return "benchmodels.warm.pages" in sys.modules


def _start(settings: ModelSettings, script: str, args: Sequence[str], folder: str, stream: str, *, forks: bool) -> Any:
    part = as_config(settings._replace(mode=BUILD, builds=folder))
    environment = {**os.environ, VARIABLE: json.dumps({"stream": stream, PART: part}), PARENT: str(os.getpid())}
    words = [script, *args] if script else []
    if forks:
        return _Forked(words, environment)
    argv = [sys.executable, "-m", "benchmodels", *words]
    # Its own session: it and everything it starts can be killed together.
    return subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)


class _Forked:
    """Forks a child of this process, in its own session."""

    def __init__(self, words: List[str], environment: Mapping[str, str]) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            self._build(words, environment)

    def wait(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)  # it may not have had its session yet
        os.waitpid(self.pid, 0)

    @staticmethod
    def _build(words: List[str], environment: Mapping[str, str]) -> NoReturn:
        code: Any = 1
        try:
            os.setsid()
            os.environ.update(environment)
            importlib.reload(benchprobe)  # which reads its configuration again
            code = build(read_settings(), words[0] if words else "", words[1:])
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            atexit._run_exitfuncs()
            with contextlib.suppress(Exception):  # closed by the script
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 0 if code is None else 1)


class BuiltBefore(NamedTuple):
    """Builds of this run were made since then, so many at a time, before what they are for was measured."""

    since: float
    beside: int


def built_before(environment: Mapping[str, str] = os.environ) -> Optional[BuiltBefore]:
    """None: the build of this process was not made ahead."""
    built = json.loads(environment.get(VARIABLE) or "{}").get("built")
    return None if built is None else BuiltBefore(float(built["since"]), int(built["beside"]))


class _Watch:
    """Reads the child's stream while it runs."""

    def __init__(self, child: Any, stream: str, settings: ModelSettings, reports: Reports) -> None:
        self._child = child
        self._stream = stream
        self._settings = settings
        self._reports = reports
        self._ooms = kernel_ooms()
        self._read_bytes = 0
        self._rest = b""
        self._step: Optional[str] = None
        self._since = 0.0
        self._last_stage = "script"
        self._failure: Optional[ModelFailure] = None

    def wait(self) -> None:
        """Until the child ends; BuildFailed if it fails or takes too long."""
        code = None
        while code is None:
            code = _ended(self._child)
            self._read()
            if code is None:
                self._end_if_late()
                time.sleep(POLL_INTERVAL_S)
        if self._failure is not None:
            raise BuildFailed(self._failure)
        if code != 0:
            raise BuildFailed(failure_of_ending(code, self._last_stage, self._ooms))

    def _end_if_late(self) -> None:
        of_reference = self._step == REFERENCE_STEP
        limit_s = self._settings.reference_timeout_s if of_reference else self._settings.build_timeout
        if self._step is None or time.monotonic() - self._since <= limit_s:
            return
        late = ModelFailure(TIMED_OUT, f"{self._step} took longer than {limit_s:g} s", self._last_stage)
        raise _SlowReference(late) if of_reference else BuildFailed(late)

    def _read(self) -> None:
        for event in self._new_events():
            kind = event.get("event")
            if kind == "build_begin":
                self._step, self._since = str(event["step"]), time.monotonic()
                self._last_stage = stage_of(self._step)
                self._tell_on(event)
            elif kind == "build_step":
                self._step = None
                self._tell_on(event)
            elif kind == "message":
                self._tell_on(event)
            elif kind == "failure" and self._failure is None:
                self._failure = ModelFailure(event["kind"], event["text"], event["stage"], event.get("operator"))

    def _tell_on(self, event: Event) -> None:
        values: Dict[str, Any] = {k: v for k, v in event.items() if k not in ("event", "process", "t")}
        self._reports.event(event["event"], **values)

    def _new_events(self) -> List[Event]:
        try:
            with open(self._stream, "rb") as file:
                file.seek(self._read_bytes)
                new = file.read()
        except OSError:  # not there yet
            return []
        self._read_bytes += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        return [json.loads(line) for line in lines if line.startswith(b"{")]


def _ended(child: Any) -> Optional[int]:
    """Its return code, as in `Popen.returncode`; None: still running. Not reaped, so that its process group keeps its number."""
    if not hasattr(os, "waitid"):
        code: Optional[int] = child.poll()
        return code
    ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _end(child: Any) -> None:
    """Kills it and its process group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass  # they have all ended
    child.wait()
