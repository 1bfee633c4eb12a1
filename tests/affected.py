"""Runs the tests that a change can reach, nearest first: `python tests/affected.py [--since REVISION] [pytest options]`.

A test is reached if its file imports a changed module, directly or through others, function-level imports included. The
command line loads its commands lazily, so a test file counts as importing the commands whose names stand in it. The nearest
files run first; what has not begun after `--limit` seconds is left out, and named. For work in between, never instead of `make test`.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("benchwright", "benchprobe", "benchmodels", "benchload")
COMMAND_LINE = "benchwright.cli.main"
EVERYTHING = ("tests/conftest.py", "constraints.txt")  # a change of these reaches every test
OF_THE_PROJECT = ("tests/unit/test_project.py", "tests/unit/test_house.py")
MODULE_NAME = re.compile(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
# Found as text: Python takes seconds to parse all files. What a text or a program in a text imports counts, too.
IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w., \t]+)", re.MULTILINE)
IMPORT_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n]*))", re.MULTILINE)
COMMENT = re.compile(r"#[^\n]*")
WORD_AS_TEXT = re.compile(r"""["']([\w-]+)["']""")
FAR = 99


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--since", default="HEAD", help="what changed since this revision (HEAD: what is not committed)"
    )
    parser.add_argument("--limit", type=float, default=150, metavar="SECONDS", help="begin no test after that long")
    parser.add_argument("--list", action="store_true", help="print the test files and their distance; run nothing")
    own, given = parser.parse_known_args(arguments)
    began = time.time()
    changed = changed_files(own.since)
    if not changed:
        print(f"nothing changed since {own.since}; `make affected SINCE=HEAD~1` takes the last commit")
        return 0
    reached = reached_tests(changed)
    print(f"{len(changed)} changed files reach {len(reached)} test files", flush=True)
    if own.list or not reached:
        for path, distance in reached.items():
            print(f"{distance:3}  {path}")
        return 0
    until = ["-p", "time_limit", "--until", str(began + own.limit)]
    reached = by_folder(reached)
    options = ["-q", "-n", "auto", "--dist", "loadgroup", "-m", "not long", "--hypothesis-profile", "repeatable"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *until, *given, *reached], cwd=ROOT, check=False)
    return done.returncode


def changed_files(since: str) -> list[str]:
    """Tracked files that differ from `since`, and new ones; relative to the root."""
    listings = (
        ["git", "diff", "--name-only", "--no-renames", "-z", since, "--"],
        ["git", "ls-files", "--others", "--exclude-standard", "-z"],
    )
    found: dict[str, None] = {}
    for command in listings:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            sys.exit(listed.stderr.strip())
        found.update(dict.fromkeys(name for name in listed.stdout.split("\0") if name))
    return list(found)


def reached_tests(changed: Iterable[str]) -> dict[str, int]:
    """Test files by path, with the number of imports between them and the nearest change; the nearest first."""
    graph = Graph()
    distances = graph.distances(changed)
    tests = {path: distances[path] for path in graph.tests if distances.get(path, FAR) < FAR}
    changed_packages = {_package(path) for path in changed}

    def nearness(path: str) -> tuple[int, bool, str]:
        return tests[path], _package(path) not in changed_packages, path

    return {path: tests[path] for path in sorted(tests, key=nearness)}


def by_folder(tests: dict[str, int]) -> dict[str, int]:
    """Each folder whole, the nearest first: pytest forgets the fixtures of a folder that it comes back to."""
    folders = list(dict.fromkeys(Path(path).parent.parts[:3] for path in tests))
    return {path: tests[path] for path in sorted(tests, key=lambda path: folders.index(Path(path).parent.parts[:3]))}


def _package(path: str) -> str:
    """`store` of src/benchwright/store/… and of tests/unit/store/…."""
    parts = Path(path).parts
    return parts[2] if len(parts) > 3 else ""


