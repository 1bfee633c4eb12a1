"""Kills parts of benchwright at random moments, resumes, and checks that nothing completed is lost or repeated, and nobody left.

    python tests/faults/kill_campaign.py [--kills 500] [--seed 1]          (or: make kills KILLS=500)

Each run has a few launches of a program that starts a child and a daemon. A victim is drawn: the command line, the agent, a
supervisor, the program, its child, some of them, or all at once; and a moment, by which they get SIGKILL. The run is resumed, and
may be killed again, until it is whole. Exits with 1, and says which seed to look at, if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

LAUNCHES = 3
MOST_KILLS_OF_ONE = 3
_PATIENCE_S = 300.0
_GONE_S = 120.0
# Says in `done` which launch ended: one whose stream was complete must never be there once more.
PROGRAM = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], start_new_session=True)
time.sleep(0.4)
with open("done", "a") as done:
    done.write(os.environ["BENCHWRIGHT_JOB"].partition("/")[2] + "\\n")
print("speed=1")
"""
LINKS = ("main", "agent", "supervisor", "program")
VICTIMS = [(link,) for link in LINKS] + [
    ("child",),
    ("main", "agent"),
    ("agent", "supervisor"),
    ("main", "agent", "supervisor"),
    LINKS,
    LINKS,
]


