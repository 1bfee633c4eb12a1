"""What every store must do: SQLite in a file, a real PostgreSQL, and a server over HTTP."""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import builders
import pytest
from builders import launch, measurement
from msgspec.structs import replace
from postgresql import Server
from served_stores import ServedStores, store_behind
from sqlalchemy import func, select, update
from stored_runs import result, rich_run, run, same

from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput, StoreTrouble
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.provenance import CodeRevision
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.results.after_run import summaries_of
from benchwright.store import base, schema
from benchwright.store.base import RunFilter, RunStore, SummaryFilter
from benchwright.store.http_store import HttpStore
from benchwright.store.samples import PIECE_BYTES
from benchwright.store.sql_store import SqlStore

ALL = RunFilter()


class Places:
    """Where stores of one kind are kept."""

    def __init__(self, kind: str, folder: Path, server: Server | None) -> None:
        self.kind = kind
        self._folder = folder
        self._server = server
        self._numbers = itertools.count()
        self._paths: dict[str, Path] = {}
        self._empty: str | None = None
        self.http = ServedStores(folder) if kind.startswith("http") else None
        self._databases: dict[str, str] = {}  # of a server that has PostgreSQL behind it

    def new(self) -> str:
        """The URL of a store that is not made yet."""
        if self._server is not None:
            return self._shown(self._server.database())
        path = self._folder / f"{next(self._numbers)}.db"
        if self.http is not None:
            url = self.http.serve(path)
            self._paths[url] = path
            return url
        url = f"shelf://{path}" if self.kind == "shelf" else f"sqlite:///{path}"
        self._paths[url] = path
        return url

    def empty(self) -> str:
        """One that is made, and empty: copied, since making one takes as long as most tests."""
        if self._empty is None:
            self._empty = self.new()
            base.open_store(self._empty, aggregate=aggregate).close()
        if self._server is not None:
            template = self._databases.get(self._empty, self._empty)
            if self.http is not None:
                store_behind(self._empty).close()  # no connection may be left to the one that is copied
            name = f"{self.kind}_{next(self._numbers)}".replace("-", "_")
            self._server.execute(f"CREATE DATABASE {name} TEMPLATE {self._name(template)}")
            return self._shown(template.replace(f"/{self._name(template)}?", f"/{name}?"))
        made = self.new()
        before, after = self._paths[self._empty], self._paths[made]
        shutil.copytree(before, after) if before.is_dir() else shutil.copy(before, after)
        return made

    def _shown(self, database: str) -> str:
        if self.http is None:
            return database
        url = self.http.serve(database)
        self._databases[url] = database
        return url

    def _name(self, url: str) -> str:
        return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        "shelf",
        "http",
        pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql")),
        # Both halves are tried above; both together take a minute more.
        *(
            [pytest.param("http-postgresql", marks=[pytest.mark.xdist_group("postgresql"), pytest.mark.long])]
            if os.environ.get("EVERY_STORE")
            else []
        ),
    ],
)
def places(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, plugin_folder: Path
) -> Iterator[Places]:
    server = request.getfixturevalue("postgresql_server") if "postgresql" in request.param else None
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plugin_folder))
        made = Places(request.param, tmp_path_factory.mktemp("stores"), server)
        if made.http is None:
            yield made
            return
        with made.http:
            patch.setenv("BENCHWRIGHT_TOKEN", made.http.token)
            yield made


@pytest.fixture
def opened(places: Places) -> Iterator[Callable[..., RunStore]]:
    stores: list[RunStore] = []
    url = places.empty()

    def open_again(**options: Any) -> RunStore:
        stores.append(base.open_store(url, aggregate=aggregate, **options))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()
    if places.http is not None:
        places.http.rest(url)


@pytest.fixture(scope="module")
def filled(places: Places) -> Iterator[RunStore]:
    """Three runs to look for, which no test changes."""
    machine = rich_run().machine
    labels = {"branch": "main", "who": "zoë"}
    odd = "x[y.(z)\\d%_1"
    with base.open_store(places.empty(), aggregate=aggregate) as store:
        for each in (
            run("train.1", result(labels={"suite": "nightly"}), labels=labels, started="2026-11-14T12:00:00"),
            run("trial.1", result(name="bert"), status=Status.FAILED, started="2026-11-14T11:59:59"),
            run(odd, name=odd, machine=replace(machine, hostname="lab-2", cores=64), started="2026-11-15T12:00:00"),
        ):
            store.ingest(each, digest="1")
        store.annotate("trial.1", "Before the Fix")
        yield store


@pytest.fixture
def store(opened: Callable[..., RunStore]) -> RunStore:
    return opened()


def ids(store: RunStore, where: RunFilter = ALL, **options: Any) -> list[str]:
    return [row.id for row in store.runs(where, **options)]


def behind(store: RunStore) -> SqlStore:
    """The tables: those of the server, if it is one."""
    store = store_behind(store.where) if isinstance(store, HttpStore) else store
    assert isinstance(store, SqlStore)
    return store


def rows_of(store: RunStore, query: Any) -> list[tuple[Any, ...]]:
    with behind(store)._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query)]


def count_of(store: RunStore, table: str) -> int:
    return int(rows_of(store, select(func.count()).select_from(schema.metadata.tables[table]))[0][0])


