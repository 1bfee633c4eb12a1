"""The store in SQL: SQLite in a file of its own, PostgreSQL for many machines. Both go through SQLAlchemy Core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Connection, Engine, delete, inspect, select, update

from benchwright.domain.errors import (
    ForeignStore,
    InvalidInput,
    NewerStore,
    NoStoreYet,
    StoreGone,
    StoreTrouble,
    did_you_mean,
)
from benchwright.domain.run import Run
from benchwright.stores import schema
from benchwright.stores.base import Aggregate, RunFilter, RunRow
from benchwright.stores.connecting import (
    Database,
    connect,
    read_url,
    reading,
    set_up_file,
    writing,
)
from benchwright.stores.ingesting import insert_or, pack_run, put_run
from benchwright.stores.integrity import problems, samples_of
from benchwright.stores.migrations import upgrade
from benchwright.stores.run_document import DamagedDocument, Place, Samples, plain, unpack_document
from benchwright.stores.run_query import row_of, select_runs
from benchwright.stores.samples import DamagedSamples, Packed, unpack

_NEAR_RUNS = 1000  # among how many a misspelt id is looked for


def open_store(url: str, *, create: bool = True, aggregate: Aggregate | None = None) -> SqlStore:
    """The store at `url`: a path, `sqlite:////path` or `postgresql://…`.

    `create`: makes it if there is none. `aggregate` condenses each launch's samples to the number that histories are
    made of; without it runs are stored without those numbers. A store of an older version opens, but until it is
    migrated every use of its runs is refused; one of a newer version is refused at once and not touched.
    InvalidInput: the URL is wrong, or psycopg is missing. StoreTrouble: the store cannot be used.
    """
    database = read_url(url)
    engine = connect(database, create=create)
    try:
        return SqlStore(database, engine, _made_ready(database, engine, create), aggregate)
    except BaseException:
        engine.dispose()
        raise


class SqlStore:
    """See `base.Store` for what the methods promise. Made by `open_store`."""

    def __init__(self, database: Database, engine: Engine, version: str, aggregate: Aggregate | None) -> None:
        self.where = database.where
        self._database = database
        self._file = database.file()
        self._engine = engine
        self._version = version
        self._aggregate = aggregate

    def ingest(self, run: Run, *, digest: str) -> bool:
        if self.digest_of(run.id) == plain(digest):
            return False
        packed = pack_run(run, digest, self._aggregate)
        with self._writing() as connection:
            if _digest(connection, run.id) == plain(digest):  # another process was faster
                return False
            put_run(connection, packed)
        return True

    def digest_of(self, run_id: str) -> str | None:
        self._need_current()
        with self._reading() as connection:
            return _digest(connection, run_id)

    def runs(self, where: RunFilter, *, limit: int | None = 50, newest_first: bool = True) -> list[RunRow]:
        self._need_current()
        query = select_runs(where, limit=limit, newest_first=newest_first, dialect=self._engine.dialect.name)
        with self._reading() as connection:
            return [row_of(row) for row in connection.execute(query).mappings()]

    def load(self, run_id: str) -> Run:
        self._need_current()
        with self._reading() as connection:
            key = self._key(connection, run_id)
            d = schema.documents.c
            document = connection.execute(select(d.encoding, d.data).where(d.run == key)).one_or_none()
            try:
                if document is None:
                    raise DamagedDocument("is missing")
                return unpack_document(document.data, document.encoding, _samples(connection, key))
            except (DamagedDocument, DamagedSamples) as error:
                raise StoreTrouble(
                    f"the document of run {run_id} {error}"
                    if isinstance(error, DamagedDocument)
                    else f"run {run_id}: {error}",
                    where=self.where,
                    remedy="rebuild the store from the run folders: benchwright store rebuild",
                ) from error

    def delete(self, run_id: str) -> bool:
        self._need_current()
        with self._writing() as connection:
            gone = connection.execute(delete(schema.runs).where(schema.runs.c.id == plain(run_id)))
            return gone.rowcount > 0

    def annotate(self, run_id: str, text: str | None) -> None:
        self._need_current()
        with self._writing() as connection:
            key = self._key(connection, run_id)
            said = None if text is None else plain(text)
            connection.execute(update(schema.runs).where(schema.runs.c.key == key).values(annotation=said))

    def set_baseline(self, name: str, run_id: str) -> None:
        self._need_current()
        b = schema.baselines
        with self._writing() as connection:
            key = self._key(connection, run_id)
            statement = insert_or(connection, b).values(name=plain(name), run=key)
            connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"run": key}))

    def remove_baseline(self, name: str) -> bool:
        self._need_current()
        with self._writing() as connection:
            gone = connection.execute(delete(schema.baselines).where(schema.baselines.c.name == plain(name)))
            return gone.rowcount > 0

    def baseline(self, name: str) -> str | None:
        return self.baselines().get(plain(name))

    def baselines(self) -> dict[str, str]:
        self._need_current()
        b, r = schema.baselines.c, schema.runs.c
        query = select(b.name, r.id).join_from(schema.baselines, schema.runs, b.run == r.key).order_by(b.name)
        with self._reading() as connection:
            return dict(connection.execute(query).all())

    def check(self) -> list[str]:
        found: list[str] = []
        try:
            version = self.schema_version()
            if version != schema.VERSION:
                return [f"its version is {version}, this benchwright uses {schema.VERSION}"]
            with self._reading() as connection:
                # One by one: a damaged file may break off in the middle, and what was found before counts.
                for problem in problems(connection):
                    found.append(problem)
        except StoreTrouble as error:
            found.append(error.what)
        return found

    def schema_version(self) -> str:
        with self._reading() as connection:
            return _version(connection) or "none"

    def migrate(self) -> None:
        with self._writing() as connection:
            _refuse_unknown(self.where, _version(connection))
            upgrade(connection)
        self._version = schema.VERSION

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._need_file()
        with reading(self._engine, self.where) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._need_file()
        with writing(self._engine, self.where) as connection:
            yield connection

    def _need_file(self) -> None:
        # SQLite goes on with a file that was removed or replaced, and what it writes there is lost.
        if self._database.file() != self._file:
            raise StoreGone(
                "is gone: its file was moved, removed or replaced",
                where=self.where,
                remedy="try again, or rebuild it from the run folders: benchwright store rebuild",
            )

    def _need_current(self) -> None:
        if self._version != schema.VERSION:
            raise StoreTrouble(
                f"is of version {self._version}, this benchwright uses {schema.VERSION}",
                where=self.where,
                remedy="bring it up to date with: benchwright store migrate",
            )

    def _key(self, connection: Connection, run_id: str) -> int:
        """The run's row; InvalidInput, with the nearest id, if there is none."""
        r = schema.runs.c
        key: int | None = connection.execute(select(r.key).where(r.id == plain(run_id))).scalar_one_or_none()
        if key is None:
            known = connection.execute(select(r.id).order_by(r.started_s.desc()).limit(_NEAR_RUNS)).scalars()
            remedy = did_you_mean(run_id, known) or "see what is there with: benchwright runs"
            raise InvalidInput(f"no run called '{run_id}' in the store", where=self.where, remedy=remedy)
        return key


