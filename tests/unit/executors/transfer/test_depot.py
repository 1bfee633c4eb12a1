"""Pushing by content: what is sent, what is found out, and what a failure leaves. The other machine is a folder here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_shell import LocalShell

from benchwright.core.errors import CannotMeasure
from benchwright.executors.transfer.depot import Depot, Pushed, Tree, sum_of
from benchwright.executors.transfer.manifest import Entry, read_manifest
from benchwright.executors.transfer.pull import pull
from benchwright.executors.transfer.sent import remove_sent_files, sent_files
from benchwright.executors.transfer.shell import ConnectionLost
from benchwright.executors.transfer.survey import Survey, survey

OLD = 1_000_000_000


class Far:
    """A machine that has only the programs of `path`, if that is given."""

    def __init__(self, folder: Path, path: str | None = None) -> None:
        self.folder = folder
        self.path = path
        self.shell = LimitedShell(path)
        self.found: Survey = survey(self.shell, str(folder))

    def push(self, *sources: Path) -> Pushed:
        depot = Depot(self.shell, self.found)
        return depot.push([Tree(read_manifest(str(source)), self.place(source)) for source in sources])

    def place(self, source: Path) -> str:
        return f"{self.folder}/placed/{source.name}"

    def objects(self) -> list[str]:
        return os.listdir(self.folder / "objects")


class LimitedShell(LocalShell):
    def __init__(self, path: str | None) -> None:
        self._path = path

    def words(self, command: Sequence[str]) -> list[str]:
        return list(command) if self._path is None else ["/usr/bin/env", f"PATH={self._path}", *command]


@pytest.fixture
def far(tmp_path: Path) -> Far:
    return Far(tmp_path / "far")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    for name, text in {"a": "one", "sub/b": "two" * 1000, "sub/same": "one"}.items():
        (root / name).write_text(text)
        os.utime(root / name, (OLD, OLD))
    (root / "a").chmod(0o755)
    (root / "sub" / "same").chmod(0o755)
    (root / "link").symlink_to("sub/b")
    return root


def same(left: str | Path, right: str | Path) -> bool:
    return (
        subprocess.run(["diff", "-r", "--no-dereference", left, right], check=False, capture_output=True).returncode
        == 0
    )


def test_a_tree_arrives_whole_with_its_modes_and_times(far, tree):
    pushed = far.push(tree)
    assert same(tree, far.place(tree))
    assert os.stat(f"{far.place(tree)}/a").st_mode & 0o777 == 0o755
    assert os.stat(f"{far.place(tree)}/sub/b").st_mtime == OLD
    assert (pushed.sent_files, pushed.sent_bytes) == (2, 3003)  # equal files are sent once
    assert not list(far.folder.glob("incoming.*")) + list(far.folder.glob("building.*"))


def test_what_is_there_is_not_sent_again(far, tree):
    far.push(tree)
    inode = os.stat(f"{far.place(tree)}/a").st_ino
    assert far.push(tree).sent_files == 0
    assert os.stat(f"{far.place(tree)}/a").st_ino == inode  # not even built again
    (tree / "new").write_text("three")
    assert far.push(tree).sent_files == 1
    assert same(tree, far.place(tree))


def test_what_was_removed_here_is_gone_there(far, tree):
    far.push(tree)
    (tree / "a").unlink()
    far.push(tree)
    assert not os.path.exists(f"{far.place(tree)}/a")


def test_a_file_that_a_program_changed_there_is_sent_again(far, tree):
    far.push(tree)
    path = Path(far.place(tree)) / "sub" / "b"
    for harm in ("overwritten", "appended", "removed", "replaced"):
        if harm in ("removed", "replaced"):
            path.unlink()
        if harm != "removed":
            with path.open("a" if harm == "appended" else "w") as file:
                file.write("changed")
        assert not same(tree, far.place(tree))
        far.push(tree)
        assert same(tree, far.place(tree)), harm


def test_a_push_that_was_cut_takes_up_what_arrived_and_nothing_half(far, tree):
    """As if the connection had gone away in the middle of a file."""
    first, second = (e for e in read_manifest(str(tree)).files if e.path in ("a", "sub/b"))
    incoming = far.folder / "incoming.cut"
    incoming.mkdir()
    shutil.copy2(first.source, incoming / first.object_name)
    (incoming / second.object_name).write_text("two" * 10)
    assert far.push(tree).sent_files == 1
    assert same(tree, far.place(tree))


def test_a_connection_that_is_lost_says_how_far_it_came(far, tree, tmp_path):
    class Cut(LocalShell):
        def words(self, command: Sequence[str]) -> list[str]:
            return ["sh", "-c", "head -c 100 >/dev/null; exit 255"] if "tar -xpf" in command[2] else list(command)

    depot = Depot(Cut(), far.found)
    with pytest.raises(ConnectionLost, match="of 0 MB were sent, and the next push goes on"):
        depot.push([Tree(read_manifest(str(tree)), far.place(tree))])
    assert not os.path.exists(far.place(tree))
    assert far.objects() == []
    far.push(tree)
    assert same(tree, far.place(tree))


def test_a_wrong_checksum_is_never_taken_for_whole(far, tree):
    class Flipping(LocalShell):
        def words(self, command: Sequence[str]) -> list[str]:
            if "tar -xpf -" in command[2] and "incoming" in command[5]:
                return ["sh", "-c", f"tr o 0 | {{ {command[2]}\n}}", *command[3:]]
            return list(command)

    depot = Depot(Flipping(), far.found)
    with pytest.raises(CannotMeasure, match=r"checksum|header"):
        depot.push([Tree(read_manifest(str(tree)), far.place(tree))])
    assert not os.path.exists(far.place(tree))
    far.push(tree)
    assert same(tree, far.place(tree))


def test_a_file_that_changes_while_it_is_sent_is_refused(far, tree):
    manifest = read_manifest(str(tree))
    (tree / "sub" / "b").write_text("two" * 999 + "tow")
    with pytest.raises(CannotMeasure, match="another checksum"):
        Depot(far.shell, far.found).push([Tree(manifest, far.place(tree))])
    (tree / "sub" / "b").write_text("x")
    with pytest.raises(CannotMeasure, match="changed while it was being sent"):
        Depot(far.shell, far.found).push([Tree(manifest, far.place(tree))])
    assert not os.path.exists(far.place(tree))


def test_too_little_space_is_said_before_anything_is_sent(tree, far):
    full = msgspec.structs.replace(far.found, free_bytes=1000)
    with pytest.raises(CannotMeasure, match=r"0.0 GB free, .* choose another folder with --remote-dir"):
        Depot(far.shell, full).push([Tree(read_manifest(str(tree)), far.place(tree))])
    assert far.objects() == []


def test_a_disk_that_fills_up_meanwhile_is_said_to_be_full(tmp_path):
    """A real full disk, where a small one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "large").write_bytes(os.urandom(3 << 20))

    class SmallDisk(LocalShell):
        def words(self, command: Sequence[str]) -> list[str]:
            mount = f'mount -t tmpfs -o size=2m none {disk} && exec "$@"'
            return ["unshare", "-rm", "sh", "-c", mount, "sh", *command]

    if subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    found = msgspec.structs.replace(survey(SmallDisk(), str(disk)), free_bytes=None)
    with pytest.raises(CannotMeasure, match="its disk is full"):
        Depot(SmallDisk(), found).push([Tree(read_manifest(str(tmp_path / "large")), f"{disk}/placed/large")])


