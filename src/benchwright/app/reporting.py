"""Reporters of a finished run that put its results elsewhere: a folder, a server."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.run import Run
from benchwright.options.table import Options
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:  # most runs have no reporter, and need not wait for its modules
    from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
    from benchwright.compat.faipep.reports import HarnessReport


class Reporters(msgspec.Struct, frozen=True, kw_only=True):
    """Where the results of a run go, beside its folder and the store."""

    local: str | None = None
    remote: Endpoint | None = None
    token: AccessToken | None = None

    @property
    def any(self) -> bool:
        return self.local is not None or self.remote is not None


class NotReported(BenchwrightError):
    """The run is complete, but a report that was asked for could be neither delivered nor kept."""

    exit_code = 1

    def __init__(self, what: str, run: Run) -> None:
        super().__init__(what)
        self.run = run


def reporters_of(options: Options) -> Reporters:
    """What the options ask for; refused now rather than after hours of measuring."""
    local, remote = options.local_reporter, options.remote_reporter
    if local is not None:
        local = os.path.abspath(os.path.expanduser(local))
        _check_writable(local)
    if remote is None:
        return Reporters(local=local)
    from benchwright.compat.faipep.remote.endpoint import endpoint_of, token_of

    return Reporters(local=local, remote=endpoint_of(remote), token=token_of(options.remote_access_token))


class LocalReporter:
    """Writes the reports of tests below a folder as they end, so that a run that is killed leaves those of its finished tests."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._written: set[str] = set()

    def write(self, run: Run, benchmarks: Collection[str]) -> None:
        """Those of benchmarks that have ended, once each; what cannot be written now is tried again at the end."""
        with suppress(BenchwrightError):
            self._write(run, benchmarks)

    def finish(self, run: Run) -> None:
        """The rest. InvalidInput or CannotWrite says why something could not be written."""
        self._write(run, [result.benchmark.name for result in run.results])

    def _write(self, run: Run, benchmarks: Collection[str]) -> None:
        from benchwright.compat.faipep.local_folder import write_reports
        from benchwright.compat.faipep.reports import reports_of

        for name in benchmarks:
            if name not in self._written:
                write_reports(reports_of(run, only=(name,)).reports, self._folder, once=True)
                self._written.add(name)


def report_run(run: Run, reporters: Reporters, base: BaseFolder, local: LocalReporter | None = None) -> Iterator[str]:
    """Delivers the results; yields what a user should know. NotReported comes last, after everything was tried.

    `local`: has already written some of them.
    """
    from benchwright.compat.faipep.reports import reports_of

    found = reports_of(run)
    lost: list[str] = []
    yield from (f"no records reported of {line}" for line in found.left_out)
    if reporters.local is not None:
        try:
            (local or LocalReporter(reporters.local)).finish(run)
        except BenchwrightError as error:
            again = f"benchwright export {run.id} --format fai-pep -o DIR"
            lost.append(f"the run is complete, but not reported in {reporters.local}: {error}; then: {again}")
    if reporters.remote is not None and reporters.token is not None:
        try:
            yield from send_reports({run.id: found.reports}, reporters.remote, reporters.token, base)
        except BenchwrightError as error:
            lost.append(f"the run is complete, but could not be sent: {error}")
    if lost:
        raise NotReported("; ".join(lost), run)


def send_reports(
    reports: Mapping[str, Sequence[HarnessReport]], endpoint: Endpoint, token: AccessToken, base: BaseFolder
) -> Iterator[str]:
    """Sends what waited before, then these reports of each run; yields what a user should know.

    Whatever the server does not take stays in the spool. An error if the spool cannot be written to: these are lost then.
    """
    from benchwright.compat.faipep.remote.deliver import send_waiting, spool_reports
    from benchwright.compat.faipep.remote.spool import Spool

    spool = Spool(base.path)
    for run, found in reports.items():
        spool_reports(spool, endpoint, run, found)
    sent = send_waiting(spool, endpoint, token)
    if sent.messages:
        yield f"{sent.messages:,} record{'s' if sent.messages > 1 else ''} sent to {endpoint.url}"
    if sent.waiting:
        yield (
            f"{endpoint.url} did not take everything: {sent.why}; {sent.waiting} "
            f"test{' waits' if sent.waiting == 1 else 's wait'} in {spool.folder} for the next run with this reporter, "
            f"or for: benchwright export --flush --remote-reporter '{endpoint}'"
        )
    for path in spool.damaged():
        yield f"{path} cannot be read and was not sent"


def _check_writable(folder: str) -> None:
    above = folder
    while not os.path.lexists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    wrong = None
    if not os.path.isdir(above):
        wrong = f"{above} is not a folder"
    elif not os.access(above, os.W_OK | os.X_OK):
        wrong = f"{above} cannot be written to"
    if wrong is not None:
        raise InvalidInput(wrong, where="--local-reporter", remedy="choose another place")
