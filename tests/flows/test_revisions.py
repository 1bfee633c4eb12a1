"""Every view of a run says which commit it measured, and whether files were modified."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from small_repository import SmallRepository


@pytest.fixture
def small(tmp_path: Path, bw: CommandLine) -> SmallRepository:
    made = SmallRepository(tmp_path / "project", branch="trunk")
    made.commit("one", {"a.txt": "1"})
    bw.cwd = made.folder
    return made


def test_lists_reports_exports_and_comparisons_show_the_commit(
    bw: CommandLine, small: SmallRepository, tmp_path: Path
) -> None:
    clean = f"trunk {small.git('rev-parse', 'HEAD')[:10]}"
    bw("run", "--run-name", "first", "--repeat", "2", "--", "true")
    (small.folder / "a.txt").write_text("changed")
    bw("run", "--run-name", "second", "--repeat", "2", "--", "true")
    listed = {row["name"]: row["revision"] for row in json.loads(bw("runs", "--json").stdout)}
    assert listed == {"first": clean, "second": f"{clean}+"}
    assert f"{clean}+" in bw("runs", "--text", clean[-6:]).stdout
    assert f"revision of the working folder: {clean}+ (modified) of 2023-11-14 23:13 UTC" in " ".join(
        bw("show", "second").stdout.split()
    )
    compared = bw("compare", "first", "second", code=None).stdout.splitlines()
    assert compared[0].startswith(" control:   first.")
    assert compared[0].endswith(f" ({clean})")
    assert f"`{clean}+`" in bw("report", "second", "--format", "markdown").stdout
    assert f"{clean}+, modified in {small.folder}" in bw("report", "second", "--format", "html").stdout
    [told] = bw.json("show", "second")["revisions"]
    assert (told["branch"], told["modified"], told["system"]) == ("trunk", True, "git")
    bw("export", "second", "--format", "csv", "-o", str(tmp_path / "samples.csv"))
    rows = csv.DictReader((tmp_path / "samples.csv").read_text().splitlines())
    assert {row["revision"] for row in rows} == {f"{clean}+"}


def test_editable_packages_of_the_interpreter_are_told_apart(
    bw: CommandLine, small: SmallRepository, tmp_path: Path
) -> None:
    library = SmallRepository(tmp_path / "library")
    head = library.commit("library", {"library.py": ""})
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [site] = environment.glob("lib/python3*/site-packages")
    info = site / "library-1.0.dist-info"
    info.mkdir()
    origin = {"url": library.folder.as_uri(), "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(origin))
    bw("run", "--run-name", "it", "--", str(environment / "bin" / "python"), "-c", "0")
    own, other = bw.json("show", "it")["revisions"]
    assert (own["root"], own["packages"]) == (str(small.folder), [])
    assert (other["root"], other["commit"], other["packages"]) == (str(library.folder), head, ["library"])
    assert "revision of library (editable): main" in bw("show", "it").stdout


def test_an_interpreter_in_some_checkout_does_not_give_its_commit_and_a_script_in_one_does(
    bw: CommandLine, tmp_path: Path
) -> None:
    """The virtual environment and pyenv's shims lie in checkouts of their own; the working folder is in none."""
    checkout = SmallRepository(tmp_path / "checkout")
    head = checkout.commit(
        "one", {"bench/job.py": "print(1)", "shims/python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(checkout.folder / ".venv")], check=True)
    (checkout.folder / "shims" / "python3").chmod(0o755)
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "own.py").write_text("print(1)")
    bw.cwd = folder
    for program in (".venv/bin/python", "shims/python3"):
        bw("run", "--run-name", "it", "--", str(checkout.folder / program), "own.py")
        assert "revisions" not in bw.json("show", "it")
        assert [row["revision"] for row in json.loads(bw("runs", "--json").stdout)][-1] == ""
    bw(
        "run",
        "--run-name",
        "named",
        "--",
        str(checkout.folder / ".venv/bin/python"),
        str(checkout.folder / "bench/job.py"),
    )
    (told,) = bw.json("show", "named")["revisions"]
    assert (told["commit"], told["files"]) == (head, ["bench/job.py"])
    assert f"revision of bench/job.py: main {head[:10]}" in bw("show", "named").stdout
    assert f"main {head[:10]}+ (job.py)" in {row["revision"] for row in json.loads(bw("runs", "--json").stdout)}