def test_a_run_comes_back_equal_to_the_last_bit(store: RunStore) -> None:
    before = rich_run()
    assert store.ingest(before, digest="1") is True
    assert same(store.load("rich.1"), before)


def test_many_runs_come_back_in_the_order_asked_for_without_those_that_are_missing(store: RunStore) -> None:
    for number in range(3):
        store.ingest(rich_run(f"rich.{number}"), digest="1")
    found = list(store.load_all(["rich.2", "absent", "rich.0", "rich.1"]))
    assert [each.id for each in found] == ["rich.2", "rich.0", "rich.1"]
    assert all(same(each, store.load(each.id)) for each in found)
    assert list(store.load_all([])) == []


def test_a_run_without_results_comes_back(store: RunStore) -> None:
    before = run("empty.1", status=Status.INTERRUPTED)
    store.ingest(before, digest="1")
    assert store.load("empty.1") == before


def test_what_was_stored_is_there_for_the_next_process(store: RunStore, opened: Callable[..., RunStore]) -> None:
    store.ingest(rich_run(), digest="1")
    store.close()
    assert same(opened(create=False).load("rich.1"), rich_run())


def test_the_same_run_again_changes_nothing(store: RunStore) -> None:
    assert store.ingest(rich_run(), digest="1") is True
    assert store.ingest(rich_run(), digest="1") is False
    assert len(ids(store)) == 1


def test_another_digest_replaces_everything_of_that_run_and_nothing_else(store: RunStore) -> None:
    store.ingest(rich_run(), digest="1")
    store.ingest(rich_run("other.1"), digest="o")
    store.annotate("rich.1", "keep me")
    store.set_baseline("main", "rich.1")
    after = run("rich.1", result(launch(measurement(7.0)), name="new"), labels={"branch": "topic"})
    assert store.ingest(after, digest="2") is True
    assert store.digest_of("rich.1") == "2"
    assert store.load("rich.1") == after
    assert same(store.load("other.1"), rich_run("other.1"))
    assert ids(store, RunFilter(labels={"branch": "main"})) == ["other.1"]
    assert ids(store, RunFilter(benchmark="bert")) == ["other.1"]
    row = store.runs(RunFilter(benchmark="new"))[0]
    assert (row.annotation, row.benchmarks, row.failed, row.labels) == ("keep me", 1, 0, {"branch": "topic"})
    assert store.baselines() == {"main": "rich.1"}
    assert store.check() == []


def test_a_run_that_fails_on_the_way_leaves_what_was_there(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.ingest(rich_run(), digest="1")
    ended = RuntimeError("in the middle")

    def break_off(*_: object) -> None:
        raise ended

    monkeypatch.setattr("benchwright.store.ingest._series_keys", break_off)
    with pytest.raises((RuntimeError, StoreTrouble), match=r"in the middle|the server failed"):
        store.ingest(run("rich.1"), digest="2")
    assert store.digest_of("rich.1") == "1"
    assert same(store.load("rich.1"), rich_run())
    assert store.check() == []


def test_digest_of_a_run_that_is_not_there_is_none(store: RunStore) -> None:
    assert store.digest_of("nobody") is None


def test_a_row_says_what_a_list_shows(store: RunStore) -> None:
    store.ingest(rich_run(), digest="1")
    row = store.runs(ALL)[0]
    assert (row.id, row.name, row.status, row.host) == ("rich.1", "rich", Status.FAILED, "lab-1")
    assert (row.benchmarks, row.failed, row.annotation) == (3, 1, None)
    assert row.machine == rich_run().machine.fingerprint
    assert (row.started, row.ended) == ("2026-11-14T10:00:00+01:00", "2026-11-14T10:01:00+01:00")
    assert row.labels == {"branch": "main", "who": "Zoë"}
    assert row.folder == "/f/runs/rich.1"
    assert row.size_bytes > 100


def test_the_size_counts_the_files_of_the_runs_folder(store: RunStore, tmp_path: Path) -> None:
    folder = tmp_path / "sized.1"
    folder.mkdir()
    (folder / "job.log.gz").write_bytes(b"x" * 100_000)
    store.ingest(run("sized.1", folder=str(folder)), digest="1")
    assert 100_000 < store.runs(ALL)[0].size_bytes < 110_000


def test_runs_are_sorted_by_the_moment_they_started_whatever_their_zone(store: RunStore) -> None:
    moments = {
        "late.1": "2026-11-14T10:00:00-08:00",  # 18:00 in UTC
        "early.1": "2026-11-14T12:00:00+09:00",  # 03:00
        "middle.1": "2026-11-14T10:00:00Z",
        "never.1": "not a time",
    }
    for id, started in moments.items():
        store.ingest(run(id, started=started), digest="1")
    assert ids(store) == ["late.1", "middle.1", "early.1", "never.1"]
    assert ids(store, newest_first=False) == ["never.1", "early.1", "middle.1", "late.1"]
    assert ids(store, limit=1) == ["late.1"]
    assert ids(store, limit=0) == []
    assert ids(store, RunFilter(since="2026-11-14T04:00:00Z", until="2026-11-14T10:00:00Z")) == ["middle.1"]


def test_more_than_fifty_runs_come_only_when_asked_for(store: RunStore) -> None:
    for number in range(60):
        store.ingest(run(f"many.{number}"), digest="1")
    assert len(ids(store)) == 50
    assert len(ids(store, limit=None)) == 60


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (RunFilter(id="train.1"), ["train.1"]),
        (RunFilter(id="train"), []),
        (RunFilter(name="train"), ["train.1"]),
        (RunFilter(name="tr*"), ["train.1", "trial.1"]),
        (RunFilter(name="tr?in"), ["train.1"]),
        (RunFilter(name="tr[ai]*"), ["train.1", "trial.1"]),
        (RunFilter(name="tri[!b]l"), ["trial.1"]),
        (RunFilter(name="tri[!a]l"), []),
        (RunFilter(name="TR*"), []),
        (RunFilter(name="x[*"), ["x[y.(z)\\d%_1"]),
        (RunFilter(name="x[y*(z)\\d*"), ["x[y.(z)\\d%_1"]),
        (RunFilter(name="x[y_(z)*"), []),
        (RunFilter(labels={"branch": "main"}), ["train.1"]),
        (RunFilter(labels={"branch": "main", "suite": "nightly"}), ["train.1"]),
        (RunFilter(labels={"branch": "main", "suite": "other"}), []),
        (RunFilter(labels={"branch": "mai"}), []),
        (RunFilter(status=Status.FAILED), ["trial.1"]),
        (RunFilter(benchmark="bert"), ["trial.1"]),
        (RunFilter(benchmark="*e*"), ["train.1", "trial.1"]),
        (RunFilter(text="zoë"), ["train.1"]),
        (RunFilter(text="ZOË"), ["train.1"]),
        (RunFilter(text="BERT"), ["trial.1"]),
        (RunFilter(text="before the fix"), ["trial.1"]),
        (RunFilter(text="d%_1"), ["x[y.(z)\\d%_1"]),
        (RunFilter(text="r_t"), []),
        (RunFilter(name="t*", text="lab", status=Status.OK), ["train.1"]),
        (RunFilter(machine="lab-2"), ["x[y.(z)\\d%_1"]),
        (RunFilter(machine="nowhere"), []),
        (RunFilter(since="2026-11-14", until="2026-11-14"), ["train.1", "trial.1"]),
        (RunFilter(until="2026-11-13"), []),
        (RunFilter(since="2026-11-15"), ["x[y.(z)\\d%_1"]),
    ],
)
def test_a_filter_finds_what_is_meant(filled: RunStore, where: RunFilter, found: list[str]) -> None:
    assert ids(filled, where) == found


