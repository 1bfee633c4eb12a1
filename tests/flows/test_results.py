"""Looking at results, comparing them and looking after them, through the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine

PY = sys.executable
# A program whose speed is what it is told: results that are known beforehand.
TOLD = "import os, sys; n = float(sys.argv[1]); r = int(os.environ.get('R', 0)); print('speed=%.3f' % (n * (1 + 0.001 * (os.getpid() % 5))))"


def measure(
    bw: CommandLine, speed: float, *args: str, repeat: int = 6, metric: str = "speed[items/s,higher]=kv:speed"
) -> str:
    """A run of `told`; its id."""
    body = bw.json(
        "run",
        "--repeat",
        str(repeat),
        "--metric",
        metric,
        "--name",
        "told",
        *args,
        "--",
        PY,
        "-c",
        TOLD,
        str(speed),
    )
    return str(body["id"])


def measure_text(bw: CommandLine, value: str) -> str:
    """A run of a program that prints this instead of a speed; whether that fails is not this test's concern."""
    program = f"print('speed={value}')"
    words = ("run", "--repeat", "6", "--metric", "speed[items/s,higher]=kv:speed", "--name", "told")
    return str(bw.json(*words, "--", PY, "-c", program, code=None)["id"])


def test_every_finished_run_is_in_the_store_and_listed(bw: CommandLine) -> None:
    first, second = measure(bw, 100), measure(bw, 100, "--label", "who=me")
    rows = json.loads(bw("runs", "--json").stdout)
    assert [row["id"] for row in rows] == [second, first]
    assert [row["id"] for row in json.loads(bw("runs", "--label", "who=me", "--json").stdout)] == [second]
    assert json.loads(bw("runs", "--status", "failed", "--json").stdout) == []
    assert second in bw("runs", "--name", "told*").stdout


def test_a_store_that_cannot_be_used_costs_no_result(bw: CommandLine) -> None:
    blocked = bw.cwd / "store.db"
    blocked.write_text("this is no database")
    done = bw("run", "--store", str(blocked), "--", "true")
    assert "saved:" in done.stdout
    assert "is complete, but not in the store" in done.stderr
    assert blocked.read_text() == "this is no database"
    assert bw("report").stdout.startswith(" true")


def test_a_lost_store_is_rebuilt_from_the_folders_with_annotations_and_baselines(bw: CommandLine) -> None:
    name = measure(bw, 100)
    bw("runs", "annotate", name, "the <first> one")
    bw("baseline", "set", "main", name)
    (bw.base / "store.db").unlink()
    assert "1 of 1 runs" in bw("store", "rebuild").stdout
    (row,) = json.loads(bw("runs", "--json").stdout)
    assert (row["id"], row["annotation"]) == (name, "the <first> one")
    assert json.loads(bw("baseline", "list", "--json").stdout) == {"main": name}
    assert "intact" in bw("store", "check").stdout


def test_ingesting_twice_changes_nothing(bw: CommandLine) -> None:
    measure(bw, 100)
    folder = str(bw.last_run())
    assert "already there" in bw("ingest", folder).stdout
    database = sqlite3.connect(bw.base / "store.db")
    before = list(database.iterdump())
    bw("ingest", folder, folder)
    assert list(database.iterdump()) == before


