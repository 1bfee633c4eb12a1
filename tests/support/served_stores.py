"""A real server on a port that the system chooses, for tests: uvicorn in a thread, one path for each store."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any, Self

import uvicorn

from benchwright.core.aggregates import aggregate
from benchwright.server.app import ServedStore
from benchwright.server.store_server import listening
from benchwright.server.tokens import Scope, TokenFile
from benchwright.store.http_store import checked_url
from benchwright.store.sql_store import SqlStore, open_store

_RESTING = 20  # stores that are left as they are, after their tests
_SERVING: dict[str, SqlStore] = {}  # URL → the store behind it


def store_behind(url: str) -> SqlStore:
    return _SERVING[checked_url(url).geturl()]


class ServedStores:
    """Stores of one server; `token` may do everything with each. Used as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.tokens = TokenFile(folder)
        self.token = self.tokens.create("all", Scope.ADMIN)
        self._numbers = itertools.count()
        self._folder = folder
        self._waiting: dict[str, tuple[str, str]] = {}
        self._apps: dict[str, Any] = {}
        self._urls: list[str] = []
        self._resting: list[str] = []
        self._socket = listening("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(self, access_log=False, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def serve(self, store: Path | str) -> str:
        """The URL of the store at that path or URL, which is opened, or made, when it is first asked for something."""
        prefix = f"/{next(self._numbers)}"
        url = f"http://127.0.0.1:{self.port}{prefix}"
        self._waiting[prefix] = (url, str(store))
        return url

    def rest(self, url: str) -> None:
        """No test asks it any more. Later, when nothing is done after its answers, its connections are closed: a database
        allows so many only."""
        self._resting.append(url)
        for old in self._resting[:-_RESTING]:
            store = _SERVING.get(old)
            if store is None or store._engine.pool.checkedout() == 0:  # type: ignore[attr-defined]
                self._resting.remove(old)
                if store is not None:
                    store.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        prefix = "/" + scope["path"].split("/")[1]
        if prefix not in self._apps:
            url, store = self._waiting[prefix]
            _SERVING[url] = open_store(store, aggregate=aggregate)
            self._urls.append(url)
            folder = self._folder if "://" in store else Path(store).parent
            self._apps[prefix] = ServedStore(_SERVING[url], self.tokens, folder).app()
        await self._apps[prefix]({**scope, "root_path": prefix}, receive, send)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._socket.close()
        for url in self._urls:
            _SERVING.pop(url).close()
