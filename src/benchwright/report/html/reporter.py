"""`report --format html`: one file with everything in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.html.benchmark import benchmark_section
from benchwright.report.html.environment import environment_section
from benchwright.report.html.markup import Html, clean, element, together
from benchwright.report.html.models import models_section
from benchwright.report.html.overview import header, standing_out, summary_table
from benchwright.report.html.packing import PRECISION
from benchwright.report.html.score import checks_section, score_section
from benchwright.report.models.facts import is_model
from benchwright.version import __version__

_SCRIPTS = ("samples.js", "chart_frame.js", "distribution.js", "over_time.js", "charts.js", "page.js")
_MOST_OPEN = 6  # a run of more benchmarks begins with them closed
_MOST_LOG_LINES = 60
_MOST_LINE = 400
_MOST_LOG_CHARACTERS = 400_000  # in the whole report; the run's folder has all of every log


class HtmlReporter:
    """A page that works without network and, but for the charts, without scripts."""

    name = "html"

    def render(self, report: Report) -> str:
        run = report.run
        return page(f"{run.name}: {run.status.value}", _navigation(report), content_of(report))


def page(title: str, navigation: Html, content: Html) -> str:
    """A whole file around what it shows."""
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"benchwright {__version__}"),
        element("title", title),
        element("style", Html(_asset("report.css"))),
    )
    body = element(
        "body",
        navigation,
        element("main", content),
        _footer(),
        element("div", id="tip", hidden=True),
        Html(f'<script type="module">{script}</script>'),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


def content_of(report: Report) -> Html:
    """All sections of one run."""
    return together(
        (
            header(report.run),
            score_section(report),
            standing_out(report),
            checks_section(report),
            models_section(report),
            summary_table(report),
            _benchmarks(report),
            environment_section(report),
        )
    )


def _policy(script: str) -> str:
    """Nothing is loaded, and no script runs but ours, whatever a name in the report looks like."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("benchwright.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def _navigation(report: Report) -> Html:
    links = [("score", "Score")] if report.score is not None else []
    links.append(("findings", "What stands out"))
    links += [("models", "Models")] if any(map(is_model, report.run.results)) else []
    links += [("summary", "Results"), ("benchmarks", "Benchmarks")]
    links = [pair for pair in links if pair[0] != "benchmarks" or report.run.results]
    links.append(("environment", "Environment"))
    return navigation_bar(links)


def navigation_bar(links: Sequence[tuple[str, str]]) -> Html:
    """`links`: each an anchor of the page, and its words."""
    return element(
        "nav",
        element("div", *(element("a", text, href=f"#{target}") for target, text in links)),
        element("button", "Theme: auto", type="button", id="theme", class_="needs-script"),
    )


def _benchmarks(report: Report) -> Html | None:
    results = report.run.results
    if not results:
        return None
    logs = _logs(report)
    few = len(results) <= _MOST_OPEN
    sections = (
        benchmark_section(i, r, report, logs, opened=few or (r.status is Status.FAILED and len(results) <= 50))
        for i, r in enumerate(results)
    )
    return element(
        "section",
        element(
            "div",
            element("h2", "Benchmarks"),
            element(
                "div",
                element("button", "Open all", type="button", id="open-all"),
                element("button", "Close all", type="button", id="close-all"),
                class_="tools needs-script",
            ),
            class_="bar",
        ),
        element("noscript", element("p", "The charts need JavaScript; every number is in the tables.", class_="quiet")),
        together(sections),
        id="benchmarks",
    )


def _logs(report: Report) -> dict[str, str]:
    """The last lines of each job's log, failed jobs first, as far as there is room."""
    source: Mapping[str, Sequence[str]] = {**report.log_tails, **report.logs}
    jobs = [x for r in report.run.results for x in r.launches if x.job in source]
    kept: dict[str, str] = {}
    room = _MOST_LOG_CHARACTERS
    for launch in sorted(jobs, key=lambda x: x.status is not Status.FAILED):
        lines = [
            line if len(line) <= _MOST_LINE else line[:_MOST_LINE] + " …"
            for line in source[launch.job][-_MOST_LOG_LINES:]
        ]
        text = clean("\n".join(lines))
        if len(text) > room:
            break
        room -= len(text)
        kept[launch.job] = text
    return kept


def _footer() -> Html:
    return element(
        "footer",
        element(
            "p",
            f"Made by benchwright {__version__}. Every raw sample of the run is in this file, warm-up included, as "
            f"{PRECISION}; the run's folder has them exactly. Medians are over launches, and so are their 95 % "
            "intervals.",
        ),
    )
