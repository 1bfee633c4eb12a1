"""The stream and the log of a job on a node that shares no file system with this machine, written here as they come."""

from __future__ import annotations

import base64
import os
from typing import Any

from benchwright.core.job import Job
from benchwright.core.private_files import open_to_append


class ReturnedFiles:
    """Files that came back from one job. They are kept if the node is lost."""

    def __init__(self, job: Job) -> None:
        self._paths = {"stream": job.stream, "log": job.log, "log.gz": f"{job.log}.gz"}
        self._fds: dict[str, int] = {}
        self._sizes = dict.fromkeys(self._paths, 0)
        self._problem: str | None = None

    def take(self, message: dict[str, Any]) -> None:
        """A piece of a file."""
        name, data = message["file"], base64.b64decode(message["data"])
        if name not in self._paths or self._problem is not None:
            return
        if message["at"] != self._sizes[name]:
            self._problem = f"a part of {os.path.basename(self._paths[name])} did not come back from the node"
            return
        try:
            if name not in self._fds:
                self._fds[name] = open_to_append(self._paths[name])
            view = memoryview(data)
            while view:
                view = view[os.write(self._fds[name], view) :]
            self._sizes[name] += len(data)
        except OSError as error:
            self._problem = (
                f"{self._paths[name]} could not be written: {error.strerror or error}; free some space and run again"
            )

    def finish(self, sizes: dict[str, int]) -> str | None:
        """All was sent: files of these sizes. Returns what went wrong, if anything did."""
        self.close()
        for name, size in sizes.items():
            if self._problem is None and self._sizes[name] != size:
                self._problem = (
                    f"only {self._sizes[name]} of {size} bytes of {self._paths[name]} came back from the node"
                )
        if self._problem is None and "log" not in sizes and os.path.exists(self._paths["log"]):
            os.unlink(self._paths["log"])  # compressed, or discarded
        return self._problem

    def close(self) -> None:
        """Nothing more comes."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}