def limited(folder: Path, without: str) -> str:
    tools = "sh cat date df env find grep cp mkdir mv nproc rm rmdir sed sha256sum md5sum cksum stat tail tar touch uname xargs ls"
    folder.mkdir()
    for tool in set(tools.split()) - set(without.split()):
        (folder / tool).symlink_to(shutil.which(tool) or pytest.skip(f"there is no {tool}"))
    return str(folder)


@pytest.mark.parametrize("without", ["stat", "sha256sum", "sha256sum md5sum", "stat sha256sum md5sum"])
def test_poorer_tools_will_do(tmp_path, tree, without):
    far = Far(tmp_path / "far", limited(tmp_path / "tools", without))
    far.push(tree)
    assert same(tree, far.place(tree))
    assert far.push(tree).sent_files == 0
    (Path(far.place(tree)) / "sub" / "b").write_text("changed")
    far.push(tree)
    assert same(tree, far.place(tree))


def test_a_machine_without_tar_is_said_to_lack_it(tmp_path):
    with pytest.raises(CannotMeasure, match="it has no tar to unpack"):
        Far(tmp_path / "far", limited(tmp_path / "tools", "tar"))


def test_a_file_system_without_hard_links_gets_copies(far, tree):
    class NoLinks(LocalShell):
        """Its tar fails as it does where links cannot be made."""

        def words(self, command: Sequence[str]) -> list[str]:
            refuse = "tar() { command tar --exclude='*[ab]' --exclude='*same' \"$@\" && false; }"
            return [*command[:2], f"{refuse}\n{command[2]}" if "swap()" in command[2] else command[2], *command[3:]]

    Depot(NoLinks(), far.found).push([Tree(read_manifest(str(tree)), far.place(tree))])
    assert same(tree, far.place(tree))
    assert os.stat(f"{far.place(tree)}/sub/b").st_nlink == 1