def test_a_machine_is_found_by_the_beginning_of_its_fingerprint(store: RunStore) -> None:
    store.ingest(run("here.1"), digest="1")
    fingerprint = run("here.1").machine.fingerprint
    assert ids(store, RunFilter(machine=fingerprint)) == ids(store, RunFilter(machine=fingerprint[:6])) == ["here.1"]
    assert ids(store, RunFilter(machine="%")) == []


@pytest.mark.parametrize("where", [RunFilter(since="yesterday"), RunFilter(until="2026-13-01")])
def test_a_date_that_is_none_is_refused_with_an_example(store: RunStore, where: RunFilter) -> None:
    with pytest.raises(InvalidInput, match="2026-11-15T08:30"):
        store.runs(where)


def test_a_deleted_run_is_gone_with_all_its_rows(store: RunStore) -> None:
    store.ingest(rich_run(), digest="1")
    store.ingest(run("stays.1"), digest="1")
    store.set_baseline("main", "rich.1")
    assert store.delete("rich.1") is True
    assert store.delete("rich.1") is False
    assert ids(store) == ["stays.1"]
    assert store.baselines() == {}
    assert store.digest_of("rich.1") is None
    assert [count_of(store, t) for t in ("documents", "results", "run_labels", "measurements")] == [1, 0, 0, 0]
    assert store.check() == []


def test_an_annotation_is_set_changed_and_removed(store: RunStore) -> None:
    store.ingest(run("a.1"), digest="1")
    for text in ("first", "second <b>'\"é🚀", None):
        store.annotate("a.1", text)
        assert store.runs(ALL)[0].annotation == text


def test_a_removed_baseline_is_gone_and_its_run_is_not(store: RunStore) -> None:
    store.ingest(run("a.1"), digest="1")
    for name in ("main", "it's <b> 🚀"):
        store.set_baseline(name, "a.1")
    assert store.remove_baseline("it's <b> 🚀")
    assert not store.remove_baseline("it's <b> 🚀")
    assert store.baselines() == {"main": "a.1"}
    assert ids(store) == ["a.1"]


def test_a_baseline_names_a_run_and_can_be_moved(store: RunStore) -> None:
    store.ingest(run("a.1"), digest="1")
    store.ingest(run("b.1"), digest="1")
    assert store.baseline("main") is None
    store.set_baseline("main", "a.1")
    store.set_baseline("release", "a.1")
    store.set_baseline("main", "b.1")
    assert store.baseline("main") == "b.1"
    assert store.baselines() == {"main": "b.1", "release": "a.1"}


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.load("trian.1"),
        lambda store: store.annotate("trian.1", "x"),
        lambda store: store.set_baseline("main", "trian.1"),
    ],
    ids=["load", "annotate", "set_baseline"],
)
def test_a_run_that_is_not_there_is_said_with_the_nearest_one(store: RunStore, use: Callable[[RunStore], None]) -> None:
    store.ingest(run("train.1"), digest="1")
    with pytest.raises(InvalidInput, match=r"did you mean 'train\.1'"):
        use(store)


