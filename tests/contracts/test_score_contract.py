"""What every scoring rule must do with any run."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from plugin_package import variants
from suite_runs import failed, launch, on_devices, result, run

from benchwright.core.run import Result
from benchwright.report.registry import reporter_named
from benchwright.report.score_rule import SCORES, ScoreRule
from benchwright.results.after_run import report_of
from benchwright.results.scores import Scoring, rule_named

RESULTS = {
    "nothing": (),
    "ok": (on_devices("a", (50.0, 100.0)), on_devices("b", (7.0,), weight=2.0)),
    "failed": (on_devices("a", (50.0,)), failed("b")),
    "without weights": (on_devices("a", (50.0,), weight=0.0),),
    "not finite": (result("a", launch(math.nan, math.inf)),),
}


@pytest.fixture(params=variants(SCORES))
def name(request: pytest.FixtureRequest, plugins: None) -> str:
    found: str = request.param
    return found


@pytest.fixture
def rule(name: str) -> ScoreRule:
    return SCORES.load(name)()


@pytest.fixture(params=RESULTS)
def results(request: pytest.FixtureRequest) -> tuple[Result, ...]:
    return RESULTS[request.param]


def test_any_run_has_words_and_a_table_in_every_format(name: str, rule: ScoreRule, results: tuple[Result, ...]) -> None:
    found = rule.score(run(*results))
    assert found.rule == name
    assert all((found.title, *found.words, *found.about))
    assert len(found.table.rows) + len(found.about) == len(results)
    report = report_of(run(*results), scoring=Scoring(rule=name))
    for format_ in ("screen", "markdown", "html") if results else ():
        assert found.words[0] in reporter_named(format_).render(report)
    body: dict[str, Any] = json.loads(reporter_named("json").render(report))
    assert len(body[name]["benchmarks"]) == len(found.table.rows)


def test_weights_that_are_given_are_used(rule: ScoreRule) -> None:
    whole = run(*RESULTS["failed"])
    even, uneven = (rule.score(whole, weights={"a": 1.0, "b": weight}) for weight in (1.0, 9.0))
    assert even.words != uneven.words
    assert rule.score(whole, weights={"a": 1.0, "b": 1.0}).words == even.words


def test_several_runs_have_one_score_or_one_each(rule: ScoreRule) -> None:
    first = run(*RESULTS["ok"])
    second = msgspec.structs.replace(first, id="other.1", uid="other")
    pooled = rule.pooled([first, second])
    assert pooled is None or {r.benchmark.name for r in pooled.results} == {"a", "b"}
    assert rule.pooled([first]) in (None, first)


def test_our_own_rule_is_none_of_them(plugins: None) -> None:
    assert "ours" not in SCORES.names()
    assert rule_named(None) is rule_named("ours") is None