def _digest(connection: Connection, run_id: str) -> str | None:
    r = schema.runs.c
    return connection.execute(select(r.digest).where(r.id == plain(run_id))).scalar_one_or_none()


def _samples(connection: Connection, key: int) -> dict[Place, Samples]:
    """DamagedSamples if the arrays are not exactly what the measurements say."""
    m = schema.measurements.c
    columns = (m.result, m.launch, m.measurement, m.warmup_samples, m.samples, m.size_bytes, m.encoding)
    arrays = memoryview(samples_of(connection, key))
    found: dict[Place, Samples] = {}
    start = 0
    for result, launch, number, warmup, measured, size, encoding in connection.execute(
        select(*columns).where(m.run == key).order_by(m.place)
    ):
        values = unpack(Packed(encoding, bytes(arrays[start : start + size])), warmup + measured)
        found[result, launch, number] = Samples(values[:warmup], values[warmup:])
        start += size
    if start != len(arrays):
        raise DamagedSamples(f"its arrays should take {start} bytes, but there are {len(arrays)}")
    return found


def _made_ready(database: Database, engine: Engine, create: bool) -> str:
    """The version of the store, which is made if there is none; StoreTrouble if it is not one of ours."""
    with reading(engine, database.where) as connection:
        tables = set(inspect(connection).get_table_names())
        version = _version(connection) if schema.VERSION_TABLE in tables else None
    if version is not None:
        _refuse_unknown(database.where, version)
        return version
    ours = set(schema.metadata.tables)
    foreign = tables if database.path is not None else tables & ours  # a server's database may have other uses
    if foreign - {schema.VERSION_TABLE}:
        raise ForeignStore(
            f"is not a store of benchwright: it has a table '{min(foreign)}'",
            where=database.where,
            remedy="choose another one with --store",
        )
    if not create:
        raise NoStoreYet(
            "there is no store yet",
            where=database.where,
            remedy="measure something, or ingest runs: benchwright ingest",
        )
    if database.path is not None:
        set_up_file(engine)
    with writing(engine, database.where) as connection:
        upgrade(connection)
    return schema.VERSION


def _version(connection: Connection) -> str | None:
    return connection.execute(select(schema.version.c.version_num)).scalar()


def _refuse_unknown(where: str, version: str | None) -> None:
    if version is None or (version.isdigit() and int(version) <= int(schema.VERSION)):
        return
    raise NewerStore(
        f"is of version {version}, newer than the {schema.VERSION} this benchwright knows",
        where=where,
        remedy="use a newer benchwright, or choose another store with --store; this one was not touched",
    )
