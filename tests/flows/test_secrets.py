"""Secrets reach the program and nothing else: not the run's files, the store, the reports or the exports."""

from __future__ import annotations

import gzip
import html
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import secret_shapes
from command_line import CommandLine
from hostile_checkout import HostileCheckout
from made_once import MadeOnce

PY = sys.executable
SECRET = "hunter2x9"
INHERITED = {
    "MYSQL_PWD": SECRET, "DB_PASS": SECRET, "PASS": SECRET, "GH_PAT": SECRET, "JWT": SECRET, "MY_INNOCENT_NAME": SECRET,
    "SENTRY_DSN": f"https://{SECRET}@o1.ingest.sentry.io/1", "HF_TOKEN": SECRET,
    "DATABASE_URL": f"postgresql://u:{SECRET}@host/db", "SAS_URL": f"https://h/?sig={SECRET}",
}  # fmt: skip
SHOW = (
    "import hashlib, os, sys; from benchprobe import iterate\n"
    "got = ' '.join([*sys.argv[1:], os.environ['DB_PASS'], os.environ['GIVEN_TOKEN']])\n"
    "print('digest', hashlib.sha256(got.encode()).hexdigest())\n"
    "for _ in iterate('train', range(20)): pass\n"
    "print('speed 5')\n"
)


