"""Records of FAI-PEP's reporters, delivered after a run: into a folder (`--local-reporter`), to a server (`--remote-reporter`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from benchwright.compat.faipep.local_folder import write_reports
from benchwright.compat.faipep.remote.deliver import send_waiting, spool_reports
from benchwright.compat.faipep.remote.endpoint import OPTION, AccessToken, Endpoint, endpoint_of, token_of
from benchwright.compat.faipep.remote.spool import Spool
from benchwright.compat.faipep.reports import HarnessReport, reports_of
from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.run import Run
from benchwright.options.table import Options


def open_reporters(options: Options, base: Path) -> FaiPepDelivery:
    """Opens the reporters that the options ask for; refuses them now rather than after hours of measuring."""
    local, remote = options.local_reporter, options.remote_reporter
    if local is not None:
        local = os.path.abspath(os.path.expanduser(local))
        _check_writable(local)
    if remote is None:
        return FaiPepDelivery(base, local=local)
    if not remote:
        raise _nameless(base)

    return FaiPepDelivery(base, local=local, remote=(endpoint_of(remote), token_of(options.remote_access_token)))


def _nameless(base: Path) -> InvalidInput:
    """The error for results that are to be sent nowhere."""
    known = sorted({str(each.content.endpoint) for each in Spool(base).waiting()})
    remedy = f"name it: {OPTION} '{known[0]}'" if known else "name it; nothing waits to be sent"
    return InvalidInput("needs the server to send to", where=OPTION, remedy=remedy)


class FaiPepDelivery:
    """Writes the records of tests below the folder `local` as they end, so that a run that is killed leaves those of its
    finished tests; sends them to `remote` at the end."""

    def __init__(
        self, base: Path, *, local: str | None = None, remote: tuple[Endpoint, AccessToken] | None = None
    ) -> None:
        self.as_they_end = local is not None
        self._base = base
        self._local = local
        self._remote = remote
        self._written: set[tuple[str, str]] = set()  # run and benchmark

    def add(self, run: Run, benchmarks: Collection[str]) -> None:
        with suppress(BenchwrightError):
            self._write(run, benchmarks)

    def finish(self, run: Run) -> Iterator[str]:
        """Tries the folder and the server, whatever became of the other."""

        found = reports_of(run)
        lost: list[str] = []
        yield from (f"no records reported of {line}" for line in found.left_out)
        try:
            self._write(run, [result.benchmark.name for result in run.results])
        except BenchwrightError as error:
            again = f"benchwright export {run.id} --format fai-pep -o DIR"
            lost.append(f"the run is complete, but not reported in {self._local}: {error}; then: {again}")
        if self._remote is not None:
            try:
                yield from send_reports({run.id: found.reports}, *self._remote, self._base)
            except BenchwrightError as error:
                lost.append(f"the run is complete, but could not be sent: {error}")
        if lost:
            raise BenchwrightError("; ".join(lost))

    def catch_up(self, runs: Sequence[Run], tell: Callable[[str], None]) -> bool:
        if self._remote is None:
            return True

        endpoint, token = self._remote
        made = {run.id: reports_of(run) for run in runs}
        for line in (line for each in made.values() for line in each.left_out):
            tell(f"no records of {line}")
        for line in send_reports({run: each.reports for run, each in made.items()}, endpoint, token, self._base):
            tell(line)
        left = Spool(self._base).waiting()
        if not runs and not left:
            tell("nothing waits to be sent any more")
        for other in sorted({str(each.content.endpoint) for each in left} - {str(endpoint)}):
            tell(f"results wait for another reporter, '{other}'")
        return all(each.content.endpoint != endpoint for each in left)

    def _write(self, run: Run, benchmarks: Collection[str]) -> None:
        """Writes the reports not written yet. InvalidInput or CannotWrite says why one could not be written."""
        if self._local is None:
            return

        for name in benchmarks:
            found = () if (run.id, name) in self._written else reports_of(run, only=(name,)).reports
            if found:  # else it has yet to come out well: of an A/B, the run says when there are enough launches
                write_reports(found, Path(self._local), once=True)
                self._written.add((run.id, name))


def send_reports(
    reports: Mapping[str, Sequence[HarnessReport]], endpoint: Endpoint, token: AccessToken, base: Path
) -> Iterator[str]:
    """Sends what waited before, then these reports of each run; yields what a user should know.

    Whatever the server does not take stays in the spool. An error if the spool cannot be written to: these are lost then.
    """

    spool = Spool(base)
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
