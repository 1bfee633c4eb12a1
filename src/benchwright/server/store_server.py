"""Serving a store: where, for whom, and that nobody else does."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvicorn

from benchwright.core.aggregates import aggregate
from benchwright.core.errors import BenchwrightError, InvalidInput, StoreTrouble
from benchwright.core.file_lock import try_lock
from benchwright.core.secrets import redact_text
from benchwright.regress.notify.targets import Target
from benchwright.server.app import ServedStore
from benchwright.server.settings import ServerSettings
from benchwright.server.tokens import MAIN, Scope, TokenFile
from benchwright.store.base import check_url
from benchwright.store.http_store import is_loopback
from benchwright.store.sql_store import SqlStore, open_store
from benchwright.store.transfer import MOST_BYTES

FIRST = "first"  # the token that the first start makes
_SERVED = ("sqlite", "postgresql", "postgres")
_AT_ONCE = 100  # connections; more are told to come back


class ServingPlace(msgspec.Struct, frozen=True):
    """Where to listen, and what protects the tokens on their way."""

    host: str
    port: int
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False

    @property
    def is_https(self) -> bool:
        """Whether browsers reach it so."""
        return bool(self.tls_cert) or self.behind_proxy

    def url(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{port}"


def check_place(place: ServingPlace) -> None:
    """InvalidInput if tokens would travel readable, or the certificate cannot be used."""
    if bool(place.tls_cert) != bool(place.tls_key):
        raise InvalidInput("certificate and key belong together", where="--tls-cert", remedy="give --tls-key, too")
    if place.tls_cert and place.tls_key:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(place.tls_cert, place.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(
                f"the certificate cannot be used: {error.strerror or error}",
                where="--tls-cert",
                remedy="check both files",
            ) from None
    elif not is_loopback(place.host) and not place.behind_proxy:
        remedy = "give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it speaks https"
        raise InvalidInput("others would reach it without encryption", where=f"--host {place.host}", remedy=remedy)


def problems(place: ServingPlace, url: str, base: Path) -> list[str]:
    """Faults of a deployment; empty if there are none. Serves nothing and changes nothing."""
    found: list[str] = []
    checks: list[Callable[[], None]] = [
        lambda: check_place(place),
        lambda: listening(place.host, place.port).close(),
        lambda: _check_store(url),
    ]
    for check in checks:
        try:
            check()
        except BenchwrightError as error:
            found.append(str(error))
    tokens = TokenFile(base)
    if tokens.path.exists() and stat.S_IMODE(tokens.path.stat().st_mode) & 0o077:
        found.append(f"{tokens.path}: others can read it; chmod 600 {tokens.path}")
    if base.is_dir() and shutil.disk_usage(base).free < 2 * MOST_BYTES:
        found.append(f"{base}: less than {2 * MOST_BYTES >> 20} MiB are free; free some space")
    return found


def _check_store(url: str) -> None:
    with _opened(url, create=False) as store, alone(store):
        if wrong := store.check():
            raise StoreTrouble("; ".join(wrong[:5]), where=store.where, remedy="see: benchwright store check")


def serve(
    place: ServingPlace,
    url: str,
    base: Path,
    say: Callable[[str], None],
    *,
    project: str = MAIN,
    public: bool = False,
    receivers: Sequence[Target] = (),
) -> None:
    """Serves the store at `url` until it is interrupted; InvalidInput or StoreTrouble if that cannot be."""
    check_place(place)
    base.mkdir(parents=True, exist_ok=True)
    with _opened(url, create=True) as store, alone(store), listening(place.host, place.port) as listener:
        tokens = TokenFile(base)
        address = place.url(listener.getsockname()[1])
        say(f"serving {redact_text(store.where)} at {address} (Ctrl-C ends it)")
        settings = ServerSettings(project=project, public=public, https=place.is_https)
        if tokens.every():
            say(f"look at it: {address}/")
        else:
            secret = tokens.create(FIRST, Scope.ADMIN, project=project)
            say(f"look at it, with a link that is shown only now: {address}/sign-in?token={secret}")
            say(f"its token may do everything: export BENCHWRIGHT_TOKEN={secret}")
        served = ServedStore(store, tokens, base, settings, receivers)
        threading.Thread(target=served.catch_up, daemon=True).start()
        say(f"use it with: export BENCHWRIGHT_STORE={address}")
        rarely_collected()
        uvicorn.Server(
            uvicorn.Config(
                served.app(),
                access_log=False,  # addresses of clients are nobody's business; writes are logged by name of the token
                log_config=None,
                lifespan="off",
                server_header=False,
                limit_concurrency=_AT_ONCE,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=30,
                ssl_certfile=place.tls_cert,
                ssl_keyfile=place.tls_key,
                proxy_headers=False,
            )
        ).run(sockets=[listener])


def rarely_collected() -> None:
    """Loaded modules stay, and a page makes many objects but no circles: looking for garbage would double the time of some pages."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)


def _opened(url: str, *, create: bool) -> SqlStore:
    if check_url(url) not in _SERVED:
        raise InvalidInput(
            "only SQLite and PostgreSQL can be served", where="--store", remedy="name a file or a database"
        )
    return open_store(url, create=create, aggregate=aggregate)


def listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        where = f"{host}:{port}"
        remedy = "choose another one with --port; 0 takes any that is free"
        raise InvalidInput(f"cannot listen there: {error.strerror}", where=where, remedy=remedy) from None
    # Inherited by each connection. asyncio sets it only for sockets that name their protocol, and create_server's do not: the
    # body of an answer would wait 40 ms for the client to acknowledge its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@contextmanager
def alone(store: SqlStore) -> Iterator[None]:
    """Held while a store is served; StoreTrouble if another server has it."""
    taken = StoreTrouble(
        "is served by another process already", where=store.where, remedy="use that one, or end it first"
    )
    if (path := store.file_path) is None:
        with store.server_lock() as got:
            if not got:
                raise taken
            yield
        return
    handle = os.open(path.with_name(f"{path.name}.served"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not try_lock(handle):
            raise taken
        yield
    finally:
        os.close(handle)