def holding(folder: Path, word: str = SECRET) -> list[str]:
    """The files below it in which the word stands, packed ones unpacked."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            found += [str(path.relative_to(folder))] if word.encode() in content else []
    return found


@pytest.fixture
def measured(bw: CommandLine, made_once: MadeOnce) -> CommandLine:
    """The command line where a run was given secrets in every way; nobody changes it."""

    def make(folder: Path) -> None:
        (folder / "show.py").write_text(SHOW)
        CommandLine(folder / "base", folder)(
            *("run", "--env", f"GIVEN_TOKEN={SECRET}", "--metric", "speed=speed (.*)", "--label", f"api_key={SECRET}"),
            *("--", PY, "show.py", "--password", SECRET, f"--url=postgres://u:{SECRET}@h/d"),
            f"https://h/?password={SECRET}",
            env=INHERITED,
        )

    return CommandLine(made_once("secrets", make) / "base", bw.cwd)


def test_no_file_of_a_run_nor_the_store_holds_a_secret(measured: CommandLine) -> None:
    assert holding(measured.base) == []


def test_the_program_was_given_the_real_values(measured: CommandLine) -> None:
    import hashlib

    words = ["--password", SECRET, f"--url=postgres://u:{SECRET}@h/d", f"https://h/?password={SECRET}", SECRET, SECRET]
    log = next(measured.last_run().glob("*.log.gz"))
    assert hashlib.sha256(" ".join(words).encode()).hexdigest() in gzip.decompress(log.read_bytes()).decode()


@pytest.mark.parametrize("format", ["screen", "json", "csv", "markdown", "html"])
def test_no_report_shows_a_secret(measured: CommandLine, format: str) -> None:
    shown = measured("report", "last", "--format", format).stdout
    assert SECRET not in shown
    if format == "html":
        assert "--password '(redacted)'" in html.unescape(shown)


@pytest.mark.compat
@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_no_export_holds_a_secret(measured: CommandLine, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "exported"
    out.mkdir()
    measured("export", "last", "-o", str(out / f"out.{ending}"))
    measured("export", "last", "--format", "milabench", "-o", str(out / "folders"))
    assert len(list(out.rglob("*.*"))) > 1
    assert holding(out) == []


def test_what_is_printed_of_a_run_shows_no_secret(bw: CommandLine) -> None:
    words = ("--env", f"GIVEN_TOKEN={SECRET}", "--", PY, "-c", "pass", "--password", SECRET, f"a://u:{SECRET}@h")
    for said in (bw("plan", *words), bw("plan", "--json", *words), bw("run", *words), bw("run", "--json", *words)):
        assert SECRET not in said.stdout + said.stderr
    assert SECRET not in bw("compare", "--env", "last", "last").stdout


def test_the_log_is_the_program_s_own_but_reports_show_it_without_secrets(bw: CommandLine) -> None:
    print_it = f"print('connecting to postgres://u:{SECRET}@h/d'); raise SystemExit(3)"
    (bw.cwd / "fail.py").write_text(print_it)
    done = bw("run", "--", PY, "fail.py", code=1)
    assert "connecting to postgres://u:(redacted)@h/d" in done.stdout
    assert SECRET in bw("logs", "last").stdout
    bw("report", "last", "--format", "html", "-o", "report.html")
    assert SECRET not in (bw.cwd / "report.html").read_text()
    assert [Path(name).suffix for name in holding(bw.base)] == [".gz"]


def test_a_line_that_is_shown_as_nearest_is_shown_without_secrets(bw: CommandLine) -> None:
    (bw.cwd / "near.py").write_text(f"print('Speed of postgres://u:{SECRET}@h/d is 5')")
    done = bw("run", "--metric", r"speed=Speed is (\d+)", "--", PY, "near.py", code=1)
    assert "Speed of postgres://u:(redacted)@h/d is 5" in " ".join(done.stdout.split())
    assert [Path(name).suffix for name in holding(bw.base)] == [".gz"]


def kept(bw: CommandLine) -> dict[str, str]:
    stream = next(bw.last_run().glob("*.data"))
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    [start] = [event for event in events if event["event"] == "start"]
    return dict(start["env"])


def test_only_variables_that_explain_performance_are_kept_and_others_on_request(bw: CommandLine) -> None:
    env = {"OMP_NUM_THREADS": "3", "MY_ONE": "1", "MY_TWO": "2", "OTHER": "3"}
    bw("run", "--env", "GIVEN=4", "--", "true", env=env)
    assert {n: v for n, v in kept(bw).items() if n in (*env, "GIVEN")} == {"OMP_NUM_THREADS": "3", "GIVEN": "4"}
    bw("run", "--keep-env", "MY_*", "--keep-env", "OTHER", "--", "true", env=env)
    assert {n: v for n, v in kept(bw).items() if n in env} == env


def modes(folder: Path) -> set[str]:
    return {stat.filemode(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_a_run_s_files_are_its_owner_s_unless_they_are_shared(bw: CommandLine) -> None:
    before = os.umask(0o022)
    try:
        bw("run", "--repeat", "2", "--jobs", "2", "--", "echo", "x")
        bw("runs", "annotate", "last", "a word")
        assert modes(bw.last_run()) == {"drwx------", "-rw-------"}
        bw("run", "--share", "--", "echo", "x")
        assert modes(bw.last_run()) == {"drwxr-xr-x", "-rw-r--r--"}
        bw("run", "--", "echo", "x", env={"BENCHWRIGHT_SHARE": "1"})
        assert modes(bw.last_run()) == {"drwxr-xr-x", "-rw-r--r--"}
    finally:
        os.umask(before)


PROGRAMS = "prog curl smbclient mysql mysqldump mariadb 7z redis-cli mongosh sshpass docker podman ldapsearch sqlcmd unzip zip openssl"
PROGRAMS += " keytool gpg wget http psql git sh env"


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 8))])
def test_no_shape_of_a_secret_is_in_any_file_made(bw: CommandLine, part: int) -> None:
    """The programs do nothing but have the right names."""
    programs = bw.cwd / "programs"
    programs.mkdir()
    for name in PROGRAMS.split():
        (programs / name).symlink_to("/bin/true")
    lines = [*secret_shapes.COMMANDS, *(f"prog {token}" for token in secret_shapes.TOKENS)][part::8]
    env = {"PATH": f"{programs}:{os.environ['PATH']}", **secret_shapes.VARIABLES}
    given = [word for name in secret_shapes.VARIABLES for word in ("--env", f"{name}={secret_shapes.V}")]
    commands = [word for line in lines for word in ("-c", line)]
    bw("run", *given, "--keep-env", "*", *commands, env=env)
    bw("report", "last", "--format", "html", "-o", str(bw.base / "report.html"))
    bw("export", "last", "-o", str(bw.base / "export.json"))
    assert holding(bw.base, secret_shapes.V) == []
    assert [token for token in secret_shapes.TOKENS if holding(bw.base, token)] == []
    assert len(list(bw.last_run().glob("*.data"))) == len(lines)


LINKS_ITS_LOG = """
import json, os, sys
stream = json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]
log = stream.removesuffix(".data") + ".log"
os.unlink(log)
os.symlink(sys.argv[1], log)
sys.exit(3)
"""


def test_a_log_that_became_a_link_is_shown_nowhere(bw: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "private").write_text(f"the user's own {SECRET}\n")
    (bw.cwd / "links.py").write_text(LINKS_ITS_LOG)
    done = bw("run", "--", PY, "links.py", str(tmp_path / "private"), code=1)
    shown = done.stdout + bw("report", "--format", "html").stdout + bw("show", "last").stdout
    assert "the user's own" not in shown
    assert "has no logs" in bw("logs", "last", code=2).stderr
    for path in bw.last_run().glob("*.log*"):
        path.unlink()  # the link itself
    assert holding(bw.base, "the user's own") == []


def test_running_a_command_in_a_hostile_checkout_runs_nothing_else(bw: CommandLine, tmp_path: Path) -> None:
    hostile = HostileCheckout(tmp_path)
    there = CommandLine(bw.base, hostile.root)
    body = there.json("run", "--", "true")
    assert hostile.ran == set()
    assert body["revisions"][0]["commit"] == hostile.commit
    assert body["revisions"][0]["modified"] is True


def test_tags_branches_and_annotations_are_kept_without_secrets(bw: CommandLine) -> None:
    token = secret_shapes.TOKENS[0]
    git = ["git", "-C", str(bw.cwd), "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run([*git, "init", "-q", "-b", f"feature/{token}"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    bw("run", "--tag", f"password={SECRET}", "--tag", token, "--tag", "nightly", "--", "true")
    bw("runs", "annotate", "last", f"with {token} and --password {SECRET}, on the new kernel")
    shown = "".join(
        bw(*words).stdout for words in (("show", "last"), ("runs", "--json"), ("report", "--format", "json"))
    )
    assert "nightly" in (bw.last_run() / "plan.json").read_text()
    assert "on the new kernel" in shown
    assert "feature/(redacted)" in shown
    for secret in (SECRET, token):
        assert secret not in shown
        assert holding(bw.base, secret) == []


def test_names_of_one_s_own_come_from_the_system_file_or_a_variable(bw: CommandLine) -> None:
    (bw.cwd / "system.yaml").write_text("system:\n  secrets: [seed-phrase, 'CORP_*']\n")
    words = ("--env", f"CORP_ID={SECRET}", "--", "echo", "--seed-phrase", SECRET)
    bw("run", *words, env={"BENCHWRIGHT_SYSTEM": "system.yaml"})
    bw("run", *words, env={"BENCHWRIGHT_SECRETS": "seed_phrase,CORP_*"})
    assert {Path(name).suffix for name in holding(bw.base)} == {".gz"}
    (bw.cwd / "system.yaml").write_text("system:\n  secrets: {a: b}\n")
    assert "secrets" in bw("run", *words, env={"BENCHWRIGHT_SYSTEM": "system.yaml"}, code=2).stderr


@pytest.mark.compat
def test_what_is_imported_is_kept_without_its_secrets(bw: CommandLine) -> None:
    times = {"mean": 1.0, "stddev": 0.1, "median": 1.0, "user": 0.5, "system": 0.1, "min": 0.9, "max": 1.1}
    command = f"mysql -u root -p{SECRET} --url postgres://u:{SECRET}@h/d"
    body = {"results": [{"command": command, **times, "times": [1.0, 0.9, 1.1], "exit_codes": [0, 0, 0]}]}
    (bw.cwd / "hyperfine.json").write_text(json.dumps(body))
    bw("import", "hyperfine.json")
    assert holding(bw.base) == []
    assert SECRET not in bw("show", "last").stdout


def test_what_a_program_says_of_its_end_is_kept_without_secrets(bw: CommandLine) -> None:
    (bw.cwd / "loop.py").write_text(
        "from benchprobe import give, iterate\n"
        "for _ in iterate('train', range(20)): pass\n"
        f"give(**{{'https://u:{SECRET}@h/': object()}})\n"
    )
    said = bw("run", "--", PY, "loop.py", code=None).stdout
    assert "(redacted)@h" in " ".join(said.split())
    assert SECRET not in said + "".join(
        bw("report", "last", "--format", f).stdout for f in ("html", "json", "markdown", "csv")
    )