def test_reports_in_every_format_say_the_same_number(bw: CommandLine) -> None:
    measure(bw, 250)
    body = json.loads(bw("report", "--format", "json").stdout)
    value = next(m["value"] for m in body["results"][0]["metrics"] if m["metric"] == "speed")
    (row,) = [r for r in csv.DictReader(io.StringIO(bw("report", "--format", "csv").stdout)) if r["metric"] == "speed"]
    assert float(row["value"]) == value
    shown = f"{value:.4g}"
    assert shown in bw("report").stdout
    assert shown in bw("report", "--format", "markdown").stdout
    for name, number in {"r.html": shown, "r.md": shown, "r.csv": str(value), "r.json": str(value)}.items():
        bw("report", "-o", name)
        assert number in (bw.cwd / name).read_text()
    page = (bw.cwd / "r.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    bw("show", "-o", "s.html")
    assert shown in (bw.cwd / "s.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "did you mean 'html'" in bw("report", "--format", "htm", code=2).stderr


def test_show_tells_every_launch_the_machine_and_the_packages(bw: CommandLine) -> None:
    name = measure(bw, 100, "--label", "who=me", repeat=2)
    bw("runs", "annotate", "last", "a remark")
    text = bw("show").stdout
    assert "labels: who=me" in text
    assert "annotation: a remark" in text
    assert json.loads(bw("show", "--json").stdout)["annotation"] == "a remark"
    assert "told.R0.D0" in text
    assert "told.R1.D0" in text
    assert "machine:" in text
    assert json.loads(bw("show", name, "--json").stdout)["id"] == name


def test_raw_samples_are_exported_and_can_be_read_back(bw: CommandLine) -> None:
    measure(bw, 100, repeat=2)
    for name in ("x.json", "x.csv"):
        bw("export", "--output", name)
    rows = list(csv.DictReader(io.StringIO((bw.cwd / "x.csv").read_text())))
    assert len([r for r in rows if r["metric"] == "speed"]) == 2
    assert "unknown format" in bw("export", "--output", "x.zip", code=2).stderr


def test_a_worse_run_is_called_regressed_and_fails_ci(bw: CommandLine) -> None:
    """An accuracy, since how busy the machine is that runs the tests has no part in it."""
    better, worse = (measure(bw, value, metric="accuracy[,higher]=kv:speed") for value in (100, 80))
    done = bw("compare", better, worse, "--anyway", "--fail-on", "regressed", code=1)
    assert "regressed" in done.stdout
    body = json.loads(bw("compare", better, worse, "--anyway", "--json").stdout)
    (effect,) = body["effects"]
    assert effect["verdict"] == "regressed"
    assert effect["ratio"] == pytest.approx(0.8, rel=0.02)
    assert json.loads(bw("compare", worse, better, "--anyway", "--json").stdout)["effects"][0]["verdict"] == "improved"


def test_a_slower_run_is_called_regressed_unless_the_machine_was_busy(bw: CommandLine) -> None:
    fast, slow = measure(bw, 100), measure(bw, 80)
    (effect,) = json.loads(bw("compare", fast, slow, "--anyway", "--json").stdout)["effects"]
    busy = any("machine was busy" in doubt for doubt in effect["doubts"])
    assert effect["verdict"] == ("inconclusive" if busy else "regressed")


@pytest.mark.slow
def test_runs_on_a_busy_machine_decide_nothing_and_say_why_in_every_format(bw: CommandLine) -> None:
    work = "x = 1\nfor _ in range(1_000_000): x = x * 1103515245 + 12345 & 0x7FFFFFFF"
    command = ("run", "--repeat", "6", "--name", "work", "--", PY, "-S", "-c", work)
    first = bw.json(*command)["id"]
    others = [subprocess.Popen([PY, "-S", "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        second = bw.json(*command)["id"]
    finally:
        for other in others:
            other.kill()
            other.wait()
    (effect,) = json.loads(bw("compare", first, second, "--fail-on", "regressed", "--json").stdout)["effects"]
    bw("compare", first, second, "-o", "c.json")
    assert json.loads((bw.cwd / "c.json").read_text())["effects"] == [effect]
    assert effect["verdict"] == "inconclusive"
    assert any(doubt.startswith("treatment: ") and "machine was busy" in doubt for doubt in effect["doubts"])
    for format_ in ("screen", "markdown", "csv", "html"):
        text = " ".join(bw("compare", first, second, "--format", format_).stdout.split())
        assert "ran while the machine was busy" in text, format_
        assert "bw run --repeat 10 -c A -c B" in text, format_
    for format_ in ("screen", "markdown", "csv", "json", "html"):
        text = " ".join(bw("report", second, "--format", format_).stdout.split())
        assert "an while the machine was busy" in text, format_


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-3"])
def test_a_treatment_without_a_number_fails_ci_and_says_why(bw: CommandLine, value: str) -> None:
    good, bad = measure(bw, 100), measure_text(bw, value)
    done = bw("compare", good, bad, "--anyway", "--fail-on", "regressed", code=1)
    assert "told" in done.stderr
    assert bw("compare", good, bad, "--anyway", "--format", "markdown").stdout.count("⚠") >= 1


def test_a_treatment_that_fails_or_is_gone_fails_ci(bw: CommandLine) -> None:
    good = measure(bw, 100)
    crashed = bw.json("run", "--repeat", "6", "--name", "told", "--", PY, "-c", "raise SystemExit(3)", code=1)["id"]
    done = bw("compare", good, crashed, "--anyway", "--fail-on", "regressed", code=1)
    assert "told: nothing was measured in treatment (crashed: exit code 3)" in done.stderr


def test_the_same_program_is_not_called_different(bw: CommandLine) -> None:
    first, second = measure(bw, 100, repeat=8), measure(bw, 100, repeat=8)
    body = json.loads(bw("compare", first, second, "--fail-on", "regressed", "--json").stdout)
    assert [e["verdict"] for e in body["effects"] if e["metric"] == "speed"] in (["same"], ["inconclusive"])


def test_one_launch_never_gives_a_verdict(bw: CommandLine) -> None:
    fast, slow = measure(bw, 100, repeat=1), measure(bw, 50, repeat=1)
    body = json.loads(bw("compare", fast, slow, "--anyway", "--json").stdout)
    assert {e["verdict"] for e in body["effects"]} == {"inconclusive"}
    assert all(e["interval"] is None for e in body["effects"])


def test_another_command_is_refused_unless_asked_for(bw: CommandLine) -> None:
    fast, slow = measure(bw, 100), measure(bw, 80)
    done = bw("compare", fast, slow, code=2)
    assert "not comparable" in done.stderr
    assert "--anyway" in done.stderr


def test_a_baseline_stands_for_a_run(bw: CommandLine) -> None:
    name = measure(bw, 100)
    bw("baseline", "set", "main")
    assert "with itself" in bw("compare", "--baseline", "main", "last", code=2).stderr
    measure(bw, 100)
    assert name in bw("compare", "--baseline", "main", "last").stdout
    assert "no baseline is called 'mian'" in bw("compare", "--baseline", "mian", "last", code=2).stderr


def test_interleaved_commands_are_compared_as_pairs(bw: CommandLine) -> None:
    program = bw.cwd / "told.py"
    program.write_text("import sys; print('speed=' + sys.argv[1])\n")
    lines = [f"{PY} told.py 100", f"{PY} told.py 90"]
    bw("run", "--repeat", "10", "--metric", "speed[MB,higher]=kv:speed", "-c", lines[0], "-c", lines[1])
    body = json.loads(bw("compare", "last", "--between", "told.py 100", "told.py 90", "--json").stdout)
    (effect,) = [e for e in body["effects"] if e["metric"] == "speed"]
    assert effect["paired"] is True
    assert effect["ratio"] == pytest.approx(0.9)
    assert effect["verdict"] == "regressed"
    assert "did not measure 'nope'" in bw("compare", "last", "--between", "told.py 100", "nope", code=2).stderr


def test_deleting_and_pruning_leave_baselines_alone(bw: CommandLine) -> None:
    kept, gone, newest = (measure(bw, 100, repeat=1) for _ in range(3))
    bw("baseline", "set", "main", kept)
    assert "would delete" in bw("runs", "prune", "--max-size", "1KB", "--dry-run").stdout
    assert len(list((bw.base / "runs").iterdir())) == 3
    bw("runs", "delete", gone, "--yes")
    assert not (bw.base / "runs" / gone).exists()
    bw("runs", "prune", "--max-size", "1KB", "--yes")
    assert [p.name for p in (bw.base / "runs").iterdir()] == [kept]
    assert [row["id"] for row in json.loads(bw("runs", "--json").stdout)] == [kept]
    assert "no limit given" in bw("runs", "prune", code=2).stderr


def test_results_of_other_tools_join_the_store(bw: CommandLine) -> None:
    samples = Path(__file__).parents[1] / "compat" / "imports"
    files = sorted(str(p) for p in samples.rglob("*.json"))
    assert files
    found = 0
    for path in files:
        done = bw("import", path, code=None)
        found += done.returncode == 0
        assert "Traceback" not in done.stderr
    assert found >= 4
    before = json.loads(bw("runs", "--json", "-n", "100").stdout)
    bw("import", files[0], code=None)
    assert json.loads(bw("runs", "--json", "-n", "100").stdout) == before
    (bw.base / "store.db").unlink()
    bw("store", "rebuild")
    again = json.loads(bw("runs", "--json", "-n", "100").stdout)
    assert sorted(row["id"] for row in again) == sorted(row["id"] for row in before)
    assert before[0]["id"] in bw("report", before[0]["id"][:-2], "--format", "json").stdout


def test_a_baseline_counts_even_when_the_store_is_unusable(bw: CommandLine) -> None:
    name = measure(bw, 100)
    bw("baseline", "set", "main")
    measure(bw, 100)
    (bw.cwd / "no.db").write_text("this is no database")
    assert name in bw("compare", "--store", "no.db", "--baseline", "main", "last").stdout


def test_a_deleted_run_takes_its_baseline_with_it(bw: CommandLine) -> None:
    name = measure(bw, 100, repeat=1)
    bw("baseline", "set", "main", name)
    assert "baseline 'main' was deleted" in bw("runs", "delete", name, "--yes").stderr
    assert json.loads(bw("baseline", "list", "--json").stdout) == {}


def test_what_is_deleted_must_be_named(bw: CommandLine) -> None:
    first, second = measure(bw, 100, repeat=1), measure(bw, 100, repeat=1)
    assert "matches 2 runs" in bw("runs", "delete", "told", "--yes", code=2).stderr
    assert "no run called ''" in bw("runs", "delete", "", "--yes", code=2).stderr
    assert {p.name for p in (bw.base / "runs").iterdir()} == {first, second}
    elsewhere = bw.cwd / "elsewhere"
    (bw.base / "runs" / first).rename(elsewhere)
    assert "is not in" in bw("runs", "delete", str(elsewhere), "--yes", code=2).stderr
    assert elsewhere.is_dir()


@pytest.mark.parametrize(
    "name",
    [
        'it\'s "quoted"',
        "<b>&amp;|</b>",
        "🚀 emoji",
        "n" * 300,
        "../a/b",
        "two\nlines",
        "\x1b[31mred",
        "~nobody",
        "last",
    ],
    ids=["quotes", "html", "emoji", "long", "path", "lines", "escapes", "home", "word"],
)
def test_a_benchmark_of_any_name_can_be_looked_at_and_deleted(bw: CommandLine, name: str) -> None:
    bw("run", "--name", name, "--", "true")
    bw("run", "--name", name, "--", "true")
    newest, older = (row["id"] for row in json.loads(bw("runs", "--json").stdout))
    for text in (bw("show", name).stdout, bw("compare", older, newest).stdout, bw("runs").stdout):
        assert "\x1b" not in text
        assert all(len(line) <= 80 for line in text.splitlines() if "saved:" not in line)
    for kind in ("json", "csv", "markdown", "html"):
        assert bw("report", name, "--format", kind).stdout
    bw("compare", older, newest, "--format", "html")
    bw("runs", "annotate", name, name)
    bw("runs", "delete", older, newest, "--yes")
    assert list((bw.base / "runs").iterdir()) == []
    assert json.loads(bw("runs", "--json").stdout) == []


def test_a_word_that_can_name_no_run_is_refused_in_words(bw: CommandLine) -> None:
    for word in ("n" * 5000, "~nobody/x", "a/b", ""):
        assert "no run called" in bw("show", word, code=2).stderr


def test_an_imported_run_is_annotated_named_and_deleted_like_any_other(bw: CommandLine) -> None:
    sample = Path(__file__).parents[1] / "compat" / "imports" / "hyperfine.json"
    bw("import", str(sample))
    (name,) = (row["id"] for row in json.loads(bw("runs", "--json").stdout))
    bw("runs", "annotate", "import.hyperfine", "from <another> tool")
    bw("baseline", "set", "other", name)
    assert "has no logs" in bw("logs", name, code=2).stderr
    (bw.base / "store.db").unlink()
    bw("store", "rebuild")
    (row,) = json.loads(bw("runs", "--json").stdout)
    assert (row["id"], row["annotation"]) == (name, "from <another> tool")
    assert json.loads(bw("baseline", "list", "--json").stdout) == {"other": name}
    bw("runs", "delete", name, "--yes")
    bw("store", "rebuild")
    assert json.loads(bw("runs", "--json").stdout) == []


def test_a_comparison_that_compares_nothing_is_an_error(bw: CommandLine) -> None:
    measure(bw, 100, "--no-store")
    first = bw.last_run().name
    measure(bw, 100)
    assert "did you mean 'speed'" in bw("compare", first, "last", "--metric", "sped", code=2).stderr
    program = bw.cwd / "told.py"
    program.write_text("import sys; print('speed=' + sys.argv[1])\n")
    bw("run", "--no-interleave", "--repeat", "2", "-c", f"{PY} told.py 1", "-c", f"{PY} told.py 2")
    done = bw("compare", "last", "--between", "told.py 1", "told.py 2", code=2)
    assert "were not interleaved" in done.stderr


def test_a_damaged_store_is_made_anew(bw: CommandLine) -> None:
    name = measure(bw, 100, repeat=1)
    store = bw.base / "store.db"
    content = store.read_bytes()
    half = len(content) // 2
    store.write_bytes(content[:half] + b"\xff" * half)
    assert bw("store", "check", code=None).returncode != 0
    bw("store", "rebuild")
    assert "intact" in bw("store", "check").stdout
    assert [row["id"] for row in json.loads(bw("runs", "--json").stdout)] == [name]
    assert sorted(p.name for p in bw.base.glob("store.db*")) == ["store.db", "store.db.damaged"]


def test_a_store_that_is_no_url_is_refused_before_anything_runs(bw: CommandLine) -> None:
    for where, done in (
        ("--store", bw("run", "--store", "postgresql:u:s3cret@h", "--", "touch", "ran", code=2)),
        ("$BENCHWRIGHT_STORE", bw("run", "--", "touch", "ran", code=2, env={"BENCHWRIGHT_STORE": "u:s3cret@h/db"})),
    ):
        assert done.stderr.startswith(f"benchwright: {where}: this is neither a path nor a URL; give a path")
        assert "s3cret" not in done.stderr
    assert list(bw.cwd.iterdir()) == []


@pytest.mark.parametrize("option", [("-o",), ("--html",), ("--format", "json", "-o")])
def test_a_report_is_written_as_a_shell_would(bw: CommandLine, option: tuple[str, ...]) -> None:
    bw("run", "--", "true")
    private, link = bw.cwd / "private", bw.cwd / "link"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to("private")
    bw("report", *option, str(link))
    assert link.is_symlink()
    assert private.stat().st_mode & 0o777 == 0o600
    assert len(private.read_text()) > 100
    bw("report", *option, "/dev/null")
    assert Path("/dev/null").is_char_device()
    assert "is a folder" in bw("report", *option, str(bw.cwd), code=2).stderr
    assert "does not exist" in bw("report", *option, "none/x", code=2).stderr


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_an_export_can_go_into_a_pipe(bw: CommandLine, format_: str) -> None:
    bw("run", "--", "true")
    os.mkfifo(bw.cwd / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=bw.cwd, stdout=subprocess.PIPE) as reader:
        bw("export", "--format", format_, "-o", "pipe")
        assert b"process.duration" in reader.communicate(timeout=60)[0]
    assert (bw.cwd / "pipe").is_fifo()


def test_plot_draws_a_run_and_a_benchmark_over_runs(bw: CommandLine) -> None:
    name = measure(bw, 100, repeat=3)
    measure(bw, 200, repeat=3)
    bench = json.loads(bw("report", name, "--json").stdout)["results"][0]["benchmark"]
    assert "3 launches" in bw("plot").stdout
    assert "3 launches" in bw("plot", name, bench).stdout
    drawn = bw("plot", bench, "--history").stdout
    assert len([line for line in drawn.splitlines() if "┃" in line and "median" not in line]) == 2
    assert "\x1b" not in drawn
    assert "did not measure 'nothing'" in bw("plot", "last", "nothing", code=2).stderr
    assert "neither a run nor a benchmark is called 'nothing'" in bw("plot", "nothing", code=2).stderr
