"""Where the folders of this machine lie on another one, and jobs whose paths are those of the other."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from benchwright.core.job import Job


class Relocation:
    """`places`: path here → path there. Everything below a path moves with it; the longest one counts."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        longest_first = sorted(self._places, key=len, reverse=True)
        # A path ends where its last name does: /data does not match /database.
        self._pattern = re.compile("|".join(re.escape(path) + r"(?![\w.-])" for path in longest_first) or r"(?!)")

    def there(self, text: str) -> str:
        """`text` with every path in it replaced by the one there."""
        return self._pattern.sub(lambda match: self._places[match[0]], text)

    def job(self, job: Job) -> Job:
        """The job as the other machine is to run it."""
        there = self.there
        barrier = job.barrier
        return msgspec.structs.replace(
            job,
            argv=tuple(there(word) for word in job.argv),
            cwd=there(job.cwd),
            env={name: None if value is None else there(value) for name, value in job.env.items()},
            stream=there(job.stream),
            log=there(job.log),
            probe_path=None if job.probe_path is None else there(job.probe_path),
            barrier=None if barrier is None else msgspec.structs.replace(barrier, folder=there(barrier.folder)),
            path=tuple(there(folder) for folder in job.path),
            files={there(path): there(text) for path, text in job.files.items()},
            folders=tuple(there(folder) for folder in job.folders),
            fetch=tuple(there(path) for path in job.fetch),
            apart=None
            if job.apart is None
            else msgspec.structs.replace(job.apart, send=tuple(map(there, job.apart.send))),
            data_file=None if job.data_file is None else there(job.data_file),
        )
