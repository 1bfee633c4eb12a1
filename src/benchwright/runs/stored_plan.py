"""plan.json and jobs.json: what a run is to measure, and the jobs planned for it."""

from __future__ import annotations

import shlex
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from benchwright.core import earlier_names
from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, JobBarrier, Reports
from benchwright.core.redacted import secrets_of, without_secrets
from benchwright.core.run import Plan
from benchwright.core.secrets import redact_body, redact_text, redact_words
from benchwright.core.status import Reason
from benchwright.core.stored_file import Unreadable, decode_stored_json, short
from benchwright.options.table import COMPARED, Options

PLAN_VERSION = 1
JOBS_VERSION = 1
TIME = "{time}"  # in a name: when the run began
# Variables that show how a job was started; values of others are not stored.
_KEPT_VARIABLES = ("DATA_FD", "BENCHWRIGHT_BATCH_SIZE")


class StoredPlan(msgspec.Struct, frozen=True, kw_only=True):
    """plan.json: enough to make the same plan again, except for secrets in the environment and the command line."""

    format: str = "benchwright-plan"
    version: int = PLAN_VERSION
    uid: Annotated[str, Meta(pattern="^([0-9a-f]{32})?$")] = ""  # the run's, made with its folder
    name: str  # as it was given: `{time}` stays in it
    started: str
    benchmarks: tuple[Benchmark, ...]
    asked: tuple[Benchmark, ...] = ()  # what was asked for, if models are measured in place of some scripts
    options: Options
    labels: dict[str, str] = {}
    not_ready: dict[str, str] = {}  # benchmarks that could not be run, with what they lacked
    left_out: tuple[str, ...] = ()  # secrets that programs need and that are not stored, in words

    def name_of(self, run_id: str) -> str:
        """The run's name; its id, if the time is part of the name."""
        return run_id if TIME in self.name else self.name

    def same_target(self, benchmarks: tuple[Benchmark, ...], options: Options) -> bool:
        return not self.differences(benchmarks, options)

    def without_secrets(self) -> StoredPlan:
        found = [what for b in self.benchmarks for what in secrets_of(b)]
        options = self.options.kept()
        if options.suite_paths is not None:
            overrides = redact_words(options.suite_paths.overrides)
            paths = msgspec.structs.replace(options.suite_paths, overrides=overrides)
            options = msgspec.structs.replace(options, suite_paths=paths)
        return msgspec.structs.replace(
            self,
            benchmarks=tuple(map(without_secrets, self.benchmarks)),
            asked=tuple(map(without_secrets, self.asked)),
            options=options,
            labels=redact_body(self.labels),
            left_out=tuple(dict.fromkeys((*self.left_out, *found))),
        )

    def differences(self, benchmarks: tuple[Benchmark, ...], options: Options) -> list[str]:
        """Differences from this plan, in words; empty if the run may be resumed."""
        before = {b.name: b for b in self.asked or self.benchmarks}
        after = {b.name: b for b in benchmarks}
        lines = [f"{name} was part of the run" for name in before if name not in after]
        lines += [f"{name} was not part of the run" for name in after if name not in before]
        for name in before:
            if name in after:
                lines += _benchmark_differences(name, without_secrets(before[name]), without_secrets(after[name]))
        for field in COMPARED:
            old, new = (_setting(s, field) for s in (self.options, options))
            lines += _value_differences(field, old, new)
        return lines


def decoded_plan(raw: bytes) -> StoredPlan:
    if not earlier_names.has_earlier_names(raw):
        return decode_stored_json(raw, StoredPlan)
    try:
        return msgspec.convert(earlier_names.renamed_plan(decode_stored_json(raw)), StoredPlan)
    except msgspec.ValidationError as error:
        raise Unreadable(short(str(error))) from None


def _setting(options: Options, field: str) -> object:
    """As plain values. The name of the system file does not matter, and overrides show elsewhere."""
    value = msgspec.to_builtins(getattr(options, field))
    if field == "suite_paths" and value is not None:
        value["system"]["file"] = value["overrides"] = None
    return value


