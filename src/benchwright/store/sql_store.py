"""The store in SQL: SQLite in a single file, PostgreSQL for many machines. Both go through SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, inspect, select, update

from benchwright.analysis.comparison.comparable import ComparableRun, comparable
from benchwright.core.errors import (
    ForeignStore,
    InvalidInput,
    NewerStore,
    StoreGone,
    StoreTrouble,
    did_you_mean,
)
from benchwright.core.run import Run
from benchwright.core.stored_file import Unreadable
from benchwright.store import schema
from benchwright.store.base import Aggregate, RunFilter, RunRow, RunStanding, StoreEntry, SummaryFilter, SummarySeries
from benchwright.store.connection import (
    PROJECT,
    Database,
    connect,
    no_store_yet,
    project_of,
    read_url,
    reading,
    set_up_file,
    writing,
)
from benchwright.store.errors import errors_in_words
from benchwright.store.ingest import insert_or, logs_of, pack_entry, pack_received, pack_run, put_runs, put_summaries
from benchwright.store.integrity import duplicates, problems, samples_of
from benchwright.store.migrations import load_alembic, upgrade
from benchwright.store.run_document import (
    DamagedDocument,
    Place,
    RunSamples,
    matched,
    plain,
    unpack_document,
)
from benchwright.store.run_query import row_of, select_runs
from benchwright.store.samples import DamagedSamples
from benchwright.store.summaries import SUMMARY_RULES, unpack_comparable
from benchwright.store.summary_query import find_series, find_summaries
from benchwright.store.transfer import ArrayHead, ReceivedRun, RunHead, framed

_REBUILD = "rebuild the store from the run folders: benchwright store rebuild"
_SERVER_LOCK = 0x62_77_73_65_72_76_65  # any number that no other program uses
_TOGETHER = 200  # runs that are loaded at once
_FILLED_AT_ONCE = 20  # runs that are in memory while their summaries are derived
_NEAR_RUNS = 1000  # the newest runs, among which to look for a misspelt id


def open_store(
    url: str, *, create: bool = True, aggregate: Aggregate | None = None, patience_s: float | None = None
) -> SqlStore:
    """The store at `url`: a path, `sqlite:////path` or `postgresql://…`.

    `create`: make it if there is none. `aggregate` condenses each launch's samples to the number that histories show;
    without it, runs are stored without those numbers. An older store opens, but its runs cannot be used until it is
    migrated; a newer one is refused and left untouched. `patience_s`: how long to wait for a lock.
    InvalidInput: the URL is wrong, or psycopg is missing. StoreTrouble: the store cannot be used.
    """
    database = read_url(url)
    engine = connect(database, create=create, patience_s=patience_s)
    try:
        return SqlStore(database, engine, _made_ready(database, engine, create), aggregate)
    except BaseException:
        engine.dispose()
        raise


class SqlStore:
    """`base.RunStore` documents the methods; `open_store` makes one."""

    def __init__(self, database: Database, engine: Engine, version: str, aggregate: Aggregate | None) -> None:
        self.where = database.where
        self._database = database
        self._file = database.file()
        self._engine = engine
        self._version = version
        self._aggregate = aggregate
        self.project: str = engine.get_execution_options().get(PROJECT, schema.MAIN)

    def of_project(self, name: str) -> SqlStore:
        """The same store as another project sees it: its runs, series and baselines only. It shares the connections."""
        engine = self._engine.execution_options(**{PROJECT: plain(name)})
        return SqlStore(self._database, engine, self._version, self._aggregate)

    def projects(self) -> list[str]:
        """Every one that has a run, and `main`."""
        with self._reading() as connection:
            return sorted({schema.MAIN, *connection.execute(select(schema.runs.c.project).distinct()).scalars()})

    @property
    def _own(self) -> ColumnElement[bool]:
        return schema.runs.c.project == self.project

    def ingest(self, run: Run, *, digest: str) -> bool:
        if self.digest_of(run.unique_id) == plain(digest):
            return False
        packed = pack_run(run, digest, self._aggregate, self.project)
        with self._writing() as connection:
            if _digest(connection, run.unique_id) == plain(digest):  # another process was faster
                return False
            put_runs(connection, [packed])
        return True

    def ingest_all(self, entries: Sequence[StoreEntry], *, replace: bool = False) -> None:
        self._need_current()
        if not replace:
            known = self.digests()
            entries = [e for e in entries if known.get(plain(e.run.unique_id)) != plain(e.digest)]
        packed = {plain(e.run.unique_id): pack_entry(e, self._aggregate, self.project) for e in entries}
        if packed:
            with self._writing() as connection:
                put_runs(connection, list(packed.values()))

    def digest_of(self, uid: str) -> str | None:
        with self._reading() as connection:
            return _digest(connection, uid)

    def digests(self) -> dict[str, str]:
        with self._reading() as connection:
            query = select(schema.runs.c.id, schema.runs.c.digest).where(self._own)
            return dict(connection.execute(query).all())

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        query = select_runs(
            where, limit=limit, newest_first=newest_first, dialect=self._engine.dialect.name, project=self.project
        )
        with self._readable_rows() as connection:
            return [row_of(row) for row in connection.execute(query).mappings()]

    def standing(self) -> list[RunStanding]:
        r = schema.runs.c
        query = select(r.id, r.called, r.folder, r.ended.is_not(None), r.summarized == SUMMARY_RULES).where(self._own)
        with self._reading() as connection:
            return [
                RunStanding(str(uid), str(called), str(folder), bool(ended), bool(summarized))
                for uid, called, folder, ended, summarized in connection.execute(query)
            ]

    def load(self, run_id: str) -> Run:
        with self._reading() as connection:
            key = self._key(connection, run_id)
            d = schema.documents.c
            document = connection.execute(select(d.encoding, d.data).where(d.run == key)).one_or_none()
            try:
                if document is None:
                    raise DamagedDocument("is missing")
                return unpack_document(document.data, document.encoding, _samples(connection, key))
            except (DamagedDocument, DamagedSamples) as error:
                what = "the document of run" if isinstance(error, DamagedDocument) else "run"
                message = f"{what} {run_id}{'' if isinstance(error, DamagedDocument) else ':'} {error}"
                raise StoreTrouble(message, where=self.where, remedy=_REBUILD) from error

    def load_all(self, uids: Sequence[str]) -> Iterator[Run]:
        for start in range(0, len(uids), _TOGETHER):
            with self._reading() as connection:
                found = _loaded(connection, uids[start : start + _TOGETHER], self._own)
            yield from found

    def comparables(self, uids: Sequence[str]) -> list[ComparableRun]:
        """All that comparing readable runs needs, in the order of `uids`; loads no samples unless it must."""
        r, c = schema.runs.c, schema.comparables.c
        query = select(r.id, c.data).join_from(schema.comparables, schema.runs, r.key == c.run)
        with self._reading() as connection:
            rows = connection.execute(query.where(self._own, r.id.in_([plain(uid) for uid in uids]))).all()
        found = {uid: unpacked for uid, data in rows if (unpacked := unpack_comparable(data)) is not None}
        missing = [uid for uid in uids if plain(uid) not in found]
        found |= {plain(run.unique_id): comparable(run) for run in self.load_all(missing)}
        return [found[plain(uid)] for uid in uids if plain(uid) in found]

    def logs(self, run_id: str) -> dict[str, list[str]]:
        with self._readable_rows() as connection:
            return logs_of(connection, self._key(connection, run_id))

    def series(self, where: SummaryFilter, *, limit: int | None = None, offset: int = 0) -> list[SummarySeries]:
        with self._readable_rows() as connection:
            return find_series(connection, where, limit=limit, offset=offset)

    def summaries(
        self, where: SummaryFilter, *, newest: int | None = None, most: int | None = None
    ) -> list[SummarySeries]:
        with self._readable_rows() as connection:
            return find_summaries(connection, where, newest=newest, most=most)

    def ingest_received(self, received: Sequence[ReceivedRun], *, replace: bool = False) -> int:
        """`ingest_all` for runs that clients packed; how many of them changed anything.

        DamagedDocument or DamagedSamples if one is not what a client of ours packs; then none is stored.
        """
        self._need_current()
        if not replace:
            known = self.digests() if len(received) > 1 else {}
            received = [
                each
                for each in received
                if (known.get(each.uid) if known else self.digest_of(each.uid)) != plain(each.head.digest)
            ]
        packed = {each.uid: pack_received(each, self._aggregate, self.project) for each in received}
        if packed:
            with self._writing() as connection:
                put_runs(connection, list(packed.values()))
        return len(packed)

    def packed(self, run_id: str) -> list[bytes]:
        """The run as it is stored, to be sent and unpacked elsewhere; raises what `load` does, but for damaged samples."""
        with self._reading() as connection:
            key = self._key(connection, run_id)
            r, d, m = schema.runs.c, schema.documents.c, schema.measurements.c
            document = connection.execute(select(d.encoding, d.data).where(d.run == key)).one_or_none()
            if document is None:
                raise StoreTrouble(f"the document of run {run_id} is missing", where=self.where, remedy=_REBUILD)
            rows = connection.execute(select(schema.measurements).where(m.run == key).order_by(m.place))
            digest = connection.execute(select(r.digest).where(r.key == key)).scalar_one()
            head = RunHead(
                digest=digest,
                encoding=document.encoding,
                document_bytes=len(document.data),
                arrays=[ArrayHead.of(row) for row in rows],
            )
            return [*framed(head), bytes(document.data), samples_of(connection, key)]

    def delete(self, run_id: str) -> bool:
        with self._writing() as connection:
            keys = _keys(connection, run_id)
            if len(keys) > 1:
                raise _ambiguous(self.where, run_id, keys.values())
            gone = connection.execute(delete(schema.runs).where(schema.runs.c.key.in_(keys)))
            return gone.rowcount > 0

    def annotate(self, run_id: str, text: str | None) -> None:
        with self._writing() as connection:
            key = self._key(connection, run_id)
            annotation = None if text is None else plain(text)
            connection.execute(update(schema.runs).where(schema.runs.c.key == key).values(annotation=annotation))

    def set_baseline(self, name: str, run_id: str) -> None:
        b = schema.baselines
        with self._writing() as connection:
            key = self._key(connection, run_id)
            statement = insert_or(connection, b).values(name=plain(name), run=key, project=self.project)
            connection.execute(statement.on_conflict_do_update(index_elements=["project", "name"], set_={"run": key}))

    def remove_baseline(self, name: str) -> bool:
        with self._writing() as connection:
            b = schema.baselines.c
            named = (b.name == plain(name), b.project == self.project)
            return connection.execute(delete(schema.baselines).where(*named)).rowcount > 0

    def baseline(self, name: str) -> str | None:
        return self.baselines().get(plain(name))

    def baselines(self) -> dict[str, str]:
        b, r = schema.baselines.c, schema.runs.c
        query = select(b.name, r.id).join_from(schema.baselines, schema.runs, b.run == r.key).order_by(b.name)
        query = query.where(b.project == self.project)
        with self._reading() as connection:
            return dict(connection.execute(query).all())

    def check(self) -> list[str]:
        found: list[str] = []
        try:
            version = self.schema_version()
            if version != schema.VERSION:
                return [f"it has version {version}, this benchwright uses {schema.VERSION}"]
            with self._reading(any_version=True) as connection:
                # One by one: a damaged file may fail half-way, and what was found until then counts.
                for problem in problems(connection, self._aggregate):
                    found.append(problem)
        except StoreTrouble as error:
            found.append(error.what)
        return found

    def duplicates(self) -> list[str]:
        with self._reading() as connection:
            return list(duplicates(connection))

    def schema_version(self) -> str:
        with self._reading(any_version=True) as connection:
            return _version(connection) or "none"

    def migrate(self) -> None:
        with self._writing(any_version=True) as connection:
            _refuse_unknown(self.where, _version(connection))
            upgrade(connection)
            self._summarize(connection)
        self._version = schema.VERSION

    def _summarize(self, connection: Connection) -> None:
        """Derives the summaries of readable runs that have none, or outdated ones."""
        r = schema.runs.c
        query = select(r.key, r.id, r.project).where(r.summarized != SUMMARY_RULES).order_by(r.key)
        missing = connection.execute(query).all()
        for start in range(0, len(missing), _FILLED_AT_ONCE):
            found = {row.id: row for row in missing[start : start + _FILLED_AT_ONCE]}
            for run in _loaded(connection, list(found)):
                row = found[plain(run.unique_id)]
                put_summaries(connection, row.key, run, row.project)

    @property
    def file_path(self) -> Path | None:
        """None if the store is on a database server."""
        return self._database.path

    @contextmanager
    def server_lock(self) -> Iterator[bool]:
        """Whether nobody else holds this lock of the PostgreSQL database, which ends with its connection."""
        with errors_in_words(self.where), self._engine.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            got = bool(connection.execute(select(func.pg_try_advisory_lock(_SERVER_LOCK))).scalar())
            try:
                yield got
            finally:
                if got:  # the connection itself goes back to the pool
                    connection.execute(select(func.pg_advisory_unlock(_SERVER_LOCK)))

    def reading(self) -> AbstractContextManager[Connection]:
        """For questions beyond the seam's; StoreTrouble as everywhere."""
        return self._reading()

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _readable_rows(self) -> Iterator[Connection]:
        """For rows that may turn out to be damaged."""
        try:
            with self._reading() as connection:
                yield connection
        except Unreadable as error:
            raise StoreTrouble(str(error), where=self.where, remedy=_REBUILD) from None

    def _reading(self, *, any_version: bool = False) -> AbstractContextManager[Connection]:
        self._need_file(any_version)
        return reading(self._engine, self.where)

    def _writing(self, *, any_version: bool = False) -> AbstractContextManager[Connection]:
        self._need_file(any_version)
        return writing(self._engine, self.where)

    def _need_file(self, any_version: bool) -> None:
        # SQLite keeps writing to a file that was removed or replaced, and those writes are lost.
        if self._database.file() != self._file:
            raise StoreGone(
                "is gone: its file was moved, removed or replaced",
                where=self.where,
                remedy="try again, or rebuild it from the run folders: benchwright store rebuild",
            )
        if not any_version:
            self._need_current()

    def _need_current(self) -> None:
        if self._version != schema.VERSION:
            raise StoreTrouble(
                f"has version {self._version}, this benchwright uses {schema.VERSION}",
                where=self.where,
                remedy="upgrade it with: benchwright store migrate",
            )

    def _key(self, connection: Connection, run_id: str) -> int:
        """The key of the run's row; InvalidInput names the nearest id if there is none, and all if there are several."""
        keys = _keys(connection, run_id)
        if len(keys) > 1:
            raise _ambiguous(self.where, run_id, keys.values())
        if not keys:
            r = schema.runs.c
            near = select(r.called).where(self._own).order_by(r.started_s.desc()).limit(_NEAR_RUNS)
            known = connection.execute(near).scalars()
            remedy = did_you_mean(run_id, known) or "list all runs with: benchwright runs"
            raise InvalidInput(f"no run called '{run_id}' in the store", where=self.where, remedy=remedy)
        return next(iter(keys))


