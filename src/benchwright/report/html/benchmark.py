"""One benchmark: its charts, its launches, all its metrics, how it was run and what it printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.numbers.quantities import format_duration
from benchwright.core.results.peak_memory import WORDS, headline_of
from benchwright.core.results.summary import Summary
from benchwright.core.run import Launch, Result
from benchwright.core.secrets.redact import redact
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.html.figures import best, counted, ends, figure, hint, metric_name, percent, shown_first
from benchwright.report.html.findings import launch_notes
from benchwright.report.html.markup import Html, data_block, element, together
from benchwright.report.html.overview import status_badge
from benchwright.report.html.packing import packed
from benchwright.report.models.rows import telling
from benchwright.report.screen import WORTH_SAYING
from benchwright.report.text.commands import command_text
from benchwright.report.text.efficiency import efficiency_words
from benchwright.report.text.percentiles import ABOUT, bound_words, percentile_name

_MOST_COLUMNS = 4  # metrics in the table of launches; the others are in the table of all metrics


def benchmark_section(number: int, result: Result, report: Report, logs: Mapping[str, str], *, opened: bool) -> Html:
    """A closed or open block; its charts are drawn by the page's script when they come into view."""
    name = result.benchmark.name
    summaries = list(report.summaries.get(name, ()))
    interval_s = report.settings.sample_interval_s if report.settings else None
    data = packed(result, summaries, interval_s)
    return element(
        "details",
        element(
            "summary",
            element("span", name, class_="name", title=hint(name)),
            status_badge(result.status),
            element("span", _headline(result, summaries), class_="headline"),
        ),
        _remarks(result),
        *(element("p", f"{efficiency_words(e)}.", class_="note") for e in report.efficiency.get(name, ())),
        element("div", class_="charts needs-script") if data else None,
        data_block(f"d{number}", data) if data else None,
        _launches(result, summaries),
        _all_metrics(summaries),
        _percentiles(summaries),
        _how(result.benchmark, report),
        _logs(result, logs),
        class_="benchmark",
        id=f"b{number}",
        data_number=number,
        open=opened,
    )


def _headline(result: Result, summaries: Sequence[Summary]) -> str:
    by_metric = {s.metric: s for s in summaries}
    parts = [
        f"{metric_name(s.metric, s.labels)} {figure(s.value, s.unit)}"
        for s in shown_first(telling(result, summaries))[:1]
        if s.metric != "process.duration"
    ]
    count = len({x.position for x in result.counted})
    jobs = f" × {len(result.counted) // count} jobs" if count and len(result.counted) > count else ""
    of = f" of {format_duration(by_metric['process.duration'].value)}" if "process.duration" in by_metric else ""
    if result.turn_s is not None:
        of = f" in turns of {format_duration(result.turn_s)}"
    if count:
        parts.append(f"{counted(count, 'launch', 'launches')}{jobs}{of}")
    if result.overlap is not None:
        parts.append(f"overlap {percent(result.overlap)}")
    return " · ".join(parts) or (result.detail or "nothing measured")


def _remarks(result: Result) -> Html | None:
    lines = [(text, "") for text in result.benchmark.notes]
    lines += [(text, figures) for text, figures, _ in launch_notes(result.launches)]
    if result.status is not Status.OK and result.detail:
        lines.insert(0, (result.detail, ""))
    if not lines:
        return None
    return element(
        "ul",
        *(element("li", text, element("span", f" {more}", class_="figure") if more else None) for text, more in lines),
        class_="remarks",
    )


def _launches(result: Result, summaries: Sequence[Summary]) -> Html | None:
    if not result.launches:
        return None
    shown = [s for s in shown_first(telling(result, summaries)) if s.metric != "process.duration"][:_MOST_COLUMNS]
    values = [iter(s.values) for s in shown]
    rows = [
        _launch_row(launch, shown[:1], [_value_of(launch, s, v) for s, v in zip(shown, values, strict=True)])
        for launch in result.launches
    ]
    heads = ["Launch", "Status", *(metric_name(s.metric, s.labels) for s in shown), "Time", "Memory", "Samples"]
    noted = any(x.notes or x.detail for x in result.launches)
    return _fold(
        f"Launches ({len(result.launches):,})",
        _table(heads + (["Remarks"] if noted else []), rows, numeric=range(2, 5 + len(shown))),
        opened=len(result.launches) <= 12,
    )


def _value_of(launch: Launch, summary: Summary, values: Iterator[float]) -> str:
    """The launch's number: summaries hold one for each launch that counts and has the metric."""
    has = any(m.metric == summary.metric and m.labels == summary.labels and m.samples for m in launch.measurements)
    if launch.warmup or launch.status is not Status.OK or not has:
        return "–"
    return figure(next(values), summary.unit)


def _launch_row(launch: Launch, first: Sequence[Summary], values: Sequence[str]) -> list[object]:
    names = {s.metric for s in first} or {"process.duration"}
    of_first = [m for m in launch.measurements if m.metric in names]
    warm = sum(len(m.warmup_samples) for m in of_first)
    measured = sum(len(m.samples) for m in of_first)
    metric = headline_of([launch])
    peak = launch.measurement(metric) if metric else None
    remarks = [launch.detail or "", *(f"{n.text} ({n.evidence})" if n.evidence else n.text for n in launch.notes)]
    if launch.exit_code and "exit code" not in remarks[0]:
        remarks.insert(0, f"exit code {launch.exit_code}")
    return [
        element("span", launch.job, class_="job", title=hint(launch.job)),
        status_badge(launch.status),
        *values,
        "–" if launch.duration_s is None else format_duration(launch.duration_s),
        f"{figure(peak.samples[0], peak.unit)} {WORDS[peak.metric]}" if peak and peak.samples else "–",
        f"{measured:,}" + (f" (+ {warm:,} warm-up)" if warm else ""),
        "; ".join(filter(None, remarks)),
    ]


