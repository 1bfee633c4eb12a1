"""docs/: every page is found from the first one, and what pages list is what the code has. Links are in test_project.py."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from benchwright.cli.main import cli, meant
from benchwright.core.status import Reason, Status

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.match("decisions/0*.md"))
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))
NOT_COMMANDS = ("benchwright (main)",)  # a drawing
VARIABLE = re.compile(r'"((?:BENCHWRIGHT|BENCHPROBE|BENCHMODELS|MILABENCH)_[A-Z_]+[A-Z])"')
GLOSSARY = ("turn", "pair", "kind", "seam", "board", "zoo", "corpus", "margin", "launch", "run", "store", "baseline")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```[a-z]*[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(path: Path) -> Iterator[str]:
    """The commands that a page shows, without the shell's redirections."""
    for block in blocks(path.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"\s*(?:\$ |- run: )?((?:bw|benchwright) .*)", line)
            if found and not found[1].startswith(NOT_COMMANDS):
                yield found[1]


COMMANDS = [
    pytest.param(command, id=f"{path.stem}-{number}")
    for path in [ROOT / "README.md", *PAGES]
    if path.name != "cli.md"
    for number, command in enumerate(commands(path))
]


def understood(words: list[str]) -> bool:
    """Whether every word of a command line is one that the command takes; nothing is started."""
    command: click.Command = cli
    context = click.Context(cli)
    words = meant(["run", *words] if words[:1] and words[0].endswith(".py") else words)  # a file needs no `run`
    while isinstance(command, click.Group) and words and words[0] in command.list_commands(context):
        found = command.get_command(context, words[0])
        assert found is not None
        command, context, words = found, click.Context(found, info_name=words[0], parent=context), words[1:]
    assert command is not cli or not words, f"no such command: {words}"
    with contextlib.suppress(click.exceptions.Exit):  # --help
        command.make_context(context.info_name, words, parent=context.parent)
    return True


@pytest.mark.compat
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_a_page_is_one_that_is_understood(command: str) -> None:
    words = shlex.split(command.replace(";", " ; "), comments=True)[1:]
    ends = [words.index(sign) for sign in ("|", ">", ">>", "&&", "||", ";", "&") if sign in words]
    assert understood(words[: min(ends, default=len(words))])


@pytest.mark.parametrize("command", ["bw frobnicate", "bw run --frobnicate -- true", "bw compare --frobnicate A B"])
def test_a_command_that_does_not_exist_would_be_noticed(command: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        understood(command.split()[1:])


def test_the_first_page_links_every_page() -> None:
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page("index.md"))}
    assert {path.relative_to(DOCS).as_posix() for path in PAGES} - linked - {"index.md"} == set()


@pytest.mark.parametrize("path", HOW_TO, ids=lambda path: path.stem)
def test_a_how_to_page_begins_with_what_to_type(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert blocks(text[: text.find("\n## ")]), "a code block before the first heading"


def test_every_variable_is_in_the_table() -> None:
    files = [path for path in (ROOT / "src").rglob("*.py") if "compat_modules" not in path.parts]
    used = {name for path in files for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    listed = set(re.findall(r"`\$?([A-Z_]+)`", page("reference/environment.md")))
    assert len(used) > 25
    assert used - listed == set()


def test_the_words_of_the_pages_are_explained() -> None:
    words = page("index.md").partition("## Words")[2]
    explained = {word.strip() for row in re.findall(r"^\| ([^|]+) \|", words, re.MULTILINE) for word in row.split(",")}
    assert set(GLOSSARY) - explained == set()


def test_every_status_and_reason_is_documented() -> None:
    told = page("reference/files.md").partition("## run.json")[2]
    assert [x.value for x in (*Status, *Reason) if f"`{x.value}`" not in told] == []


def test_the_columns_of_csv_are_documented() -> None:
    from benchwright.kinds.models.report.fields import OURS, THEIRS
    from benchwright.report.export.long_table import COLUMNS as LONG
    from benchwright.report.tables.results import results_table

    keys = [column.key for column in results_table([]).columns if column.key]
    assert f"`{', '.join(keys)}`" in page("reference/export.md")
    long_table = page("reference/export.md").partition("long table")[2].partition("## ")[0]
    assert [name for name in LONG if f"`{name}`" not in long_table] == []
    models = page("reference/models.md").partition("## CSV")[2]
    assert [name for name in (*THEIRS, *OURS) if f"`{name}`" not in models] == []


def test_every_column_of_a_suites_table_is_documented() -> None:
    from benchwright.report.tables.scores import OURS

    told = page("how-to/run-a-suite.md").partition("| column | is |")[2].partition("\n\n")[0]
    titles = [field.column.title for field in OURS if field.column.title]
    assert [title for title in titles if f"`{title}`" not in told] == []


def test_the_keys_of_run_json_are_documented() -> None:
    import inspect

    from benchwright.report import run_json

    told = page("reference/files.md").partition("## run.json")[2]
    keys = set(re.findall(r'^\s+(?:\*\*\(\{)?"(\w+)": ', inspect.getsource(run_json), re.MULTILINE))
    assert {"uid", "facts", "parameters", "why_no_share"} <= keys
    assert [key for key in sorted(keys) if f"`{key}`" not in told] == []


def test_the_help_of_report_lists_reporters_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchwright.core.entry_points import EntryPoint
    from benchwright.report.registry import REPORTERS

    def help_text() -> str:
        command = cli.get_command(click.Context(cli), "report")
        assert command is not None
        return " ".join(command.get_help(click.Context(command)).split())

    assert all(name in help_text() for name in REPORTERS.built_in)
    added: Any = {"plain": EntryPoint("plain", "package.module:Plain", "package", "1.0")}
    monkeypatch.setattr(REPORTERS, "plugins", lambda: added)
    assert "plain" in help_text()


def test_the_recording_of_the_readme_is_small_and_moves() -> None:
    from xml.etree import ElementTree

    file = DOCS / "images" / "recording.svg"
    assert "docs/images/recording.svg" in (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert file.stat().st_size < 40_000
    lines = [x.text or "" for x in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")]
    assert lines[0] == "$" or lines[0].startswith("$ ")
    assert any(words in line for line in lines for words in ("improved", "regressed"))
    assert "@keyframes" in file.read_text(encoding="utf-8")


def recording_script(name: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_report_of_the_tutorial_is_recorded_by_the_command_above_it() -> None:
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    asked: list[str] = []

    def run(command: str) -> str:
        asked.append(command)
        return f" report {len(asked)}\n saved: /home/me/runs/x.1\n"

    text = recording_script("record_pages").recorded(page, run)
    assert [command.split(" -")[0] for command in asked] == [
        "bw run",
        "bw run examples/first/train.py",
        "bw run examples/first/tasks.cfg",
    ]
    assert text.count("```\n report ") == 3
    assert text.count(" saved: …/runs/x.1\n```") == 3
    assert page.count("```") == text.count("```")


def test_a_recording_shows_each_line_from_when_to_when_it_stood() -> None:
    recorder = recording_script("record_terminal")
    text = recorder.animated([(0.0, ("$ a <b>",)), (1.0, ("$ a <b>", "one")), (2.0, ("$ a <b>", "two"))])
    whole = 2.0 + recorder.LAST_S
    assert text.count("<text ") == 3
    assert "$ a &lt;b&gt;" in text
    assert f"{1 / whole * 100:.2f}%{{opacity:1}}{2 / whole * 100:.2f}%{{opacity:0}}" in text