def _keys(connection: Connection, run_id: str) -> dict[int, str]:
    """Row key → uid: the run with that uid, else those with that name."""
    r = schema.runs.c
    for column in (r.id, r.called):
        own = r.project == project_of(connection)
        query = select(r.key, r.id).where(own, column == plain(run_id)).order_by(r.started_s.desc(), r.key.desc())
        if found := connection.execute(query).all():
            return dict(found)
    return {}


def _ambiguous(where: str, run_id: str, uids: Iterable[str]) -> InvalidInput:
    known = list(uids)
    return InvalidInput(
        f"{len(known)} runs are called '{run_id}': {', '.join(known[:4])}{'…' if len(known) > 4 else ''}",
        where=where,
        remedy="name one by its id",
    )


def _digest(connection: Connection, uid: str) -> str | None:
    r = schema.runs.c
    own = r.project == project_of(connection)
    return connection.execute(select(r.digest).where(own, r.id == plain(uid))).scalar_one_or_none()


def _samples(connection: Connection, key: int) -> dict[Place, RunSamples]:
    """DamagedSamples if the arrays do not match the measurements exactly."""
    m = schema.measurements.c
    rows = connection.execute(select(schema.measurements).where(m.run == key).order_by(m.place)).all()
    return matched(rows, samples_of(connection, key))


