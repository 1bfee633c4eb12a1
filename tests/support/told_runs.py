"""Real runs of a program whose speed is what it is told, made once for all tests that only look at runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from command_line import CommandLine
from made_once import MadeOnce

# By its unit a size: how busy the machine is has no part in it.
SPEED = ("--metric", "speed[MB,higher]=kv:speed")
_TOLD = """\
import sys
with open("launches", "a") as file:
    file.write(".")
    launches = file.tell()
print("speed=%.3f" % (float(sys.argv[1]) * (1 + 0.001 * (launches * 2 % 5))))
"""
_TOLD_TEXT = "import sys; print('speed=' + sys.argv[1])"
NO_NUMBERS = ("nan", "inf", "0", "-3")
_ECHOES = ("-c", "echo speed=100", "-c", "echo speed=90")


class ToldRuns:
    """Ids by what the runs are:

    `first` and `same`: the same speed, `same` with the label who=me; `slower`: four fifths of it; `one` and `one_slower`: of
    a single launch; `nan`, `inf`, `0`, `-3`: printed instead of a speed; `crashed`; `apart`: two commands that were not
    interleaved, not in the store; `pairs`: interleaved commands.
    """

    def __init__(self, made_once: MadeOnce) -> None:
        self._folder = made_once("told", _make)
        self._ids: dict[str, str] = json.loads((self._folder / "ids.json").read_text())

    def __getitem__(self, name: str) -> str:
        return self._ids[name]

    @property
    def ids(self) -> list[str]:
        """Of all, oldest first."""
        return list(self._ids.values())

    def shown_to(self, bw: CommandLine) -> CommandLine:
        """`bw` looks at these runs, and must not change them; it writes into its own folder."""
        bw.base = self._folder / "base"
        bw.env["BENCHWRIGHT_BASE"] = str(bw.base)
        return bw

    def copied_to(self, bw: CommandLine, *names: str) -> CommandLine:
        """`bw` has a copy of the runs called `names`, in a store of its own."""
        (bw.base / "runs").mkdir(parents=True)
        for name in names:
            shutil.copytree(self._folder / "base" / "runs" / self[name], bw.base / "runs" / self[name])
        bw("store", "rebuild")
        return bw


def _make(folder: Path) -> None:
    bw = CommandLine(folder / "base", folder)
    ids = {}

    def run(name: str, *words: str, code: int | None = 0) -> None:
        ids[name] = str(bw.json("run", *words, code=code)["id"])

    def told(name: str, program: str, speed: str, *words: str, repeat: int = 6, code: int | None = 0) -> None:
        command = ("--", sys.executable, "-c", program, speed)
        run(name, "--repeat", str(repeat), *SPEED, "--name", "told", *words, *command, code=code)

    told("first", _TOLD, "100")
    told("same", _TOLD, "100", "--label", "who=me")
    told("slower", _TOLD, "80")
    told("one", _TOLD, "100", repeat=1)
    told("one_slower", _TOLD, "50", repeat=1)
    for text in NO_NUMBERS:
        told(text, _TOLD_TEXT, text, repeat=2, code=None)
    run("crashed", "--repeat", "2", "--name", "told", "--", sys.executable, "-c", "raise SystemExit(3)", code=1)
    run("apart", "--no-store", "--no-interleave", "--repeat", "2", *_ECHOES)
    run("pairs", "--repeat", "6", *SPEED, *_ECHOES)
    (folder / "ids.json").write_text(json.dumps(ids))
