"""The checkup of a cluster as text, as a page and as JSON; and reading that JSON again."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from benchwright.analysis.statistics.node_spread import NodeTest, spread_between
from benchwright.core.errors import InvalidInput
from benchwright.core.note import Note
from benchwright.doctor.checked_nodes import ClusterCheckup
from benchwright.doctor.cluster_verdict import ClusterVerdict, NodeVerdict
from benchwright.doctor.makes import FAILED
from benchwright.report.document import Cell, Column, Field, Figure, FigureRow, ReportTable, table_of, word
from benchwright.report.figures.axis import reach, ticks
from benchwright.report.html.pages import page_of
from benchwright.report.text.layout import table_lines, wrapped
from benchwright.report.text.numbers import counted, format_value, moment

FORMAT, VERSION = "benchwright-cluster", 1
_SECONDS = ("wall time", "CPU time", "all-reduce")
_MOST_ROWS = 200  # nodes of a picture
_SCRIPTS = ("theme.js", "history.js")


def spread_table(nodes: Sequence[NodeVerdict], title: str) -> ReportTable:
    """How much nodes of one make differ, metric by metric."""
    metrics = dict.fromkeys(test.metric for each in nodes for test in each.tests)
    rows = []
    for metric in metrics:
        tests = [(each, test) for each in nodes for test in each.tests if test.metric == metric]
        worst, test = max(tests, key=lambda pair: pair[1].ratio)
        medians = [statistics.median(v) for each in nodes if (v := each.node.costs.get(metric))]
        rows.append((metric, medians, [math.log(t.ratio) for _, t in tests], worst, test))
    fields: list[Field[tuple[str, list[float], list[float], NodeVerdict, NodeTest]]] = [
        Field(Column("metric", "metric", quoted=True), lambda r: word(r[0])),
        Field(Column("typical", "typical", right=True), lambda r: _cost(r[0], r[1])),
        Field(Column("nodes", "nodes", right=True), lambda r: Cell(str(len(r[2])), len(r[2]))),
        Field(
            Column("differ by", "spread", right=True, hint="Standard deviation between nodes, robust."),
            lambda r: Cell(f"± {_percent(s := math.expm1(spread_between(r[2])))}", s),
        ),
        Field(
            Column("slowest", "slowest", quoted=True),
            lambda r: word(r[3].node.name, mark="slow" if r[4].is_slow else ""),
        ),
        Field(Column("by", "by", right=True), lambda r: Cell(_change(r[4].ratio), r[4].ratio - 1)),
    ]
    return table_of(fields, rows, title=title)


def _cost(metric: str, medians: Sequence[float]) -> Cell:
    if not medians:
        return Cell()
    value = statistics.median(medians)
    if metric in _SECONDS:
        return Cell(format_value(value, "s"), value)
    return Cell(format_value(1 / value, "items/s"), value)


def out_table(nodes: Sequence[NodeVerdict]) -> ReportTable:
    """Each reason why a node is out."""
    rows = [(each, test) for each in nodes for test in each.slow]
    fields: list[Field[tuple[NodeVerdict, NodeTest]]] = [
        Field(Column("node", "node", quoted=True), lambda r: word(r[0].node.name)),
        Field(Column("slower in", "metric"), lambda r: word(r[1].metric)),
        Field(Column("by", "by", right=True), lambda r: Cell(_change(r[1].ratio), r[1].ratio - 1)),
        Field(Column("95 %", "interval", right=True), lambda r: _interval(r[1])),
        Field(Column("others differ by", right=True), lambda r: Cell(f"± {_percent(r[1].spread)}", r[1].spread)),
        Field(Column("q", "q", right=True, drop_priority=3), lambda r: Cell(f"{r[1].q_value:.2g}", r[1].q_value)),
    ]
    return table_of(fields, rows, title="Nodes outside the spread of their make")


def _interval(test: NodeTest) -> Cell:
    if test.interval is None:
        return Cell()
    low, high = test.interval.low, test.interval.high
    return Cell(f"{_change(low)} to {_change(high)}", [low - 1, high - 1])


def nodes_table(nodes: Sequence[NodeVerdict]) -> ReportTable:
    """Every node beside the others, by every metric; the worst first."""
    metrics = dict.fromkeys(test.metric for each in nodes for test in each.tests)
    fields: list[Field[NodeVerdict]] = [
        Field(Column("node", "node", quoted=True), lambda n: word(n.node.name)),
        Field(
            Column("status", "status"),
            lambda n: word("out" if n.is_out else "fine", mark="failed" if n.is_out else "ok"),
        ),
    ]
    for metric in metrics:
        fields.append(Field(Column(metric, metric, right=True), lambda n, m=metric: _ratio_cell(n, m)))  # type: ignore[misc]
    worst = sorted(nodes, key=lambda n: (not n.is_out, -max((t.ratio for t in n.tests), default=0.0)))
    return table_of(fields, worst)


def _ratio_cell(each: NodeVerdict, metric: str) -> Cell:
    test = next((test for test in each.tests if test.metric == metric), None)
    if test is None:
        return Cell()
    return Cell(_change(test.ratio), test.ratio - 1, mark="slow" if test.is_slow else "", hint=_interval(test).text)


def pairs_table(verdict: ClusterVerdict) -> ReportTable:
    fields: list[Field[tuple[NodeTest, str | None]]] = [
        Field(Column("pair", "pair", quoted=True), lambda r: word(r[0].node)),
        Field(Column("slower by", "by", right=True), lambda r: Cell(_change(r[0].ratio), r[0].ratio - 1)),
        Field(Column("95 %", "interval", right=True), lambda r: _interval(r[0])),
        Field(Column("shared node", "shared"), lambda r: Cell(r[1] or "", r[1])),
    ]
    return table_of(fields, verdict.slow_pairs, title="Slow pairs (all-reduce)")


def rendered(verdict: ClusterVerdict, format_: str, width: int) -> str:
    """`format_`: screen, html or json."""
    if format_ == "screen":
        return cluster_text(verdict, width)
    return cluster_html(verdict) if format_ == "html" else cluster_json(verdict)


def cluster_text(verdict: ClusterVerdict, width: int) -> str:
    """The spread of every make, then who is outside, and why."""
    lines = wrapped(" · ".join(_headline(verdict)), width, " ")
    for make, nodes in verdict.makes.items():
        table = spread_table(nodes, make)
        if table.rows:
            lines += ["", *wrapped(f"{make}: {counted(len(nodes), 'node')}", width, " ")]
            lines += [f"  {line}" for line in table_lines(table, width - 2)]
    for title, table in (("", out_table(verdict.out)), ("slow pairs:", pairs_table(verdict))):
        if table.rows:
            lines += ["", *([f" {title}"] if title else []), *(f"  {x}" for x in table_lines(table, width - 2))]
    for each in verdict.out:
        lines += ["", f" ✗ {each.node.name} is out"]
        lines += [line for text in _why(each) for line in wrapped(f"→ {text}", width, "   ")]
    lines += ["", *(line for text in _remarks(verdict) for line in wrapped(text, width, " ")), _ending(verdict)]
    return "\n".join(lines) + "\n"


def _headline(verdict: ClusterVerdict) -> list[str]:
    checkup = verdict.checkup
    words = [counted(len(checkup.nodes), "node"), counted(len([m for m in verdict.makes if m]), "make")]
    words += [checkup.on, moment(checkup.started)]
    return words + ([f"beside {moment(verdict.before.started)}"] if verdict.before else [])


def _why(each: NodeVerdict) -> list[str]:
    texts = [*map(str, each.faults)]
    if each.slow_pairs:
        texts.append(f"all-reduce is slow with {', '.join(each.slow_pairs)}: its link or its switch")
    if each.slow:
        known = [str(_bare(note)) for note in each.reasons if note not in each.faults]
        if not known and not each.faults:
            known = ["no reason found: clocks, heat, limits, other programs and GPUs look like those of the others"]
        texts += known
    return texts


def _bare(note: Note) -> Note:
    return msgspec.structs.replace(note, remedy=None)


def _remarks(verdict: ClusterVerdict) -> list[str]:
    texts = [f"· {name} not measured: {why}" for name, why in _grouped(verdict.checkup.skipped)]
    broken = Counter(
        n.text for e in verdict.nodes for n in e.node.notes if (n.kind or "").endswith(FAILED) and not e.faults
    )
    texts += [f"⚠ failed on {counted(count, 'node')}: {text}" for text, count in broken.items()]
    failed = [pair for pair in verdict.checkup.pairs if pair.problem]
    texts += [f"⚠ {pair.name}: no all-reduce ({pair.problem})" for pair in failed]
    faster = [f"{n.node.name} ({t.metric} {_change(t.ratio)})" for n in verdict.nodes for t in n.tests if t.is_fast]
    if faster:
        texts.append(f"· faster than the others of their make: {', '.join(faster[:8])}")
    if any(len(nodes) == 2 for nodes in verdict.makes.values()):
        texts.append("· of two nodes it is only known that they differ: the slower one is named")
    if any(len(nodes) == 1 and make for make, nodes in verdict.makes.items()):
        texts.append("· a node that is the only one of its make has no others to be compared with")
    if verdict.before is not None:
        then, now = ({node.name for node in c.nodes} for c in (verdict.before, verdict.checkup))
        texts += [f"· not there any more: {', '.join(sorted(then - now))}"] if then - now else []
    return texts


def _grouped(skipped: dict[str, str]) -> list[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for name, why in skipped.items():
        reasons.setdefault(why, []).append(name)
    return [(", ".join(names), why) for why, names in reasons.items()]


def _ending(verdict: ClusterVerdict) -> str:
    out = [each.node.name for each in verdict.out]
    if out:
        return f" ✗ {counted(len(out), 'node')} out: {', '.join(out)}"
    return " ✓ every node is as fast as the others of its make, as far as this shows"


def cluster_html(verdict: ClusterVerdict) -> str:
    """One file that needs nothing else."""
    pairs = pairs_table(verdict)
    context = {
        "headline": _headline(verdict),
        "ending": _ending(verdict).strip(" ✓✗"),
        "makes": [
            (make, spread_table(nodes, make), _figure(make, nodes)) for make, nodes in verdict.makes.items() if make
        ],
        "out": out_table(verdict.out),
        "why": [(each.node.name, _why(each)) for each in verdict.out],
        "pairs": pairs,
        "nodes": nodes_table(verdict.nodes),
        "remarks": [text.lstrip("·⚠ ") for text in _remarks(verdict)],
    }
    return page_of("cluster.html", _SCRIPTS, context)


def _figure(make: str, nodes: Sequence[NodeVerdict]) -> Figure | None:
    """Each node by its worst metric beside the others."""
    worst = [(each, max(each.tests, key=lambda test: test.ratio)) for each in nodes if each.tests]
    worst.sort(key=lambda pair: -pair[1].ratio)
    if not worst:
        return None
    rows = tuple(
        FigureRow(
            name=each.node.name,
            value=100 * (test.ratio - 1),
            low=None if test.interval is None else 100 * (test.interval.low - 1),
            high=None if test.interval is None else 100 * (test.interval.high - 1),
            text=_change(test.ratio),
            small=test.metric,
            mark="regressed" if each.is_out else "",
        )
        for each, test in worst[:_MOST_ROWS]
    )
    low, high = reach([row.value for row in rows if row.value is not None] + [0.0], least=4.0)
    return Figure(
        title=make,
        axis="how much slower than the others of its make, in per cent, by its worst metric",
        rows=rows,
        low=low,
        high=high,
        ticks=ticks(low, high, lambda value: f"{value:+.3g} %"),
        line=0.0,
    )


def cluster_json(verdict: ClusterVerdict) -> str:
    """Documented in docs/how-to/clusters.md; `--against` reads it again."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "verdict": "error" if verdict.out else "ok",
        "out": [
            {
                "node": each.node.name,
                "slow": [_test_body(test) for test in each.slow],
                "faults": [note.text for note in each.faults],
                "reasons": [{"kind": note.kind, "text": str(_bare(note))} for note in each.reasons],
                "slow_pairs": list(each.slow_pairs),
            }
            for each in verdict.out
        ],
        "spreads": {
            make: {str(row["metric"]): row["spread"] for row in spread_table(nodes, make).records()}
            for make, nodes in verdict.makes.items()
            if make
        },
        "slow_pairs": [_test_body(test) | {"shared": shared} for test, shared in verdict.slow_pairs],
        "tests": [_test_body(test) | {"node": each.node.name} for each in verdict.nodes for test in each.tests],
        "checkup": msgspec.to_builtins(verdict.checkup),
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _test_body(test: NodeTest) -> dict[str, object]:
    interval = None if test.interval is None else [test.interval.low, test.interval.high]
    return {
        "metric": test.metric,
        "name": test.node,
        "ratio": test.ratio,
        "interval_95": interval,
        "q_value": test.q_value,
    }


def read_cluster_json(path: str) -> ClusterCheckup:
    """An earlier checkup, as `doctor --on … --json` printed it; InvalidInput for anything else."""
    remedy = "give the file that an earlier 'doctor --on … -o FILE.json' wrote"
    try:
        with open(path, "rb") as file:
            body = msgspec.json.decode(file.read())
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise InvalidInput("no checkup of a cluster", where=path, remedy=remedy)
        if body.get("version") != VERSION:
            raise InvalidInput(f"format version {body.get('version')} is not {VERSION}", where=path, remedy=remedy)
        return msgspec.convert(body["checkup"], ClusterCheckup, str_keys=True)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=path, remedy=remedy) from error
    except (msgspec.MsgspecError, KeyError) as error:
        raise InvalidInput(f"damaged: {error}", where=path, remedy=remedy) from error


def _change(ratio: float) -> str:
    """`+5.1 %`."""
    percent = 100 * (ratio - 1)
    return f"{percent:+,.0f} %" if abs(percent) >= 20 else f"{percent:+.1f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