class Graph:
    """Which file imports which: those of src and plugins, of tests/support, and the tests."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        packages = (root / "src", root / "plugins" / "runtimes" / "src")
        sources = {self._name(path, folder): path for folder in packages for path in sorted(folder.rglob("*.py"))}
        support = {path.stem: path for path in sorted((root / "tests" / "support").glob("*.py"))}
        self._modules = {name: self._relative(path) for name, path in {**sources, **support}.items()}
        found = (path for name in ("plugins", "tests") for path in sorted((root / name).rglob("test_*.py")))
        tests = [path for path in found if "programs" not in path.parts]
        self.tests = [self._relative(path) for path in tests]
        commands = self._commands(sources.get(COMMAND_LINE))
        self._importers: dict[str, set[str]] = defaultdict(set)
        for path in (*sources.values(), *support.values(), *tests):
            for imported in self._imported(path, commands if path in tests else {}):
                self._importers[imported].add(self._relative(path))

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """The fewest imports between each file and a changed one."""
        found = dict.fromkeys((start for path in changed for start in self._starts(path)), 0)
        ring = list(found)
        while ring:
            farther = [(importer, found[path] + 1) for path in ring for importer in sorted(self._importers[path])]
            ring = []
            for importer, distance in farther:
                if importer not in found:
                    found[importer] = distance
                    ring.append(importer)
        return found

    def _starts(self, path: str) -> list[str]:
        """The files to begin at: the changed one, or whatever reads it if it is no module."""
        if path in EVERYTHING:
            return self.tests
        if path in self._modules.values() or path in self.tests:
            return [path]
        if path.startswith("src/"):  # a template, a table: its folder's modules read it
            folder = str(Path(path).parent) + "/"
            return [other for other in self._modules.values() if other.startswith(folder)] or list(OF_THE_PROJECT)
        if path.startswith("tests/"):  # data: the tests that name its folder or the file
            return self._naming({Path(path).name, Path(path).parent.name})
        if path.startswith(("benchmarks/", "suites/", "specifications/", "corpora/", "examples/")):
            return [*self._naming({Path(path).stem, Path(path).parts[1]}), *OF_THE_PROJECT]
        return list(OF_THE_PROJECT)

    def _naming(self, names: set[str]) -> list[str]:
        return [test for test in self.tests if any(name in (self.root / test).read_text("utf-8") for name in names)]

    def _imported(self, path: Path, commands: dict[str, str]) -> Iterator[str]:
        """Files that the file at `path` imports, wherever in it; and modules it names in a text, as registries do."""
        text = path.read_text(encoding="utf-8")
        names = [each.split()[0] for found in IMPORT.findall(text) for each in found.split(",") if each.strip()]
        for dots, module, several, one in IMPORT_FROM.findall(text):
            base = self._base(path, len(dots), module)
            names.append(base)
            names += [
                f"{base}.{each.split()[0]}" for each in COMMENT.sub("", several or one).split(",") if each.strip()
            ]
        if path != self.root / "src/benchwright/cli/main.py":
            names += [commands[word] for word in WORD_AS_TEXT.findall(text) if word in commands]
            names += MODULE_NAME.findall(text)
        yield from (self._modules[name] for name in names if name in self._modules)

    def _base(self, path: Path, level: int, module: str) -> str:
        if not level:
            return module
        package = self._name(path, self.root / "src").split(".")
        package = package if path.name == "__init__.py" else package[:-1]
        return ".".join([*package[: len(package) - level + 1], *([module] if module else [])])

    def _commands(self, path: Path | None) -> dict[str, str]:
        """The module of each command, from the table of the command line, which has groups."""
        if path is None:
            return {}
        for node in ast.parse(path.read_bytes()).body:
            named = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if [getattr(each, "id", "") for each in named] == ["GROUPS"]:
                groups = ast.literal_eval(node.value)  # type: ignore[attr-defined]
                return {
                    name: f"benchwright.cli.{module}"
                    for group in groups.values()
                    for name, (module, _) in group.items()
                }
        return {}

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _name(self, path: Path, top: Path) -> str:
        parts = path.relative_to(top).with_suffix("").parts if path.is_relative_to(top) else (path.stem,)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main(sys.argv[1:]))
