"""Environments are made whole or not at all, kept while nothing changed, and switched at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from local_wheels import make_wheel

from benchwright.core.benchmark import Benchmark
from benchwright.environments.builder import EnvironmentBuilder
from benchwright.environments.environment import MARKER, EnvironmentFolders, Installed, existing_environment
from benchwright.environments.groups import groups_of
from benchwright.environments.installers import Pip, choose_installer
from benchwright.environments.package_indexes import configured_indexes
from benchwright.environments.tools import Tools

TOOLS = ["uv", "pip"]
PIP_IS_LONG = ["uv", pytest.param("pip", marks=pytest.mark.long)]  # where uv shows the same of our part of it
pytestmark = pytest.mark.usefixtures("only_local_packages")


class Site:
    """A base folder, and installs into it."""

    def __init__(self, venv: Path) -> None:
        self.folders = EnvironmentFolders(str(venv))
        os.makedirs(self.folders.store)
        self.said: list[str] = []

    def install(
        self, *benchmarks: Benchmark, tool: str = "uv", constraints: Sequence[str] = (), **options: bool
    ) -> Installed:
        (group,) = groups_of(benchmarks, arch="cpu", constraint_files=constraints)
        installer = choose_installer(tool, configured_indexes(os.environ))
        builder = EnvironmentBuilder(
            self.folders, installer, Tools(), lambda g, what, log: self.said.append(what), **options
        )
        return builder.bring_about(group)

    def current(self, group: str = "bench") -> str:
        folder = self.folders.current(group)
        assert folder is not None
        return folder

    def version(self, package: str, group: str = "bench") -> str:
        python = os.path.join(self.folders.link(group), "bin", "python")
        code = f"import {package}; print({package}.__version__)"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "base" / "venv")


@pytest.mark.parametrize("tool", TOOLS)
def test_an_environment_holds_what_was_asked_for(site: Site, benchmark_of: Any, tool: str) -> None:
    made = site.install(benchmark_of(files={"requirements.in": "beta"}), tool=tool)
    assert (made.status, made.detail) == ("built", None)
    assert {name: made.packages.get(name) for name in ("alpha", "beta")} == {"alpha": "1.0", "beta": "1.0"}
    assert site.version("alpha") == "1.0"
    assert made.path == site.folders.link("bench")


@pytest.mark.long
def test_without_a_pip_of_our_own_the_new_environment_brings_one(site: Site, benchmark_of: Any) -> None:
    (group,) = groups_of([benchmark_of(files={"requirements.in": "beta"})], arch="cpu")
    installer = Pip(configured_indexes(os.environ), own_pip=False)
    made = EnvironmentBuilder(site.folders, installer, Tools(), lambda *_: None).bring_about(group)
    assert (made.status, made.detail) == ("built", None)
    assert (made.packages["beta"], "pip" in made.packages) == ("1.0", True)


def test_nothing_changed_nothing_done(site: Site, benchmark_of: Any) -> None:
    benchmark = benchmark_of(files={"requirements.in": "alpha"})
    site.install(benchmark)
    before = site.current()
    site.said.clear()
    again = site.install(benchmark)
    assert (again.status, again.packages) == ("reused", {"alpha": "2.0"})
    assert (site.current(), site.said) == (before, [])


def test_changed_requirements_make_another_environment_and_the_one_before_stays(site: Site, benchmark_of: Any) -> None:
    for text in ("alpha", "alpha<2", "beta"):
        assert site.install(benchmark_of(files={"requirements.in": text})).status == "built"
    assert site.version("beta") == "1.0"
    assert len(site.folders.all_of("bench")) == 2  # one that somebody may still be running in, and the current one


def test_changed_back_is_there_still(site: Site, benchmark_of: Any) -> None:
    first = benchmark_of(files={"requirements.in": "alpha<2"})
    site.install(first)
    before = site.current()
    site.install(benchmark_of(files={"requirements.in": "alpha"}))
    assert site.version("alpha") == "2.0"
    assert site.install(benchmark_of(files={"requirements.in": "alpha<2"})).status == "reused"
    assert (site.current(), site.version("alpha")) == (before, "1.0")


def test_force_makes_it_anew_elsewhere(site: Site, benchmark_of: Any) -> None:
    benchmark = benchmark_of(files={"requirements.in": "alpha"})
    site.install(benchmark)
    before = site.current()
    assert site.install(benchmark, force=True).status == "built"
    assert site.current() != before
    assert os.path.exists(before)


def test_update_rebuilds_only_for_newer_versions(
    site: Site, benchmark_of: Any, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    make_wheel(links, "alpha", "1.0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    benchmark = benchmark_of(files={"requirements.in": "alpha"})
    site.install(benchmark)
    assert site.install(benchmark, newest=True).status == "reused"
    make_wheel(links, "alpha", "1.5")
    assert site.install(benchmark).status == "reused"
    assert site.install(benchmark, newest=True).status == "built"
    assert site.version("alpha") == "1.5"


FAILURES = [("alpha\nnothere\n", "nothere"), ("alpha>=3", "alpha"), ("broken", "broken")]


@pytest.mark.parametrize(
    ("requirement", "package", "tool"),
    [
        *((*failure, "uv") for failure in FAILURES),
        (*FAILURES[0], "pip"),
        *(pytest.param(*failure, "pip", marks=pytest.mark.long) for failure in FAILURES[1:]),
    ],
)
def test_a_failure_names_the_package_and_leaves_the_old_environment(
    site: Site, benchmark_of: Any, requirement: str, package: str, tool: str
) -> None:
    site.install(benchmark_of(files={"requirements.in": "alpha<2"}))
    before = site.current()
    failed = site.install(benchmark_of(files={"requirements.in": requirement}), tool=tool)
    assert failed.status == "failed"
    assert failed.detail is not None
    assert "still in use" in failed.detail
    assert failed.log is not None
    assert Path(failed.log).read_text()
    if (tool, package) != ("pip", "broken"):  # pip does not say whose metadata could not be made
        assert failed.package == package
        assert "requirements.in:" in failed.detail
        assert package in failed.detail
    assert (site.current(), site.version("alpha")) == (before, "1.0")
    assert site.folders.all_of("bench") == [before]


def test_the_line_and_the_benchmark_that_ask_for_it_are_named(site: Site, benchmark_of: Any) -> None:
    good = benchmark_of("good", {"requirements.in": "alpha"}, install_group="bench")
    bad = benchmark_of("bad", {"requirements.in": "# needed\nnothere\n"}, install_group="bench")
    failed = site.install(good, bad)
    assert failed.detail is not None
    assert failed.detail.startswith(f"{bad.folder.path}/requirements.in:2: ")
    assert "(for bad)" in failed.detail


def test_members_share_one_environment_and_conflicts_are_explained(site: Site, benchmark_of: Any) -> None:
    beta = benchmark_of("b", {"requirements.in": "beta"}, install_group="bench")
    gamma = benchmark_of("g", {"requirements.in": "gamma"}, install_group="bench")
    assert site.install(beta).status == "built"
    failed = site.install(beta, gamma)
    assert failed.package == "alpha"
    assert "gamma" in (failed.detail or "")


@pytest.mark.parametrize("tool", PIP_IS_LONG)
def test_constraints_of_the_vendor_and_of_the_entry_hold(
    site: Site, benchmark_of: Any, tmp_path: Path, tool: str
) -> None:
    limits = tmp_path / "cpu.txt"
    limits.write_text("alpha<2\n")
    made = site.install(benchmark_of("a", {"requirements.in": "alpha"}), constraints=[str(limits)], tool=tool)
    assert made.packages["alpha"] == "1.0"
    own = site.install(benchmark_of("b", {"requirements.in": "alpha"}, constraints=("alpha==1.0",)), tool=tool)
    assert own.packages["alpha"] == "1.0"


@pytest.mark.parametrize("tool", PIP_IS_LONG)
def test_voir_is_installed_beside_pins_with_hashes(site: Site, benchmark_of: Any, packages: Path, tool: str) -> None:
    import hashlib

    digest = hashlib.sha256((packages / "alpha-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    files = {
        "requirements.in": "alpha",
        "requirements.cpu.txt": f"alpha==1.0 --hash=sha256:{digest}\n",
    }
    made = site.install(benchmark_of(files=files, variant=None, packages=("voir",)), tool=tool)
    assert made.detail is None
    assert (made.packages["alpha"], made.packages["voir"]) == ("1.0", "0.2.24")


def test_a_hash_that_does_not_match_is_refused(site: Site, benchmark_of: Any) -> None:
    files = {"requirements.in": "alpha", "requirements.cpu.txt": f"alpha==1.0 --hash=sha256:{'0' * 64}\n"}
    failed = site.install(benchmark_of(files=files, variant=None))
    assert failed.status == "failed"
    assert "hash" in (failed.detail or "").lower()


def test_an_empty_environment_needs_no_index(site: Site, benchmark_of: Any) -> None:
    made = site.install(benchmark_of())
    assert (made.status, made.packages) == ("built", {})


def break_interpreter(folder: Path) -> None:
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/nowhere/python")


def break_packages(folder: Path) -> None:
    shutil.rmtree(next(folder.glob("lib/python*/site-packages")))


def break_one_package(folder: Path) -> None:
    shutil.rmtree(next(folder.glob("lib/python*/site-packages/alpha-*.dist-info")))


def break_configuration(folder: Path) -> None:
    (folder / "pyvenv.cfg").unlink()


def break_marker(folder: Path) -> None:
    (folder / MARKER).write_text('{"format": 1, "gro')


def break_everything(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "breaking",
    [break_interpreter, break_packages, break_one_package, break_configuration, break_marker, break_everything],
)
def test_a_broken_environment_is_noticed_and_made_anew(site: Site, benchmark_of: Any, breaking: Any) -> None:
    benchmark = benchmark_of(files={"requirements.in": "alpha"})
    site.install(benchmark)
    breaking(Path(site.current()))
    (group,) = groups_of([benchmark], arch="cpu")
    assert existing_environment(group, site.folders).why
    assert site.install(benchmark).status == "built"
    assert site.version("alpha") == "2.0"


def test_the_rest_of_a_killed_install_is_removed(site: Site, benchmark_of: Any) -> None:
    benchmark = benchmark_of(files={"requirements.in": "alpha"})
    site.install(benchmark)
    half = site.folders.vacant("bench", "0123456789ab")
    shutil.copytree(site.current(), half, symlinks=True)
    os.unlink(os.path.join(half, MARKER))
    other = site.folders.vacant("bench-too", "0123456789ab")  # another group, whose name begins the same
    os.makedirs(other)
    assert site.install(benchmark_of(files={"requirements.in": "alpha<2"})).status == "built"
    assert not os.path.exists(half)
    assert os.path.exists(other)


def test_a_folder_that_benchwright_did_not_make_is_left_alone(site: Site, benchmark_of: Any) -> None:
    mine = Path(site.folders.link("bench")) / "bin"
    mine.mkdir(parents=True)
    failed = site.install(benchmark_of(files={"requirements.in": "alpha"}))
    assert failed.status == "failed"
    assert "not created by benchwright" in (failed.detail or "")
    assert mine.is_dir()


def test_members_that_are_not_asked_for_now_may_stay(site: Site, benchmark_of: Any) -> None:
    one = benchmark_of("one", {"requirements.in": "alpha<2"}, install_group="bench")
    other = benchmark_of("other", {"requirements.in": "beta"}, install_group="bench")
    site.install(one, other)
    (without,) = groups_of([one], arch="cpu", others=[other])
    assert existing_environment(without, site.folders).why is None
    (gone,) = groups_of([one], arch="cpu")
    assert existing_environment(gone, site.folders).why == "its requirements changed"


def test_requirements_install_into_an_environment_that_is_not_ours(
    site: Site, benchmark_of: Any, tmp_path: Path
) -> None:
    subprocess.run(
        [choose_installer("uv", configured_indexes({})).program, "venv", "-q", tmp_path / "mine"], check=True
    )  # type: ignore[union-attr]
    python = str(tmp_path / "mine" / "bin" / "python")
    (group,) = groups_of([benchmark_of(files={"requirements.in": "alpha"})], arch="cpu")
    builder = EnvironmentBuilder(
        site.folders, choose_installer("uv", configured_indexes(os.environ)), Tools(), lambda *_: None
    )
    assert builder.into(group, python).status == "built"
    assert builder.into(group, python).status == "reused"
    done = subprocess.run([python, "-c", "import alpha; print(alpha.__version__)"], capture_output=True, text=True)
    assert done.stdout.strip() == "2.0"
    assert not os.path.lexists(site.folders.link("bench"))
