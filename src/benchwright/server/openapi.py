"""The API's description for programs, OpenAPI 3.1, made from the types that check what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from benchwright.server.tokens import Scope
from benchwright.store.http_store import API, ServerError
from benchwright.version import __version__

_BINARY = {"application/octet-stream": {"schema": {"type": "string", "contentEncoding": "binary"}}}
_REFUSALS = {
    "400": "cannot be read",
    "401": "no such token",
    "403": "the token does not allow it",
    "413": "too large",
    "422": "there is no such run or baseline",
    "503": "no store",
    "507": "no space",
}


class RouteTypes(NamedTuple):
    """The request and response of a route; `bytes` for packed runs. `optional`: parameters that may be left out."""

    about: str
    answer: Any
    body: Any = None
    parameters: Sequence[str] = ()
    optional: Sequence[str] = ()


class DescribedRoute(NamedTuple):
    method: str
    path: str
    scope: Scope
    types: RouteTypes


def describe(routes: Iterable[DescribedRoute], foreign: Iterable[str]) -> dict[str, object]:
    """`foreign`: paths of routes that take what other tools send."""
    routes = list(routes)
    types = [t for route in routes for t in (route.types.answer, route.types.body) if t not in (None, bytes)]
    schemas, parts = msgspec.json.schema_components([*types, ServerError], ref_template="#/components/schemas/{name}")
    found = iter(schemas)
    paths: dict[str, dict[str, object]] = {}
    error = {"application/json": {"schema": schemas[-1]}}
    refusals: dict[str, object] = {
        status: {"description": words, "content": error} for status, words in _REFUSALS.items()
    }
    for route in routes:
        answer = _content(route.types.answer, found)
        body = _content(route.types.body, found)
        responses: dict[str, object] = {"200": {"description": "done", "content": answer}, **refusals}
        paths.setdefault(API + route.path, {})[route.method.lower()] = {
            "summary": route.types.about,
            "description": f"Needs a token that may {route.scope.word}.",
            "operationId": f"{route.method.lower()}_{route.path.strip('/')}",
            "parameters": [
                {
                    "name": name,
                    "in": "query",
                    "required": name not in route.types.optional,
                    "schema": {"type": "string"},
                }
                for name in (*route.types.parameters, *route.types.optional)
            ],
            **({"requestBody": {"required": True, "content": body}} if body else {}),
            "responses": responses,
            "security": [{"token": []}],
        }
    for path in foreign:
        responses = {"200": {"description": "done"}, **refusals}
        body = {"content": {"application/json": {"schema": {}}}}
        paths[path] = {
            "post": {"summary": "Takes what another tool sends", "requestBody": body, "responses": responses}
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Benchwright", "version": __version__},
        "paths": paths,
        "components": {"schemas": parts, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _content(type_: Any, found: Any) -> dict[str, object]:
    if type_ is None:
        return {}
    return dict(_BINARY) if type_ is bytes else {"application/json": {"schema": next(found)}}
