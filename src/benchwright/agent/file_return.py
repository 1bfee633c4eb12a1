"""Sends a job's stream and log to the main process while they grow, from a node that shares no file system with it."""

from __future__ import annotations

import base64
import os

from benchwright.agent.message_pipe import LONGEST_LINE, MessageWriter
from benchwright.core.private_files import not_through_a_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.core.job import Job

INTERVAL_S = 0.5
_CHUNK_BYTES = (LONGEST_LINE - 400) * 3 // 4  # base64 makes four of three, and a job's name needs room
# While the program runs, little is read at a time: it must not notice.
_MOST_CHUNKS = {"stream": 80, "log": 20}
_MOST_AT_END = 500


class ReturnedJob:
    """The files of one job: `stream`, `log`, and at the end `log.gz` in place of the log."""

    def __init__(self, job: Job, speaker: MessageWriter) -> None:
        self._job = job
        self._speaker = speaker
        self._paths = {"stream": job.stream, "log": job.log, "log.gz": f"{job.log}.gz"}
        # What an earlier job of that name left is not sent.
        self._began = {name: _size(path) for name, path in self._paths.items()}
        self._began["log.gz"] = 0
        self._sent = dict.fromkeys(self._paths, 0)
        self.supervisor = 0  # its pid
        self.has_ended = False

    def advance(self) -> bool:
        """Send some of what is new; True: the job has ended and everything was sent."""
        names = ("stream", "log")
        if self.has_ended:
            names = ("stream", "log.gz") if os.path.exists(self._paths["log.gz"]) else names
        more = [self._send(name) for name in names]
        if any(more) or not self.has_ended or self._speaker.backed_up:
            return False
        sizes = {name: self._sent[name] for name in names if os.path.exists(self._paths[name])}
        self._speaker.say("returned", job=self._job.id, files=sizes)
        return True

    def _send(self, name: str) -> bool:
        """Whether there is more."""
        most = _MOST_AT_END if self.has_ended else _MOST_CHUNKS[name]
        try:
            with open(self._paths[name], "rb", opener=not_through_a_link) as file:
                file.seek(self._began[name] + self._sent[name])
                for _ in range(most):
                    if self._speaker.backed_up:
                        return True
                    data = file.read(_CHUNK_BYTES)
                    if not data:
                        return False
                    text = base64.b64encode(data).decode()
                    self._speaker.say("grown", job=self._job.id, file=name, at=self._sent[name], data=text)
                    self._sent[name] += len(data)
        except OSError:
            return False  # not there yet, or compressed meanwhile
        return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
