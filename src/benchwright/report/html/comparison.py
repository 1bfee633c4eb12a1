"""`compare --format html`: effects with their intervals, drawn to one scale; no script, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files

from benchwright.core.results.comparison import Comparison, Effect, Verdict
from benchwright.report.comparison import change, count_words, metric_words, small_print, sorted_effects
from benchwright.report.html.markup import Html, element, html, together
from benchwright.report.screen import format_value
from benchwright.version import __version__

_BADGES = {
    Verdict.REGRESSED: "bad",
    Verdict.IMPROVED: "ok",
    Verdict.SAME: "rest",
    Verdict.INCONCLUSIVE: "care",
}
_WIDTH = 260  # of a drawing, in pixels
_STYLE = """
.effects { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.effects th, .effects td { padding: .45rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: middle; }
.effects td.number { text-align: right; white-space: nowrap; }
.effects th { color: var(--faint); font-weight: 600; font-size: .82rem; }
.scroll { overflow-x: auto; }
.verdict { display: inline-block; padding: .1rem .5rem; border-radius: 99px; font-size: .82rem; font-weight: 600; white-space: nowrap; }
.verdict.ok { color: var(--ok); background: var(--ok-back); } .verdict.bad { color: var(--bad); background: var(--bad-back); }
.verdict.care { color: var(--care); background: var(--care-back); } .verdict.rest { color: var(--rest); background: var(--rest-back); }
svg .margin { fill: var(--grid); } svg .one { stroke: var(--faint); } svg .whisker { stroke: var(--text); stroke-width: 2; }
svg .dot { fill: var(--accent); }
"""


def comparison_html(comparisons: Sequence[Comparison]) -> str:
    """One page for all comparisons with the same control."""
    style = files("benchwright.report.html").joinpath("assets", "report.css").read_text(encoding="utf-8") + _STYLE
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "benchwright: comparison"),
        element("style", Html(style)),
    )
    footer = element(
        "footer", element("p", f"Made by benchwright {__version__}. Ratios are treatment ÷ control, over launches.")
    )
    main = element("main", element("h1", "Comparison"), together(_section(c) for c in comparisons))
    return f'<!DOCTYPE html>\n<html lang="en">{head}{element("body", main, footer)}</html>\n'


def _section(comparison: Comparison) -> Html:
    remarks = [f"{d.what}: {d.control} → {d.treatment}" for d in comparison.differences]
    remarks += [*comparison.missing, *comparison.doubts]
    reach = _reach(comparison)
    return element(
        "section",
        element("h2", f"{comparison.control} → {comparison.treatment}"),
        element("p", count_words(comparison), class_="quiet"),
        element("ul", *(element("li", f"⚠ {text}") for text in remarks)) if remarks else None,
        element(
            "div",
            element(
                "table",
                _head(comparison.margin),
                element("tbody", *(_row(e, comparison.margin, reach) for e in sorted_effects(comparison.effects))),
                class_="effects",
            ),
            class_="scroll",
        ),
        *(element("p", remark, class_="quiet") for remark in comparison.remarks),
    )


def _head(margin: float) -> Html:
    names = ("verdict", "benchmark", "metric", "control", "treatment", "change", f"shaded: within {margin * 100:g} %")
    return element("thead", element("tr", *(element("th", name) for name in names)))


def _row(effect: Effect, margin: float, reach: float) -> Html:
    return element(
        "tr",
        element("td", element("span", effect.verdict.value, class_=f"verdict {_BADGES[effect.verdict]}")),
        element("td", element("span", effect.benchmark, class_="name")),
        element("td", metric_words(effect), *_small_print(effect)),
        element("td", format_value(effect.control, effect.unit), class_="number"),
        element("td", format_value(effect.treatment, effect.unit), class_="number"),
        element(
            "td",
            change(effect),
            element("br"),
            element("small", f"{effect.launches[0]} + {effect.launches[1]} launches"),
            class_="number",
        ),
        element("td", _drawing(effect, margin, reach)),
    )


def _small_print(effect: Effect) -> list[Html]:
    return [part for text in small_print(effect) for part in (element("br"), element("small", text))]


def _reach(comparison: Comparison) -> float:
    """How far from 1 the drawings go: as far as the widest interval, but not beyond ± 100 %."""
    ends = [abs(end - 1) for e in comparison.effects if e.interval for end in (e.interval.low, e.interval.high)]
    ends += [abs(e.ratio - 1) for e in comparison.effects if math.isfinite(e.ratio)]
    return min(1.0, max([comparison.margin * 2, *ends], default=0.1))


def _drawing(effect: Effect, margin: float, reach: float) -> Html:
    def at(ratio: float) -> float:
        share = (min(max(ratio, 1 - reach), 1 + reach) - 1) / reach
        return round(_WIDTH / 2 * (1 + 0.96 * share), 1)

    parts = [
        f'<rect class="margin" x="{at(1 - margin)}" y="0" width="{at(1 + margin) - at(1 - margin):.1f}" height="24"/>',
        f'<line class="one" x1="{at(1)}" x2="{at(1)}" y1="0" y2="24"/>',
    ]
    if effect.interval is not None:
        low, high = at(effect.interval.low), at(effect.interval.high)
        parts.append(f'<line class="whisker" x1="{low}" x2="{high}" y1="12" y2="12"/>')
    if math.isfinite(effect.ratio):
        parts.append(f'<circle class="dot" cx="{at(effect.ratio)}" cy="12" r="4.5"/>')
    label = html(f"{effect.benchmark} {effect.metric}: {change(effect)}")
    return Html(f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="24">{"".join(parts)}</svg>')
