"""Reading a Job from the line that carries it."""

from __future__ import annotations

from types import SimpleNamespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from benchwright.core.job import Job
    from benchwright.core.metric import MetricSpec


def read_job(fields: dict[str, Any]) -> Job:
    """A Job from its JSON object, which holds every field.

    At run time it is a plain namespace with the same attributes: importing msgspec would more than double
    what it costs to start the agent.
    """
    values = dict(fields)
    values["argv"] = tuple(values["argv"])
    values["devices"] = tuple(values["devices"])
    if values["barrier"] is not None:
        values["barrier"] = SimpleNamespace(**values["barrier"])
    job: Any = SimpleNamespace(**values)
    return job  # type: ignore[no-any-return]


def read_metrics(job: Job) -> tuple[MetricSpec, ...]:
    """The job's metrics as the domain's own type; costs an import, so only asked for when there are any."""
    import msgspec

    from benchwright.core.metric import MetricSpec

    return msgspec.convert(job.metrics, tuple[MetricSpec, ...])
