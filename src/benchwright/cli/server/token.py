"""`benchwright token`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from benchwright.cli.answer import answer, json_option
from benchwright.cli.options import options
from benchwright.cli.store_options import open_results
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.server.tokens import MAIN, Scope, Token, TokenFile


@click.group(epilog="Example: benchwright token create ci --scope write --days 90")
def command() -> None:
    """Let others use the server of this base folder, and stop letting them."""


@command.command(epilog="Example: benchwright token create ci --scope write --days 90")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice([scope.word for scope in Scope]),
    default=Scope.READ.word,
    show_default=True,
    help="write also adds runs, annotations and baselines; admin also deletes, checks and migrates.",
)
@click.option("--days", type=click.IntRange(1, 36500), metavar="N", help="Until when it is valid.  [default: revoked]")
@click.option(
    "--project",
    default=MAIN,
    show_default=True,
    metavar="NAME",
    help="Whose runs it may see; an admin's token may name others.",
)
@options("base")
def create(name: str, scope: str, days: int | None, project: str, base: str | None) -> None:
    """Make a token and print it, once: only its digest is kept."""
    lifetime = None if days is None else timedelta(days=days)
    click.echo(_tokens(base).create(name, Scope[scope.upper()], lifetime, project=project))


@command.command("list", epilog="Example: benchwright token list")
@json_option("Print as JSON.")
@options("base")
def list_(base: str | None) -> None:
    """List the tokens: their scope, expiry and last use."""
    rows = [_row(token) for token in _tokens(base).every()]
    answer(lambda: rows, lambda: _text(rows))


@command.command(epilog="Example: benchwright token revoke ci")
@click.argument("name")
@options("base")
def revoke(name: str, base: str | None) -> None:
    """Revoke a token at once, also for a server that is running."""
    tokens = _tokens(base)
    known = [token.name for token in tokens.every()]
    if not tokens.revoke(name):
        remedy = did_you_mean(name, known) or "list them with: benchwright token list"
        raise InvalidInput(f"no token is called '{name}'", where="NAME", remedy=remedy)
    click.echo(f"revoked: {name}")


def _text(rows: Sequence[dict[str, object]]) -> str:
    return "\n".join(map(_line, rows)) or "there are no tokens; make one with: benchwright token create NAME"


def _line(row: dict[str, object]) -> str:
    until = "" if row["expires"] is None else f", {'expired' if row['expired'] else 'until'} {row['expires']}"
    used = "never used" if row["used"] is None else f"used {row['used']}"
    return f"{row['name']}: {row['scope']}{_of_project(row)}{until}, {used}"


def _of_project(row: dict[str, object]) -> str:
    return "" if row["project"] == MAIN else f" of {row['project']}"


def _tokens(base: str | None) -> TokenFile:
    return TokenFile(open_results(base, None).base.path)


def _row(token: Token) -> dict[str, object]:
    return {
        "name": token.name,
        "scope": token.scope.word,
        "project": token.project,
        "created": _moment(token.created),
        "expires": _moment(token.expires),
        "expired": token.is_expired(datetime.now(UTC).timestamp()),
        "used": _moment(token.used),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
