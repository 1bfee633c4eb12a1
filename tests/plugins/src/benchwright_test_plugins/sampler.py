"""What a job's processes read from and write to disk."""

from __future__ import annotations

from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading


class DiskSampler(Sampler):
    """Bytes since each process began, summed over the job's processes. Its metrics are `disk.read` and `disk.written`."""

    name = "disk"
    budget = 0.005  # at most half a percent of one core

    def __init__(self, job: SampledJob) -> None:
        self._job = job

    def sample(self, now_ns: int) -> list[SamplerReading]:
        total = {"read_bytes": 0.0, "written_bytes": 0.0}
        for process in self._job.processes():
            try:
                with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
                    fields = dict(line.split(": ") for line in file)
            except OSError:
                continue  # it has ended, or belongs to somebody else
            total["read_bytes"] += int(fields["rchar"])
            total["written_bytes"] += int(fields["wchar"])
        return [SamplerReading(total)]


def open_sampler(job: SampledJob) -> Sampler | None:
    """None would mean that there is nothing to sample here."""
    return DiskSampler(job)
