"""The store under kill -9, power cuts, full and read-only disks, many writers: it stays whole, and says what is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from _pytest.mark import ParameterSet
from first_store import make_first_store
from postgresql import Server, running_server
from sqlalchemy import event
from stored_runs import big_run, rich_run, run, same

from benchwright.core.errors import BenchwrightError, InvalidInput, StoreTrouble
from benchwright.store import schema
from benchwright.store.base import RunFilter
from benchwright.store.base import open_store as open_any
from benchwright.store.connection import writing
from benchwright.store.migrations import SCRIPTS, upgrade
from benchwright.store.sql_store import SqlStore, open_store

PROGRAM = Path(__file__).parents[1] / "programs" / "use_store.py"
ALL = RunFilter()
KILLED = -signal.SIGKILL


def long(statement: int) -> ParameterSet:
    """A point of which a neighbour is tried on every change."""
    return pytest.param(statement, marks=pytest.mark.long)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgresql_server")
    return server.database()


class Use:
    """Runs the program to its end, as processes of their own that are forked off one with everything imported."""

    def __init__(self, orders: IO[str], codes: IO[str], said: IO[str]) -> None:
        self._orders, self._codes, self._said = orders, codes, said

    def __call__(self, *arguments: str, code: int = 0) -> None:
        [(ended, said)] = self.together([arguments])
        assert ended == code, f"exit {ended}\n{said}"

    def together(self, several: Iterable[tuple[str, ...]]) -> list[tuple[int, str]]:
        """All at once: their exit codes, each with what all of them said."""
        before = os.fstat(self._said.fileno()).st_size
        self._orders.write(json.dumps(list(several)) + "\n")
        self._orders.flush()
        ended = json.loads(self._codes.readline())
        self._said.seek(before)
        said = self._said.read()
        return [(code, said) for code in ended]


@pytest.fixture(scope="module")
def use() -> Iterator[Use]:
    with tempfile.TemporaryFile("a+") as said, subprocess.Popen(
        [sys.executable, str(PROGRAM), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        yield Use(server.stdin, server.stdout, said)
        server.stdin.close()


def ids(store: SqlStore) -> list[str]:
    return sorted(row.id for row in store.runs(ALL, limit=None))


@pytest.mark.parametrize("statement", [long(1), 3, long(6), long(9), 11])
def test_kill_9_during_ingest_leaves_the_store_whole_and_the_run_can_be_ingested_again(
    url: str, statement: int, use: Use
) -> None:
    with open_store(url) as store:
        store.ingest(rich_run(), digest="1")
    use(url, "ingest", "killed", "1", "20000", "--die-at", str(statement), code=KILLED)
    with open_store(url, create=False) as store:
        assert store.check() == []
        assert ids(store) == ["rich.1"]
        assert same(store.load("rich.1"), rich_run())
        again = big_run("killed.0", samples=20000)
        assert store.ingest(again, digest="killed") is True
        assert store.load("killed.0") == again
        assert store.check() == []


@pytest.mark.parametrize("statement", [long(1), long(4), 10, long(20), 28])
def test_kill_9_while_a_store_is_made_leaves_one_that_is_made_next_time(url: str, statement: int, use: Use) -> None:
    use(url, "ingest", "first", "1", "10", "--die-anywhere", str(statement), code=KILLED)
    with open_store(url) as store:
        assert store.check() == []
        assert store.ingest(rich_run(), digest="1") is True
        assert same(store.load("rich.1"), rich_run())


NEXT_VERSION = """
import sqlalchemy as sa
from alembic import op
revision = "9001"
down_revision = "{newest}"
def upgrade():
    op.add_column("runs", sa.Column("colour", sa.Text))
    op.execute("UPDATE runs SET colour = 'red', name = 'changed'")
    op.create_table("paint", sa.Column("id", sa.Integer, primary_key=True))
    with op.batch_alter_table("baselines") as batch:
        batch.alter_column("name", new_column_name="title")