def test_what_was_sent_can_be_seen_and_removed_and_nothing_else(far, tree):
    far.push(tree)
    (far.folder / "somebody's").write_text("mine")
    shown = sent_files(far.shell, str(far.folder))
    assert (shown.folder, shown.trees) == (str(far.folder), 1)
    assert shown.size > 3000
    remove_sent_files(far.shell, str(far.folder))
    assert os.listdir(far.folder) == ["somebody's"]
    assert sent_files(far.shell, str(far.folder)).size == 0


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "placed").mkdir()
    remove_sent_files(LocalShell(), str(tmp_path))
    assert os.listdir(tmp_path) == ["placed"]


names = st.text(
    st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)), min_size=1, max_size=40
).filter(lambda name: name not in (".", "..", "__pycache__", ".git") and len(name.encode()) < 200)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, st.binary(max_size=50), min_size=1, max_size=5))
def test_odd_names_arrive_and_come_back(tmp_path_factory, files):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as made:
        source = Path(made) / "it's odd"
        source.mkdir()
        for name, content in files.items():
            (source / name).write_bytes(content)
            os.utime(source / name, (OLD, OLD))
        far = Far(Path(made) / "far away")
        far.push(source)
        assert same(source, far.place(source))
        assert far.push(source).sent_files == 0
        pull(far.shell, far.place(source), f"{made}/back here")
        assert same(source, f"{made}/back here")


@pytest.mark.parametrize("tool", ["sha256sum", "md5sum", "cksum"])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000, (1 << 20) + 3])
def test_sums_are_those_that_the_tools_print(tmp_path, tool, size):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    [entry] = read_manifest(str(path)).entries
    printed = subprocess.run([tool, str(path)], check=True, capture_output=True, text=True).stdout
    assert sum_of(tool, entry) == printed.split()[0]
    content = Entry("", "file", digest=entry.digest, content=path.read_bytes())
    assert sum_of(tool, content) == printed.split()[0]


def test_a_pull_that_is_cut_leaves_what_was_there(tmp_path, tree):
    class Cut(LocalShell):
        def words(self, command: Sequence[str]) -> list[str]:
            return [
                "sh",
                "-c",
                f"{{ {command[2].replace('exec tar', 'tar')}\n}} | head -c 1500; exit 255",
                *command[3:],
            ]

    (tmp_path / "here").write_text("before")
    with pytest.raises(ConnectionLost):
        pull(Cut(), str(tree), str(tmp_path / "here"))
    assert (tmp_path / "here").read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["here", "tree"]
