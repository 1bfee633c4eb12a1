"""Makes the run of one device, in a separate process: the order comes on stdin, events go to stdout, a line each.

Why a process: Ctrl-C ends a run in an orderly way only in the main thread, and only there a pattern that never ends is stopped.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Sequence
from typing import IO

import msgspec

from benchwright.core.errors import BenchwrightError
from benchwright.core.job import Job
from benchwright.core.run import Launch, Run
from benchwright.core.status import Status
from benchwright.executors.observer import Observer
from benchwright.runner.run import RunOrder, run
from benchwright.runs.delivery import NotReported


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a worker. `what`: step, done, note, trouble, output; last run, with the folder, or error, with the exit code."""

    what: str
    text: str
    code: int = 0


def send_order(order: RunOrder, pipe: IO[bytes]) -> None:
    """To a worker. Both ends are benchwright of this user, so a pickle is safe."""
    pickle.dump(order, pipe)
    pipe.flush()


class _Telling(Observer):
    """Says what happens on stdout."""

    def __init__(self, stdout: int) -> None:
        self._stdout = stdout
        self._lock = threading.Lock()

    def say(self, what: str, text: str, code: int = 0) -> None:
        line = memoryview(msgspec.json.encode(Said(what, text, code)) + b"\n")
        with self._lock:
            while line:
                line = line[os.write(self._stdout, line) :]

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        names = ", ".join(dict.fromkeys(job.benchmark for job in jobs))
        self.say("step", f"{number} of {total}: {names}")

    def on_recorded(self, number: int, total: int, launches: Sequence[Launch]) -> None:
        for launch in launches:
            if launch.status is Status.FAILED:
                self.say("note", f"{launch.job} failed: {launch.detail or launch.reason}")

    def on_trouble(self, text: str) -> None:
        self.say("trouble", text)

    def on_output(self, job_id: str, text: str) -> None:
        self.say("output", text)

    def on_note(self, text: str) -> None:
        self.say("note", text)

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.say("step", what)

    def end(self, made: Run, code: int = 0) -> None:
        """It made its run; `code`: at least this is the exit code."""
        failed = sum(result.status is Status.FAILED for result in made.results)
        self.say("done", f"{failed} of {len(made.results)} failed" if failed else "done")
        self.say("run", str(made.folder), code)


def _end_with_parent() -> None:
    """When whoever started this is gone, its end of our stdin is closed."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    stdout = os.dup(1)
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    telling = _Telling(stdout)
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        order: RunOrder = pickle.load(stdin)  # noqa: S301 see send_order
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        telling.end(run(order, telling))
    except NotReported as error:
        telling.say("trouble", str(error))
        telling.end(error.run, error.exit_code)
    except BenchwrightError as error:
        telling.say("error", str(error), error.exit_code)
    except Exception as error:
        # A mistake of ours on one device must not take the others' results along.
        telling.say("error", f"{type(error).__name__}: {error}", BenchwrightError.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
