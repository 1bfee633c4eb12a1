"""Writing a file under a name a user gave, whatever is there: as a shell's `>` would, and whole where that can be."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchwright.core.errors import CannotWrite, InvalidInput
from benchwright.core.whole_file import unwritable, write_own, write_whole, written_whole

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o600
    path.chmod(0o664)
    write_whole(path, b"newer")
    assert mode_of(path) == 0o664


def test_a_new_file_in_a_private_folder_is_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    write_whole(tmp_path / "new", b"x")
    assert mode_of(tmp_path / "new") == 0o600


def test_a_pipe_under_the_name_of_a_file_of_ours_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    write_own(tmp_path / "run.json", b"{}")
    assert (tmp_path / "run.json").read_bytes() == b"{}"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_honours_the_umask(tmp_path: Path, mask: int) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "new", b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new") == 0o666 & ~mask


def test_a_mode_that_is_asked_for_holds_for_new_and_old_files(tmp_path: Path) -> None:
    for _ in range(2):
        write_whole(tmp_path / "run.json", b"x", mode=0o600)
        assert mode_of(tmp_path / "run.json") == 0o600
        (tmp_path / "run.json").chmod(0o644)


def test_while_a_private_file_is_written_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    with written_whole(path) as aside:
        assert mode_of(Path(aside)) == 0o600


def test_a_link_is_followed_and_its_target_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "link").symlink_to("folder/target")
    (tmp_path / "second").symlink_to("link")
    write_whole(tmp_path / "second", b"new")
    assert (tmp_path / "second").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"
    assert mode_of(target) == 0o640


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("later")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "later").read_bytes() == b"x"
    assert (tmp_path / "link").is_symlink()


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    before = os.stat("/dev/null")
    write_whole("/dev/null", b"x")
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    (tmp_path / "link").symlink_to("/dev/null")
    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()


@as_root
def test_a_device_in_a_folder_of_its_own_is_written_to_and_stays_one(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this container may make no devices")
    write_whole(tmp_path / "null", b"x")
    assert (tmp_path / "null").is_char_device()
    assert os.listdir(tmp_path) == ["null"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_whole(tmp_path / "pipe", b"x" * 200_000)
    reader.join(timeout=20)
    assert read == [b"x" * 200_000]
    assert (tmp_path / "pipe").is_fifo()


def test_standard_output_that_is_a_file_gets_the_content(tmp_path: Path) -> None:
    code = (
        "from benchwright.core.whole_file import write_whole\n"
        "write_whole('/dev/stdout', b'hello')\n"
        "import os; os.write(1, b'HE')\n"  # the descriptor still leads to that file, as it would in a shell
    )
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=600)
    assert (tmp_path / "out").read_bytes() == b"HEllo"


@as_root
def test_a_file_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_text("old")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o644)
    write_whole(path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, path.read_bytes()) == (NOBODY, NOBODY, b"new")


@as_root
def test_whoever_may_only_write_the_file_writes_the_file(tmp_path: Path) -> None:
    """Neither may it make a file beside it, nor give one away; as a shell it still can write what is there."""
    tmp_path.chmod(0o755)
    path = tmp_path / "shared"
    path.write_text("a longer text that was there")
    path.chmod(0o666)
    code = (
        "import os, sys, tempfile\n"
        "from benchwright.core.whole_file import write_whole\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "os.environ['TMPDIR'] = '/tmp'\n"
        "write_whole(sys.argv[1], b'new')\n"
    )
    parents = [p for p in tmp_path.parents if p != Path("/") and mode_of(p) & 0o005 != 0o005]
    before = {p: mode_of(p) for p in parents}
    try:
        for parent in parents:
            parent.chmod(before[parent] | 0o055)
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=600)
    finally:
        for parent in parents:
            parent.chmod(before[parent])
    assert path.read_bytes() == b"new"
    assert path.stat().st_uid == 0
    assert os.listdir(tmp_path) == ["shared"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail() -> None:
        with written_whole(path) as aside:
            Path(aside).write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0" * 100_000)
    stop = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(50):
        write_whole(path, b"%d" % (number % 10) * 100_000, sync=False)
    stop.set()
    reader.join()
    assert {len(content) for content in seen} == {100_000}


def test_an_aside_file_planted_by_somebody_is_not_followed(tmp_path: Path) -> None:
    """Names are not to be guessed, so none can be planted; what can be seen is that two writers never share one."""
    with written_whole(tmp_path / "x") as first, written_whole(tmp_path / "x") as second:
        assert first != second
        Path(first).write_text("1")
        Path(second).write_text("2")
    assert (tmp_path / "x").read_text() in "12"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "is a folder"),
        ("none/x", "its folder does not exist"),
        ("file/x", "not a folder"),
        ("loop", "broken link"),
        ("n" * 300, "too long"),
    ],
)
def test_a_path_that_can_be_no_file_is_the_users_to_correct(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - which one is told apart by its number
        write_whole(tmp_path / name, b"x")
    error = unwritable(tmp_path / name, caught.value)
    assert isinstance(error, InvalidInput)
    assert said in str(error)


def test_a_full_disk_is_said() -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011
        write_whole("/dev/full", b"x")
    error = unwritable("/dev/full", caught.value)
    assert isinstance(error, CannotWrite)
    assert "the disk is full" in str(error)
