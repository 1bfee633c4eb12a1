"""Moving the tables of a broken store to another schema, so that a new store can be made. Nothing is lost."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from benchwright.store import schema
from benchwright.store.connecting import connect, read_url, writing


def set_broken_tables_aside(url: str) -> str | None:
    """The schema that now holds the old tables; None if they are not broken, or there are none.

    Touches only tables of a store of this version: a newer one is not broken, and `migrate` takes care of an older one.
    """
    database = read_url(url)
    engine = connect(database, create=False)
    try:
        with writing(engine, database.where) as connection:
            tables = inspect(connection).get_table_names()
            if not _is_broken(connection, tables):
                return None
            return _moved(connection, [name for name in _OURS if name in tables])
    finally:
        engine.dispose()


_OURS = (*schema.metadata.tables, schema.VERSION_TABLE)


def _is_broken(connection: Connection, tables: list[str]) -> bool:
    if schema.VERSION_TABLE not in tables:
        return False
    if connection.execute(text(f"SELECT version_num FROM {schema.VERSION_TABLE}")).scalar() != schema.VERSION:  # noqa: S608
        return False
    for table in schema.metadata.sorted_tables:
        if table.name not in tables:
            return True
        there = {column["name"] for column in inspect(connection).get_columns(table.name)}
        if not {column.name for column in table.columns} <= there:
            return True
    return False


def _moved(connection: Connection, tables: list[str]) -> str:
    known = set(inspect(connection).get_schema_names())
    number = 1
    while (name := f"benchwright_damaged_{number}") in known:
        number += 1
    connection.execute(text(f"CREATE SCHEMA {name}"))
    for table in tables:
        connection.execute(text(f"ALTER TABLE {table} SET SCHEMA {name}"))
    return name
