"""`pin` and `dev`."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from local_wheels import make_index, make_wheel
from processes import wait_for
from suite_folder import SuiteFolder


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    made = SuiteFolder(bw, folder)
    del made.entries["_defaults"]["install_variant"]
    return made


def test_pins_are_written_with_hashes_and_installed(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "beta\n"}, install_variant="cuda")
    done = bw("pin", suite.path, "--variant", "cuda")
    assert f"one: {place}/requirements.cuda.txt  written, 2 packages" in done.stdout
    text = (place / "requirements.cuda.txt").read_text()
    assert text.count("--hash=sha256:") == 2
    assert bw.json("install", suite.path)["groups"][0]["packages"] == {"alpha": "1.0", "beta": "1.0"}
    body = bw.json("pin", suite.path, "--variant", "cuda")
    assert body["groups"][0]["status"] == "unchanged"
    assert body["groups"][0]["files"][0]["packages"] == {"alpha": "1.0", "beta": "1.0"}


def test_all_benchmarks_of_a_group_get_the_same_versions(bw: CommandLine, suite: SuiteFolder) -> None:
    one = suite.add("one", {"requirements.in": "alpha\n"}, install_group="shared")
    suite.add("two", {"requirements.in": "beta\n"}, install_group="shared")
    three = suite.add("three", {"requirements.in": "alpha\n"})
    bw("pin", suite.path, "--variant", "cpu")
    assert "alpha==1.0" in (one / "requirements.cpu.txt").read_text()
    assert "alpha==2.0" in (three / "requirements.cpu.txt").read_text()
    assert bw.json("install", suite.path, "--variant", "cpu")["groups"][0]["packages"] == {
        "alpha": "1.0",
        "beta": "1.0",
    }


def test_only_the_files_of_selected_benchmarks_are_pinned(bw: CommandLine, suite: SuiteFolder) -> None:
    one = suite.add("one", {"requirements.in": "alpha\n"}, install_group="shared")
    broken = suite.add("broken", {"requirements.in": "nothere\n"}, install_group="shared")
    bw("pin", suite.path, "--select", "one", "--variant", "cpu")
    assert "alpha==2.0" in (one / "requirements.cpu.txt").read_text()
    assert not (broken / "requirements.cpu.txt").exists()


def test_pinned_versions_stay_until_they_are_made_from_scratch(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "alpha\n", "requirements.cpu.txt": "alpha==1.0\n"})
    bw("pin", suite.path, "--variant", "cpu")
    assert "alpha==1.0" in (place / "requirements.cpu.txt").read_text()
    bw("pin", suite.path, "--variant", "cpu", "--from-scratch")
    assert "alpha==2.0" in (place / "requirements.cpu.txt").read_text()


def test_an_index_that_is_named_is_found_again_by_install(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    index = make_index(tmp_path / "vendor", [make_wheel(tmp_path / "made", "epsilon", "1.0")])
    del bw.env["PIP_NO_INDEX"], bw.env["PIP_FIND_LINKS"]
    place = suite.add("one", {"requirements.in": "epsilon\n"})
    bw("pin", suite.path, "--variant", "cpu", "--index-url", index)
    assert f"--index-url {index}" in (place / "requirements.cpu.txt").read_text()
    body = bw.json("install", suite.path, "--variant", "cpu")
    assert body["groups"][0]["packages"] == {"epsilon": "1.0"}


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_no_solution_names_the_line_and_writes_nothing(bw: CommandLine, suite: SuiteFolder, installer: str) -> None:
    place = suite.add("one", {"requirements.in": "alpha\nnothere\n"})
    done = bw("pin", suite.path, "--variant", "cpu", "--installer", installer, code=1)
    assert f"{place}/requirements.in:2:" in done.stderr
    assert "nothere" in done.stderr
    assert [p.name for p in place.iterdir() if "cpu" in p.name] == []


def test_the_constraints_of_the_variant_are_used(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "alpha\n"})
    (suite.folder / "constraints").mkdir()
    (suite.folder / "constraints" / "rocm.txt").write_text("alpha<2\n")
    bw("pin", suite.path, "--variant", "rocm")
    assert "alpha==1.0" in (place / "requirements.rocm.txt").read_text()
    assert str(suite.folder) not in (place / "requirements.rocm.txt").read_text()


def test_unpinned_cannot_be_pinned(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    assert "--variant" in bw("pin", suite.path, "--variant", "unpinned", code=2).stderr


def test_a_command_runs_in_the_folder_and_environment_and_its_code_is_ours(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "alpha\n"}, install_variant="unpinned")
    bw("install", suite.path)
    code = "import alpha, os, sys; print(alpha.__version__, sys.prefix, os.getcwd()); sys.exit(7)"
    done = bw("dev", suite.path, "--", "python", "-c", code, code=7)
    assert done.stdout.split() == ["2.0", str(suite.venv / "one"), str(place)]


def test_benchprobe_works_there(bw: CommandLine, suite: SuiteFolder) -> None:
    main = "import benchprobe\nfor i in benchprobe.iterate('train', range(50)): pass\nprint('all done')\n"
    suite.add("one", {"requirements.in": "alpha\n", "main.py": main}, install_variant="unpinned")
    bw("install", suite.path)
    done = bw("dev", suite.path, "--select", "one", "--", "python", "-m", "benchprobe", "main.py")
    assert "all done" in done.stdout
    assert "train" in done.stdout + done.stderr


def test_a_shell_is_opened_at_a_terminal(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_variant="unpinned")
    bw("install", suite.path)
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        bw.argv("dev", suite.path),
        cwd=bw.cwd,
        env={**bw.env, "SHELL": "/bin/sh"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, b"python -c 'import alpha; print(6 * 7, alpha.__version__)'; exit 5\n")
    said = b""

    def heard() -> bool:
        nonlocal said
        try:
            said += os.read(ours, 4096)
        except OSError:  # the other end is closed
            return True
        return b"42 2.0" in said

    assert wait_for(heard)
    assert b"42 2.0" in said
    assert shell.wait(600) == 5
    os.close(ours)


def test_one_benchmark_must_be_meant_and_installed(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"}, install_variant="unpinned")
    assert "benchwright install" in bw("dev", suite.path, "--", "true", code=2).stderr
    suite.add("two")
    assert "one, two" in bw("dev", suite.path, "--", "true", code=2).stderr
    assert "no command" in bw("dev", suite.path, "--select", "two", "--", code=2).stderr
    assert "nowhere" in bw("dev", suite.path, "--select", "two", "--", "nowhere", code=2).stderr
