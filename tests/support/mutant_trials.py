"""Everything that reads a file, tried on a damaged one: it may refuse in words, but never with a traceback, never by waiting
for ever, and never so that the runs beside it cannot be used."""

from __future__ import annotations

import json
import random
import resource
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from command_line import CommandLine
from damaged_base import IMPORTS, copied, files_of, make_base
from mutants import gone, mutate

from benchmodels.build.cache import Corrupt, read_manifest, verify
from benchwright.core.errors import BenchwrightError
from benchwright.core.system import Observation
from benchwright.environments.environment import read_built, why_broken
from benchwright.kinds.models.discovery.job import record_discovery
from benchwright.kinds.registry import kind_of
from benchwright.kinds.suite.batch_size_file import add_observations
from benchwright.kinds.suite.batch_sizes import read_scaling
from benchwright.kinds.suite.setup.preparation import Marks
from benchwright.record.stream_file import read_events
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

COMMAND_LIMIT_S = 60  # far more than any of them takes
MEMORY_LIMIT_BYTES = 6 << 30  # of addresses: a file of a few kilobytes must not fill the memory
FINE = (0, 1, 2, 3)
NEIGHBOUR = "neighbour.2026-11-15_10:00:00"
TOOLS = ("hyperfine", "pytest-benchmark", "google-benchmark", "asv", "driver")


class Late(BaseException):
    """A command that does not end. No part of a program catches it by mistake."""


class Subject(NamedTuple):
    """A file to damage: where it is, what it holds, and the commands that read it (each a line of words)."""

    path: str
    kind: str  # json, lines or bytes
    commands: tuple[str, ...]


OF_A_RUN = (
    *("show {run}", "show {run} --json", "report {run}", "report {run} --format json", "report {run} --format csv"),
    *("report {run} --format markdown", "report {run} --format html", "report {run} --format driver", "logs {run}"),
    *("export {run} -o out.json", "export {run} -o out.csv", "export {run} -o out.parquet"),
    *("export {run} -o m --format milabench", "diff-env {run} last", "report last", "logs {run} speed -n 2"),
    *(f"compare {NEIGHBOUR} {{run}} --anyway", f"compare {{run}} {NEIGHBOUR} --anyway --all-metrics --json"),
    *("ingest {folder}", "runs", "runs --json", "runs --status ok --label branch=main", "store check --folders"),
    *("store rebuild", "baseline set new {run}", "runs annotate {run} text", "runs delete {run} --yes"),
    *("runs prune --keep 1s --dry-run", "runs prune --max-size 1 --dry-run"),
)
OF_BASELINES = (
    *("baseline list", "baseline list --json", "baseline set new command", "baseline remove main"),
    *("compare --baseline main command --anyway", "runs delete model --yes", "store rebuild", "report baseline:main"),
    *("runs prune --max-size 1 --dry-run", "show command"),
)
OF_THE_STORE = (
    *("runs", "runs --json --text kernel", "runs --label branch=main --benchmark speed", "store check"),
    *("store check --json", "store rebuild", "store migrate", "show {imported}", "show command", "baseline list"),
    *("runs delete model --yes", "runs annotate model text", "report baseline:main", "export {imported} -o out.json"),
    *("compare --baseline main last --anyway", "import {imports}/hyperfine_shell.json", "ingest {neighbour}"),
    *("report {imported} --format html", "runs prune --max-size 1 --dry-run"),
)
RESUMING = (
    *("run --resume --no-store", "run --resume=unfinished --no-store", "run --resume=unfinished"),
    *("run --no-store -- true", "runs"),
)


def subjects(base: Path) -> dict[str, list[Subject]]:
    """By what they are of."""
    found: dict[str, list[Subject]] = {"streams": [], "files of runs": [], "unfinished": [], "foreign": []}
    for run in ("command", "model", "suite"):
        for name in files_of(run, base):
            if name == "lock" or ".R1." in name or name.endswith(".voir.json"):
                continue
            of = "streams" if name.endswith(".data") else "files of runs"
            found[of].append(Subject(f"runs/{run}/{name}", _kind(name), OF_A_RUN))
    found["unfinished"] = [Subject(f"runs/unfinished/{n}", _kind(n), RESUMING) for n in files_of("unfinished", base)]
    found["baselines"] = [Subject("baselines.json", "json", OF_BASELINES)]
    found["store"] = [Subject("store.db", "bytes", OF_THE_STORE)]
    found["imports"] = [
        Subject(f"imports/{p.name}", "json", OF_THE_STORE) for p in sorted((base / "imports").iterdir())
    ]
    for path in sorted(p for p in IMPORTS.rglob("*") if p.is_file() and p.suffix in (".json", ".data")):
        relative = path.relative_to(IMPORTS)
        named = ("import {file}", f"import {{imports}}/{relative.parts[0]}", "import --from {tool} {file}")
        found["foreign"].append(Subject(f"foreign/{relative}", _kind(path.name), named))
    found["marks"] = [Subject(f"marks/{name}", _kind(name), (f"call {name}",)) for name in READERS]
    return found


