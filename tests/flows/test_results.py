"""Looking at results, comparing them and looking after them, through the command line."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from kept_runs import Kept
from made_once import MadeOnce
from told_runs import NO_NUMBERS, ToldRuns

from benchwright.results.kept_runs import Results
from benchwright.runs.run_folder import RunFolder

PY = sys.executable


@pytest.fixture(scope="session")
def told(made_once: MadeOnce) -> ToldRuns:
    return ToldRuns(made_once)


@pytest.fixture
def shown(bw: CommandLine, told: ToldRuns) -> CommandLine:
    """The command line where all these runs are, which nobody changes."""
    return told.shown_to(bw)


def test_every_finished_run_is_in_the_store_and_listed(shown: CommandLine, told: ToldRuns, tmp_path: Path) -> None:
    stored = [run for run in reversed(told.ids) if run != told["apart"]]
    elsewhere = CommandLine(tmp_path / "empty", shown.cwd)
    rows = json.loads(elsewhere("runs", "--store", str(shown.base / "store.db"), "--json", "-n", "100").stdout)
    assert [row["id"] for row in rows] == stored
    rows = json.loads(shown("runs", "--json", "-n", "100").stdout)
    assert {row["id"] for row in rows} == {*told.ids}  # those in the folders too
    assert [row["id"] for row in json.loads(shown("runs", "--label", "who=me", "--json").stdout)] == [told["same"]]
    failed = json.loads(shown("runs", "--status", "failed", "--json").stdout)
    assert {row["id"] for row in failed} == {told[name] for name in (*NO_NUMBERS, "crashed")}
    assert told["same"] in shown("runs", "--name", "told*").stdout


def test_a_store_that_cannot_be_used_costs_no_result(bw: CommandLine) -> None:
    blocked = bw.cwd / "store.db"
    blocked.write_text("this is no database")
    done = bw("run", "--store", str(blocked), "--", "true")
    assert "saved:" in done.stdout
    assert "is complete, but not in the store" in done.stderr
    assert blocked.read_text() == "this is no database"
    assert bw("report").stdout.startswith(" true")


def test_a_lost_store_is_rebuilt_from_the_folders_with_annotations_and_baselines(
    bw: CommandLine, told: ToldRuns
) -> None:
    name = told["first"]
    told.copied_to(bw, "first")
    bw("runs", "annotate", name, "the <first> one")
    bw("baseline", "set", "main", name)
    (bw.base / "store.db").unlink()
    assert "1 of 1 runs" in bw("store", "rebuild").stdout
    (row,) = json.loads(bw("runs", "--json").stdout)
    assert (row["id"], row["annotation"]) == (name, "the <first> one")
    assert json.loads(bw("baseline", "list", "--json").stdout) == {"main": name}
    assert "intact" in bw("store", "check").stdout


def test_ingesting_twice_changes_nothing(bw: CommandLine, told: ToldRuns) -> None:
    told.copied_to(bw, "first")
    folder = str(bw.last_run())
    assert "already there" in bw("import", "benchwright", folder).stdout
    database = sqlite3.connect(bw.base / "store.db")
    before = list(database.iterdump())
    bw("import", "benchwright", folder, folder)
    assert list(database.iterdump()) == before


def test_reports_in_every_format_say_the_same_number(shown: CommandLine, told: ToldRuns) -> None:
    name = told["first"]
    body = json.loads(shown("report", name, "--format", "json").stdout)
    value = next(m["value"] for m in body["results"][0]["metrics"] if m["metric"] == "speed")
    table = csv.DictReader(io.StringIO(shown("report", name, "--format", "csv").stdout))
    (row,) = [r for r in table if r["metric"] == "speed"]
    assert float(row["value"]) == value
    number = f"{value:.4g}"
    assert number in shown("report", name).stdout
    assert number in shown("report", name, "--format", "markdown").stdout
    for file, text in {"r.html": number, "r.md": number, "r.csv": str(value), "r.json": str(value)}.items():
        shown("report", name, "-o", file)
        assert text in (shown.cwd / file).read_text()
    page = (shown.cwd / "r.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    shown("show", name, "-o", "s.html")
    assert number in (shown.cwd / "s.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "did you mean 'html'" in shown("report", "--format", "htm", code=2).stderr


def test_show_tells_every_launch_the_machine_and_the_packages(bw: CommandLine, told: ToldRuns) -> None:
    name = told["same"]
    told.copied_to(bw, "same")
    bw("runs", "annotate", "last", "a remark")
    text = bw("show").stdout
    assert "labels: who=me" in text
    assert "annotation: a remark" in text
    assert json.loads(bw("show", "--json").stdout)["annotation"] == "a remark"
    assert "told.R0.D0" in text
    assert "told.R1.D0" in text
    assert "machine:" in text
    assert json.loads(bw("show", name, "--json").stdout)["id"] == name


def test_raw_samples_are_exported_and_can_be_read_back(shown: CommandLine, told: ToldRuns) -> None:
    for file in ("x.json", "x.csv"):
        shown("export", told["first"], "--output", file)
    rows = list(csv.DictReader(io.StringIO((shown.cwd / "x.csv").read_text())))
    assert len([r for r in rows if r["metric"] == "speed"]) == 6
    assert "unknown format" in shown("export", told["first"], "--output", "x.zip", code=2).stderr


def test_a_worse_run_is_called_regressed_and_fails_ci(shown: CommandLine, told: ToldRuns) -> None:
    better, worse = told["first"], told["slower"]
    done = shown("compare", better, worse, "--anyway", "--fail-on", "regressed", code=1)
    assert "regressed" in done.stdout
    body = json.loads(shown("compare", better, worse, "--anyway", "--json").stdout)
    (effect,) = body["effects"]
    assert effect["verdict"] == "regressed"
    assert effect["ratio"] == pytest.approx(0.8, rel=0.02)
    other = json.loads(shown("compare", worse, better, "--anyway", "--json").stdout)
    assert other["effects"][0]["verdict"] == "improved"


def test_a_slower_run_of_a_quiet_machine_is_called_regressed(bw: CommandLine) -> None:
    """Steps that nobody timed: the machine that runs the tests may be busy."""
    kept = Kept(bw.base)
    fast, slow = (kept("x", [s + n / 1000 for n in range(6)], repeat=6).id for s in (0.1, 0.125))
    (effect,) = json.loads(bw("compare", fast, slow, "--json").stdout)["effects"]
    assert (effect["metric"], effect["verdict"]) == ("rate", "regressed")
    assert not any("machine was busy" in doubt for doubt in effect["doubts"])


def test_runs_on_a_busy_machine_decide_nothing_and_say_why_in_every_format(bw: CommandLine) -> None:
    work = "x = 1\nfor _ in range(400_000): x = x * 1103515245 + 12345 & 0x7FFFFFFF"
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
        assert "alternate both in one run" in text, format_
    for format_ in ("screen", "markdown", "csv", "json", "html"):
        text = " ".join(bw("report", second, "--format", format_).stdout.split())
        assert "an while the machine was busy" in text, format_


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_a_treatment_without_a_number_fails_ci_and_says_why(shown: CommandLine, told: ToldRuns, value: str) -> None:
    good, bad = told["first"], told[value]
    done = shown("compare", good, bad, "--anyway", "--fail-on", "regressed", code=1)
    assert "told" in done.stderr
    assert shown("compare", good, bad, "--anyway", "--format", "markdown").stdout.count("⚠") >= 1


def test_a_treatment_that_fails_or_is_gone_fails_ci(shown: CommandLine, told: ToldRuns) -> None:
    done = shown("compare", told["first"], told["crashed"], "--anyway", "--fail-on", "regressed", code=1)
    assert "told: nothing was measured in treatment (crashed: exit code 3)" in done.stderr


def test_the_same_program_is_not_called_different(shown: CommandLine, told: ToldRuns) -> None:
    body = json.loads(shown("compare", told["first"], told["same"], "--fail-on", "regressed", "--json").stdout)
    assert [e["verdict"] for e in body["effects"] if e["metric"] == "speed"] == ["same"]


def test_one_launch_never_gives_a_verdict(shown: CommandLine, told: ToldRuns) -> None:
    body = json.loads(shown("compare", told["one"], told["one_slower"], "--anyway", "--json").stdout)
    assert {e["verdict"] for e in body["effects"]} == {"inconclusive"}
    assert all(e["interval"] is None for e in body["effects"])


def test_another_command_is_refused_unless_asked_for(shown: CommandLine, told: ToldRuns) -> None:
    done = shown("compare", told["first"], told["slower"], code=2)
    assert "not comparable" in done.stderr
    assert "--anyway" in done.stderr


def test_a_baseline_stands_for_a_run_even_when_the_store_is_unusable(bw: CommandLine, told: ToldRuns) -> None:
    told.copied_to(bw, "first", "same")
    bw("baseline", "set", "last")
    assert "with itself" in bw("compare", "--baseline", "last", "last", code=2).stderr
    bw("baseline", "set", "main", told["first"])
    assert told["first"] in bw("compare", "--baseline", "main", "last").stdout
    assert "no baseline is called 'mian'" in bw("compare", "--baseline", "mian", "last", code=2).stderr
    (bw.cwd / "no.db").write_text("this is no database")
    assert told["first"] in bw("compare", "--store", "no.db", "--baseline", "main", "last").stdout


def test_interleaved_commands_are_compared_as_pairs(shown: CommandLine, told: ToldRuns) -> None:
    between = ("compare", told["pairs"], "--between", "echo speed=100")
    body = json.loads(shown(*between, "echo speed=90", "--json").stdout)
    (effect,) = [e for e in body["effects"] if e["metric"] == "speed"]
    assert effect["paired"] is True
    assert effect["ratio"] == pytest.approx(0.9)
    assert effect["verdict"] == "regressed"
    assert "did not measure 'nope'" in shown(*between, "nope", code=2).stderr


def test_deleting_and_pruning_leave_baselines_alone(bw: CommandLine, told: ToldRuns) -> None:
    told.copied_to(bw, "first", "same", "slower")
    kept, gone = told["first"], told["same"]
    bw("baseline", "set", "main", kept)
    assert "would delete" in bw("runs", "prune", "--max-size", "1KB", "--dry-run").stdout
    assert len(list((bw.base / "runs").iterdir())) == 3
    bw("runs", "delete", gone, "--yes")
    assert not (bw.base / "runs" / gone).exists()
    bw("runs", "prune", "--max-size", "1KB", "--yes")
    assert [p.name for p in (bw.base / "runs").iterdir()] == [kept]
    assert [row["id"] for row in json.loads(bw("runs", "--json").stdout)] == [kept]
    assert "no limit given" in bw("runs", "prune", code=2).stderr


@pytest.mark.compat
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


def test_a_deleted_run_takes_its_baseline_with_it(bw: CommandLine, told: ToldRuns) -> None:
    name = told["one"]
    told.copied_to(bw, "one")
    bw("baseline", "set", "main", name)
    assert "baseline 'main' was deleted" in bw("runs", "delete", name, "--yes").stderr
    assert json.loads(bw("baseline", "list", "--json").stdout) == {}


def test_what_is_deleted_must_be_named(bw: CommandLine, told: ToldRuns) -> None:
    told.copied_to(bw, "one", "one_slower")
    first, second = told["one"], told["one_slower"]
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


@pytest.mark.compat
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


def test_a_comparison_that_compares_nothing_is_an_error(shown: CommandLine, told: ToldRuns) -> None:
    sped = shown("compare", told["first"], told["same"], "--metric", "sped", code=2)
    assert "did you mean 'speed'" in sped.stderr
    apart = shown("compare", told["apart"], "--between", "echo speed=100", "echo speed=90", code=2)
    assert "were not interleaved" in apart.stderr


def test_a_damaged_store_is_made_anew(bw: CommandLine, told: ToldRuns) -> None:
    name = told["one"]
    told.copied_to(bw, "one")
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
    done = bw("run", "--store", "http://bench.example.org", "--", "touch", "ran", code=2)
    assert "--store: http would send the token readable for everybody; use https" in done.stderr
    assert list(bw.cwd.iterdir()) == []


@pytest.mark.parametrize("option", [("-o",), ("--html",), ("--format", "json", "-o")])
def test_a_report_is_written_as_a_shell_would(shown: CommandLine, option: tuple[str, ...]) -> None:
    private, link = shown.cwd / "private", shown.cwd / "link"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to("private")
    shown("report", *option, str(link))
    assert link.is_symlink()
    assert private.stat().st_mode & 0o777 == 0o600
    assert len(private.read_text()) > 100
    shown("report", *option, "/dev/null")
    assert Path("/dev/null").is_char_device()
    assert "is a folder" in shown("report", *option, str(shown.cwd), code=2).stderr
    assert "does not exist" in shown("report", *option, "none/x", code=2).stderr


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_an_export_can_go_into_a_pipe(shown: CommandLine, format_: str) -> None:
    os.mkfifo(shown.cwd / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=shown.cwd, stdout=subprocess.PIPE) as reader:
        shown("export", "--format", format_, "-o", "pipe")
        assert b"process.duration" in reader.communicate(timeout=600)[0]
    assert (shown.cwd / "pipe").is_fifo()


def test_plot_names_what_draws_instead(shown: CommandLine) -> None:
    refused = shown("plot", code=2).stderr
    assert "report -o report.html" in refused
    assert "history" in refused


def in_store(bw: CommandLine) -> dict[str, bool]:
    with Results.choose(bw.base, None, {}) as results:
        stored = results.existing_store.digests()
    return {path.name: RunFolder(path).unique_id in stored for path in (bw.base / "runs").iterdir()}


def test_a_run_that_a_locked_store_could_not_take_is_added_by_the_next_command(
    bw: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bw("run", "--run-name", "first", "--", "true")
    monkeypatch.setattr("benchwright.store.connection.BUSY_TIMEOUT_S", 0.2)
    other = sqlite3.connect(bw.base / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = bw("run", "--run-name", "second", "--", "true")
    assert "not in the store yet" in done.stderr
    assert "the next benchwright command adds it" in done.stderr
    assert (
        len(json.loads(bw("runs", "--json").stdout)) == 2
    )  # still locked: nothing fails, and it is listed all the same
    other.execute("ROLLBACK")
    other.close()
    bw("runs")
    assert all(in_store(bw).values())
    assert list((bw.base / "unstored").iterdir()) == []


def test_a_run_that_waits_for_the_store_and_is_deleted_meanwhile_is_forgotten(bw: CommandLine) -> None:
    bw("run", "--", "true")
    (bw.base / "unstored").mkdir()
    url = hashlib.sha256(str(bw.base / "store.db").encode()).hexdigest()
    (bw.base / "unstored" / "gone.2026").write_text(f"{url}\n")
    (bw.base / "unstored" / "of-another-store").write_text("0\n")
    bw("runs")
    assert [path.name for path in (bw.base / "unstored").iterdir()] == ["of-another-store"]


@pytest.mark.long
def test_ten_runs_at_once_on_a_new_base_are_all_in_the_store_after_the_next_command(bw: CommandLine) -> None:
    argv = bw.argv("run", "--run-name", "one", "--", "true")
    started = [subprocess.Popen(argv, cwd=bw.cwd, env=bw.env, stdout=subprocess.DEVNULL) for _ in range(10)]
    assert [process.wait(timeout=600) for process in started] == [0] * 10
    bw("runs")
    assert list(in_store(bw).values()) == [True] * 10


def test_a_stream_that_was_changed_is_told_wherever_its_numbers_are(bw: CommandLine) -> None:
    bw("run", "--metric", "speed=speed (.*)", "--run-name", "before", "--", "echo", "speed 5")
    bw("run", "--metric", "speed=speed (.*)", "--run-name", "after", "--", "echo", "speed 5")
    stream = next(bw.last_run().glob("*.data"))
    stream.write_text(stream.read_text().replace('"values":[5.0]', '"values":[15.0]'))
    told = "its stream was changed after the launch had ended"
    for words in (
        *(["report", "after", "--format", format_] for format_ in ("screen", "markdown", "csv", "json", "html")),
        *(["show", "after"], ["compare", "before", "after", "--anyway"], ["compare", "before", "after", "--json"]),
    ):
        done = bw(*words, code=None)
        assert told in " ".join(done.stdout.split()), words
        assert "15" in done.stdout
    bw("import", "benchwright", str(stream.parent))
    bw("export", "after", "-o", "after.json")
    assert told in (bw.cwd / "after.json").read_text()
    shutil.rmtree(stream.parent)  # now only the store has it
    assert told in " ".join(bw("report", "after").stdout.split())
    assert "run.json disagrees" not in bw("store", "check", "--folders").stdout
