"""Pinning: requirements.in → requirements.<variant>.txt, the same version of a package in all files of a group."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

import msgspec

from benchwright.core.whole_file import unwritable, write_whole
from benchwright.environments.failures import InstallFailure, failure_of
from benchwright.environments.installers import Pip, Uv
from benchwright.environments.requirement_files import meaningful_lines, package_name
from benchwright.environments.tools import Tools


class PinSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file to pin, `source` to `target`; `added`: packages that it lacks."""

    source: str
    target: str
    added: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return os.path.dirname(self.source)


class PinGroup(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    sources: tuple[PinSource, ...]
    constraint_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    python: str | None = None


class PinnedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    packages: dict[str, str]
    hashes: bool
    changed: bool


class CannotPin(Exception):
    def __init__(self, failure: InstallFailure, log: str) -> None:
        super().__init__(failure.what)
        self.failure = failure
        self.log = log


class Pinner:
    """`index_lines` are written into the files, so that `install` finds what `pin` found; `command` goes into their header."""

    def __init__(
        self,
        installer: Uv | Pip,
        tools: Tools,
        *,
        command: str,
        index_lines: Sequence[str] = (),
        from_scratch: bool = False,
    ) -> None:
        self.installer = installer
        self.tools = tools
        self.command = command
        self.index_lines = index_lines
        self.from_scratch = from_scratch
        self.variables = installer.environment(os.environ)

    def pin(self, group: PinGroup) -> list[PinnedFile]:
        """All files or none: they are replaced only if all could be made. CannotPin names the package at fault."""
        with tempfile.TemporaryDirectory(prefix="benchwright-pin-") as scratch:
            known = "" if self.from_scratch else "".join(_pins(_text(s.target)) for s in group.sources)
            if len(group.sources) > 1:  # together first: what each then takes is what all can take
                known = _pins(self._resolve(group, group.sources, scratch, known))
            made = [
                (source, self._file(source, self._resolve(group, [source], scratch, known))) for source in group.sources
            ]
        return [_replace(source.target, text) for source, text in made]

    def _resolve(self, group: PinGroup, sources: Sequence[PinSource], scratch: str, known: str) -> str:
        """The pins of `sources`; versions of `known` are kept where possible."""
        folder = sources[0].folder
        words = [os.path.relpath(source.source, folder) for source in sources]
        added = "".join(f"{package}\n" for source in sources for package in source.added)
        if added:
            words.append(_write(os.path.join(scratch, "added.in"), added))
        options = [word for path in group.constraint_files for word in ("-c", os.path.relpath(path, folder))]
        if group.constraints:
            lines = "".join(line + "\n" for line in group.constraints)
            options += ["-c", _write(os.path.join(scratch, "suite.txt"), lines)]
        if isinstance(self.installer, Uv):
            text = self._compile(self.installer, group, folder, [*words, *options], scratch, known)
        else:
            files = [word for path in words for word in ("-r", path)]
            text = self._report(self.installer, group, folder, [*files, *options], scratch, known)
        return text.replace(scratch + os.sep, "")

    def _compile(self, uv: Uv, group: PinGroup, folder: str, words: list[str], scratch: str, known: str) -> str:
        output = os.path.join(scratch, "pins.txt")
        log = os.path.join(scratch, "log")
        for hashes in (True, False):
            _write(output, known)
            _write(log, "")
            if self._run(uv.compile(words, output, group.python, hashes=hashes), log, folder) == 0:
                return _text(output)
            if "hash" not in _text(log).lower():  # only then is it worth trying without
                break
        raise CannotPin(failure_of(_text(log)), _text(log))

    def _report(self, pip: Pip, group: PinGroup, folder: str, words: list[str], scratch: str, known: str) -> str:
        """pip takes the known versions as exact requirements; if that fails, it runs again without them."""
        output = os.path.join(scratch, "report.json")
        log = os.path.join(scratch, "log")
        for again in [known, ""] if known else [""]:
            _write(log, "")
            more = ["-c", _write(os.path.join(scratch, "known.txt"), again)] if again else []
            if self._run(pip.report([*words, *more], output, group.python), log, folder) == 0:
                return _from_report(msgspec.json.decode(_text(output)))
        raise CannotPin(failure_of(_text(log)), _text(log))

    def _run(self, argv: list[str], log: str, folder: str) -> int:
        return self.tools.run(argv, log=log, env=self.variables, cwd=folder)

    def _file(self, source: PinSource, pins: str) -> str:
        """The text to write, with paths relative to the file."""
        head = f"# Made by: {self.command}\n# From {os.path.basename(source.source)}; change that, and pin again.\n"
        return head + "".join(_from(line, source.folder) + "\n" for line in self.index_lines) + pins


def index_lines(index_url: str | None, indexes: Sequence[str], links: Sequence[str]) -> list[str]:
    """As options of a requirements file. Passwords stay out: the file is to be kept with the code."""
    found = [f"--index-url {_without_password(index_url)}"] if index_url else []
    found += [f"--{'extra-index-url'} {_without_password(url)}" for url in indexes]
    return found + [f"--find-links {link if '://' in link else os.path.abspath(link)}" for link in links]


def pinned_packages(text: str) -> dict[str, str]:
    """Name → version, of lines such as `alpha==1.0 --hash=…`."""
    found = {}
    for _, line in meaningful_lines(text):
        name = package_name(line)
        pin = re.search(r"===?\s*([^\s;,]+)", line.partition("--hash")[0])
        if name is not None and pin is not None:
            found[name] = pin[1]
    return found


def _pins(text: str) -> str:
    """Only names and versions: hashes are of the files of one index, and are looked up again."""
    return "".join(f"{name}=={version}\n" for name, version in pinned_packages(text).items())


def _from_report(report: dict[str, list[dict[str, dict[str, object]]]]) -> str:
    lines = []
    for item in report["install"]:
        about = item["metadata"]
        archive = item["download_info"].get("archive_info")
        hashes = archive.get("hashes", {}) if isinstance(archive, dict) else {}
        line = f"{str(about['name']).lower()}=={about['version']}"
        lines.append(line + "".join(f" \\\n    --hash={kind}:{value}" for kind, value in sorted(hashes.items())) + "\n")
    return "".join(sorted(lines))


def _replace(path: str, text: str) -> PinnedFile:
    changed = _text(path) != text
    if changed:
        try:
            write_whole(path, text.encode())
        except OSError as error:
            raise unwritable(path, error) from error
    return PinnedFile(path=path, packages=pinned_packages(text), hashes="--hash=" in text, changed=changed)


def _from(line: str, folder: str) -> str:
    option, _, place = line.partition(" ")
    return line if "://" in place else f"{option} {os.path.relpath(place, folder)}"


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _write(path: str, text: str) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