# How often each is damaged: where most is read from, and what cannot be made again, most often.
WEIGHTS = {
    **{"streams": 30, "files of runs": 28, "unfinished": 7, "baselines": 5},
    **{"store": 8, "imports": 7, "foreign": 10, "marks": 5},
}


def _kind(name: str) -> str:
    return "json" if name.endswith(".json") else "lines" if name.endswith(".data") else "bytes"


def _prepared(path: Path) -> None:
    marks = Marks(str(path.parent))
    marks.folder = str(path.parent)
    marks.read(path.stem)
    marks.made_for("/suite/a")


def _built(path: Path) -> None:
    if (built := read_built(str(path.parent))) is not None:
        why_broken(str(path.parent), built)


def _manifest(path: Path) -> None:
    try:
        verify(path.parent, read_manifest(path.parent, "key"))
    except (Corrupt, FileNotFoundError):
        pass


def _scaling(path: Path) -> None:
    for use in (read_scaling, lambda p: add_observations(p, {"b": [Observation(batch_size=8, memory_bytes=1 << 20)]})):
        try:
            use(str(path))
        except BenchwrightError as error:
            if str(path) not in str(error):
                raise


def _discovery(path: Path) -> None:
    try:
        record_discovery(read_events(path), "m.py", None)
    except OSError:
        pass


READERS: dict[str, Callable[[Path], None]] = {
    "0123456789abcdef.json": _prepared,
    ".benchwright.json": _built,
    "manifest.json": _manifest,
    "scaling.yaml": _scaling,
    "discovery.data": _discovery,
}


def _make_marks(folder: Path, stream: Path) -> None:
    folder.mkdir()
    recipe = {"requirements": ["a"], "added": [], "constraints": [], "pip_args": [], "python": "3.11", "machine": "x"}
    built = {"format": 1, "group": "g", "variant": "cpu", "variant_given": False, "recipe": recipe, "python": "3.11.7",
             "installer": "uv", "site": "lib", "entries": ["a"], "packages": {"a": "1"}, "made": 1.0, "seconds": 1.0}  # fmt: skip
    prepared = {"format": 1, "benchmark": "b", "definition": "/suite/a", "script": "prepare.py", "args": [],
                "made": {"/tmp": ["x"]}, "finished": 1.0, "seconds": 1.0}  # fmt: skip
    manifest = {
        "format": 1,
        "mark": "m",
        "key": "key",
        "parts": {},
        "steps": [],
        "files": {"x": {"size": 1, "sha256": "a"}},
    }
    for name, body in (
        ("0123456789abcdef.json", prepared),
        (".benchwright.json", built),
        ("manifest.json", manifest),
    ):
        (folder / name).write_text(json.dumps(body))
    (folder / "x").write_text("x")
    (folder / "scaling.yaml").write_text(
        "version: 2\nb:\n  arg: --batch\n  optimized: 8\n  model: {8: 10 MiB, 16: 20 MiB}\n"
        "  observations:\n  - {batch_size: 8, cpu: 2, memory: 10.5 MiB, perf: 5.5, time: 1794781524}\n"
    )
    (folder / "discovery.data").write_bytes(stream.read_bytes())


