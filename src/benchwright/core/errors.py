"""Every error benchwright raises on purpose.

    BenchwrightError          exit code 3 unless a subclass says otherwise
    ├── InvalidInput          2   the user's file, option or argument is wrong: says where and what to do
    │   ├── UnfilledWord      2   a placeholder in a suite's entry cannot be filled
    │   └── UnknownMetric     2   no successful launch measured the metric asked for
    ├── CannotMeasure         3   nothing could be measured at all
    │   └── AgentLost         3   the agent on the node died
    ├── CannotFetch           3   a file could not be fetched, or is not the one that was asked for
    ├── CannotWrite           3   a file could not be written
    ├── BrokenPlugin          3   an installed plug-in cannot be loaded
    ├── RunFolderBusy         3   another benchwright is writing to the run folder
    ├── StoreTrouble          3   the store is locked, read-only, full, gone, damaged or of another version
    │   ├── NoStoreYet        3   there is no store
    │   ├── StoreAway         3   its server cannot be reached, or refuses the token
    │   ├── StoreGone         3   its file was moved, removed or replaced while it was open
    │   └── ForeignStore      3   it is something else, and is left untouched
    │       └── NewerStore    3   a store of a newer version
    └── Interrupted         130   Ctrl-C or SIGTERM; the run can be resumed

Only the command line prints these or exits.
"""

from __future__ import annotations

from collections.abc import Iterable


class BenchwrightError(Exception):
    """Base of all errors that users see without a traceback."""

    exit_code = 3


class InvalidInput(BenchwrightError):
    """The user's input is wrong.

    `where` is a file, option or argument; `line` and `column` count from 1; `remedy` says what to do; `text` is the
    offending line of the file, shown below the message.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        line: int | None = None,
        column: int | None = None,
        remedy: str | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.line = line
        self.column = column
        self.remedy = remedy
        self.text = text

    @property
    def on_one_line(self) -> str:
        """Where, what and what to do, without the offending line."""
        place = ":".join(str(p) for p in (self.where, self.line, self.column) if p is not None)
        head = f"{place}: {self.what}" if place else self.what
        return f"{head}; {self.remedy}" if self.remedy else head

    def __str__(self) -> str:
        head = self.on_one_line
        if self.text is None or not self.text.strip():
            return head
        shown = self.text.rstrip("\n").expandtabs(1)
        lines = [head, "    " + shown]
        if self.column is not None:
            lines.append("    " + " " * (self.column - 1) + "^")
        return "\n".join(lines)


class TooManyScripts(InvalidInput):
    """A folder holds more scripts than are run without asking; whoever can ask, asks."""


class UnfilledWord(InvalidInput):
    """A `word` of the suite entry `entry` whose placeholders or conditions cannot be resolved."""

    def __init__(self, what: str, *, entry: str, word: str, where: str, remedy: str | None = None) -> None:
        super().__init__(what, where=where, remedy=remedy, text=word)
        self.entry = entry
        self.word = word


class UnknownMetric(InvalidInput):
    """No launch that succeeded measured the `metric` asked for."""

    def __init__(self, what: str, *, metric: str, remedy: str) -> None:
        super().__init__(what, where="--metric", remedy=remedy)
        self.metric = metric


class CannotMeasure(BenchwrightError):
    """Nothing could be measured at all."""


class AgentLost(CannotMeasure):
    """The agent that runs jobs on a node died or stopped answering."""


class CannotFetch(BenchwrightError):
    """A file could not be fetched, or its checksum is wrong: says which, from where, why and what to do."""

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what
        self.remedy = remedy


class CannotWrite(BenchwrightError):
    """A file could not be written: says which, why and what to do."""


class BrokenPlugin(BenchwrightError):
    """An installed plug-in cannot be loaded: says which package it comes from, and why."""


class RunFolderBusy(BenchwrightError):
    """Another benchwright process is writing to the run folder."""


class StoreTrouble(BenchwrightError):
    """The store cannot be used: says which one, what is wrong and what to do. No result is lost."""

    def __init__(self, what: str, *, where: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}; {remedy}")
        self.what = what
        self.where = where
        self.remedy = remedy


class NoStoreYet(StoreTrouble):
    """There is no store there."""


class StoreAway(StoreTrouble):
    """The store is a server that cannot be reached, or does not let this user in; later it may."""


class StoreGone(StoreTrouble):
    """The file of an open store was removed or replaced; opening the store again may help."""


class ForeignStore(StoreTrouble):
    """Not a store that this benchwright knows: it must not be changed."""


class NewerStore(ForeignStore):
    """A store that a newer benchwright made."""


class Interrupted(BenchwrightError):
    """The user or the system asked to stop; the results so far are kept and the run can be resumed."""

    exit_code = 130


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A remedy such as "did you mean 'average'?"; None if no known word is close."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None
