"""Requests made from the description that the server publishes, by schemathesis: every route answers or refuses, in words."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from shared_runs import shared_runs

from benchwright.core.aggregates import aggregate
from benchwright.server.app import ROUTES, ServedStore, foreign_routes
from benchwright.server.tokens import Scope, TokenFile
from benchwright.store.base import StoreEntry
from benchwright.store.http_store import API
from benchwright.store.sql_store import open_store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
NAMES = [*(f"{method} {API}{path}" for method, path, _, _ in ROUTES), *(f"POST {r.path}" for r in foreign_routes())]


class Described:
    """A server in this process, and the operations that its description has."""

    def __init__(self, folder: Path) -> None:
        tokens = TokenFile(folder)
        self.headers = {"Authorization": f"Bearer {tokens.create('all', Scope.ADMIN)}"}
        self.store = open_store(str(folder / "store.db"), aggregate=aggregate)
        self.store.ingest_all([StoreEntry(run=each, digest="1") for each in shared_runs()])
        schema = schemathesis.openapi.from_asgi("/openapi.json", ServedStore(self.store, tokens, folder).app())
        found = [each.ok() for each in schema.get_all_operations()]
        self.operations: dict[str, Any] = {f"{each.method.upper()} {each.path}": each for each in found}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    made = Described(tmp_path_factory.mktemp("described"))
    yield made
    made.store.close()


def answers_of(described: Described, name: str, examples: int) -> int:
    """How many requests were answered; each answer is as the description says."""
    answers = 0

    @settings(
        deadline=None,
        database=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described.operations[name].as_strategy())
    def answered(case: Any) -> None:
        nonlocal answers
        response = case.call(headers=described.headers)
        case.validate_response(response, checks=CHECKS)
        answers += 1

    answered()
    return answers


def test_every_route_is_described(described: Described) -> None:
    assert set(described.operations) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_fits_the_description_is_answered_as_described(described: Described, name: str) -> None:
    assert answers_of(described, name, 5) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_much_that_fits_the_description_is_answered_as_described(described: Described, name: str) -> None:
    assert answers_of(described, name, 100) > 0