def _loaded(connection: Connection, uids: Sequence[str], *own: ColumnElement[bool]) -> list[Run]:
    """The readable runs, in the order of `uids`: four queries, however many there are."""
    r, d, m, p = schema.runs.c, schema.documents.c, schema.measurements.c, schema.samples.c
    wanted = [plain(uid) for uid in uids]
    keys: dict[str, int] = dict(connection.execute(select(r.id, r.key).where(r.id.in_(wanted), *own)).all())
    chosen = list(keys.values())
    documents = {row.run: row for row in connection.execute(select(schema.documents).where(d.run.in_(chosen)))}
    rows: dict[int, list[Any]] = {key: [] for key in chosen}
    of_runs = select(schema.measurements).where(m.run.in_(chosen)).order_by(m.run, m.place)
    for row in connection.execute(of_runs).all():
        rows[row.run].append(row)
    arrays = dict.fromkeys(chosen, b"")
    for run, data in connection.execute(select(p.run, p.data).where(p.run.in_(chosen)).order_by(p.run, p.piece)):
        arrays[run] += bytes(data)
    found = []
    for key in (keys[uid] for uid in wanted if uid in keys):
        document = documents.get(key)
        with suppress(DamagedDocument, DamagedSamples):
            if document is not None:
                found.append(unpack_document(document.data, document.encoding, matched(rows[key], arrays[key])))
    return found


