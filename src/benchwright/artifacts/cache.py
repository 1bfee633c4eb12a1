"""The artifact cache: files that benchmarks need, fetched once, known by their checksums.

Below its folder, beside the files of `objects.py` and `download.py`:

locks/<identity>.lock         held while a file is fetched
locations/<identity>.json     for a file without checksums: which object its location had, and of which version
unpacked/<sha256>/            the content of an archive
unpacked/<sha256>.json        what it looked like when it was unpacked
sets/<hash>/<filename>        files of one benchmark side by side, as links
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchwright.artifacts.checksums import Sums, checked_sums, hash_file
from benchwright.artifacts.limits import FetchLimits, FetchObserver, NoObserver
from benchwright.artifacts.locations import CLOUD, local_path, remote_url, safe_filename, shown
from benchwright.artifacts.objects import ByteProgress, Objects
from benchwright.artifacts.side_by_side import side_by_side
from benchwright.artifacts.sources.cloud import CloudSource
from benchwright.artifacts.sources.download import Download, NotModified, Source
from benchwright.artifacts.sources.web import WebSource
from benchwright.artifacts.unpacked_archives import UnpackedArchives
from benchwright.core.artifact import Artifact
from benchwright.core.errors import CannotFetch, InvalidInput
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import unwritable, write_own
from benchwright.environments.locks import locked

_SILENT: ByteProgress = lambda done: None  # noqa: E731
_LARGE = 64 << 20  # hashing less than this takes no time


class KnownLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a location without checksums when it was last fetched."""

    sha256: str
    version: str | None


