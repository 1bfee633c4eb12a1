"""A store of contents on another machine, and the trees made from it.

    objects/<sha256>-<mode>-<time>   whole, verified files
    incoming.<token>/                files that are arriving; the next push takes the whole ones
    trees/<name>                     which trees were made, and from what
    placed/…                         the trees, hard-linked to the objects

A program there that writes into a pushed file changes the object's size or time: it is then sent again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import IO

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.executors.boards.base import Progress
from benchwright.executors.transfer.manifest import Entry, Manifest
from benchwright.executors.transfer.shell import ANSWER, ConnectionLost, Reply, Shell, ask
from benchwright.executors.transfer.survey import Survey

_BLOCK_BYTES = 1 << 20
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def sum_of(tool: str, entry: Entry) -> str:
    """The first word `tool` prints for this file."""
    if tool == "sha256sum":
        return entry.digest
    if tool == "md5sum":
        digest = hashlib.md5(usedforsecurity=False)
        for block in _blocks(entry):
            digest.update(block)
        return digest.hexdigest()
    return _posix_checksum(_blocks(entry))


def _posix_checksum(blocks: Iterator[bytes]) -> str:
    """Of `cksum`: the CRC that zlib computes, with the bits of all bytes mirrored, and the length at the end."""
    register, length = 0xFFFFFFFF, 0
    for block in blocks:
        register = zlib.crc32(block.translate(_MIRRORED), register)
        length += len(block)
    ending = length.to_bytes((length.bit_length() + 7) // 8, "little")
    register = zlib.crc32(ending.translate(_MIRRORED), register)
    return str(int(f"{register:032b}"[::-1], 2))


def _blocks(entry: Entry) -> Iterator[bytes]:
    if entry.source is None:
        yield entry.content
        return
    with open(entry.source, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


_SPARE_BYTES = 64 << 20  # left free
_KEPT_DAYS = 30  # for trees that nothing has used

# $1: the store, $2: the sum tool, $3…: for each tree its place and stamp. Lists objects, what an interrupted push left, and the trees.
_LIST = f"""\
cd "$1" || exit 1
sum=$2; shift 2
echo '{ANSWER}'
if command -v stat >/dev/null 2>&1; then
  find objects -type f -exec stat -c 'object %s %Y %n' {{}} +
else
  find objects -type f -exec $sum {{}} + | sed 's/^/summed /'
fi
for place in incoming.*; do
  [ -d "$place" ] && find "$place" -type f -exec $sum {{}} + | sed 's/^/summed /'
done
for stamp in trees/*; do
  [ -f "$stamp" ] && echo "tree $stamp $(sed q "$stamp")"
done
command -v stat >/dev/null 2>&1 || exit 0
while [ $# -gt 0 ]; do
  [ -f "$2" ] && touch -c "$2"
  echo "files of $1"
  [ -e "$1" ] && find "$1" -type f -exec stat -c '%s %Y %n' {{}} +
  shift 2
done
:"""
# $1: the store, $2: where to unpack, $3: the sum tool. The sums of what arrived are the answer. Where they are SHA-256, whole
# files become objects at once; else they are named to _ADOPT.
_RECEIVE = f"""\
cd "$1" && mkdir -p "$2" && cd "$2" || exit 1
tar -xpf - || exit 1
cd "$1"
find "$2" -type f -exec $3 {{}} + >"$2.sums" || exit 1
if [ "$3" = sha256sum ]; then
  sed -n 's#^\\([0-9a-f]*\\)  \\([^/]*/\\1-.*\\)$#\\2#p' "$2.sums" | xargs sh -c '[ $# = 0 ] || mv -f "$@" objects/' sh || exit 1
  echo '{ANSWER}'
  sed -n 's#^\\([0-9a-f]*\\)  [^/]*/\\(\\1-.*\\)$#summed \\1 objects/\\2#p' "$2.sums"
else
  echo '{ANSWER}'
  sed 's/^/summed /' "$2.sums"