class Trials:
    """A base folder of its own, in which one file at a time is damaged."""

    def __init__(self, folder: Path) -> None:
        self.whole = folder / "whole"
        make_base(self.whole)
        copied(IMPORTS, self.whole / "foreign")
        _make_marks(self.whole / "marks", next(iter(sorted((self.whole / "runs").glob("model.*/*.R0.*data")))))
        self.imported = next((self.whole / "imports").glob("*.json")).stem
        self.base = folder / "base"
        cwd = folder / "cwd"
        cwd.mkdir()
        self.bw = CommandLine(self.base, cwd)
        self.subjects = subjects(self.whole)

    def __call__(self, seed: int, of: str | None = None, commands: int = 3) -> list[str]:
        """What went wrong with the mutant of this seed, in words."""
        r = random.Random(seed)
        of = of or r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        subject = r.choice(self.subjects[of])
        copied(self.whole, self.base)
        path = self._path(subject.path)
        done = mutate(r, path, subject.kind)
        tried = r.sample(subject.commands, min(commands, len(subject.commands)))
        wrong = [said for command in tried for said in self._try(command, path)]
        wrong += self._neighbour() if of not in ("foreign", "marks") else []
        return [f"seed {seed}: {subject.path} ({done}): {said}" for said in wrong]

    def values(self, seeds: Iterable[int]) -> Iterator[str]:
        """What `read_run` gives other values for than were measured, without a word: one line for each seed."""
        copied(self.whole, self.base)
        streams = sorted(p for p in self.base.glob("runs/*/*.data") if "unfinished" not in p.parent.name)
        whole = {p.parent: read.numbers for p in streams if (read := _values_of(RunFolder(p.parent))) is not None}
        for seed in seeds:
            r = random.Random(f"values {seed}")
            path = r.choice(streams)
            before = path.read_bytes()
            done = mutate(r, path, "lines")
            read = _values_of(RunFolder(path.parent))
            if read is not None and read.numbers != whole[path.parent] and path.stem not in read.doubted:
                yield f"seed {seed}: {path.name} ({done}): its values changed without a note"
            gone(path)
            path.write_bytes(before)

    def _path(self, place: str) -> Path:
        if not place.startswith("runs/"):
            return self.base / place
        _, run, name = place.split("/")
        return files_of(run, self.base)[name]

    def _words(self, command: str, path: Path) -> list[str]:
        relative = path.relative_to(self.base).parts
        named = relative[1].partition(".")[0].replace("_", "-") if relative[0] == "foreign" else ""
        return command.format(
            run=path.parent.name,
            folder=path.parent,
            file=path,
            neighbour=self.base / "runs" / NEIGHBOUR,
            imports=self.base / "foreign",
            imported=self.imported,
            tool=next((tool for tool in TOOLS if named.startswith(tool)), "milabench"),
        ).split(" ")

    def _try(self, command: str, path: Path) -> Iterator[str]:
        words = self._words(command, path)
        said = " ".join(words)
        try:
            with _limited():
                if words[0] == "call":
                    READERS[words[1]](path)
                    return
                done = self.bw(*words, code=None)
        except Late:
            yield f"{said}: still running after {COMMAND_LIMIT_S} s"
            return
        except Exception:
            yield f"{said}:\n{traceback.format_exc()[-3000:]}"
            return
        if done.returncode not in FINE or "Traceback (most recent call last)" in done.stderr:
            yield f"{said}: exit code {done.returncode}\n{done.stderr[-3000:]}"
        elif done.returncode in (2, 3) and not done.stderr.strip():
            yield f"{said}: exit code {done.returncode} without a word"
        elif len(done.stderr) > 20_000:
            yield f"{said}: {len(done.stderr)} characters of complaints: {done.stderr[:200]}"

    def _neighbour(self) -> Iterator[str]:
        """A damaged file never stops work on the others."""
        with _limited():
            done = self.bw("runs", "--json", code=None)
        if NEIGHBOUR not in done.stdout:
            yield f"the neighbour is not listed: exit code {done.returncode} {done.stderr[-2000:]}"
        with _limited():
            done = self.bw("report", NEIGHBOUR, code=None)
        if done.returncode != 0:
            yield f"the neighbour cannot be shown: {done.stderr[-2000:]}"


class _Read(NamedTuple):
    numbers: list[object]
    doubted: set[str]  # the jobs whose stream was changed, or is missing, and said to be so


def _values_of(folder: RunFolder) -> _Read | None:
    """None: it is refused, which tells enough."""
    try:
        run = read_run(folder, kind_of)
    except BenchwrightError:
        return None
    launches = [launch for result in run.results for launch in result.launches]
    said = {x.job: f"{x.detail} {' '.join(note.text for note in x.notes)}" for x in launches}
    numbers: list[object] = [(x.job, x.status, x.duration_s, repr(x.measurements), repr(x.facts)) for x in launches]
    doubted = {job for job, text in said.items() if "stream was changed" in text or "stream is missing" in text}
    return _Read(numbers, doubted)


@contextmanager
def _limited() -> Iterator[None]:
    """In time and memory."""

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, limits[1]))
    signal.alarm(COMMAND_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