def _all_metrics(summaries: Sequence[Summary]) -> Html | None:
    if not summaries:
        return None
    better = {"higher": "higher is better", "lower": "lower is better", "neither": ""}
    rows: list[list[object]] = [
        [
            metric_name(s.metric, s.labels),
            figure(s.value, s.unit),
            _interval(s),
            best(s),
            f"{s.launches:,}",
            better[s.direction.value],
            s.source,
        ]
        for s in summaries
    ]
    heads = ["Metric", "Value", "95 % interval", "Best", "Launches", "Better", "From"]
    return _fold(f"All metrics ({len(rows)})", _table(heads, rows, numeric=range(1, 5)))


def _interval(summary: Summary) -> str:
    if summary.interval is None:
        return "–"
    low, high = ends(summary.interval.low, summary.interval.high, summary.unit)
    widened = summary.interval.widened
    return f"{low} to {high}" + (f", widened ×\u202f{widened:.2g}" if widened > WORTH_SAYING else "")


def _percentiles(summaries: Sequence[Summary]) -> Html | None:
    rows: list[list[object]] = [
        [
            metric_name(s.metric, s.labels),
            percentile_name(p),
            figure(p.value, s.unit),
            bound_words(p, s.unit),
            f"{p.samples:,}",
        ]
        for s in summaries
        for p in s.percentiles
    ]
    if not rows:
        return None
    heads = ["Metric", "Percentile", "Value", "99 % sure", "Samples"]
    about = element("p", f"Percentiles {ABOUT}.", class_="note")
    return _fold(f"Percentiles of samples ({len(rows)})", together((about, _table(heads, rows, numeric=range(2, 5)))))


def _how(benchmark: Benchmark, report: Report) -> Html:
    rows: list[tuple[str, object]] = [
        ("Command", element("code", command_text(benchmark, report))),
        ("Folder", element("code", benchmark.workload.cwd)),
        ("Read from", benchmark.source),
    ]
    if benchmark.env:
        kept = redact({k: v for k, v in benchmark.env.items() if v is not None})
        changes = [f"{k}={v}" for k, v in kept.items()] + [
            f"{k} removed" for k, v in benchmark.env.items() if v is None
        ]
        rows.append(("Environment", element("code", "\n".join(changes))))
    for label, chosen in (("Stop rule", benchmark.stop), ("Warm-up", benchmark.warmup)):
        words = "" if chosen is None else _words(chosen)
        rows.append((label, words or ("runs to its end" if label == "Stop rule" else "detected")))
    if benchmark.timeout_s is not None:
        rows.append(("Time limit", format_duration(benchmark.timeout_s)))
    placement = _words(benchmark.placement)
    if placement:
        rows.append(("Placement", placement))
    for spec in benchmark.metrics:
        rows.append(
            (f"Metric {spec.name}", together((element("code", spec.pattern), f" {spec.kind}, {spec.aggregate}")))
        )
    rows += [(f"Parameter {k}", v) for k, v in benchmark.parameters.items()]
    rows += [(f"Label {k}", v) for k, v in benchmark.labels.items()]
    return _fold("How it was run", pairs(rows))


def _words(settings: msgspec.Struct) -> str:
    """`steps 100, max seconds 60`: what differs from the default."""
    default = type(settings)()
    changed = (f for f in settings.__struct_fields__ if getattr(settings, f) != getattr(default, f))
    return ", ".join(f"{f.replace('_', ' ')} {_short(getattr(settings, f))}" for f in changed)


def _short(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _logs(result: Result, logs: Mapping[str, str]) -> Html | None:
    kept = [x.job for x in result.launches if x.job in logs]
    if not kept:
        return None
    blocks = (
        together((element("p", job, class_="label"), element("pre", logs[job] or "(printed nothing)", tabindex="0")))
        for job in kept
    )
    return _fold(f"Logs, last lines ({len(kept)})", together(blocks))


def pairs(rows: Sequence[tuple[str, object]]) -> Html:
    """A list of names and what they are."""
    return element("dl", *(element("div", element("dt", k), element("dd", v)) for k, v in rows), class_="pairs")


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, numeric: range) -> Html:
    kinds = ["n" if i in numeric else None for i in range(len(heads))]
    return element(
        "div",
        element(
            "table",
            element(
                "thead",
                element("tr", *(element("th", h, scope="col", class_=k) for h, k in zip(heads, kinds, strict=True))),
            ),
            element(
                "tbody",
                *(
                    element("tr", *(element("td", c, class_=k) for c, k in zip(row, kinds, strict=False)))
                    for row in rows
                ),
            ),
        ),
        class_="scroll",
        tabindex="0",
    )


def _fold(title: str, body: Html, *, opened: bool = False) -> Html:
    return element("details", element("summary", title), body, class_="fold", open=opened)