@pytest.mark.parametrize(
    "name",
    [
        "o'clock; DROP TABLE runs; --",
        '<script>alert("x")</script>',
        "🚀é漢",
        "n" * 300,
        "a/b\\c",
        "nul\x00",
        "half\ud800",
        "%s {0} :x",
    ],
    ids=["quotes", "html", "emoji", "long", "separators", "nul", "surrogate", "placeholders"],
)
def test_any_name_is_kept(store: RunStore, name: str) -> None:
    m = measurement(1.0, metric=name, unit=name, labels={name: name}, source=name)
    before = run(name, result(launch(m, detail=name), name=name, detail=name), name=name, labels={name: name})
    assert store.ingest(before, digest=name) is True
    assert store.ingest(before, digest=name) is False
    assert store.load(name) == before
    store.annotate(name, name)
    store.set_baseline(name, name)
    assert store.baseline(name) is not None
    assert len(store.runs(RunFilter(labels={name: name}, text=name[:20]))) == 1
    assert len(store.runs(RunFilter(benchmark=name))) == 1
    assert store.check() == []
    assert store.delete(name) is True


def test_text_longer_than_an_index_takes_is_kept(store: RunStore) -> None:
    # Random letters: PostgreSQL compresses what it indexes.
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    before = run("long.1", result(launch(measurement(1.0, metric=long)), name=long), labels={"why": long})
    store.ingest(before, digest="1")
    assert store.load("long.1") == before
    assert ids(store, RunFilter(benchmark=long)) == ids(store, RunFilter(labels={"why": long})) == ["long.1"]


def test_the_history_of_a_metric_is_one_query_without_touching_samples(store: RunStore) -> None:
    for number, value in enumerate([10.0, 12.0, math.nan]):
        speed = measurement(value, value + 2, value + 1, metric="speed", labels={"rank": "0"})
        other = measurement(99.0, metric="speed", labels={"rank": "1"})
        unlike = measurement(98.0, metric="loss", direction=Direction.LOWER)
        warm = launch(measurement(1.0, metric="speed", labels={"rank": "0"}), warmup=True)
        moment = f"2026-11-1{number}T00:00:00Z"
        store.ingest(run(f"r.{number}", result(warm, launch(speed, other, unlike)), started=moment), digest="1")
    m, s, r = schema.measurements.c, schema.series.c, schema.runs.c
    query = (
        select(r.id, m.value)
        .join_from(schema.series, schema.measurements, s.key == m.series)
        .join(schema.runs, r.key == m.run)
        .where(s.benchmark == "resnet", s.metric == "speed", s.labels == '{"rank": "0"}', m.counted)
        .order_by(r.started_s)
    )
    # Median of three; what is not a number has no place in a history.
    assert rows_of(store, query) == [("r.0", 11.0), ("r.1", 13.0), ("r.2", None)]
    assert count_of(store, "series") == 3


