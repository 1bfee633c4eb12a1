"""Pins: exact versions, the same in all files of a group, with hashes where the index gives them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from local_wheels import make_index, make_wheel

from benchwright.environments.installers import choose_installer
from benchwright.environments.package_indexes import configured_indexes
from benchwright.environments.pins import (
    CannotPin,
    PinGroup,
    PinnedFile,
    Pinner,
    PinSource,
    index_lines,
    pinned_packages,
)
from benchwright.environments.tools import Tools

pytestmark = pytest.mark.usefixtures("only_local_packages")
with_both = pytest.mark.parametrize("tool", ["uv", "pip"])
with_pip_if_long = pytest.mark.parametrize("tool", ["uv", pytest.param("pip", marks=pytest.mark.long)])


class Folder:
    """Benchmark folders of one install group."""

    def __init__(self, place: Path, tool: str) -> None:
        self.place = place
        self.tool = tool

    def source(self, name: str, text: str, added: tuple[str, ...] = ()) -> PinSource:
        path = self.place / name / "requirements.in"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return PinSource(source=str(path), target=str(path.with_name("requirements.cpu.txt")), added=added)

    def pin(
        self, *sources: PinSource, constraints: tuple[str, ...] = (), lines: tuple[str, ...] = (), scratch: bool = False
    ) -> list[PinnedFile]:
        installer = choose_installer(self.tool, configured_indexes(os.environ))
        command = "benchwright pin suite.yaml --variant cpu"
        pinner = Pinner(installer, Tools(), command=command, index_lines=lines, from_scratch=scratch)
        return pinner.pin(PinGroup(name="g", sources=sources, constraint_files=constraints))


@pytest.fixture
def folder(tmp_path: Path, tool: str) -> Folder:
    return Folder(tmp_path, tool)


@with_both
def test_every_package_gets_its_version_and_hash(folder: Folder, tmp_path: Path) -> None:
    (file,) = folder.pin(folder.source("a", "beta\n"))
    assert (file.packages, file.hashes, file.changed) == ({"alpha": "1.0", "beta": "1.0"}, True, True)
    text = Path(file.path).read_text()
    assert "benchwright pin suite.yaml --variant cpu" in text
    assert str(tmp_path) not in text
    assert not list((tmp_path / "a").glob("*.part"))


@with_pip_if_long
def test_all_files_of_a_group_agree(folder: Folder) -> None:
    files = folder.pin(folder.source("a", "alpha\n"), folder.source("b", "beta\n"))
    assert [f.packages["alpha"] for f in files] == ["1.0", "1.0"]
    assert "beta" not in files[0].packages


@with_pip_if_long
def test_what_is_pinned_stays_unless_it_is_done_from_scratch(folder: Folder) -> None:
    source = folder.source("a", "alpha\n")
    Path(source.target).write_text("alpha==1.0\n")
    assert folder.pin(source)[0].packages == {"alpha": "1.0"}
    assert folder.pin(source)[0].changed is False
    assert folder.pin(source, scratch=True)[0].packages == {"alpha": "2.0"}


@with_pip_if_long
def test_an_old_pin_that_does_not_fit_any_more_gives_way(folder: Folder) -> None:
    source = folder.source("a", "alpha>=2\n")
    Path(source.target).write_text("alpha==1.0\n")
    assert folder.pin(source)[0].packages == {"alpha": "2.0"}


@with_both
def test_constraints_hold(folder: Folder, tmp_path: Path) -> None:
    limits = tmp_path / "cpu.txt"
    limits.write_text("alpha<2\n")
    assert folder.pin(folder.source("a", "alpha\n"), constraints=(str(limits),))[0].packages == {"alpha": "1.0"}


@with_both
def test_no_solution_changes_no_file(folder: Folder) -> None:
    good, bad = folder.source("a", "alpha\n"), folder.source("b", "nothere\n")
    with pytest.raises(CannotPin) as caught:
        folder.pin(good, bad)
    assert caught.value.failure.package == "nothere"
    assert not os.path.exists(good.target)
    assert not os.path.exists(bad.target)


@with_pip_if_long
def test_voir_is_pinned_for_a_folder_with_a_voirfile(folder: Folder, tmp_path: Path) -> None:
    (file,) = folder.pin(folder.source("a", "alpha\n", added=("voir",)))
    assert file.packages == {"alpha": "2.0", "voir": "0.2.24"}
    assert "benchwright-pin-" not in Path(file.path).read_text()


@with_pip_if_long
def test_indexes_that_were_named_are_written_down_without_passwords(
    folder: Folder, tmp_path: Path, packages: Path
) -> None:
    lines = tuple(index_lines("https://user:word@index.test/simple", ["https://vendor.test/cu"], [str(packages)]))
    (file,) = folder.pin(folder.source("a", "alpha\n"), lines=lines)
    text = Path(file.path).read_text()
    assert "--index-url https://index.test/simple\n" in text
    assert "https://vendor.test/cu\n" in text
    assert f"--find-links {os.path.relpath(packages, tmp_path / 'a')}\n" in text
    assert "word" not in text.replace("wording", "")


@with_both
def test_a_simple_index_gives_hashes_too(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "wheels", "epsilon", "3.0")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", make_index(tmp_path / "index", [wheel]))
    (file,) = folder.pin(folder.source("a", "epsilon\n"))
    assert (file.packages, file.hashes) == ({"epsilon": "3.0"}, True)


@with_both
def test_pins_are_read_with_their_hashes_and_markers(tool: str) -> None:
    text = (
        "# by\n--index-url https://x.test\nalpha==1.0 ; python_version > '3' \\\n    --hash=sha256:ab==\nBeta_x===2\n"
    )
    assert pinned_packages(text) == {"alpha": "1.0", "beta-x": "2"}
