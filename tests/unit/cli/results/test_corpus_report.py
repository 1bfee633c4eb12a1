"""`benchwright report --cache-dir A B --report-dir DIR`."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from pathlib import Path

import pytest
from command_line import CommandLine
from corpus_runs import corpus_run, keep

from benchwright.kinds.models.report.fields import THEIRS


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    """With two caches: three models in A, five others in B; a copy of A's run in C."""
    for name, count, seed in (("A", 3, 1), ("B", 5, 2), ("C", 3, 1)):
        keep(corpus_run(count, seed=seed, samples=20), tmp_path / name)
    return CommandLine(tmp_path / "base", tmp_path)


def test_all_results_of_the_caches_in_every_format_named_after_the_day(bw: CommandLine) -> None:
    done = bw("report", "--cache-dir", "A", "B", "--report-dir", "reports")
    day = date.today().isoformat()
    names = {path.name for path in (bw.cwd / "reports").iterdir()}
    assert names == {f"{day}.csv", f"{day}-matrix.csv", f"{day}.html", f"{day}.md", f"{day}.json"}
    rows = list(csv.DictReader(io.StringIO((bw.cwd / "reports" / f"{day}.csv").read_text())))
    assert tuple(rows[0])[: len(THEIRS)] == THEIRS
    assert len(rows) == 8 * 4 + 2 * 3
    assert {row["corpus"] for row in rows} >= {"zoo0", "zoo1", "zoo2"}
    assert {row["run"] for row in rows} == {"corpus.1", "corpus.2"}
    assert "models" in done.stdout
    assert f"{day}.csv" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "saved:" not in line)


def test_a_run_in_two_caches_counts_once(bw: CommandLine) -> None:
    told = json.loads(bw("report", "-d", "A", "-d", "C", "--json").stdout)
    assert told["runs"] == ["corpus.1"]
    assert told["runtimes"][0]["models"] == 3


def test_labels_choose_models(bw: CommandLine) -> None:
    every = json.loads(bw("report", "-d", "B", "--json").stdout)["models"]
    author = every[0]["label.author"]
    told = json.loads(bw("report", "-d", "B", "--label", f"author={author}", "--json").stdout)["models"]
    assert [model["model"] for model in told] == [m["model"] for m in every if m["label.author"] == author]
    corpus = json.loads(bw("report", "-d", "B", "--label", "corpus=zoo1", "--json").stdout)["models"]
    assert {model["corpus"] for model in corpus} == {"zoo1"}
    nothing = bw("report", "-d", "B", "--label", "author=nobody", code=2)
    assert "no results of models with author=nobody" in nothing.stderr


def test_the_base_folder_is_a_cache_too(bw: CommandLine) -> None:
    keep(corpus_run(2, samples=20), bw.base)
    assert json.loads(bw("report", "--all", "--json").stdout)["runtimes"][0]["models"] == 2


def test_after_a_corpus_the_report_covers_the_cache_and_writes_the_table(bw: CommandLine) -> None:
    day = date.today().isoformat()
    keep(corpus_run(2, seed=1, samples=20), bw.base)
    assert "speed-up" not in bw("report").stdout  # so few scripts are no corpus
    assert not (bw.cwd / f"{day}.csv").exists()
    keep(corpus_run(6, seed=2, samples=20), bw.base)
    done = bw("report")
    assert done.stdout.splitlines()[:-1] == bw("report", "--all").stdout.splitlines()
    assert f"saved: {day}.csv" in done.stdout
    assert "benchwright report last" in done.stderr
    assert (bw.cwd / f"{day}.csv").read_text() == bw("report", "--all", "--format", "csv").stdout
    assert [path.name for path in bw.cwd.glob("20*")] == [f"{day}.csv"]
    assert bw("report", "last").stdout != done.stdout
    assert json.loads(bw("report", "--json").stdout)["id"] == "corpus.2"  # a format is of the last run, as always


def test_wrong_folders_are_named(bw: CommandLine) -> None:
    assert "no such folder" in bw("report", "--cache-dir", "nowhere", code=2).stderr
    (bw.cwd / "empty").mkdir()
    assert "no results of models" in bw("report", "--cache-dir", "empty", code=2).stderr
    assert "is not a cache folder" in bw("report", "--cache-dir", "A", "last", code=2).stderr
    assert "cannot be written as driver" in bw("report", "--cache-dir", "A", "--format", "driver", code=2).stderr
