"""`benchwright serve`."""

from __future__ import annotations

import logging

import click

from benchwright.cli.regressions.notify_options import notify_option, targets
from benchwright.cli.store_options import open_results, where_options
from benchwright.core.errors import InvalidInput

try:
    from benchwright.server import store_server
except ImportError as error:  # the extra is not installed
    _MISSING: ImportError | None = error
else:
    _MISSING = None


@click.command(epilog="Example: benchwright serve · benchwright serve --host 0.0.0.0 --tls-cert c.pem --tls-key k.pem")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0: any that is free.")
@click.option("--tls-cert", metavar="FILE", help="Certificate, for https.")
@click.option("--tls-key", metavar="FILE", help="Its key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of it speaks https.")
@click.option("--public-read", is_flag=True, help="Let anybody who reaches it look, without a token.")
@click.option(
    "--project",
    default="main",
    show_default=True,
    metavar="NAME",
    help="Whose runs --public-read shows; also that of the first token.",
)
@click.option("--check", "only_check", is_flag=True, help="Say what is wrong with this deployment, and serve nothing.")
@notify_option
@where_options
def command(
    host: str,
    port: int,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    public_read: bool,
    project: str,
    only_check: bool,
    notify: tuple[str, ...],
    base: str | None,
    store: str | None,
) -> int:
    """Serve the store to others, as pages and as --store http://HOST:PORT, with a token. Tokens: benchwright token create."""
    if _MISSING is not None:
        remedy = "install it with: pip install 'benchwright[server]'"
        raise InvalidInput(f"serving needs Starlette and uvicorn ({_MISSING})", where="serve", remedy=remedy)
    receivers = targets(notify)
    results = open_results(base, store)
    place = store_server.ServingPlace(host, port, tls_cert, tls_key, behind_proxy)
    if only_check:
        problems = store_server.problems(place, results.url, results.base.path)
        click.echo("\n".join(problems) if problems else f"{results.where}: ready to be served at {place.url(port)}")
        return 1 if problems else 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    where = results.base.path
    store_server.serve(place, results.url, where, click.echo, project=project, public=public_read, receivers=receivers)
    return 0
