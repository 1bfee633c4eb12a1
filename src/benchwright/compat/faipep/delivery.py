"""Records of FAI-PEP's reporters, delivered after a run: into a folder (`--local-reporter`), to a server (`--remote-reporter`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.run import Run
from benchwright.options.table import Options

if TYPE_CHECKING:  # most runs have no reporter, and need not wait for its modules
    from benchwright.compat.faipep.remote.endpoint import AccessToken, Endpoint
    from benchwright.compat.faipep.reports import HarnessReport


def open_delivery(options: Options, base: Path) -> FaiPepDelivery | None:
    """What the options ask for; refused now rather than after hours of measuring."""
    local, remote = options.local_reporter, options.remote_reporter
    if local is None and remote is None:
        return None
    if local is not None:
        local = os.path.abspath(os.path.expanduser(local))
        _check_writable(local)
    if remote is None:
        return FaiPepDelivery(base, local=local)
    from benchwright.compat.faipep.remote.endpoint import endpoint_of, token_of

    return FaiPepDelivery(base, local=local, remote=(endpoint_of(remote), token_of(options.remote_access_token)))


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
        from benchwright.compat.faipep.reports import reports_of

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

    def _write(self, run: Run, benchmarks: Collection[str]) -> None:
        """Those that are not written yet. InvalidInput or CannotWrite says why one could not be written."""
        if self._local is None:
            return
        from benchwright.compat.faipep.local_folder import write_reports
        from benchwright.compat.faipep.reports import reports_of

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
    from benchwright.compat.faipep.remote.deliver import send_waiting, spool_reports
    from benchwright.compat.faipep.remote.spool import Spool

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
