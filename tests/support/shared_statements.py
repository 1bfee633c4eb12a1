"""SQLAlchemy compiles every statement anew for each database that is opened; tests open thousands of the same kind."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import Engine
from sqlalchemy.util import LRUCache

_COMPILED: LRUCache[Any, Any] = LRUCache(2000)


def share_compiled_statements() -> None:
    """Statements for SQLite are compiled once in this process: its dialects are all alike."""
    made = Engine.__init__

    def initialise(engine: Engine, *args: Any, **options: Any) -> None:
        made(engine, *args, **options)
        if isinstance(engine.dialect, SQLiteDialect):
            engine._compiled_cache = _COMPILED

    Engine.__init__ = initialise  # type: ignore[assignment]
    SQLiteDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]
    SQLiteDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