def test_arrays_of_any_length_come_back_from_their_pieces(store: RunStore) -> None:
    numbers = random.Random(3)
    lengths = [0, 1, PIECE_BYTES // 8 - 1, PIECE_BYTES // 8, 1, 5 * PIECE_BYTES // 8, 0, 3]
    arrays = [tuple(numbers.random() for _ in range(n)) for n in lengths]
    constant = (2.5,) * 3000  # compressed, so not a whole number of samples long
    launches = [launch(measurement(*a, warmup_samples=constant), measurement(*constant, metric="loss")) for a in arrays]
    before = run("long.1", result(*launches))
    store.ingest(before, digest="1")
    assert store.load("long.1") == before
    assert store.check() == []
    assert max(len(data) for (data,) in rows_of(store, select(schema.samples.c.data))) == PIECE_BYTES


def test_the_condensed_number_counts_the_runs_workers(store: RunStore) -> None:
    total = measurement(2.0, 4.0, metric="cost", aggregate="total")
    store.ingest(run("w.1", result(launch(total)), workers=3), digest="1")
    assert rows_of(store, select(schema.measurements.c.value)) == [(2.0,)]


def test_its_version_is_the_newest_and_migrating_it_again_changes_nothing(store: RunStore) -> None:
    store.ingest(rich_run(), digest="1")
    assert store.schema_version() == schema.VERSION
    store.migrate()
    assert store.schema_version() == schema.VERSION
    assert same(store.load("rich.1"), rich_run())


def test_the_migrations_make_the_tables_that_the_code_uses(store: RunStore) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with behind(store)._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []


def test_a_store_of_a_newer_version_is_refused_and_not_touched(
    store: RunStore, opened: Callable[..., RunStore]
) -> None:
    store.ingest(run("a.1"), digest="1")
    set_version(store, "0999")
    with pytest.raises(StoreTrouble, match="newer"):
        opened()
    with pytest.raises(StoreTrouble, match="newer"):
        store.migrate()
    assert "0999" in store.check()[0]
    assert store.schema_version() == "0999"


def test_a_store_of_an_older_version_says_how_to_migrate(store: RunStore, opened: Callable[..., RunStore]) -> None:
    if isinstance(store, HttpStore):
        pytest.skip("a server opens its store once")
    set_version(store, "0000")
    old = opened()
    assert old.schema_version() == "0000"
    with pytest.raises(StoreTrouble, match="benchwright store migrate"):
        old.runs(ALL)
    with pytest.raises(StoreTrouble, match="benchwright store migrate"):
        old.ingest(run("a.1"), digest="1")


def test_opening_without_create_makes_nothing(places: Places) -> None:
    if places.http is not None:
        pytest.skip("a server has a store")
    url = places.new()
    with pytest.raises(StoreTrouble, match="no store yet"):
        base.open_store(url, create=False)
    with pytest.raises(StoreTrouble, match="no store yet"):
        base.open_store(url, create=False)


def test_it_is_made_where_there_is_none_and_closes_with_its_block(places: Places) -> None:
    url = places.new()
    with base.open_store(url) as store:
        store.ingest(run("a.1"), digest="1")
    with base.open_store(url, create=False) as store:
        assert ids(store) == ["a.1"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE measurements SET samples = samples + 1 WHERE measurement = 0", "bytes instead of"),
        ("UPDATE measurements SET encoding = 'f4'", "the unknown encoding 'f4'"),
        ("UPDATE measurements SET encoding = 'f8-planes-zlib'", "cannot be decompressed"),
        ("UPDATE measurements SET checksum = checksum + 1 WHERE place = 0", "have changed since they were stored"),
        ("UPDATE measurements SET value = value + 1 WHERE measurement = 1", "do not follow from its samples"),
        ("UPDATE measurements SET counted = NOT counted", "do not follow from its samples"),
        ("UPDATE series SET hash = 'x' WHERE metric = 'loss'", "do not follow from its samples"),
        ("UPDATE runs SET status = 'ok'", "its status is 'ok', but its document says 'failed'"),
        ("UPDATE runs SET host = 'elsewhere'", "its host is 'elsewhere'"),
        ("UPDATE results SET status = 'ok'", "benchmarks differ from its document"),
        ("DELETE FROM run_labels WHERE label = 'who'", "labels differ from its document"),
        ("UPDATE measurements SET size_bytes = 1, encoding = 'f8-planes-zlib' WHERE place = 0", "bytes instead of"),
        ("DELETE FROM samples", "its arrays have 0 bytes instead of"),
        ("DELETE FROM measurements WHERE measurement = 1", "its arrays have 184 bytes instead of 152"),
        ("DELETE FROM results WHERE result = 2", "benchmarks differ from its document"),
        ("DELETE FROM documents", "has no document"),
        ("UPDATE documents SET encoding = 'x'", "unknown encoding 'x'"),
        ("UPDATE runs SET benchmarks = 9", "its benchmarks is 9, but its document says 3"),
    ],
)
def test_damage_is_found_and_said(store: RunStore, damage: str, said: str) -> None:
    store.ingest(rich_run(), digest="1")
    assert store.check() == []
    execute(store, damage)
    assert said in "\n".join(store.check())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE measurements SET samples = samples + 1",
        "DELETE FROM measurements WHERE launch = 1",
        "DELETE FROM samples",
        "UPDATE measurements SET checksum = checksum + 1 WHERE place = 1",
        "UPDATE measurements SET size_bytes = 0, samples = 0, warmup_samples = 0 WHERE place = 0",
        "DELETE FROM documents",
        "UPDATE documents SET encoding = 'x'",
    ],
)
def test_a_damaged_run_is_never_loaded_as_if_it_were_whole(store: RunStore, damage: str) -> None:
    store.ingest(rich_run(), digest="1")
    execute(store, damage)
    with pytest.raises(StoreTrouble, match="store rebuild"):
        store.load("rich.1")


def test_one_changed_byte_of_a_sample_is_seen_and_never_loaded(store: RunStore) -> None:
    store.ingest(rich_run("fine.1"), digest="1")
    store.ingest(rich_run(), digest="1")
    ((key, data),) = rows_of(
        store,
        select(schema.samples.c.run, schema.samples.c.data)
        .join_from(schema.samples, schema.runs, schema.samples.c.run == schema.runs.c.key)
        .where(schema.runs.c.id == "rich.1"),
    )
    changed = bytearray(data)
    changed[-3] ^= 1  # of the last sample, somewhere in its digits: a number that looks as good as the one before
    with behind(store)._engine.begin() as connection:
        connection.execute(update(schema.samples).where(schema.samples.c.run == key).values(data=bytes(changed)))
    (problem,) = store.check()
    assert problem.startswith("run rich.1, result 0, launch 2")
    assert "have changed since they were stored" in problem
    with pytest.raises(StoreTrouble, match="have changed since they were stored"):
        store.load("rich.1")
    assert same(store.load("fine.1"), rich_run("fine.1"))


TWO = [run("same.1", result(launch(measurement(n))), uid=uid) for n, uid in ((1.0, "a" * 32), (2.0, "b" * 32))]


