"""`install`: environments as a user gets them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from builders import git
from command_line import CommandLine
from local_wheels import make_index, make_wheel
from suite_folder import SuiteFolder


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


def test_one_environment_for_each_install_group_and_a_second_install_makes_none(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"requirements.in": "alpha<2\n"}, install_group="shared")
    suite.add("two", {"requirements.in": "beta\n"}, install_group="shared")
    suite.add("three", {"requirements.in": "gamma\n"})
    first = bw("install", suite.path)
    assert "shared: creating an environment" in first.stderr
    assert (suite.version("beta", "shared"), suite.version("alpha", "three")) == ("1.0", "2.0")
    body = bw.json("install", suite.path)
    assert [(g["name"], g["status"]) for g in body["groups"]] == [("shared", "reused"), ("three", "reused")]
    shared = body["groups"][0]
    assert shared["packages"] == {"alpha": "1.0", "beta": "1.0"}
    assert shared["path"] == str(suite.venv / "shared")
    assert shared["python"] == ".".join(map(str, sys.version_info[:3]))
    assert shared["seconds"] == 0.0
    assert len(suite.environments()) == 2


def test_progress_goes_to_stderr_with_seconds_and_can_be_silenced(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    said = bw("install", suite.path).stderr
    assert "one: installing 1 requirements file with uv" in said
    assert "one: built in " in said
    assert bw("install", suite.path, "--force", "--quiet").stderr == ""


def test_a_group_that_fails_names_package_and_line_and_the_others_are_installed(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("good", {"requirements.in": "alpha\n"})
    place = suite.add("bad", {"requirements.in": "alpha\n# needed by main.py\nnothere>=2\n"})
    done = bw("install", suite.path, code=1)
    assert f"bad: {place}/requirements.in:3: nothere was not found" in done.stderr
    assert "its log:" in done.stderr
    assert suite.version("alpha", "good") == "2.0"
    assert not (suite.venv / "bad").exists()
    body = bw.json("install", suite.path, code=1)
    assert [(g["status"], g["package"]) for g in body["groups"]] == [("reused", None), ("failed", "nothere")]


def test_a_failed_install_leaves_the_old_environment_to_run_in(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "alpha<2\n"})
    bw("install", suite.path)
    (place / "requirements.in").write_text("alpha\nnothere\n")
    done = bw("install", suite.path, code=1)
    assert "still in use" in done.stderr
    assert suite.version("alpha", "one") == "1.0"
    (place / "requirements.in").write_text("alpha<2\n")
    assert bw.json("install", suite.path)["groups"][0]["status"] == "reused"


def test_only_selected_benchmarks_are_installed_and_those_installed_before_stay(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_group="shared")
    suite.add("two", {"requirements.in": "gamma\n"}, install_group="shared")
    suite.add("broken", {"requirements.in": "nothere\n"}, install_group="shared")
    suite.add("three", {"requirements.in": "beta\n"})

    def installed(*selected: str) -> tuple[str, set[str]]:
        (group,) = bw.json("install", suite.path, "--select", ",".join(selected))["groups"]
        return group["status"], set(group["packages"])

    assert installed("one") == ("built", {"alpha"})
    assert not (suite.venv / "three").exists()
    assert installed("two") == ("built", {"alpha", "gamma"}), "one loses nothing"
    assert installed("one") == ("reused", {"alpha", "gamma"})
    assert installed("one", "two") == ("reused", {"alpha", "gamma"})
    assert bw.json("install", suite.path, code=1)["groups"][0]["package"] == "nothere"


def test_a_disabled_benchmark_is_installed_only_when_it_is_named(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_group="shared")
    suite.add("idle", {"requirements.in": "gamma\n"}, install_group="shared", enabled=False)
    assert "gamma" not in bw.json("install", suite.path)["groups"][0]["packages"]
    assert "gamma" in bw.json("install", suite.path, "--select", "idle")["groups"][0]["packages"]
    assert bw.json("install", suite.path)["groups"][0]["status"] == "reused"


def test_requirements_that_are_not_pinned_are_refused_with_the_command_that_pins_them(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_variant="cpu")
    done = bw("install", suite.path, code=2)
    assert "there is no requirements.cpu.txt" in done.stderr
    assert "benchwright pin" in done.stderr
    assert bw.json("install", suite.path, "--variant", "unpinned")["groups"][0]["status"] == "built"


def test_constraints_of_the_vendor_lie_beside_the_suite_or_above(
    bw: CommandLine, suite: SuiteFolder, tmp_path: Path
) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    system = tmp_path / "system.yaml"
    system.write_text("system: {arch: cuda}\n")
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / "cuda.txt").write_text("alpha<2\n")
    body = bw.json("install", suite.path, "--system", str(system))
    assert body["groups"][0]["packages"] == {"alpha": "1.0"}
    nearer = suite.folder / "constraints"
    nearer.mkdir()
    (nearer / "cuda.txt").write_text("# nothing\n")
    assert bw.json("install", suite.path, "--system", str(system))["groups"][0]["packages"] == {"alpha": "2.0"}
    own = tmp_path / "own.txt"
    own.write_text("alpha==1.0\n")
    body = bw.json("install", suite.path, "--system", str(system), "--constraints", str(own))
    assert body["groups"][0]["packages"] == {"alpha": "1.0"}
    assert "no such file" in bw("install", suite.path, "--constraints", "nowhere.txt", code=2).stderr


def test_the_index_can_be_named_in_a_constraints_file(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    make_wheel(tmp_path / "vendor", "epsilon", "1.0")
    suite.add("one", {"requirements.in": "epsilon\n"})
    (suite.folder / "constraints").mkdir()
    (suite.folder / "constraints" / "cpu.txt").write_text(f"--find-links {tmp_path / 'vendor'}\n")
    system = tmp_path / "system.yaml"
    system.write_text("system: {arch: cpu}\n")
    assert bw.json("install", suite.path, "--system", str(system))["groups"][0]["packages"] == {"epsilon": "1.0"}


def test_indexes_of_pips_configuration_and_of_options_are_used(
    bw: CommandLine, suite: SuiteFolder, tmp_path: Path
) -> None:
    wheels = [make_wheel(tmp_path / "made", "epsilon", "1.0"), make_wheel(tmp_path / "made", "zeta", "1.0")]
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nindex-url = {make_index(tmp_path / 'configured', wheels[:1])}\n")
    del bw.env["PIP_NO_INDEX"], bw.env["PIP_FIND_LINKS"]
    bw.env["PIP_CONFIG_FILE"] = str(configuration)
    suite.add("one", {"requirements.in": "epsilon\n"})
    suite.add("two", {"requirements.in": "epsilon\nzeta\n"})
    assert bw.json("install", suite.path, "--select", "one")["groups"][0]["packages"] == {"epsilon": "1.0"}
    vendor = make_index(tmp_path / "vendor", wheels[1:])
    body = bw.json("install", suite.path, "--select", "two", "--index", vendor)
    assert body["groups"][0]["packages"] == {"epsilon": "1.0", "zeta": "1.0"}


def test_pip_installs_where_there_is_no_uv(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "beta\n"})
    body = bw.json("install", suite.path, "--installer", "pip")
    assert body["groups"][0]["packages"] == {"alpha": "1.0", "beta": "1.0"}
    assert bw.json("install", suite.path)["groups"][0]["status"] == "reused"


@pytest.mark.compat
def test_voir_is_added_and_told_for_a_folder_with_a_voirfile(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n", "voirfile.py": ""})
    done = bw("install", suite.path)
    assert "note: one: requirements lack voir; adding it" in done.stderr
    assert suite.version("voir", "one") == "0.2.24"


def test_the_current_environment_is_used_when_asked_for(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "mine"], check=True)
    suite.add("one", {"requirements.in": "alpha\n"})
    env = {"VIRTUAL_ENV": str(tmp_path / "mine")}
    body = bw.json("install", suite.path, "--use-current-env", env=env)
    assert (body["groups"][0]["status"], body["groups"][0]["path"]) == ("built", str(tmp_path / "mine"))
    assert bw.json("install", suite.path, "--use-current-env", env=env)["groups"][0]["status"] == "reused"
    assert list((tmp_path / "mine").glob("lib/python*/site-packages/alpha.py"))
    assert not (suite.venv / "one").exists()


def test_a_definition_in_git_is_cloned_and_updated(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    for version in ("alpha<2\n", "alpha\n"):
        (origin / "main.py").write_text("print(1)\n")
        (origin / "requirements.in").write_text(version)
        git(origin, "add", ".")
        git(origin, "commit", "-q", "-m", "more")
        if version == "alpha<2\n":
            suite.add("one", definition={"git": origin.as_uri(), "branch": "main"})
            done = bw("install", suite.path)
            assert "cloning" in done.stderr
            assert suite.version("alpha", "one") == "1.0"
    assert bw.json("install", suite.path)["groups"][0]["status"] == "reused"
    assert bw.json("install", suite.path, "--update")["groups"][0]["status"] == "built"
    assert suite.version("alpha", "one") == "2.0"
    suite.entries["one"]["definition"]["git"] = (tmp_path / "nowhere").as_uri()
    suite.write()
    assert "nowhere" in bw("install", suite.path, code=3).stderr


@pytest.mark.compat
def test_the_suite_can_come_from_the_environment_or_an_option(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    assert "BENCHWRIGHT_CONFIG" in bw("install", code=2, env={"BENCHWRIGHT_CONFIG": ""}).stderr
    bw("install", env={"MILABENCH_CONFIG": suite.path})
    assert bw.json("install", "--config", suite.path)["groups"][0]["status"] == "reused"
    assert "no such file" in bw("install", "nowhere.yaml", code=2).stderr


def test_members_that_disagree_are_named(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_group="shared")
    suite.add("two", {"requirements.cuda.txt": "alpha\n"}, install_group="shared", install_variant="cuda")
    said = bw("install", suite.path, code=2).stderr
    assert "one (install_variant: unpinned) and two (install_variant: cuda)" in said


def test_an_entry_can_name_its_interpreter(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, venv={"python": sys.executable})
    assert bw.json("install", suite.path)["groups"][0]["status"] == "built"
    suite.add("two", {"requirements.in": "alpha\n"}, venv={"python": "/nowhere/python"})
    body = bw.json("install", suite.path, code=1)
    assert [g["status"] for g in body["groups"]] == ["reused", "failed"]
    assert "/nowhere/python" in body["groups"][1]["detail"]
