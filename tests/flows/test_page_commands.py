"""What pages tell users to type first, typed: in a folder with the files that the pages speak of."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import CommandLine
from made_once import MadeOnce

ROOT = Path(__file__).parents[2]
PROGRAM = 'print("Speed: 12.5 samples/sec")\nprint("loss: 0.5")\nprint("speed=100")\n'
# Pages, and words of those of their commands that need what is not here, or take long.
PAGES = {
    "README.md": "resume|bw ab |compare|bw serve",
    "docs/how-to/compare-runs.md": r"\.2026-|--fail-on|remove",
    "docs/how-to/look-at-results.md": r"\.2026-|encode|broken|serve|prune",
    "docs/how-to/measure-any-command.md": "build|…",
    "docs/how-to/troubleshooting.md": "bw doctor",
    "docs/reference/export.md": "parquet|tensorboard|mlflow",
}


def commands(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^(?:\$ )?bw (.*)$", "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)), re.MULTILINE)
    return [command for command in found if not (PAGES.get(page) and re.search(PAGES[page], f"bw {command}"))]


def type_in(benchwright: CommandLine, command: str) -> None:
    words = shlex.split(command.replace("RUN...", "last"), comments=True)
    ends = [words.index(sign) for sign in ("|", ">", "||", "&&") if sign in words]
    benchwright(*words[: min(ends, default=len(words))])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("old.py", "new.py", "encode.py", "train.py", "main.py"):
        (tmp_path / name).write_text(PROGRAM)
    shutil.copytree(ROOT / "examples" / "first", tmp_path / "examples" / "first")
    return tmp_path


@pytest.fixture(scope="module")
def run_that_is_there(made_once: MadeOnce) -> Path:
    """Which pages speak of: the folder of its base's runs."""

    def make(folder: Path) -> None:
        for name in ("old.py", "new.py"):
            (folder / name).write_text(PROGRAM)
        words = ("run", "--repeat", "6", "-c", "python old.py", "-c", "python new.py")
        CommandLine(folder / "base", folder)(*words)

    return made_once("run-of-pages", make) / "base" / "runs"


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.compat if p == "docs/reference/export.md" else ()) for p in PAGES]
)
def test_the_commands_of_a_page_work(page: str, folder: Path, run_that_is_there: Path) -> None:
    benchwright = CommandLine(folder / "base", folder)
    shutil.copytree(run_that_is_there, folder / "base" / "runs")
    benchwright("store", "rebuild")
    found = commands(page)
    assert found
    for command in found:
        type_in(benchwright, re.sub(r"--repeat \d+", "--repeat 6", command))


@pytest.mark.long
def test_the_commands_of_the_tutorial_work(folder: Path) -> None:
    benchwright = CommandLine(folder / "base", folder)
    found = commands("docs/tutorial.md")
    assert found
    for command in found:
        type_in(benchwright, command.replace("--repeat 6", "--repeat 1"))