def test_two_runs_may_be_called_the_same(store: RunStore) -> None:
    for each in TWO:
        assert store.ingest(each, digest=each.uid) is True
        assert store.ingest(each, digest=each.uid) is False
    assert [store.load(each.uid) for each in TWO] == TWO
    assert sorted(row.uid for row in store.runs(RunFilter(id="same.1"))) == [each.uid for each in TWO]
    assert [row.id for row in store.runs(RunFilter(uid="a" * 32))] == ["same.1"]
    assert store.check() == []
    assert store.digests() == {each.uid: each.uid for each in TWO}
    (note,) = store.duplicates()
    assert all(each.uid in note for each in TWO)
    assert store.delete("b" * 32)
    assert store.load("same.1") == TWO[0]
    assert store.duplicates() == []


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.load("same.1"),
        lambda store: store.annotate("same.1", "x"),
        lambda store: store.set_baseline("main", "same.1"),
        lambda store: store.delete("same.1"),
    ],
)
def test_a_name_that_two_runs_share_is_refused_with_their_ids(store: RunStore, use: Callable[[RunStore], Any]) -> None:
    store.ingest_all([base.StoreEntry(run=each, digest="1") for each in TWO])
    with pytest.raises(InvalidInput, match=r"2 runs are called 'same\.1'") as caught:
        use(store)
    assert all(each.uid in str(caught.value) for each in TWO)
    assert len(ids(store)) == 2


def test_the_same_run_under_two_ids_is_told(store: RunStore) -> None:
    store.ingest_all([base.StoreEntry(run=run(name), digest="same") for name in ("one.1", "two.1")])
    (note,) = store.duplicates()
    assert "are copies of" in note


def test_many_runs_are_kept_at_once_or_not_at_all(store: RunStore) -> None:
    before = [rich_run(f"r.{n}") for n in range(30)]
    store.ingest_all([base.StoreEntry(run=each, digest="1", annotation=f"said of {each.id}") for each in before])
    assert all(same(store.load(each.id), each) for each in before)
    assert {row.annotation for row in store.runs(ALL)} == {f"said of {each.id}" for each in before}
    store.ingest_all([base.StoreEntry(run=each, digest="1") for each in before], replace=True)
    assert {row.annotation for row in store.runs(ALL)} == {f"said of {each.id}" for each in before}
    assert count_of(store, "measurements") == sum(row.measurements for row in rows_of_runs(store))
    assert store.check() == []


def rows_of_runs(store: RunStore) -> list[Any]:
    with behind(store)._engine.connect() as connection:
        return list(connection.execute(select(schema.runs)))


def test_how_it_stands_with_each_run_is_told(store: RunStore) -> None:
    store.ingest(run("half.1", status=Status.INTERRUPTED), digest="1")
    store.ingest(run("whole.1", ended="2026-11-14T10:01:00+01:00", uid="c" * 32), digest="1")
    found = {each.called: each for each in store.standing()}
    assert (found["half.1"].uid, found["half.1"].complete) == ("half.1", False)
    assert (found["whole.1"].uid, found["whole.1"].complete) == ("c" * 32, True)
    assert found["whole.1"].folder == "/f/runs/whole.1"


COMMITS = ("a" * 40, "b" * 40)


def history_run(number: int, *, host: str = "lab-1", launches: int = 7, **fields: Any) -> Run:
    """One of many: a rate and a time of `train`, and the rate of `bert`."""
    values = [100.0 + number + shift / 7 for shift in range(launches)]
    train = [
        launch(
            measurement(value, value + 1, value + 0.3),
            measurement(1 / value, metric="process.duration", unit="s", source="process"),
        )
        for value in values
    ]
    code = CodeRevision(root="/r", commit=COMMITS[number % 2], branch="main", time="2026-11-01T00:00:00+00:00")
    given: dict[str, Any] = {
        "machine": replace(rich_run().machine, hostname=host),
        "started": f"2026-11-{number + 1:02}T10:00:00+00:00",
        "ended": f"2026-11-{number + 1:02}T10:05:00+00:00",
        "revisions": (code,),
        "uid": f"{host}{number:031}"[-32:],
    }
    return run(
        f"{host}.{number}",
        result(*train, name="train"),
        result(launch(measurement(5.0 * number, labels={"rank": "0"})), name="bert"),
        **(given | fields),
    )


@pytest.fixture(scope="module")
def measured(places: Places) -> Iterator[RunStore]:
    """Ten runs of one machine and two of another, not in their order; no test changes them."""
    runs = [history_run(number) for number in (3, 1, 0, 2, 9, 8, 7, 6, 5, 4)]
    runs += [history_run(number, host="lab-2") for number in (0, 1)]
    with base.open_store(places.empty(), aggregate=aggregate) as store:
        for each in runs[:4]:
            store.ingest(each, digest="1")
        store.ingest_all([base.StoreEntry(run=each, digest="1") for each in runs[4:]])
        yield store


