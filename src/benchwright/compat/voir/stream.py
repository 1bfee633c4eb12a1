"""voir's stream: JSON lines, written by scripts that it runs and by programs that hide such lines in their output."""

from __future__ import annotations

import json
import os

from benchwright.compat.voir.lines import add_line
from benchwright.core.job import Job
from benchwright.core.reported import Reported
from benchwright.core.stream_dialect import Glance, StreamDialect


class VoirStream(StreamDialect):
    beside = frozenset(["voirfile.py"])

    def read(self, line: str, t: int, reported: Reported) -> None:
        from benchwright.record.stream_file import decode_object  # the agent, which only glances, has no use for it

        said = decode_object(line.encode("utf-8", "replace"))
        if said is None:
            reported.unread()
        else:
            add_line(reported, said, t)

    def glance(self, line: str) -> Glance | None:
        if not ('"$event"' in line or '"rate"' in line or '"loss"' in line):
            return None
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(data, dict):
            return None
        newest = {name: float(data[name]) for name in ("rate", "loss") if isinstance(data.get(name), int | float)}
        return Glance(newest, data.get("$event") == "stop")

    def no_rate(self, reported: Reported) -> str:
        if not reported.lines:
            return "nothing came from voir: run the script with voir, and let its voirfile.py `log` what it gives"
        if any(reported.rates.values()):
            return "no rate that came from voir is a positive number"
        if not reported.phases:
            return "no rate came from voir or in its output: the program may have failed and still exited with 0; see its log"
        why = 'no rate came from voir: its voirfile.py needs `rate` and `log("rate", …)`, the script voir.iterate'
        return f"{why} with report_batch=True; a program that ends within the first interval gives none"

    def keeps_rules(self, job: Job, reported: Reported) -> bool:
        """A program that only hides its data in its output, without voir, knows nothing of voir's options."""
        words = [os.path.basename(word) for word in job.argv]
        return bool(reported.phases) or job.data_file is not None or "voir" in words