def _benchmark_differences(name: str, old: Benchmark, new: Benchmark) -> list[str]:
    """A suite's entry is stored resolved and as written; the latter is compared only if nothing else differs."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    for body in (before, after):  # where it is written, and notes about it, do not matter
        del body["source"], body["notes"], body["kind"]
    written = [(body.get("folder") or {}).pop("config", None) for body in (before, after)]
    return _value_differences(name, before, after) or _value_differences(name, *written)


def _value_differences(what: str, old: object, new: object) -> list[str]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        return [line for k in old | new for line in _value_differences(f"{what}: {k}", old.get(k), new.get(k))]
    return [f"{what} was {_in_words(old)}, is {_in_words(new)}"]


def _in_words(value: object) -> str:
    if isinstance(value, tuple | list) and all(isinstance(word, str) for word in value):
        return f"'{shlex.join(value)}'"
    return "not set" if value is None else str(value)


class _StoredJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Job as far as reading a run needs it; its files are named by its id."""

    id: Annotated[str, Meta(pattern=r"^[^/\x00.][^/\x00]*$")]
    benchmark: str
    argv: tuple[str, ...] = ()  # without secrets
    cwd: str = ""
    shell: bool = False
    env: dict[str, str | None] = {}
    dialect: str | None = None
    devices: tuple[int, ...] = ()
    node: str = "localhost"
    machines: int = 1
    reports: Reports = "always"
    barrier: JobBarrier | None = None
    launch: int | None = None
    repeat: int | None = None  # what earlier versions called it; never written
    warmup: bool = False
    block: int | None = None
    position: int = 0

    @classmethod
    def of(cls, job: Job) -> _StoredJob:
        kept = {name: getattr(job, name) for name in cls.__struct_fields__ if name != "repeat"}
        kept["argv"] = _shown(job.argv, job.shell)
        kept["env"] = {name: job.env[name] for name in _KEPT_VARIABLES if name in job.env}
        if job.barrier is not None:
            kept["barrier"] = msgspec.structs.replace(job.barrier, folder="")
        return cls(**kept)

    def job(self, folder: str) -> Job:
        """As a Job whose files are in `folder`; it cannot be started."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "repeat"}
        if self.launch is None:
            fields["launch"] = self.repeat
        fields["dialect"] = self.dialect or earlier_names.dialect_of(self.env)
        return Job(**fields, stream=f"{folder}/{self.id}.data", log=f"{folder}/{self.id}.log")


class StoredJobs(msgspec.Struct, frozen=True, kw_only=True):
    """jobs.json: what was planned, so that reading a run plans nothing; without secrets."""

    format: str = "benchwright-jobs"
    version: int = JOBS_VERSION
    launches: tuple[tuple[_StoredJob, ...], ...]
    skipped: dict[str, tuple[Reason, str]] = {}
    notes: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, plan: Plan) -> StoredJobs:
        return cls(
            launches=tuple(tuple(map(_StoredJob.of, jobs)) for jobs in plan.launches),
            skipped={name: (reason, redact_text(text)) for name, (reason, text) in plan.skipped.items()},
            notes={name: tuple(map(redact_text, texts)) for name, texts in plan.notes.items()},
        )

    def plan(self, benchmarks: tuple[Benchmark, ...], folder: str) -> Plan:
        """The plan, for reading: its jobs have what a reader needs, and cannot be started."""
        launches = tuple(tuple(job.job(folder) for job in jobs) for jobs in self.launches)
        return Plan(benchmarks=benchmarks, launches=launches, skipped=self.skipped, notes=self.notes)


@lru_cache(maxsize=256)
def _shown(argv: tuple[str, ...], shell: bool) -> tuple[str, ...]:
    return tuple(map(redact_text, argv)) if shell else redact_words(argv)
