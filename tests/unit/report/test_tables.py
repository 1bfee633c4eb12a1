"""Reports as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import builders
import msgspec
import pytest
from builders import failed_launch, failed_result, measurement, result
from hypothesis import given
from hypothesis import strategies as st

from benchwright.analysis.summary import summarize
from benchwright.core.aggregates import aggregate
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.summary import Interval
from benchwright.report.base import Report
from benchwright.report.csv import CsvReporter
from benchwright.report.markdown import MarkdownReporter
from benchwright.report.screen import ScreenReporter
from benchwright.report.tables.results import FIELDS

CSV_COLUMNS = tuple(field.column.key for field in FIELDS if field.column.key)

TREND = Note(kind="trend", text="rose by 9 %", remedy="look")
FEW = Note(kind="few_launches", text="few", remedy="more")


def launch(
    value: float, metric: str = "speed", unit: str | None = "items/s", labels: dict[str, str] | None = None
) -> Launch:
    return builders.launch(
        measurement(value, metric=metric, unit=unit, direction=Direction.HIGHER, source="log", labels=labels or {})
    )


def six_launches() -> Report:
    """1 to 6, with an interval that is what the analysis said, whatever that is."""
    made = report(
        result("a", *(launch(float(v)) for v in range(1, 7))), result("b", launch(2.0, labels={"device": "0"}))
    )
    (first,) = made.summaries["a"]
    summary = msgspec.structs.replace(first, value=3.5, interval=Interval(1.0, 6.0))
    return msgspec.structs.replace(made, summaries={**made.summaries, "a": [summary]})


def report(*results: Result, notes: tuple[Note, ...] = (), log_tails: dict[str, list[str]] | None = None) -> Report:
    run = builders.run(*results, id="r.1", notes=notes)
    summaries = {r.benchmark.name: summarize(r.counted) for r in results}
    return Report(run=run, summaries=summaries, aggregate=aggregate, log_tails=log_tails or {})


def failed(name: str, job: str = "j", detail: str | None = "why") -> Result:
    return failed_result(name, failed_launch(job=job), detail=detail)


class TestCsv:
    def rows(self, *results: Result) -> list[dict[str, str]]:
        return self.rows_of(report(*results))

    def rows_of(self, made: Report) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(CsvReporter().render(made), newline="")))

    def test_one_row_for_each_benchmark_metric_and_label_set(self) -> None:
        rows = self.rows_of(six_launches())
        assert list(rows[0]) == list(CSV_COLUMNS)
        assert (rows[0]["benchmark"], rows[0]["value"], rows[0]["low"], rows[0]["high"]) == ("a", "3.5", "1.0", "6.0")
        assert (rows[0]["launches"], rows[0]["unit"], rows[0]["direction"]) == ("6", "items/s", "higher")
        assert (rows[1]["low"], json.loads(rows[1]["labels"])) == ("", {"device": "0"})

    def test_what_failed_has_a_row(self) -> None:
        (row,) = self.rows(failed("a"))
        assert (row["run"], row["status"], row["reason"], row["value"]) == ("r.1", "failed", "crashed", "")

    def test_numbers_read_back_exactly(self) -> None:
        (row,) = self.rows(result("a", launch(0.1 + 0.2)))
        assert float(row["value"]) == 0.1 + 0.2

    def test_a_number_that_is_not_finite_is_written_as_such(self) -> None:
        (row,) = self.rows(result("a", launch(math.nan)))
        assert math.isnan(float(row["value"]))

    def test_what_stands_out_is_named_beside_the_interval(self) -> None:
        made = six_launches()
        (first,) = made.summaries["a"]
        told = msgspec.structs.replace(first, interval=Interval(1.0, 6.0, 1.5), remarks=(TREND, FEW))
        row = self.rows_of(msgspec.structs.replace(made, summaries={"a": [told]}))[0]
        assert (row["widened"], row["remarks"]) == ("1.5", "trend few_launches")

    @given(name=st.text(min_size=1).filter(lambda text: "\0" not in text))
    def test_any_name_reads_back(self, name: str) -> None:
        (row,) = self.rows(result(name, launch(1.0)))
        assert row["benchmark"] in (name, f"'{name}")  # an apostrophe before what a spreadsheet would run


class TestMarkdown:
    def test_failures_come_first_with_the_log_folded(self) -> None:
        text = MarkdownReporter().render(
            report(result("fine", launch(2.0)), failed("bad"), log_tails={"j": ["last words"]})
        )
        assert text.index("`bad`") < text.index("last words") < text.index("`fine`")
        assert text.startswith("### `r`: 1 failed, 1 ok\n")
        assert "| `bad` | **failed: crashed** | `why` |" in text

    def test_metrics_with_their_interval_and_launches(self) -> None:
        text = MarkdownReporter().render(six_launches())
        assert "| `a` | `speed` | 3.5 items/s | ± 71 % (1 to 6) | 6 | 6 |" in text
        assert "In every row: status ok." in text

    def test_memory_and_the_like_is_folded_away(self) -> None:
        text = MarkdownReporter().render(
            report(result("a", launch(2.0), launch(1.0, metric="memory.peak_rss", unit="B")))
        )
        assert text.index("`speed`") < text.index("<details>") < text.index("`peak memory (RSS)`")

    def test_memory_is_written_as_it_is_read(self) -> None:
        text = MarkdownReporter().render(
            report(result("a", launch(2_040_109_465.0, metric="memory.peak_rss", unit="B")))
        )
        assert "| `a` | ok | `peak memory (RSS)` | 1.9 GiB | 1 |" in text
        assert "2,040" not in text

    def test_an_interval_that_was_widened_and_what_stands_out_are_told(self) -> None:
        made = six_launches()
        (first,) = made.summaries["a"]
        told = msgspec.structs.replace(first, interval=Interval(1.0, 6.0, 1.5), remarks=(TREND, FEW))
        made = msgspec.structs.replace(made, summaries={"a": [told]})
        text = MarkdownReporter().render(made)
        assert "± 71 % (1 to 6, widened) | 6 | 6 |" in text
        assert "- ⚠ `a` `speed`: rose by 9 %\n" in text
        assert text.count("few; more") == 1
        # Of the whole run: then not of each benchmark again.
        assert MarkdownReporter().render(msgspec.structs.replace(made, remarks=(FEW,))).count("few; more") == 1

    def test_only_warnings_are_marked_as_such_and_what_helps_is_not(self) -> None:
        notes = (Note(text="busy here", kind="busy"), Note(text="just so", severity="info"))
        text = MarkdownReporter().render(report(result("a", launch(1.0)), notes=notes))
        assert "- ⚠ busy here\n- just so\n" in text
        assert "- → stop other work on the machine" in text

    def test_notes_cannot_become_markup_or_mentions(self) -> None:
        note = Note(text="<script>x</script> *bold* @someone | \x1b[31mred\x1b[0m")
        text = MarkdownReporter().render(report(result("a", launch(1.0)), notes=(note,)))
        assert "- ⚠ &lt;script&gt;x&lt;/script&gt; \\*bold\\* @<!-- -->someone \\| red\n" in text.replace("  ", " ")

    @given(name=st.text(alphabet=st.sampled_from("`|\\<>&*_@\n \x1b\x00a[]é#"), min_size=1, max_size=12))
    def test_any_name_stays_one_cell_of_one_table(self, name: str) -> None:
        markdown_it = pytest.importorskip("markdown_it")
        text = MarkdownReporter().render(
            report(failed(name, job=name, detail=name), result("other", launch(1.0)), log_tails={name: [name]})
        )
        page = markdown_it.MarkdownIt("commonmark").enable("table").render(text)
        assert page.count("<table>") == 2
        assert len(re.findall(r"<tr>", page)) == 4
        assert "<td><code>other</code></td>" in page
        known = "h3 code table thead tbody tr th td strong details summary pre p".split()
        assert set(re.findall(r"</?([a-z0-9]+)", page)) <= set(known)


class TestSharedNotes:
    """The same note of several benchmarks is said once, with the names."""

    @staticmethod
    def made() -> Report:
        busy = [Note(text="ran while the machine was busy", evidence=f"got {n} %") for n in (36, 40)]
        noted = [msgspec.structs.replace(launch(2.0), notes=(note,)) for note in busy]
        hot = msgspec.structs.replace(noted[1], notes=(busy[1], Note(text="lowered its clock")))
        return report(result("a", noted[0]), result("b|c", hot))

    def test_the_screen_has_it_once_and_its_number_beside_each(self) -> None:
        text = ScreenReporter().render(self.made())
        assert text.count("ran while the machine was busy") == 1
        assert " ⚠ [1] ran while the machine was busy: a (got 36 %), b|c (got 40 %)" in text
        assert text.count("see [1] below") == 2
        assert text.index("lowered its clock") < text.index("ran while")

    def test_markdown_has_it_once_with_safe_names(self) -> None:
        text = MarkdownReporter().render(self.made())
        (line,) = [line for line in text.splitlines() if "ran while the machine was busy" in line]
        assert "`a`" in line
        assert "`b\\|c`" in line
        assert "got 40 %" in line
