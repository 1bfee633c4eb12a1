"""Local files, names and paths, changes behind our back, archives, and several processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
from bad_server import BadServer, honest
from fetching import Heard, limits, md5, model, sha256

from benchwright.artifacts.cache import ArtifactCache
from benchwright.artifacts.unpack import unpack
from benchwright.core.artifact import Artifact
from benchwright.core.errors import BenchwrightError, CannotFetch, InvalidInput

CONTENT = b"weights" * 1000


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """The folder of a specification, with a model beside it."""
    folder = tmp_path / "specs" / "models"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(CONTENT)
    return folder


@pytest.mark.parametrize(
    "form", ["model.onnx", "./model.onnx", "{spec}/model.onnx", "file://{spec}/model.onnx", "//models/model.onnx"]
)
def test_a_local_file_is_used_where_it_lies(cache: ArtifactCache, spec: Path, form: str) -> None:
    wanted = model(form.format(spec=spec), CONTENT, md5=md5(CONTENT))
    assert cache.fetch(wanted, near=spec, root=spec.parent) == spec / "model.onnx"
    assert not (cache.folder / "objects").exists()


def test_a_local_file_can_have_another_name(cache: ArtifactCache, spec: Path) -> None:
    path = cache.fetch(model("model.onnx", CONTENT, filename="net.pb"), near=spec)
    assert path.name == "net.pb"
    assert path.read_bytes() == CONTENT


def test_a_local_file_with_the_wrong_sum_is_an_error(cache: ArtifactCache, spec: Path) -> None:
    with pytest.raises(CannotFetch) as raised:
        cache.fetch(model("model.onnx", md5="0" * 32), near=spec)
    for part in (str(spec / "model.onnx"), md5(CONTENT), "0" * 32, "correct the sum"):
        assert part in str(raised.value)
    assert cache.known(model("model.onnx", md5="0" * 32), near=spec) is None


def test_a_local_file_that_changed_is_read_again(cache: ArtifactCache, spec: Path) -> None:
    """Same size, same modification time: only the change time tells."""
    path, wanted = spec / "model.onnx", model("model.onnx", CONTENT)
    settle(path)
    assert cache.fetch(wanted, near=spec) == path == cache.known(wanted, near=spec)
    before = path.stat()
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.known(wanted, near=spec) is None
    with pytest.raises(CannotFetch, match=sha256(CONTENT[::-1])):
        cache.fetch(wanted, near=spec)


def settle(path: Path) -> None:
    """Waits until a change of the file must show in its change time."""
    time.sleep(max(0.0, path.stat().st_ctime + 2.05 - time.time()))


def test_a_file_written_a_moment_ago_is_not_trusted_by_its_times(cache: ArtifactCache, spec: Path) -> None:
    wanted = model("model.onnx", CONTENT)
    cache.fetch(wanted, near=spec)
    assert cache.known(wanted, near=spec) is None


@pytest.mark.parametrize(
    "filename", ["../../etc/passwd", "/etc/passwd", "a/b", "..", ".", "a\0b", "a\nb", "-rf", "x" * 300, "a\\b"]
)
def test_a_filename_cannot_leave_the_cache(cache: ArtifactCache, spec: Path, filename: str) -> None:
    with pytest.raises(InvalidInput, match="plain name") as raised:
        cache.fetch(model("model.onnx", CONTENT, filename=filename), near=spec, where="spec.json")
    assert str(raised.value).startswith("spec.json: filename")
    assert not cache.folder.exists()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("../../../../../etc/passwd", "leaves the folder of the specification"),
        ("models/../../../x", "leaves the folder of the specification"),
        ("//../../etc/passwd", "leaves --root-model-dir"),
        ("///etc/passwd", "No such file"),
        ("ftp://host/file", "ftp: is not supported"),
        ("https://user:secret@host/file", "contains a user name or password"),
        ("https:///nohost", "is not a URL"),
        ("http://host/a b", "is not a URL"),
        ("file://elsewhere/etc/passwd", "is on another machine"),
        ("missing.onnx", "No such file"),
        ("a\0b", "is no path"),
        ("", "has no location"),
        ("/dev/zero", "is not a regular file"),
    ],
)
def test_a_location_that_may_not_be_used(cache: ArtifactCache, spec: Path, location: str, words: str) -> None:
    with pytest.raises(BenchwrightError, match=words) as raised:
        cache.fetch(model(location), near=spec, root=spec)
    assert "secret" not in str(raised.value)


def test_above_the_specification_a_sum_is_needed(cache: ArtifactCache, spec: Path) -> None:
    (spec.parent / "shared.onnx").write_bytes(CONTENT)
    assert cache.fetch(model("../shared.onnx", CONTENT), near=spec).read_bytes() == CONTENT
    with pytest.raises(InvalidInput, match="give its md5 or sha256"):
        cache.fetch(model("../shared.onnx"), near=spec)


def test_a_specification_from_elsewhere_cannot_name_local_files(cache: ArtifactCache, spec: Path) -> None:
    for location in ("model.onnx", str(spec / "model.onnx"), f"file://{spec}/model.onnx", "//model.onnx"):
        with pytest.raises(InvalidInput, match="is local, but the specification is not"):
            cache.fetch(model(location, CONTENT), near=None, root=spec)


def test_a_root_is_asked_for(cache: ArtifactCache, spec: Path) -> None:
    with pytest.raises(InvalidInput, match="give --root-model-dir DIR"):
        cache.fetch(model("//model.onnx", CONTENT), near=spec)


@pytest.mark.parametrize("sums", [{"md5": "xyz"}, {"sha256": md5(CONTENT)}, {"md5": "0" * 31 + "g"}])
def test_a_sum_that_is_none_is_an_error(cache: ArtifactCache, spec: Path, sums: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="hexadecimal digits"):
        cache.fetch(model("model.onnx", **sums), near=spec)


def test_a_folder_is_allowed_where_the_specification_says_so(cache: ArtifactCache, spec: Path) -> None:
    folder = model(str(spec), directory=True)
    assert cache.fetch(folder, near=spec) == cache.known(folder, near=spec) == spec
    with pytest.raises(CannotFetch, match='is a folder; write "md5": "directory"'):
        cache.fetch(model(str(spec)), near=spec)
    with pytest.raises(CannotFetch, match="is not a folder"):
        cache.fetch(model("model.onnx", directory=True), near=spec)
    with pytest.raises(InvalidInput, match='"unpack": true'):
        cache.fetch(model("https://host/folder", directory=True), near=spec)


def test_a_cached_file_that_was_changed_is_fetched_again(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    path = cache.fetch(wanted, near=None)
    times = path.stat()
    path.chmod(0o644)
    path.write_bytes(CONTENT[::-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert cache.known(wanted) is None
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert len(server.seen) == 2


def test_a_cached_file_that_was_only_touched_is_not(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    path = cache.fetch(wanted, near=None)
    os.utime(path)
    assert cache.known(wanted) is None
    settle(path)
    assert cache.fetch(wanted, near=None) == cache.known(wanted)
    assert len(server.seen) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 99}'])
def test_a_damaged_record_means_fetching_again(cache: ArtifactCache, server: BadServer, damage: bytes) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    cache.fetch(wanted, near=None)
    (cache.folder / "objects" / f"{sha256(CONTENT)}.json").write_bytes(damage)
    assert cache.known(wanted) is None
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT


def test_a_record_cannot_lead_elsewhere(cache: ArtifactCache, server: BadServer, tmp_path: Path) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    cache.fetch(wanted, near=None)
    record = cache.folder / "objects" / f"{sha256(CONTENT)}.json"
    record.write_bytes(record.read_bytes().replace(b'"model.onnx"', b'"../../../secret"'))
    (tmp_path / "secret").write_bytes(CONTENT)
    assert cache.fetch(wanted, near=None).is_relative_to(cache.folder)


def test_a_cache_that_is_read_only_serves_what_it_has(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    path = cache.fetch(wanted, near=None)
    folders = [cache.folder, *(p for p in cache.folder.rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert ArtifactCache(cache.folder).fetch(wanted, near=None) == path
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_what_benchwright_made_is_found_again(cache: ArtifactCache, tmp_path: Path) -> None:
    made = cache.put(b"golden", "out.npy")
    again = ArtifactCache(cache.folder)
    found = again.known(made)
    assert found is not None
    assert (found.name, found.read_bytes()) == ("out.npy", b"golden")
    (tmp_path / "file").write_bytes(b"golden")
    assert again.put(tmp_path / "file", "out.npy") == made
    found.unlink()
    with pytest.raises(CannotFetch, match=r"out.npy is not in the cache .* make it again"):
        again.fetch(made, near=None)


def test_files_of_one_benchmark_lie_side_by_side(cache: ArtifactCache, server: BadServer, spec: Path) -> None:
    files = [
        Artifact(key="net", filename="net.xml", location=server.serve("/1", honest(b"xml")), sha256=sha256(b"xml")),
        Artifact(key="weights", filename="net.bin", location=server.serve("/2", honest(b"bin")), md5=md5(b"bin")),
        Artifact(key="labels", filename="labels.txt", location="model.onnx"),
    ]
    paths = cache.fetch_all(files, near=spec)
    assert {path.parent for path in paths.values()} == {paths["net"].parent}
    assert {key: path.name for key, path in paths.items()} == {
        "net": "net.xml",
        "weights": "net.bin",
        "labels": "labels.txt",
    }
    assert not paths["net"].is_symlink()
    assert [paths[key].read_bytes() for key in ("net", "weights", "labels")] == [b"xml", b"bin", CONTENT]
    assert cache.fetch_all(files, near=spec) == paths
    assert len(server.seen) == 2
    assert cache.known(files[0]) is not None  # a link more is no change


def test_two_files_of_one_name_keep_their_own_places(cache: ArtifactCache, spec: Path) -> None:
    (spec / "b").mkdir()
    (spec / "b" / "model.onnx").write_bytes(b"other")
    files = [model("model.onnx", key="a"), model("b/model.onnx", key="b")]
    paths = cache.fetch_all(files, near=spec)
    assert (paths["a"].read_bytes(), paths["b"].read_bytes()) == (CONTENT, b"other")


# Archives.


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def tarred(path: Path, members: list[tarfile.TarInfo], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
        for member in members:
            packed.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def member(name: str, size: int = 3, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def test_an_archive_is_unpacked_once_and_again_if_changed(cache: ArtifactCache, spec: Path) -> None:
    zipped(spec / "data.zip", {"a/x.txt": b"one", "y.txt": b"two"})
    settle(spec / "data.zip")
    wanted = model("data.zip", (spec / "data.zip").read_bytes(), filename="data.zip", unpack=True)
    assert cache.known(wanted, near=spec) is None
    folder = cache.fetch(wanted, near=spec)
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*.txt")} == {"a/x.txt", "y.txt"}
    made = folder.stat().st_ino
    assert cache.fetch(wanted, near=spec).stat().st_ino == made
    assert cache.known(wanted, near=spec) == folder
    (folder / "y.txt").write_bytes(b"2wo")
    assert cache.known(wanted, near=spec) is None
    assert (cache.fetch(wanted, near=spec) / "y.txt").read_bytes() == b"two"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar_archives_of_every_kind(tmp_path: Path, mode: str) -> None:
    program = member("bin/run", mode=0o755)
    done = unpack(tarred(tmp_path / "a.tar", [member("x"), program], mode), tmp_path / "out", limits())
    assert (done.files, done.size) == (2, 6)
    assert os.access(tmp_path / "out" / "bin" / "run", os.X_OK)
    assert not os.access(tmp_path / "out" / "x", os.X_OK) or os.stat(tmp_path / "out" / "x").st_mode & 0o111 == 0


@pytest.mark.parametrize(
    "bad",
    [
        member("../../etc/passwd"),
        member("/etc/passwd"),
        member("a/../../x"),
        member("link", 0, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("hard", 0, type=tarfile.LNKTYPE, linkname="../../x"),
        member("pipe", 0, type=tarfile.FIFOTYPE),
        member("device", 0, type=tarfile.CHRTYPE),
    ],
)
def test_an_archive_cannot_write_elsewhere(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    archive = tarred(tmp_path / "a.tar.gz", [member("good"), bad])
    with pytest.raises(InvalidInput, match="this archive is not unpacked"):
        unpack(archive, tmp_path / "in" / "out", limits())
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.tar.gz", "in"]


def test_a_zip_cannot_either(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    for number, name in enumerate(["../x", "/x", "..\\x", link]):
        archive = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr(name, b"x")
        with pytest.raises(InvalidInput, match="this archive is not unpacked"):
            unpack(archive, tmp_path / "in" / "out", limits())
    assert not (tmp_path / "in" / "x").exists()


def test_bombs_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {"zeros": bytes(20 << 20)})
    with pytest.raises(CannotFetch, match="more than 200 times its size"):
        unpack(bomb, tmp_path / "out", limits(free_ratio_bytes=1 << 20))
    with pytest.raises(CannotFetch, match="more than 10 MiB"):
        unpack(bomb, tmp_path / "out", limits(max_bytes=10 << 20))
    many = zipped(tmp_path / "many.zip", {f"{n}": b"" for n in range(101)})
    with pytest.raises(CannotFetch, match="more than 100 files"):
        unpack(many, tmp_path / "out", limits(max_unpacked_files=100))
    with pytest.raises(CannotFetch, match="no room on the disk"):
        unpack(bomb, tmp_path / "out", limits(keep_free_bytes=1 << 60))
    assert not (tmp_path / "out").exists()


def test_a_zip_that_lies_about_its_size_is_counted_as_it_unpacks(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "bomb.zip", {"zeros": bytes(20 << 20)})
    bomb.write_bytes(bomb.read_bytes().replace((20 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(CannotFetch, match=r"damaged|times its size"):
        unpack(bomb, tmp_path / "out", limits(free_ratio_bytes=1 << 20))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 half a zip"])
def test_what_is_no_archive_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(CannotFetch, match="damaged or of an unknown kind"):
        unpack(tmp_path / "a.zip", tmp_path / "out", limits())


# Several processes.

FETCH = """
import sys
from pathlib import Path
from benchwright.artifacts.cache import ArtifactCache
from benchwright.core.artifact import Artifact
folder, url, sha256 = sys.argv[1:]
print(ArtifactCache(Path(folder)).fetch(Artifact(key="m", filename="m", location=url, sha256=sha256), near=None))
"""


def test_two_fetchers_share_one_download(cache: ArtifactCache, server: BadServer, heard: Heard) -> None:
    content = os.urandom(1 << 20)
    wanted = model(server.serve("/m", honest(content, last_after=lambda: "waiting" in str(heard))), content)
    argv = [sys.executable, "-c", FETCH, str(cache.folder), wanted.location, sha256(content)]
    first = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    while not server.seen:
        time.sleep(0.01)
    path = cache.fetch(wanted, near=None, progress=heard)
    out, _ = first.communicate(timeout=300)
    assert first.returncode == 0
    assert Path(out.strip()).read_bytes() == path.read_bytes() == content
    assert len(server.seen) == 1
    assert "another benchwright is downloading it; waiting" in str(heard)


def test_threads_of_one_process_share_one_download(cache: ArtifactCache, server: BadServer) -> None:
    content = os.urandom(300_000)
    wanted = model(server.serve("/m", honest(content, pause_s=0.03)), content)
    threads = [threading.Thread(target=lambda: cache.fetch(wanted, near=None)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.seen) == 1
    assert cache.known(wanted) is not None


def test_a_killed_download_is_continued(cache: ArtifactCache, server: BadServer) -> None:
    content = os.urandom(2 << 20)
    is_killed = threading.Event()
    wanted = model(server.serve("/m", honest(content, last_after=is_killed.is_set)), content)
    argv = [sys.executable, "-c", FETCH, str(cache.folder), wanted.location, sha256(content)]
    process = subprocess.Popen(argv)
    part = cache.folder / "parts" / f"{sha256(content)}.part"
    while not part.exists() or part.stat().st_size < 200_000:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    is_killed.set()
    kept = part.stat().st_size
    assert cache.known(wanted) is None
    server.serve("/m", honest(content))
    assert cache.fetch(wanted, near=None).read_bytes() == content
    assert server.seen[-1].range == f"bytes={kept}-"