def test_a_summary_equals_the_report_to_the_last_digit(measured: RunStore) -> None:
    whole = history_run(4)
    found = measured.summaries(SummaryFilter(runs=RunFilter(uid=whole.unique_id)))
    shown = {(name, summary.metric): summary for name, all_of in summaries_of(whole).items() for summary in all_of}
    assert len(found) == len(shown) == 3
    for series in found:
        (point,), summary = series.points, shown[series.benchmark, series.metric]
        assert (point.value, point.launches) == (summary.value, summary.launches)
        interval = summary.interval
        assert (point.low, point.high) == ((None, None) if interval is None else (interval.low, interval.high))
        assert (series.unit, series.direction, series.labels) == (summary.unit, summary.direction, summary.labels)
        assert (series.host, series.machine, series.source) == ("lab-1", whole.machine.fingerprint, summary.source)
        assert (point.run, point.uid, point.started) == (whole.id, whole.unique_id, whole.started)
        assert (point.ended, point.commit, point.revision) == (whole.ended, COMMITS[0], "main aaaaaaaaaa")
        assert point.commit_time == "2026-11-01T00:00:00+00:00"
        assert point.headline is ((series.benchmark, series.metric) == ("train", "rate"))
    assert {each.setting["command"] for each in found} == {"train --lr 1"}
    assert measured.check() == []


def test_points_of_a_series_come_oldest_first_however_they_were_stored(measured: RunStore) -> None:
    (series,) = measured.summaries(SummaryFilter(benchmark="train", metric="rate", runs=RunFilter(machine="lab-1")))
    assert [point.run for point in series.points] == [f"lab-1.{number}" for number in range(10)]
    (two,) = measured.summaries(SummaryFilter(series=(series.id,)), newest=2)
    assert two.points == series.points[-2:]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (SummaryFilter(), 36),
        (SummaryFilter(headline=True), 12),
        (SummaryFilter(benchmark="tr*"), 24),
        (SummaryFilter(benchmark="TR*"), 0),
        (SummaryFilter(benchmark="b[de]rt"), 12),
        (SummaryFilter(metric="process.duration"), 12),
        (SummaryFilter(metric="process.*"), 0),
        (SummaryFilter(commit="bbbb"), 18),
        (SummaryFilter(commit="b%"), 0),
        (SummaryFilter(series=("nothing",)), 0),
        (SummaryFilter(runs=RunFilter(machine="lab-2")), 6),
        (SummaryFilter(runs=RunFilter(since="2026-11-09T00:00Z")), 6),
        (SummaryFilter(metric="rate", runs=RunFilter(until="2026-11-01T12:00Z", machine="lab-2")), 2),
        (SummaryFilter(runs=RunFilter(id="lab-1.3")), 3),
        (SummaryFilter(runs=RunFilter(text="'; DROP TABLE summaries; --")), 0),
    ],
)
def test_a_filter_of_summaries_finds_what_is_meant(measured: RunStore, where: SummaryFilter, found: int) -> None:
    assert sum(len(series.points) for series in measured.summaries(where)) == found
    every = {series.id: series.points[-1] for series in measured.summaries(where)}
    assert {series.id: series.points for series in measured.series(where)} == {
        name: (point,) for name, point in every.items()
    }
    assert sum(len(series.points) for series in measured.summaries(where, newest=1)) == len(every)


def test_series_are_listed_page_by_page_with_their_newest_number(measured: RunStore) -> None:
    every = measured.series(SummaryFilter())
    assert [(each.benchmark, each.metric, each.host) for each in every] == sorted(
        (benchmark, metric, host)
        for benchmark, metric in (("bert", "rate"), ("train", "process.duration"), ("train", "rate"))
        for host in ("lab-1", "lab-2")
    )
    assert [each.points[0].run for each in every] == ["lab-1.9", "lab-2.1"] * 3
    pages = [measured.series(SummaryFilter(), limit=4, offset=start) for start in (0, 4, 8)]
    assert [len(page) for page in pages] == [4, 2, 0]
    assert [each for page in pages for each in page] == every


def test_a_thinned_series_keeps_its_extremes_and_ends(store: RunStore) -> None:
    values = [float((number * 37) % 101) for number in range(100)]
    values[41], values[57] = -5.0, 1000.0
    store.ingest_all(
        [
            base.StoreEntry(run=run(f"t.{n}", result(launch(measurement(v))), started=f"{2000 + n}-01-01"), digest="1")
            for n, v in enumerate(values)
        ]
    )
    (whole,) = store.summaries(SummaryFilter())
    (thin,) = store.summaries(SummaryFilter(), most=20)
    assert len(whole.points) == 100
    assert len(thin.points) <= 20
    assert set(thin.points) < set(whole.points)
    assert list(thin.points) == sorted(thin.points, key=lambda point: point.started_s)
    shown = [point.value for point in thin.points]
    assert (shown[0], shown[-1], min(shown), max(shown)) == (values[0], values[-1], -5.0, 1000.0)
    assert store.summaries(SummaryFilter(), most=100) == [whole]


def test_a_number_that_is_none_and_an_odd_name_have_a_summary_too(store: RunStore) -> None:
    odd = "e\x00\ud800<script>"
    before = run(
        "odd.1",
        result(launch(measurement(math.nan)), name=odd),
        result(
            launch(measurement(2.0, aggregate="average_aggregate"), measurement(3.0, metric="x")), name="no workers"
        ),
        result(launch(measurement(7.0, 9.0, value=8.5)), name="given"),
    )
    store.ingest(before, digest="1")
    found = {each.benchmark: each for each in store.summaries(SummaryFilter())}
    assert found["e\ufffd?<script>"].points[0].value is None
    assert (found["no workers"].metric, found["given"].points[0].value) == ("x", 8.5)
    assert store.check() == []


