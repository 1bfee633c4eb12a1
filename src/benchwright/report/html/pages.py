"""HTML pages from templates. Every text is escaped unless a template marks it as our markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import unescape
from importlib.resources import files

import jinja2

from benchwright.report.figures.html import html_picture
from benchwright.report.tables.html import clean, html_table
from benchwright.report.text.numbers import moment
from benchwright.report.text.one_line import titled
from benchwright.version import __version__

_SCRIPTS = ("samples.js", "chart_frame.js", "distribution.js", "over_time.js", "charts.js", "theme.js", "page.js")


def render(template: str, *, scripted: bool, **context: object) -> str:
    """A whole file that needs nothing else: no network, no other file. `scripted`: with charts."""
    return page_of(template, _SCRIPTS if scripted else (), context)


def page_of(template: str, scripts: Sequence[str], context: Mapping[str, object]) -> str:
    """The same with these scripts."""
    script = "\n".join(map(asset, scripts))
    return (
        _environment()
        .get_template(template)
        .render(
            policy=_policy(script, forms=bool(context.get("forms"))),
            script=script,
            style=asset("report.css"),
            version=__version__,
            **context,
        )
    )


def with_bar(page: str, context: Mapping[str, object]) -> str:
    """A page with the bar of the site it belongs to above it."""
    head, start, rest = page.partition("<body>\n")
    return f"{head}{start}{_environment().get_template('bar.html').render(context)}{rest}"


def policy_of(page: str) -> str:
    """The policy that stands in a page, for the header of an answer."""
    return unescape(page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0])


def data_block(body: object) -> str:
    """JSON for the page's own script. `<` is written so that no text can end the block."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return clean(text).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("benchwright.report.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    made.filters["titled"] = titled
    made.filters["moment"] = moment
    made.globals["table"] = html_table
    made.globals["picture"] = html_picture
    return made


def _policy(script: str, *, forms: bool) -> str:
    """Nothing is loaded, and no script or style but ours works, whatever a name in the report looks like."""
    ours = _source(script) if script else "'none'"
    sent = "'self'" if forms else "'none'"
    return f"default-src 'none'; script-src {ours}; style-src {_source(asset('report.css'))}; base-uri 'none'; form-action {sent}"


@lru_cache(maxsize=16)
def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=16)
def asset(name: str) -> str:
    return files("benchwright.report.html").joinpath("assets", name).read_text(encoding="utf-8")