def _made_ready(database: Database, engine: Engine, create: bool) -> str:
    """The store's version; makes the store if there is none. StoreTrouble if it is not one of ours."""
    with reading(engine, database.where) as connection:
        tables = set(inspect(connection).get_table_names())
        version = _version(connection) if schema.VERSION_TABLE in tables else None
    if version is not None:
        _refuse_unknown(database.where, version)
        return version
    ours = set(schema.metadata.tables)
    foreign = tables if database.path is not None else tables & ours  # a server's database may hold other tables
    if foreign - {schema.VERSION_TABLE}:
        raise ForeignStore(
            f"is not a store of benchwright: it has a table '{min(foreign)}'",
            where=database.where,
            remedy="choose another one with --store",
        )
    if not create:
        raise no_store_yet(database.where)
    if database.path is not None:
        set_up_file(engine)
    load_alembic()
    with writing(engine, database.where) as connection:
        upgrade(connection)
    return schema.VERSION


def _version(connection: Connection) -> str | None:
    return connection.execute(select(schema.version.c.version_num)).scalar()


def _refuse_unknown(where: str, version: str | None) -> None:
    if version is None or (version.isdigit() and int(version) <= int(schema.VERSION)):
        return
    raise NewerStore(
        f"has version {version}; this benchwright knows versions up to {schema.VERSION}",
        where=where,
        remedy="use a newer benchwright, or choose another store with --store; nothing was changed",
    )