fi
rm -f "$2.sums"; rmdir "$2" 2>/dev/null
:"""
# $1: the store. Moves the files named on stdin, which were verified, to the objects.
_ADOPT = f"""\
cd "$1" || exit 1
xargs sh -c '[ $# = 0 ] || mv -f "$@" objects/' sh || exit 1
rmdir incoming.* 2>/dev/null
echo '{ANSWER}'"""
# $1: the folder to build in, $2: days, then place, stamp and identity of each tree. The trees come as one tar of folders,
# links, and hard links to objects, under their numbers. Trees unused for so many days, and objects that none had, are removed.
_SWAP = f"""\
swap() {{
  mkdir -p "${{2%/*}}" || return 1
  if [ -e "$2" ] || [ -h "$2" ]; then
    mv "$2" "$1.old" || return 1
  fi
  mv "$1" "$2" && printf '%s\n%s\n' "$4" "$2" >"$3.new" && mv "$3.new" "$3"
}}
aside=$1 days=$2 number=0; shift 2
while [ $# -gt 0 ]; do
  swap "$aside/$number" "$1" "$2" "$3" || exit 1
  number=$((number+1)); shift 3
done
rm -rf "$aside"
cd "${{aside%/*}}" || exit 1
find trees -type f -mtime +"$days" | while IFS= read -r stamp; do
  place=$(sed -n 2p "$stamp")
  case $place in "$PWD"/placed/*) rm -rf "$place";; esac
  rm -f "$stamp"
done
find objects -type f -links 1 -ctime +"$days" -exec rm -f {{}} +
for place in incoming.* building.*; do
  [ -d "$place" ] && find "$place" -prune -mtime +0 -exec rm -rf {{}} +
done
echo '{ANSWER}'"""
_BUILD = f"""\
mkdir -p "$1" && cd / && tar -xpf - || {{ rm -rf "$1"; exit 1; }}
{_SWAP}"""
# For file systems without hard links: _BUILD's tar then has folders and links only, and _COPY gets a script of copies.
_MAKE = f"""\
mkdir -p "$1" && cd / && tar -xpf - || exit 1
echo '{ANSWER}'"""
_COPY = f"""\
. /dev/stdin || exit 1
{_SWAP}"""


def place_below(folder: str, path: str) -> str:
    """A place in `folder` for the tree at `path` here."""
    path = os.path.abspath(path)
    return f"{folder}/{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}/{os.path.basename(path)}"


class Tree(msgspec.Struct, frozen=True):
    """A tree and its place on the other machine."""

    manifest: Manifest
    place: str


class Pushed(msgspec.Struct, frozen=True):
    """The outcome of a push."""

    sent_files: int
    sent_bytes: int
    kept_bytes: int  # were there already
    notes: tuple[str, ...] = ()


class Depot:
    """The store in `found.folder`. `stopped`: whether to give up."""

    def __init__(self, shell: Shell, found: Survey, stopped: Callable[[], bool] = lambda: False) -> None:
        self._shell = shell
        self._found = found
        self._stopped = stopped
        self._incoming = f"incoming.{os.urandom(6).hex()}"
        self._links = True  # until the file system there refuses
        self.folder = found.folder

    def place_of(self, path: str) -> str:
        """Where the tree at `path` here lies there: each in a separate folder, so that none lies inside another."""
        return place_below(f"{self.folder}/placed", path)

    def push(self, trees: Sequence[Tree], progress: Progress | None = None) -> Pushed:
        """Make the trees there, sending only contents that are not there yet; all are verified.

        ConnectionLost: the next push takes up what arrived. CannotMeasure: no space, a file that changes meanwhile…
        """
        wanted = {entry.object_name: entry for tree in trees for entry in tree.manifest.files}
        there = self._look(wanted, trees)
        missing = {name: entry for name, entry in wanted.items() if name not in there.objects}
        if missing:
            self._check_space(missing.values())
            self._send(missing, progress or (lambda done, total: None))
        stale = [t for t in trees if not there.has(t) or any(e.object_name in missing for e in t.manifest.files)]
        if stale:
            self._build(stale)
        sent = sum(entry.size for entry in missing.values())
        notes = tuple(note for tree in trees for note in tree.manifest.notes)
        return Pushed(len(missing), sent, sum(e.size for e in wanted.values()) - sent, notes)

    def _look(self, wanted: Mapping[str, Entry], trees: Sequence[Tree]) -> _There:
        places = [word for tree in trees for word in (tree.place, _stamp(tree.place))]
        reply = self._ask(_LIST, self.folder, self._found.sum_tool, *places, what="it was asked what it has")
        there = _There.read(reply.text, wanted, self._found.sum_tool)
        if there.arrived:
            self._adopt(there.arrived)
            there.objects.update(os.path.basename(path) for path in there.arrived)
        return there

    def _adopt(self, paths: Sequence[str]) -> None:
        def feed(stream: IO[bytes]) -> None:
            stream.write("".join(f"{path}\n" for path in paths).encode())

        self._ask(_ADOPT, self.folder, feed=feed, what="files were put in place")

    def _check_space(self, entries: Iterable[Entry]) -> None:
        needed, free = sum(entry.size for entry in entries) + _SPARE_BYTES, self._found.free_bytes
        if free is not None and needed > free:
            raise CannotMeasure(
                f"{self._shell}: {self.folder} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed; "
                "free some space there, or choose another folder with --remote-dir"
            )

    def _send(self, missing: Mapping[str, Entry], progress: Progress) -> None:
        there = _There.read(self._transfer(missing, progress), missing, self._found.sum_tool)
        if there.arrived:
            self._adopt(there.arrived)
        whole = there.objects | {os.path.basename(path) for path in there.arrived}
        for name, entry in missing.items():
            if name not in whole:
                raise CannotMeasure(
                    f"{self._shell}: {entry.source or entry.path} arrived with another checksum; "
                    "run again when nothing changes the file, or check the disk there"
                )

    def _transfer(self, missing: Mapping[str, Entry], progress: Progress) -> bytes:
        """Brings files to the arrivals or, if they are whole, to the objects; returns lines `summed SUM PATH`."""
        total = sum(entry.size for entry in missing.values())
        done = 0

        def feed(stream: IO[bytes]) -> None:
            nonlocal done
            with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT, bufsize=1 << 18) as packed:
                for name, entry in missing.items():
                    _pack(packed, name, entry)
                    done += entry.size
                    progress(done, total)

        try:
            return self._ask(
                _RECEIVE, self.folder, self._incoming, self._found.sum_tool, feed=feed, what="files were sent"
            ).text
        except ConnectionLost as error:
            raise ConnectionLost(
                f"{error}; {done / 1e6:.0f} of {total / 1e6:.0f} MB were sent, and the next push goes on from there"
            ) from error

    def _build(self, trees: Sequence[Tree]) -> None:
        aside = f"{self.folder}/building.{os.urandom(6).hex()}"
        stamps = [f"{self.folder}/{_stamp(tree.place)}" for tree in trees]
        words = [w for t, stamp in zip(trees, stamps, strict=True) for w in (t.place, stamp, t.manifest.identity)]
        arguments = (aside, str(_KEPT_DAYS), *words)
        if self._links:
            try:
                self._ask(_BUILD, *arguments, feed=lambda s: self._pack(s, trees, aside), what="folders were made")
                return
            except ConnectionLost:
                raise
            except CannotMeasure:
                self._links = False  # such as an SD card with FAT
        self._ask(_MAKE, aside, feed=lambda s: self._pack(s, trees, aside, links=False), what="folders were made")
        self._ask(_COPY, *arguments, feed=lambda s: self._copies(s, trees, aside), what="folders were filled")

    def _pack(self, stream: IO[bytes], trees: Sequence[Tree], aside: str, *, links: bool = True) -> None:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT, bufsize=1 << 18) as packed:
            for number, tree in enumerate(trees):
                for entry in tree.manifest.entries:
                    if links or entry.kind != "file":
                        packed.addfile(_member(entry, f"{aside}/{number}", self.folder))

    def _copies(self, stream: IO[bytes], trees: Sequence[Tree], aside: str) -> None:
        for number, tree in enumerate(trees):
            for entry in tree.manifest.files:
                source, target = f"{self.folder}/objects/{entry.object_name}", _joined(f"{aside}/{number}", entry.path)
                stream.write(os.fsencode(f"cp -p {shlex.quote(source)} {shlex.quote(target)} || return 1\n"))

    def _ask(self, script: str, *arguments: str, what: str, feed: Callable[[IO[bytes]], None] | None = None) -> Reply:
        return ask(self._shell, script, *arguments, feed=feed, stopped=self._stopped, what=what)


class _There(msgspec.Struct):
    """Contents of the store: whole objects, whole files in an arrival, and the trees that were made."""

    objects: set[str]
    arrived: list[str]
    trees: dict[str, str]  # stamp → identity
    files: dict[str, set[bytes]]  # place → lines `SIZE TIME PATH`

    @classmethod
    def read(cls, text: bytes, wanted: Mapping[str, Entry], sum_tool: str) -> _There:
        listing, *places = text.split(b"\nfiles of ")
        there = cls(set(), [], {}, {})
        for line in listing.decode(errors="surrogateescape").splitlines():
            what, _, rest = line.partition(" ")
            words = rest.split()
            path = words[-1] if words else ""
            entry = wanted.get(os.path.basename(path))
            if what == "tree" and len(words) == 2:
                there.trees[words[0]] = words[1]
            elif entry is None or len(words) < 2:
                continue
            elif what == "object" and words[:2] == [str(entry.size), str(entry.mtime_s)]:
                there.objects.add(os.path.basename(path))
            elif what == "summed" and words[0] == sum_of(sum_tool, entry):
                if path.startswith("objects/"):
                    there.objects.add(os.path.basename(path))
                else:
                    there.arrived.append(path)
        for part in places:
            place, _, lines = part.partition(b"\n")
            there.files[os.fsdecode(place)] = set(lines.split(b"\n"))
        return there

    def has(self, tree: Tree) -> bool:
        """Whether it was made of this, and none of its files changed since. A name may hold a newline."""
        if self.trees.get(_stamp(tree.place)) != tree.manifest.identity:
            return False
        lines = self.files.get(tree.place, set())
        return all(
            set(os.fsencode(f"{e.size} {e.mtime_s} {_joined(tree.place, e.path)}").split(b"\n")) <= lines
            for e in tree.manifest.files
        )


def _stamp(place: str) -> str:
    return f"trees/{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"


def _joined(place: str, path: str) -> str:
    return f"{place}/{path}" if path else place


def _pack(packed: tarfile.TarFile, name: str, entry: Entry) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.size, member.mtime = entry.mode, entry.size, entry.mtime_s
    if entry.source is None:
        packed.addfile(member, BytesIO(entry.content))
        return
    with open(entry.source, "rb") as file:
        try:
            packed.addfile(member, file)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            raise CannotMeasure(
                f"{entry.source} changed while it was being sent; run again when nothing changes it"
            ) from error


def _member(entry: Entry, part: str, folder: str) -> tarfile.TarInfo:
    """Names in a tar have no slash in front; it is unpacked in `/`."""
    member = tarfile.TarInfo(_joined(part, entry.path).lstrip("/"))
    if entry.kind == "folder":
        member.type, member.mode = tarfile.DIRTYPE, entry.mode
    elif entry.kind == "link":
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, entry.target, 0o777
    else:
        member.type, member.linkname = tarfile.LNKTYPE, f"{folder}/objects/{entry.object_name}".lstrip("/")
    return member
