"""Looking up what is built in and what packages add."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from benchwright.cli.main import main
from benchwright.core import entry_points
from benchwright.core import registry as registry_module
from benchwright.core.entry_points import find_entry_points, own_metadata
from benchwright.core.errors import BrokenPlugin, InvalidInput
from benchwright.core.registry import Registry
from benchwright.doctor.plugins import all_registries

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
GROUP = "test.colours"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, package: str, text: str) -> None:
    (site / f"{package}.dist-info").mkdir()
    (site / f"{package}.dist-info" / "entry_points.txt").write_text(text)


def colours() -> Registry[type]:
    return Registry(GROUP, "colour", {"red": "builtins:int", "green": "builtins:str"})


@pytest.mark.compat
@pytest.mark.parametrize("registry", all_registries(), ids=lambda registry: registry.group)
def test_the_built_in_variants_are_the_entry_points_of_this_package(registry: Registry[object]) -> None:
    if registry.group.startswith("benchwright."):  # benchmodels also runs where it is not installed
        assert PROJECT["entry-points"][registry.group] == registry.built_in


def test_a_built_in_variant_is_loaded_without_a_look_at_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("looked up")

    monkeypatch.setattr(registry_module, "find_entry_points", fail)
    kinds: Registry[type] = Registry("benchwright.kinds", "kind of target")
    assert kinds.load("command").__name__ == "CommandKind"
    assert "suite" in kinds


def test_the_metadata_beside_the_code_count_before_those_of_another_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    for folder in (copy, other):
        (folder / "benchwright-0.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(entry_points, "__file__", str(copy / "benchwright" / "core" / "plugins" / "entry_points.py"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "absent"), str(other)])
    assert own_metadata.__wrapped__() == str(copy / "benchwright-0.0.dist-info")
    (copy / "benchwright-0.0.dist-info").rmdir()
    assert own_metadata.__wrapped__() == str(other / "benchwright-0.0.dist-info")
    (other / "benchwright-0.0.dist-info").rmdir()
    with pytest.raises(ModuleNotFoundError, match="not installed: pip install"):
        own_metadata.__wrapped__()


def test_packages_add_variants_and_cannot_replace_one(site: Path) -> None:
    install(
        site,
        "paint-1.2",
        f"[a]\nx = y:z\n[{GROUP}]\nblue = builtins:float\n# no = no:no\nred=builtins:set\n[b]\nq = r:s\n",
    )
    assert colours().names() == ["red", "green", "blue"]
    assert colours().load("red") is int
    assert colours().load("blue") is float
    entry = colours().plugins()["blue"]
    assert (entry.package, entry.version) == ("paint", "1.2")
    assert "blue" in colours()
    assert "no" not in colours()


def test_of_two_packages_with_one_name_the_first_on_the_path_counts(site: Path) -> None:
    for name in ("one", "two"):
        (site / name).mkdir()
        install(site / name, f"{name}-1", f"[{GROUP}]\nblue = {name}:thing\n")
    found = find_entry_points(GROUP, [str(site / "absent"), str(site / "two"), str(site / "one")])
    assert found["blue"].package == "two"


def test_packages_are_read_once_until_the_folder_changes(site: Path) -> None:
    install(site, "paint-1.2", f"[{GROUP}]\nblue = builtins:float\n")
    os.utime(site, (1_700_000_000, 1_700_000_000))  # right after a change, nothing is kept
    assert colours().names() == ["red", "green", "blue"]
    (site / "paint-1.2.dist-info" / "entry_points.txt").write_text("")
    assert colours().names() == ["red", "green", "blue"]
    install(site, "ink-1.0", f"[{GROUP}]\nviolet = builtins:float\n")
    assert colours().names() == ["red", "green", "violet"]


def test_of_two_copies_of_a_package_only_the_first_is_read(site: Path) -> None:
    for folder, name in (("first", "blue"), ("second", "violet")):
        (site / folder).mkdir()
        install(site / folder, "paint-1.2", f"[{GROUP}]\n{name} = {folder}:thing\n")
    assert list(find_entry_points(GROUP, [str(site / "first"), str(site / "second")])) == ["blue"]


def test_an_unknown_name_is_refused_with_the_nearest_or_with_all(site: Path) -> None:
    install(site, "paint-1.2", f"[{GROUP}]\nviolet = builtins:float\n")
    with pytest.raises(InvalidInput, match=r"--ink: 'violett' is not a colour; did you mean 'violet'\?"):
        colours().load("violett", where="--ink")
    with pytest.raises(InvalidInput, match="use one of red, green, violet"):
        colours().load("x")


@pytest.mark.parametrize("text", ["raise SystemError('rust')", "import no_such_module", "x = 1 +"])
def test_whatever_a_plugin_raises_is_told_with_its_package(site: Path, text: str) -> None:
    (site / "rusty_paint.py").write_text(text)
    install(site, "rusty-2.1", f"[{GROUP}]\nblue = rusty_paint:Blue\n")
    with pytest.raises(BrokenPlugin, match=r"the colour 'blue' of the package rusty 2\.1 cannot be loaded: \w+Error"):
        colours().load("blue")
    found = dict(colours().load_all())
    assert found["red"] is int
    assert isinstance(found["blue"], BrokenPlugin)


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_looks_up_no_entry_point(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("looked up")

    monkeypatch.setattr(registry_module, "find_entry_points", fail)
    monkeypatch.setattr(registry_module, "own_entry_points", fail)
    with pytest.raises(SystemExit, match="0"):
        main(words)