class ArtifactCache:
    """Constructing it touches nothing. What was fetched or found through it is not cleaned away while it lives."""

    def __init__(self, folder: Path, *, limits: FetchLimits | None = None, offline: bool = False) -> None:
        self.folder = folder
        self._limits = limits or FetchLimits.choose(os.environ)
        self._offline = offline
        self.objects = Objects(folder)
        self._archives = UnpackedArchives(folder, self._limits)

    def fetch(
        self,
        artifact: Artifact,
        *,
        near: Path | None,
        root: Path | None = None,
        progress: FetchObserver | None = None,
        where: str | None = None,
    ) -> Path:
        """The file, verified, by its `filename`; fetched if the cache lacks it. A local one is used where it lies.

        `near`: the folder of the specification, None if that is not local; `root`: where `//` leads; `where`: the
        specification, for messages. Raises InvalidInput, CannotFetch or CannotWrite.
        """
        observer = progress or NoObserver()
        artifact = checked_sums(artifact, where)
        filename = safe_filename(artifact, where)
        try:
            path = self._found(artifact, filename, near, root, observer, where)
            return self._unpacked(path, filename, observer) if artifact.unpack else path
        except OSError as error:
            raise unwritable(error.filename or self.folder, error) from error
        finally:
            observer.on_step_done(filename)

    def fetch_all(
        self,
        artifacts: Iterable[Artifact],
        *,
        near: Path | None,
        root: Path | None = None,
        progress: FetchObserver | None = None,
        where: str | None = None,
    ) -> dict[str, Path]:
        """Fetches all of them into one folder, under their own filenames, as a model and its weights need; key → path."""
        paths = {
            artifact.key: self.fetch(artifact, near=near, root=root, progress=progress, where=where)
            for artifact in artifacts
        }
        files = {path.name: path for path in paths.values() if path.is_file()}
        if len(files) < sum(path.is_file() for path in paths.values()):
            return paths  # two of one name cannot lie side by side
        try:
            placed = side_by_side(self.folder, self.objects, files)
        except OSError as error:
            raise unwritable(error.filename or self.folder, error) from error
        return {key: placed.get(path.name, path) if path.is_file() else path for key, path in paths.items()}

    def known(self, artifact: Artifact, *, near: Path | None = None, root: Path | None = None) -> Path | None:
        """The file, if it is here and did not change since it was verified. Quick: reads no content.

        None for a URL without a checksum, unless offline: only the server knows whether it is still the same.
        """
        artifact = checked_sums(artifact)
        filename = safe_filename(artifact)
        url = remote_url(artifact)
        if url is not None and not _has_sum(artifact) and not self._offline:
            return None
        if path := self._object(artifact, filename, url, progress=None):
            return self._known_folder(path) if artifact.unpack else path
        if url is not None or not artifact.location or near is None:
            return None
        try:
            local = self._local(artifact, filename, local_path(artifact, near, root), progress=None)
        except (OSError, CannotFetch):
            return None
        return self._known_folder(local) if artifact.unpack and local is not None else local

    def put(self, content: bytes | Path, filename: str) -> Artifact:
        """Keeps something benchwright made, such as a reference output; `known` finds it again."""
        artifact = Artifact(key=filename, filename=filename)
        name = safe_filename(artifact)
        try:
            parts = self.folder / "parts"
            parts.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=parts) as aside:
                copy = Path(aside) / name
                if isinstance(content, bytes):
                    copy.write_bytes(content)
                else:
                    shutil.copyfile(content, copy)
                sums = hash_file(copy, md5=True)
                kept = msgspec.structs.replace(artifact, sha256=sums.sha256, md5=sums.md5)
                if self.objects.find(kept, name, _SILENT) is None:
                    self.objects.add(copy, sums, name, "")
                return kept
        except OSError as error:
            raise unwritable(error.filename or self.folder, error) from error

    # Where it is.

    def _found(
        self,
        artifact: Artifact,
        filename: str,
        near: Path | None,
        root: Path | None,
        observer: FetchObserver,
        where: str | None,
    ) -> Path:
        url = remote_url(artifact, where)
        progress = _byte_progress(observer, filename)
        has_sum = _has_sum(artifact)
        if has_sum and (path := self._object(artifact, filename, url, progress)):
            return path
        if url is not None:
            if artifact.directory:
                what = f"file '{artifact.key}' is a folder, which cannot be fetched from {shown(url)}"
                raise InvalidInput(what, where=where, remedy='give an archive, with "unpack": true')
            return self._fetched(artifact, filename, url, observer)
        if not artifact.location and has_sum:
            raise CannotFetch(f"{filename} is not in the cache {self.folder} any more", remedy="make it again")
        path = local_path(artifact, near, root, where)
        found = self._local(artifact, filename, path, progress)
        assert found is not None
        return found

    def _object(self, artifact: Artifact, filename: str, url: str | None, progress: ByteProgress | None) -> Path | None:
        """The cached file with its sums; without sums, what its location had."""
        if not _has_sum(artifact):
            known = None if url is None else self._known_location(url)
            if known is None:
                return None
            artifact = msgspec.structs.replace(artifact, sha256=known.sha256)
        return self.objects.find(artifact, filename, progress)

    def _local(self, artifact: Artifact, filename: str, path: Path, progress: ByteProgress | None) -> Path | None:
        """A file that is used where it lies; None if it would have to be read, and `progress` is None."""
        kind = _kind_of(path, artifact)
        if kind == "folder":
            return path
        if _has_sum(artifact):
            sums = self.objects.local_sums(path, md5=artifact.md5 is not None, progress=progress)
            if sums is None:
                return None
            if bad := sums.mismatch(artifact):
                remedy = "correct the sum if the file is right, else replace the file"
                raise CannotFetch(_mismatch_words(artifact, str(path), *bad), remedy=remedy)
        return side_by_side(self.folder, self.objects, {filename: path})[filename]

    # Fetching.

    def _fetched(self, artifact: Artifact, filename: str, url: str, observer: FetchObserver) -> Path:
        identity = _identity(artifact, url)
        if self._offline:
            return self._without_network(artifact, filename, url)
        for name in ("locks", "parts", "locations"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

        def waiting() -> None:
            observer.on_step(filename, "another benchwright is downloading it; waiting")

        began = time.time()
        with locked(str(self.folder / "locks" / f"{identity}.lock"), waiting=waiting):
            path = self._object(artifact, filename, url, _byte_progress(observer, filename))
            known = self._known_location(url)
            if path is not None and (_has_sum(artifact) or self._checked_since(url, began)):
                return path  # whoever had the lock fetched it
            try:
                return self._download(artifact, filename, url, identity, observer, None if path is None else known)
            except CannotFetch as error:
                if path is None:
                    raise
                raise CannotFetch(error.what, remedy="use the copy fetched earlier with --offline") from error

    def _download(
        self,
        artifact: Artifact,
        filename: str,
        url: str,
        identity: str,
        observer: FetchObserver,
        known: KnownLocation | None,
    ) -> Path:
        has_sum = _has_sum(artifact)
        began = time.monotonic()
        part = self.folder / "parts" / f"{identity}.part"
        download = Download(part, self._source(url, filename), self._limits, observer, filename, has_sum=has_sum)
        observer.on_step(filename, f"downloading from {shown(url)}")
        bad: tuple[str, str, str] | None = None
        for again in (False, True):  # a mismatch is fetched once more
            if again:
                observer.on_step(filename, "its checksum is wrong; downloading it once more")
            try:
                sums = download.run(have=None if known is None else known.version)
            except NotModified:
                assert known is not None
                os.utime(self._location_path(url))
                path = self.objects.find(Artifact(key="", filename=filename, sha256=known.sha256), filename, _SILENT)
                assert path is not None
                return path
            bad = sums.mismatch(artifact)
            if bad is None:
                return self._kept(download, sums, artifact, filename, url, observer, time.monotonic() - began)
            download.discard()
        assert bad is not None
        remedy = "correct the sum in the specification if the file is right; else ask whoever publishes it"
        raise CannotFetch(_mismatch_words(artifact, shown(url), *bad), remedy=remedy)

    def _kept(
        self,
        download: Download,
        sums: Sums,
        artifact: Artifact,
        filename: str,
        url: str,
        observer: FetchObserver,
        took_s: float,
    ) -> Path:
        size = os.stat(download.part).st_size
        path = self.objects.add(download.part, sums, filename, shown(url))
        download.discard()
        if not _has_sum(artifact):
            body = KnownLocation(sha256=sums.sha256, version=download.version)
            write_own(self._location_path(url), msgspec.json.encode(body))
            observer.on_note(f"{filename} has no checksum in the specification; its sha256 is {sums.sha256}")
        observer.on_step_done(filename, f"downloaded {format_bytes(size)} in {format_duration(took_s)}")
        return path

    def _without_network(self, artifact: Artifact, filename: str, url: str) -> Path:
        if path := self._object(artifact, filename, url, _SILENT):
            return path
        raise CannotFetch(
            f"{filename} is not in the cache {self.folder}, and --offline forbids fetching {shown(url)}",
            remedy="run once without --offline",
        )

    def _source(self, url: str, filename: str) -> Source:
        if url.partition(":")[0].lower() in CLOUD:
            return CloudSource(url, filename)

        return WebSource(url, filename, self._limits)

    # Archives.

    def _unpacked(self, archive: Path, filename: str, observer: FetchObserver) -> Path:
        sums = self.objects.local_sums(archive, md5=False, progress=_byte_progress(observer, filename))
        assert sums is not None
        observer.on_step_now(filename, "unpacking")
        return self._archives.make(archive, sums.sha256)

    def _known_folder(self, archive: Path) -> Path | None:
        sums = self.objects.local_sums(archive, md5=False, progress=None)
        return None if sums is None else self._archives.find(sums.sha256)

    # Locations without checksums.

    def _location_path(self, url: str) -> Path:
        return self.folder / "locations" / f"{_hash_of(url)}.json"

    def _known_location(self, url: str) -> KnownLocation | None:
        try:
            return read_stored_json(self._location_path(url), KnownLocation)
        except (OSError, Unreadable):
            return None

    def _checked_since(self, url: str, began: float) -> bool:
        try:
            return os.stat(self._location_path(url)).st_mtime >= began
        except OSError:
            return False


def _has_sum(artifact: Artifact) -> bool:
    return artifact.sha256 is not None or artifact.md5 is not None


def _identity(artifact: Artifact, url: str) -> str:
    """The key of the lock and of a continued download: the content, or the location if there is no checksum."""
    if artifact.sha256 is not None:
        return artifact.sha256
    return f"md5-{artifact.md5}" if artifact.md5 is not None else f"at-{_hash_of(url)}"


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:40]


def _kind_of(path: Path, artifact: Artifact) -> str:
    """`file` or `folder`, as it should be. CannotFetch if it is not there, or something else."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotFetch(f"{artifact.filename}: {path}: {why}", remedy="check the location of the file") from error
    if stat.S_ISDIR(mode) and not artifact.directory:
        remedy = 'write "md5": "directory" if a folder is meant'
        raise CannotFetch(f"{artifact.filename}: {path} is a folder", remedy=remedy)
    if not stat.S_ISDIR(mode) and artifact.directory:
        raise CannotFetch(f"{artifact.filename}: {path} is not a folder", remedy="give its checksum, not 'directory'")
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise CannotFetch(f"{artifact.filename}: {path} is not a regular file", remedy="check the location of the file")
    return "folder" if stat.S_ISDIR(mode) else "file"


def _mismatch_words(artifact: Artifact, location: str, name: str, expected: str, actual: str) -> str:
    return f"{artifact.filename}: the {name} of {location} is {actual}, but the specification says {expected}"


def _byte_progress(observer: FetchObserver, filename: str) -> ByteProgress:
    def progress(done: int) -> None:
        if done % _LARGE == 0:
            observer.on_step_now(filename, f"checking it: {format_bytes(done)}")

    return progress
