"""Calls samplers when they are due, within their cost budget, and turns their readings into events."""

from __future__ import annotations

import time

from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading
from benchwright.core.entry_points import EntryPoint, load_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchwright.agent.stream import StreamWriter

# A program that ends sooner cannot have used a GPU, and loading NVML costs more than supervising it; nor has it allocated
# its memory yet.
_OPEN_LATER_S = {"nvidia": 0.1, "amd": 0.1, "intel": 0.1, "pss": 0.05}
# Short programs have their peak before the second regular reading: these follow the first.
_EARLY_S = {"pss": (0.12, 0.25)}
# PSS is read early if memory has grown by this factor since it was last read, so that its peak is not missed; that may
# cost up to this many times its budget for a moment.
_GROWN = 1.05
_HURRY = 10


class _Scheduled:
    """A sampler and when it is due next."""

    __slots__ = ("called_ns", "cost_ns", "due_ns", "point", "sampler")

    def __init__(self, point: EntryPoint, due_ns: int) -> None:
        self.point = point
        self.due_ns = due_ns
        self.called_ns = 0
        self.cost_ns = 0  # of the last call, in CPU time
        self.sampler: Sampler | None = None


class Sampling:
    """The samplers of one job. One that raises is reported in the stream and never called again."""

    def __init__(
        self, samplers: Iterable[EntryPoint], subject: SampledJob, stream: StreamWriter, interval_s: float, now_ns: int
    ) -> None:
        self._subject = subject
        self._stream = stream
        self._interval_ns = int(interval_s * 1e9)
        self._began_ns = now_ns
        self._scheduled = [
            _Scheduled(point, now_ns + int(_OPEN_LATER_S.get(point.name, 0) * 1e9)) for point in samplers
        ]
        self._rss_at_pss_bytes = 0.0  # the largest RSS at a moment when PSS was read
        self.newest: dict[str, float] = {}
        self.peak_rss_bytes: int | None = None

    @property
    def due_ns(self) -> int | None:
        """When the next sampler is due; None if there is none."""
        return min((entry.due_ns for entry in self._scheduled), default=None)

    def advance(self, now_ns: int, *, everything: bool = False) -> bool:
        """Call samplers that are due, or all that were opened; False if there were none."""
        if everything:
            due = [entry for entry in self._scheduled if entry.sampler is not None]
        else:
            due = self._due(now_ns)
        if due:
            self._subject.begin_round()
        for entry in due:
            self._call(entry, now_ns)
        return bool(due)

    def _due(self, now_ns: int) -> list[_Scheduled]:
        if self.due_ns is None or self.due_ns > now_ns:
            return []
        # Those due a moment later are called too: the process tree is walked once for all.
        soon_ns = now_ns + self._interval_ns // 4
        return [x for x in self._scheduled if x.due_ns <= (now_ns if x.sampler is None else soon_ns)]

    def close(self) -> None:
        """Close every sampler."""
        for entry in list(self._scheduled):
            self._drop(entry)

    def _call(self, entry: _Scheduled, now_ns: int) -> None:
        try:
            if entry.sampler is None:
                entry.sampler = load_target(entry.point.target)(self._subject)
                if entry.sampler is None:  # nothing to sample here
                    self._scheduled.remove(entry)
                    return
            began_ns = time.process_time_ns()
            for sample in entry.sampler.sample(now_ns):
                self._record(entry.sampler.name, sample, now_ns)
            entry.called_ns, entry.cost_ns = now_ns, time.process_time_ns() - began_ns
            at_least_ns = max(self._interval_ns, int(entry.sampler.interval_s * 1e9))
            entry.due_ns = now_ns + max(at_least_ns, int(entry.cost_ns / entry.sampler.budget))
            for early_s in _EARLY_S.get(entry.point.name, ()):
                if (early_ns := self._began_ns + int(early_s * 1e9)) > now_ns:
                    self._hurry(entry, early_ns)
        except Exception as error:
            which = entry.point
            text = f"the sampler '{which.name}' of the package {which.package} failed and is off for this job: "
            text += f"{type(error).__name__}: {error}"
            self._stream.append("message", t=now_ns, severity="warning", source=which.name, text=text[:1000])
            self._drop(entry)

    def _record(self, name: str, sample: SamplerReading, now_ns: int) -> None:
        fields: dict[str, object] = {"t": now_ns, "sampler": name}
        if sample.device is not None:
            fields["device"] = sample.device
        fields["values"] = sample.values
        if sample.processes:
            fields["processes"] = sample.processes
        self._stream.append("sample", **fields)
        if name == "process":
            self.newest = {**self.newest, **sample.values}
            self._notice_memory(sample.values, now_ns)

    def _notice_memory(self, values: Mapping[str, float], now_ns: int) -> None:
        rss_bytes = values.get("rss_bytes")
        if rss_bytes is None:
            return
        self.peak_rss_bytes = max(self.peak_rss_bytes or 0, int(rss_bytes))
        if "pss_bytes" in values:
            self._rss_at_pss_bytes = max(self._rss_at_pss_bytes, rss_bytes)
        elif self._rss_at_pss_bytes and rss_bytes > self._rss_at_pss_bytes * _GROWN:
            for entry in self._scheduled:
                if entry.point.name == "pss":
                    self._hurry(entry, now_ns)

    def _hurry(self, entry: _Scheduled, at_ns: int) -> None:
        """Call it at that time, or as soon after it as its cost allows."""
        if entry.sampler is not None:
            soonest_ns = entry.called_ns + int(entry.cost_ns / (_HURRY * entry.sampler.budget))
            entry.due_ns = min(entry.due_ns, max(at_ns, soonest_ns))

    def _drop(self, entry: _Scheduled) -> None:
        self._scheduled.remove(entry)
        if entry.sampler is not None:
            try:
                entry.sampler.close()
            except Exception:  # noqa: S110
                pass  # it is off already; the job goes on