"""


@pytest.fixture
def next_scripts(tmp_path: Path) -> Path:
    """The migrations, and one that a later benchwright might have."""
    scripts = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / "v9001_next.py").write_text(NEXT_VERSION.replace("{newest}", schema.VERSION))
    return scripts


@pytest.mark.parametrize("from_the_end", [0, long(1), 2, long(4)])
def test_kill_9_during_a_migration_leaves_the_old_version_whole(
    url: str, next_scripts: Path, tmp_path: Path, from_the_end: int, use: Use
) -> None:
    with open_store(url) as store:
        store.ingest(rich_run(), digest="1")
        store.set_baseline("main", "rich.1")
        last = statements_of_migration(store, next_scripts)
    use(url, "migrate", str(next_scripts), "--die-at", str(last - from_the_end), code=KILLED)
    with open_store(url) as store:
        assert store.schema_version() == schema.VERSION
        assert store.check() == []
        assert same(store.load("rich.1"), rich_run())
    use(url, "migrate", str(next_scripts))
    with pytest.raises(StoreTrouble, match="9001"):
        open_store(url)


OLD_RUNS = [
    rich_run("rich.0"),
    run("empty.1"),
    big_run("big.2", samples=30_000, benchmarks=3),
    big_run("small.3", samples=2000, benchmarks=20),
]


def test_a_store_of_the_first_version_is_migrated_with_every_bit(url: str) -> None:
    make_first_store(url, OLD_RUNS)
    with open_store(url) as store:
        with pytest.raises(StoreTrouble, match="store migrate"):
            store.load("rich.0")
        store.migrate()
        assert store.check() == []
        assert all(same(store.load(old.id), old) for old in OLD_RUNS)
        assert store.baselines() == {"main": "small.3"}
        assert store.runs(RunFilter(id="small.3"))[0].annotation == "said"
        assert store.ingest(OLD_RUNS[0], digest="2")
        assert store.delete("big.2")
        assert store.check() == []


@pytest.mark.parametrize("statement", [long(3), 5, long(8), long(12), long(15), 18, long(26), long(30), 34])
def test_kill_9_during_the_migration_of_samples_leaves_the_first_version_whole(
    url: str, statement: int, use: Use
) -> None:
    make_first_store(url, OLD_RUNS)
    use(url, "migrate", str(SCRIPTS), "--die-at", str(statement), code=KILLED)
    with open_store(url) as store:
        assert store.schema_version() == "0001"
        store.migrate()
        assert store.check() == []
        assert all(same(store.load(old.id), old) for old in OLD_RUNS)


def statements_of_migration(store: SqlStore, scripts: Path) -> int:
    """How many it takes, counted in a transaction that is taken back."""
    seen: list[str] = []
    event.listen(store._engine, "before_cursor_execute", lambda *a: seen.append(a[2]))
    with suppress(ZeroDivisionError), writing(store._engine, store.where) as connection:
        upgrade(connection, scripts=scripts)
        raise ZeroDivisionError
    count = len(seen)
    assert store.schema_version() == schema.VERSION
    return count


def test_a_power_cut_that_loses_the_end_of_the_journal_leaves_the_file_whole(tmp_path: Path, use: Use) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    # Killed in its last run: the journal holds several finished runs and a part of one.
    use(str(path), "ingest", "p", "6", "9000", "--die-at", "60", code=KILLED)
    journal = path.with_name("store.db-wal")
    whole = journal.read_bytes()
    assert len(whole) > 100_000
    kept: set[int] = set()
    for share in (0, 0.2, 0.5, 0.77, 0.95, 1):
        copy = tmp_path / f"cut-{share}" / "store.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        copy.with_name("store.db-wal").write_bytes(whole[: int(len(whole) * share)])
        with open_store(str(copy)) as store:
            assert store.check() == []
            there = ids(store)
            assert all(len(store.load(id).results) == 1 for id in there)
            kept.add(len(there))
            assert store.ingest(rich_run(), digest="1") is True
    assert len(kept) > 2  # the cuts did cut


def test_eight_writers_at_once_lose_nothing(url: str, use: Use) -> None:
    ended = use.together((url, "ingest", f"w{n}", "4", "2000") for n in range(8))  # the store is not made yet, either
    assert [code for code, _ in ended] == [0] * 8, ended[0]
    with open_store(url, create=False) as store:
        assert ids(store) == sorted(f"w{n}.{i}" for n in range(8) for i in range(4))
        assert store.check() == []
        assert store.load("w7.3") == big_run("w7.3", samples=2000)


@pytest.mark.parametrize("statement", [long(2), 4, long(8), 12, long(15)])
def test_kill_9_while_many_runs_are_ingested_at_once_leaves_all_or_none(url: str, statement: int, use: Use) -> None:
    with open_store(url) as store:
        store.ingest(rich_run(), digest="1")
    use(url, "ingest_all", "many", "20", "300", "--die-at", str(statement), code=KILLED)
    with open_store(url, create=False) as store:
        assert store.check() == []
        assert ids(store) == ["rich.1"]
    use(url, "ingest_all", "many", "20", "300")
    with open_store(url, create=False) as store:
        assert store.check() == []
        assert len(ids(store)) == 21


def test_several_who_ingest_the_same_runs_at_once_some_of_them_killed_leave_each_once(url: str, use: Use) -> None:
    open_store(url).close()
    same_runs = (url, "ingest_all", "same", "30", "200")
    use(*same_runs, "--die-at", "3", code=KILLED)
    # Those that come late find nothing left to do, and do not get to where they would die.
    killed = use.together([*((*same_runs, "--die-at", str(n)) for n in (9, 14)), *[same_runs] * 3])
    for number, (code, said) in enumerate(killed):
        assert code == 0 or (number < 2 and code == KILLED), said
    with open_store(url, create=False) as store:
        assert ids(store) == sorted(f"same.{n}" for n in range(30))
        assert store.load("same.7") == big_run("same.7", samples=200)
        assert store.check() == []


def test_four_writers_of_the_same_run_leave_it_once(url: str, use: Use) -> None:
    ended = use.together([(url, "ingest", "same", "5", "1000")] * 4)
    assert [code for code, _ in ended] == [0] * 4, ended[0]
    with open_store(url, create=False) as store:
        assert ids(store) == [f"same.{i}" for i in range(5)]
        assert store.check() == []


def test_a_store_that_stays_locked_is_said_and_can_still_be_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(url) as store:
        store.ingest(run("a.1"), digest="1")
    monkeypatch.setattr("benchwright.store.connection.BUSY_TIMEOUT_S", 1)
    with open_store(url) as store, open_store(url) as other:
        with writing(other._engine, other.where):
            if store.where.startswith("/"):  # PostgreSQL locks rows, so there nobody waits
                with pytest.raises(StoreTrouble, match=r"locked.*benchwright import"):
                    store.ingest(run("b.1"), digest="1")
            assert ids(store) == ["a.1"]
        assert store.ingest(run("b.1"), digest="1") is True


def test_a_full_disk_is_said_and_what_was_there_stays(small_disk: Path) -> None:
    with open_store(str(small_disk / "store.db")) as store:
        store.ingest(rich_run(), digest="1")
        with pytest.raises(StoreTrouble, match=r"full.*benchwright import"):
            store.ingest(big_run("big.1", samples=400_000), digest="1")
        assert store.check() == []
        assert same(store.load("rich.1"), rich_run())
        assert store.digest_of("big.1") is None


def test_a_disk_that_is_full_from_the_start_is_said(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (3 << 20))
    with pytest.raises(StoreTrouble, match=r"full|disk"):
        open_store(str(small_disk / "store.db"))


def test_a_database_that_may_not_grow_is_said_and_goes_on_when_it_may(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        store.ingest(rich_run(), digest="1")
        limit(store, 60)
        with pytest.raises(StoreTrouble, match="disk is full"):
            store.ingest(big_run("big.1", samples=100_000), digest="1")
        limit(store, 1_000_000)
        assert store.ingest(big_run("big.1", samples=100_000), digest="1") is True
        assert store.check() == []


def limit(store: SqlStore, pages: int) -> None:
    with store._engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_read_only_store_can_be_looked_at_and_says_that_it_cannot_be_written(small_disk: Path) -> None:
    path = small_disk / "store #1?.db"
    with open_store(str(path)) as store:
        store.ingest(rich_run(), digest="1")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with open_store(str(path)) as store:
        assert ids(store) == ["rich.1"]
        assert same(store.load("rich.1"), rich_run())
        assert store.check() == []
        for write in (
            lambda: store.ingest(run("b.1"), digest="1"),
            lambda: store.annotate("rich.1", "x"),
            lambda: store.delete("rich.1"),
        ):
            with pytest.raises(StoreTrouble, match=r"read-only.*--store"):
                write()
    with pytest.raises(StoreTrouble, match="--store"):
        open_store(str(small_disk / "new.db"))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreTrouble, match="--store"):
        open_store(str(tmp_path / "file" / "store.db"))


def test_a_store_whose_folder_goes_away_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    with open_store(str(folder / "store.db")) as store:
        store.ingest(rich_run(), digest="1")
        shutil.rmtree(folder)
        with pytest.raises(StoreTrouble, match="gone"):
            store.ingest(run("b.1"), digest="1")


def test_a_store_that_was_replaced_by_another_file_is_not_written_in_vain(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store, open_store(str(tmp_path / "new.db")) as new:
        new.close()
        (tmp_path / "new.db").replace(tmp_path / "store.db")
        with pytest.raises(StoreTrouble, match="replaced"):
            store.ingest(run("b.1"), digest="1")


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be read as one" * 20, b"x"])
def test_a_file_that_is_no_store_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreTrouble, match="not a store"):
        open_store(str(path))
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE places (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreTrouble, match="places"):
        open_store(str(path))
    assert path.read_bytes() == before


@pytest.mark.xdist_group("postgresql")
def test_a_database_whose_tables_have_our_names_but_no_version_is_refused(postgresql_server: Server) -> None:
    url = postgresql_server.database()
    postgresql_server.execute("CREATE TABLE runs (x int)", url)
    with pytest.raises(StoreTrouble, match="'runs'"):
        open_store(url)


def test_damaged_pages_are_found_and_never_end_in_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        for number in range(20):
            store.ingest(rich_run(f"r.{number}"), digest="1")
    raw = bytearray(path.read_bytes())
    for start in range(3 * 16384, len(raw), 16384):  # before: the tables' definitions, and the version
        raw[start : start + 200] = b"\xff" * 200
    path.write_bytes(raw)
    with open_store(str(path)) as store:
        assert any("damaged" in problem for problem in store.check())
        for number in range(20):
            with suppress(BenchwrightError):
                assert same(store.load(f"r.{number}"), rich_run(f"r.{number}"))


def damaged_file(path: Path, at: int, count: int = 1) -> None:
    raw = bytearray(path.read_bytes())
    raw[at : at + count] = bytes(255 - byte for byte in raw[at : at + count])
    path.write_bytes(raw)


def test_a_byte_of_the_schema_is_said_to_be_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.ingest(rich_run(), digest="1")
    damaged_file(path, path.read_bytes().index(b"CREATE TABLE runs") + 14)
    with pytest.raises(StoreTrouble, match=r"damaged.*store rebuild"):
        open_store(str(path)).runs(ALL)


def test_a_server_that_is_gone_is_said_and_its_password_is_not(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs pip install psycopg[binary]")
    with pytest.raises(StoreTrouble, match="cannot be reached") as caught:
        open_store("postgresql://me:s3cret@127.0.0.1:1/db")
    assert "s3cret" not in str(caught.value)


def test_a_server_that_stops_while_the_store_is_open_is_said() -> None:
    with running_server() as server:
        store = open_store(server.database())
        store.ingest(rich_run(), digest="1")
    with store, pytest.raises(StoreTrouble, match=r"reached|shutting down"):
        store.ingest(run("b.1"), digest="1")


@pytest.mark.xdist_group("postgresql")
def test_a_database_that_does_not_exist_is_said(postgresql_server: Server) -> None:
    with pytest.raises(StoreTrouble, match=r"createdb|cannot be reached"):
        open_store(postgresql_server.url.replace("/postgres?", "/nowhere?"))


def test_without_psycopg_the_remedy_is_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match=re.escape("pip install 'benchwright[postgres]'")):
        open_any("postgresql://localhost/x")


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///:memory:", "mysql://x/y", "postgresq://x/y", "http://[", "."]
)
def test_a_url_that_names_no_store_is_refused_with_what_would(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"--store: .*;"):
        open_any(url)
