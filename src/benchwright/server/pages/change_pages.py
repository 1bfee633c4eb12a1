"""`/changes` and `/changes/NUMBER`: a regression is an object, with a state, an owner and a note."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from benchwright.core.errors import InvalidInput
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value
from benchwright.server.change_book import STATES, KeptChange
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, WriteForm, choices, page, time_words

_VERDICTS = ("regressed", "improved", "inconclusive")


def change_table(found: Sequence[KeptChange], asked: Asked) -> ReportTable:
    fields: list[Field[KeptChange]] = [
        Field(
            Column("benchmark", quoted=True),
            lambda c: word(c.benchmark, address=asked.link("/changes/", item=str(c.key))),
        ),
        Field(Column("metric"), lambda c: word(metric_name(c.metric, c.facts.labels))),
        Field(Column("host"), lambda c: word(c.host)),
        Field(Column("change", right=True), lambda c: Cell(_percent(c), c.facts.ratio)),
        Field(Column("values"), lambda c: word(_values(c))),
        Field(Column("between"), lambda c: word(_between(c))),
        Field(Column("since"), lambda c: word(time_words(c.last_s))),
        Field(Column("state"), lambda c: word(c.state, mark=c.state)),
        Field(Column("owner"), lambda c: word(c.owner)),
    ]
    return table_of(fields, found)


def changes(archive: Archive, asked: Asked) -> str:
    state, verdict, text = asked.word("state"), asked.word("verdict") or "regressed", asked.word("text").casefold()
    every = [c for c in archive.book.since(0.0) if verdict in ("any", c.verdict)]
    every = [c for c in every if text in f"{c.benchmark} {c.metric} {c.host} {c.owner} {c.note}".casefold()]
    found = [c for c in every if state in ("", c.state)]
    counts = {each: sum(c.state == each for c in every) for each in STATES}
    tabs = [("all", asked.changed(state=None), not state)]
    tabs += [(f"{each} ({counts[each]})", asked.changed(state=each), state == each) for each in STATES]
    fields = [
        FormField("verdict", "Verdict", verdict, [(each, each) for each in (*_VERDICTS, "any")]),
        FormField("state", "State", state, choices(STATES, "every state")),
        FormField("text", "Text", asked.word("text"), hint="benchmark, host, owner…"),
    ]
    about = [
        f"{counted(len(found), 'change')}, newest first. New: later runs may still move its place; confirmed: they no longer do."
    ]
    empty = "None. Changes are looked for in 12 runs or more of one benchmark on one machine."
    return page(
        archive,
        asked,
        "Changes",
        [PageBlock(table=change_table(found, asked), empty=empty)],
        about=about,
        fields=fields,
        tabs=tabs,
    )


def change(archive: Archive, asked: Asked, key: str) -> str:
    kept = archive.book.one(int(key)) if key.isascii() and key.isdigit() and len(key) < 15 else None
    if kept is None:
        raise InvalidInput(f"there is no change {key[:40]}", where="changes", remedy="it may be gone: see the list")
    facts = kept.facts
    before, after = facts.commits
    rows = [
        ("Benchmark", kept.benchmark, False),
        ("Metric", metric_name(kept.metric, facts.labels), False),
        ("Machine", f"{kept.host} ({facts.machine})", False),
        ("Change", f"{_percent(kept)} ({_values(kept)})", False),
        ("Confidence", "> 99.9 %" if facts.confidence > 0.999 else f"{facts.confidence * 100:.1f} %", False),
        ("Came between", f"{time_words(kept.first_s)} and {time_words(kept.last_s)} UTC", False),
        ("Commits", f"{before or 'unknown'} .. {after or 'unknown'}", True),
        (
            "Place",
            "gradual: no single run made it"
            if facts.drifting
            else "settled"
            if facts.settled
            else "may still move by a few runs",
            False,
        ),
    ]
    form = WriteForm(
        asked.link("/changes/", item=str(kept.key)),
        [
            FormField("state", "State", kept.state, [(each, each) for each in STATES]),
            FormField("owner", "Owner", kept.owner, kind="text"),
            FormField("note", "Note", kept.note, kind="text", hint="why it is so, or what fixed it"),
        ],
        "Save",
    )
    links = [
        ("history", asked.link("/history/", item=kept.series)),
        ("compare the runs before and after", asked.link("/compare", control=facts.runs[0], treatment=facts.runs[1])),
        *(
            (f"run {name}", asked.link("/runs/", item=uid))
            for name, uid in zip(facts.run_names, facts.runs, strict=True)
        ),
    ]
    said = [
        ("State", kept.state, False),
        ("Owner", kept.owner or "nobody", False),
        ("Note", kept.note or "none", False),
    ]
    blocks = [
        PageBlock(pairs=rows, links=links),
        PageBlock("What is known about it", pairs=[] if asked.csrf else said, form=form if asked.csrf else None),
        PageBlock("Look into it", commands=_commands(kept)),
    ]
    return page(archive, asked, f"{kept.verdict.capitalize()}: {kept.benchmark} on {kept.host}", blocks)


def _commands(kept: KeptChange) -> list[tuple[str, str]]:
    before, after = kept.facts.commits
    command = kept.facts.setting.get("command") or "TARGET"
    found = [("Measure again, on that machine:", f"benchwright run --repeat 10 -- {command}")]
    commits = [each.removesuffix("+") for each in (before, after) if each]
    if len(commits) == 2 and commits[0] != commits[1] and not kept.facts.drifting:
        words = ["benchwright", "bisect", commits[0], commits[1], "--metric", kept.metric]
        found.append(("Find the commit:", f"{shlex.join(words)} -- {command}"))
    return found


def _percent(kept: KeptChange) -> str:
    return "" if kept.facts.ratio is None else f"{(kept.facts.ratio - 1) * 100:+.1f} %"


def _values(kept: KeptChange) -> str:
    return f"{format_value(kept.facts.before, kept.facts.unit)} → {format_value(kept.facts.after, kept.facts.unit)}"


def _between(kept: KeptChange) -> str:
    before, after = kept.facts.commits
    if before and after and before != after:
        return f"{before[:10]}..{after[:10]}"
    return f"{kept.facts.run_names[0]}..{kept.facts.run_names[1]}"
