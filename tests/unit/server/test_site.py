"""The pages as files, and machines side by side on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from shared_runs import FAILING, REGRESSED, STEADY, shared_runs

from benchwright.cli.results import compare
from benchwright.cli.server import site
from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import Direction
from benchwright.report.tables.machine_table import MachineFigure, machine_ratios, price_words, ratio
from benchwright.store.base import StoreEntry
from benchwright.store.sql_store import open_store


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    with open_store(str(folder / "store.db"), aggregate=aggregate) as store:
        store.ingest_all([StoreEntry(run=run, digest="1") for run in shared_runs()])
    return folder


def test_every_link_of_the_files_leads_to_a_file(base: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(site.command, [str(tmp_path / "site"), "--base", str(base), "-n", "4"])
    assert done.exit_code == 0, done.output
    files = {path.name: path.read_text() for path in (tmp_path / "site").iterdir()}
    assert f"{len(files)} pages" in done.output
    links = {unquote(link) for text in files.values() for link in re.findall(r'href="([^"#]+)"', text)}
    assert links <= files.keys()
    assert files.keys() - links == set()  # nothing that one cannot get to
    assert not any("<form" in text for text in files.values())
    assert sum(name.startswith("runs-") for name in files) >= 4
    assert REGRESSED in files["changes.html"]
    assert FAILING in files["index.html"]
    assert not (base / "server.db").exists()  # looking writes nothing


def test_a_second_time_writes_the_same_names(base: Path, tmp_path: Path) -> None:
    for _ in range(2):
        CliRunner().invoke(site.command, [str(tmp_path), "--base", str(base), "-n", "0"])
        names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == len(set(names)) > 10


def compared(base: Path, *words: str) -> str:
    done = CliRunner().invoke(compare.command, ["--machines", "--base", str(base), *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_machines_side_by_side_on_the_command_line(base: Path) -> None:
    text = compared(base, "--relative-to", "alpha", "--price", "alpha=3.6", STEADY)
    assert "ratios to alpha" in text
    assert "no verdict" in text
    body = json.loads(compared(base, "--relative-to", "alpha", "--json"))
    row = next(row for row in body["rows"] if row["benchmark"] == STEADY)
    assert row["alpha"] == 1.0
    assert row["beta low"] < row["beta"] < row["beta high"]
    assert row["beta"] == pytest.approx(row["beta value"] / row["alpha value"])
    assert compared(base, "--format", "csv").count("\n") == 4
    assert "| data loading" in compared(base, "--format", "markdown").replace("`", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--machines", "--relative-to", "alfa"], "did you mean 'alpha'"),
        (["--machines", "--price", "alpha"], "is not HOST=PRICE"),
        (["--machines", "--price", "alpha=-1"], "is not HOST=PRICE"),
        (["--price", "alpha=1"], "belong to --machines"),
        (["--machines", "--format", "html"], "has no html"),
    ],
)
def test_what_cannot_be_put_side_by_side_is_said(base: Path, words: list[str], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        CliRunner().invoke(compare.command, ["--base", str(base), *words], catch_exceptions=False)
    assert said in str(caught.value)


def figure(value: float, low: float | None, high: float | None, **fields: object) -> MachineFigure:
    given = {
        "benchmark": "b",
        "metric": "rate",
        "labels": {},
        "unit": "items/s",
        "direction": Direction.HIGHER,
        "host": "h",
    }
    return MachineFigure(value=value, low=low, high=high, **(given | fields))  # type: ignore[arg-type]


def test_a_ratio_says_how_many_times_better() -> None:
    assert ratio(figure(20.0, 19.0, 21.0), figure(10.0, 9.5, 10.5)) == (2.0, 19.0 / 10.5, 21.0 / 9.5)
    time = {"unit": "s", "direction": Direction.LOWER}
    assert ratio(figure(5.0, 4.0, 6.0, **time), figure(10.0, 8.0, 12.0, **time)) == (2.0, 8.0 / 6.0, 12.0 / 4.0)
    assert ratio(figure(20.0, None, None), figure(10.0, 9.5, 10.5)) == (2.0, None, None)
    assert ratio(figure(0.0, None, None), figure(10.0, None, None)) is None


def test_other_settings_are_told_beside_the_ratio() -> None:
    made = machine_ratios([figure(1.0, None, None, setting={"batch": "1"}), figure(2.0, None, None, host="i")], "h")
    assert made.hosts == ("h", "i")
    assert price_words(figure(10.0, None, None), 3.6) == "price 0.1 per 1,000 items"
    assert price_words(figure(7200.0, None, None, unit="s"), 2.0) == "price 4"
    assert price_words(figure(1.0, None, None, unit="B"), 2.0) == ""