def test_the_last_lines_of_what_failed_come_back_and_go_with_the_run(store: RunStore) -> None:
    logs = {"bert.D0": ["Traceback", "", "é \ud800\x00 <b>"], "b.1": ["x"] * 200, "empty": [""]}
    shown = {**logs, "bert.D0": ["Traceback", "", "é ?\ufffd <b>"]}
    store.ingest_all([base.StoreEntry(run=rich_run(), digest="1", logs=logs)])
    store.ingest_all([base.StoreEntry(run=rich_run(f"rich.{n}"), digest="1", logs={}) for n in (2, 3)])
    assert store.logs("rich.1") == shown
    assert store.logs("rich.2") == {}
    with pytest.raises(InvalidInput, match=r"no run called 'rich\.9'"):
        store.logs("rich.9")
    store.ingest_all([base.StoreEntry(run=rich_run(), digest="2", logs={"b.1": ["y"]})])
    assert store.logs("rich.1") == {"b.1": ["y"]}
    store.delete("rich.1")
    assert count_of(store, "logs") == 0


def test_each_side_of_an_ab_has_its_own_revision(store: RunStore) -> None:
    sides = [
        builders.result(builders.benchmark("sort").on_side(side, name), launch(measurement(3.0)))
        for side, name in (("control", "v1"), ("treatment", "main bbbbbbbbbb"))
    ]
    store.ingest(replace(history_run(1), results=tuple(sides)), digest="1")
    control, treatment = store.summaries(SummaryFilter())
    assert [each.points[0].commit for each in (control, treatment)] == ["v1", "main bbbbbbbbbb"]
    assert [each.points[0].commit_time for each in (control, treatment)] == [None, None]
    assert store.series(SummaryFilter(benchmark="sort")) == [treatment]
    assert (control.pair, treatment.pair) == ("", "sort")


def test_a_doubt_stands_with_the_number(store: RunStore) -> None:
    busy = Note(text="waited", kind="busy", evidence="0.36")
    train = [launch(measurement(1.0), measurement(1.0, metric="loss", unit=None), notes=(busy,)) for _ in range(3)]
    store.ingest(run("busy.1", result(*train)), digest="1")
    found = {each.metric: each.points[0].doubt for each in store.summaries(SummaryFilter())}
    assert found == {"rate": "3 of 3 launches ran while the machine was busy (0.36)", "loss": None}


def test_replacing_and_deleting_a_run_takes_its_summaries_along(store: RunStore) -> None:
    store.ingest(history_run(1), digest="1")
    store.ingest(history_run(2), digest="1")
    store.ingest(replace(history_run(1), results=history_run(1).results[:1]), digest="2")
    assert count_of(store, "summaries") == 5
    store.delete(history_run(2).unique_id)
    assert {point.run for each in store.summaries(SummaryFilter()) for point in each.points} == {"lab-1.1"}
    assert [each.metric for each in store.series(SummaryFilter())] == ["process.duration", "rate"]
    assert count_of(store, "summaries") == 2


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE summaries SET value = value * (1 + 1e-15) WHERE place = 1", "summary does not follow"),
        ("UPDATE summaries SET low = NULL WHERE place = 0", "summary does not follow"),
        ("UPDATE summaries SET doubt = 'x' WHERE place = 0", "summary does not follow"),
        ("UPDATE summaries SET headline = NOT headline", "summary does not follow"),
        ("UPDATE summary_series SET host = 'x'", "summary does not follow"),
        ("UPDATE summary_series SET setting = '{}'", "summary does not follow"),
        ("DELETE FROM summaries WHERE place = 2", "2 summaries instead of 3"),
        ("UPDATE runs SET measured_commit = 'x'", "its measured_commit is 'x'"),
        ("UPDATE runs SET summarized = 0", "benchwright store migrate"),
    ],
)
def test_a_summary_that_is_not_the_reports_is_found(store: RunStore, damage: str, said: str) -> None:
    store.ingest(history_run(1), digest="1")
    execute(store, damage)
    assert said in "\n".join(store.check())


def test_migrating_derives_what_is_missing(store: RunStore) -> None:
    for number in range(30):
        store.ingest(history_run(number % 28, uid=f"{number:032}"), digest="1")
    before = store.summaries(SummaryFilter())
    execute(store, "DELETE FROM summaries")
    execute(store, "DELETE FROM summary_series")
    execute(store, "UPDATE runs SET summarized = 0, measured_commit = NULL, commit_time = NULL")
    assert store.summaries(SummaryFilter()) == []
    store.migrate()
    assert store.check() == []
    assert store.summaries(SummaryFilter()) == before


def set_version(store: RunStore, version: str) -> None:
    execute(store, f"UPDATE {schema.VERSION_TABLE} SET version_num = '{version}'")


def execute(store: RunStore, statement: str) -> None:
    with behind(store)._engine.begin() as connection:
        connection.exec_driver_sql(statement)