class Campaign:
    """Runs in a folder of its own; every process carries `mark` in its environment."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.mark = f"KILL_CAMPAIGN={os.getpid()}-{seed}"
        name, _, value = self.mark.partition("=")
        self.env = {**os.environ, "BENCHWRIGHT_BASE": str(folder / "base"), name: value}
        self.env.pop("BENCHWRIGHT_JOB", None)
        self.kills: Counter[str] = Counter()
        self.took_s = 2.5

    def one_run(self, most_kills: int) -> list[str]:
        """Measures one run to its end in spite of up to `most_kills`; what was wrong, in words."""
        problems: list[str] = []
        first = [
            "run",
            "--no-store",
            "--repeat",
            str(LAUNCHES),
            "--metric",
            "speed",
            "--",
            sys.executable,
            "-c",
            PROGRAM,
        ]
        args, killed_programs = first, 0
        for number in range(most_kills + 1):
            before = self._complete()
            done_before, orphans = self._done(), set(carrying(self.mark))
            victims = self.draw.choice(VICTIMS) if number < most_kills and len(before) < LAUNCHES else ()
            main = self._start(args)
            if victims:
                self._kill(main, victims)
                killed_programs += "program" in victims or "child" in victims
            said = self._end_of(main)
            problems += self._wrong(before, done_before, said)
            # Nobody is left to end anything without its supervisor; and a resume may die before it does what it should.
            if "supervisor" not in victims and not self._are_gone(but=orphans):
                problems.append(f"with {victims} killed, processes were left: {self._left()}")
            if not list((self.folder / "base" / "runs").glob("*/plan.json")):
                continue  # killed before there was a run: begin anew
            args = ["run", "--no-store", f"--resume={self._run().name}"]
            if not victims:
                break
        return problems + self._wrong_at_the_end(killed_programs)

    def _start(self, args: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "benchwright", *args],
            cwd=self.folder,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _kill(self, main: subprocess.Popen[str], victims: tuple[str, ...]) -> None:
        """At a random moment at which they exist. First they are stopped, so that they die as if at once."""
        self._wait(main, self.draw.uniform(0, self.took_s))
        while main.poll() is None and not self._pids(main, victims):
            time.sleep(0.002)
        self._wait(main, self.draw.uniform(0, 0.4))
        chosen = self._pids(main, victims)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in chosen:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.kills["+".join(victims)] += bool(chosen)

    def _wait(self, main: subprocess.Popen[str], seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            main.wait(seconds)

    def _pids(self, main: subprocess.Popen[str], victims: tuple[str, ...]) -> list[int]:
        """Empty unless each of them exists."""
        family = self._family(main.pid) if main.poll() is None else {}
        return [pid for link in victims for pid in family[link]] if all(map(family.get, victims)) else []

    def _family(self, main: int) -> dict[str, list[int]]:
        found, above = {"main": [main]}, [main]
        for link in (*LINKS[1:], "child"):
            above = [child for pid in above for child in children(pid)]
            found[link] = above
        return found

    def _end_of(self, main: subprocess.Popen[str]) -> str:
        try:
            return main.communicate(timeout=_PATIENCE_S)[0]
        except subprocess.TimeoutExpired:
            main.kill()
            return main.communicate()[0] + "\nTraceback: it did not end"

    def _run(self) -> Path:
        [run] = (self.folder / "base" / "runs").iterdir()
        return run

    def _complete(self) -> dict[str, bytes]:
        """Streams of launches that had ended by themselves."""
        from benchwright.record import is_complete

        streams = (self.folder / "base" / "runs").glob("*/*.data")
        return {p.name: p.read_bytes() for p in streams if ".interrupted-" not in p.name and is_complete(p)}

    def _done(self) -> Counter[str]:
        path = self.folder / "done"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def _wrong(self, before: dict[str, bytes], done_before: Counter[str], said: str) -> list[str]:
        problems = []
        if "Traceback" in said:
            problems.append(f"a traceback: {said[-800:]}")
        after = self._complete()
        for name, content in before.items():
            if after.get(name) != content:
                problems.append(f"{name} was complete, and is lost or changed")
            if self._done()[name.removesuffix(".data")] != done_before[name.removesuffix(".data")]:
                problems.append(f"{name} was complete, and was run again")
        return problems

    def _wrong_at_the_end(self, killed_programs: int) -> list[str]:
        problems = []
        if not self._are_gone():
            problems.append(f"processes were left after the last resume: {self._left()}")
        body = json.loads((self._run() / "run.json").read_text())
        launches = body["results"][0]["launches"]
        if len(launches) != LAUNCHES:
            problems.append(f"{len(launches)} launches instead of {LAUNCHES}")
        failed = [x for x in launches if x["status"] != "ok"]
        if len(failed) > killed_programs:
            problems.append(f"launches failed though nobody killed their program: {[x['detail'] for x in failed]}")
        for launch in launches:
            values = sum(x["measured"] for x in launch["samples"] if x["metric"] == "speed")
            if values != 1 and launch["status"] == "ok":
                problems.append(f"{launch['job']} is ok with {values} values")
        return problems

    def _left(self) -> list[str]:
        return [f"{pid} {command_of(pid)}" for pid in carrying(self.mark)]

    def _are_gone(self, but: Collection[int] = ()) -> bool:
        deadline = time.monotonic() + _GONE_S
        while set(carrying(self.mark)) - set(but):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]
    return []


def carrying(text: str) -> list[int]:
    """Living processes with `text` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX" and text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:80]
    return "?"


def campaign(kills: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often who was killed, and what was wrong."""
    counted: Counter[str] = Counter()
    problems: list[str] = []
    number = 0
    while counted.total() < kills:
        folder = Path(tempfile.mkdtemp(prefix="kill-campaign-"))
        one = Campaign(folder, seed + number)
        wrong = one.one_run(min(MOST_KILLS_OF_ONE, kills - counted.total()))
        counted += one.kills
        number += 1
        if wrong:
            problems += [f"--seed {seed + number - 1}: {text} (kept in {folder})" for text in wrong]
            print("", *problems[-len(wrong) :], sep="\n", file=sys.stderr)
        else:
            shutil.rmtree(folder)
        for pid in carrying(one.mark):
            os.kill(pid, signal.SIGKILL)
        print(
            f"\r{counted.total()} kills in {number} runs, {len(problems)} problems", end="", file=sys.stderr, flush=True
        )
    print(file=sys.stderr)
    return counted, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counted, problems = campaign(options.kills, options.seed)
    for victims, number in counted.most_common():
        print(f"  {number:4d}  {victims}")
    print(*problems, sep="\n")
    print(f"{counted.total()} kills, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
