"""Notices against real receivers: nothing is lost, nothing secret is shown, and a dead one never changes a verdict."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import builders
import pytest
from command_line import CommandLine
from comparable_runs import benchmark, result
from webhook_server import HANG, webhook_server

from benchwright.analysis.comparison.compare import compare, compare_interleaved
from benchwright.artifacts.outbox import SendLimits
from benchwright.core.comparison import Comparison
from benchwright.core.errors import InvalidInput
from benchwright.executors.observer import Observer
from benchwright.regress.notify.notice import Finding, Notice, NoticeLink, NoticeOutcome, NoticeVerdict, notice_of
from benchwright.regress.notify.notify import Notified, notify
from benchwright.regress.notify.targets import (
    annotation_lines,
    comment_markdown,
    junit_xml,
    marker,
    notice_text,
    targets_of,
)

QUICK = SendLimits(attempts=3, pause_s=0.01, timeout_s=1.0, total_s=20.0)
NOTHING: dict[str, str] = {}


class Heard(Observer):
    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.notes: list[str] = []

    def on_trouble(self, text: str) -> None:
        self.troubles.append(text)

    def on_note(self, text: str) -> None:
        self.notes.append(text)


def a_comparison(slow: float = 1.3) -> Comparison:
    """`time` is slower, `load` the same, `save` without a verdict."""
    steady = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0005, 0.9995, 1.0015, 0.9985, 1.0]
    noisy = [1.0, 2.0, 0.5, 1.5, 0.7, 2.2, 0.6, 1.1, 0.9, 1.8]
    before = [{"time": v, "load": v, "save": n} for v, n in zip(steady, noisy, strict=True)]
    after = [{"time": v * slow, "load": v, "save": n} for v, n in zip(steady, reversed(noisy), strict=True)]
    blocks = list(range(len(steady)))
    sides = [
        result(benchmark(f"sort {side}"), values, blocks=blocks)
        for side, values in (("control", before), ("treatment", after))
    ]
    return compare_interleaved(builders.run(*sides), "sort control", "sort treatment")


def a_notice(**changes: Any) -> Notice:
    links = [NoticeLink("run", "https://example.org/run?a=1&b=<2>")]
    return notice_of([a_comparison()], topic="sort", links=links, details=["main → fix"], **changes)


def send(words: list[str], base: Path | None, *notices: Notice) -> tuple[Notified, Heard]:
    heard = Heard()
    for notice in notices or (a_notice(),):
        sent = notify(notice, targets_of(words), heard, spool=base, limits=QUICK)
    return sent, heard


def test_a_notice_says_of_each_metric_what_the_comparison_found() -> None:
    notice = a_notice()
    assert notice.outcome is NoticeOutcome.REGRESSED
    found = {each.metric: each.verdict for each in notice.verdicts}
    assert found == {"time": Finding.REGRESSED, "load": Finding.SAME, "save": Finding.INCONCLUSIVE}
    (slow,) = notice.of(Finding.REGRESSED)
    assert slow.benchmark == "sort"
    assert slow.ratio == pytest.approx(1.3)
    assert slow.low is not None
    assert slow.high is not None
    assert slow.low <= 1.3 <= slow.high
    assert "+30.0 %" in slow.text
    (open_,) = notice.of(Finding.INCONCLUSIVE)
    assert open_.reason


def test_a_side_that_failed_or_nothing_at_all_is_no_success() -> None:
    assert notice_of([]).outcome is NoticeOutcome.NOT_MEASURED
    gone = compare(builders.run(result(benchmark("a"), [1.0] * 6), result(benchmark("b"), [1.0] * 6)), builders.run())
    assert notice_of([gone]).outcome is NoticeOutcome.NOT_MEASURED
    fine = notice_of([a_comparison(slow=1.0)])
    assert fine.outcome is NoticeOutcome.FINE


def test_a_webhook_gets_the_whole_notice(tmp_path: Path) -> None:
    with webhook_server() as server:
        sent, heard = send([f"webhook:{server.url}"], tmp_path)
    assert sent == Notified(delivered=1)
    (body,) = server.taken
    assert (body["format"], body["outcome"]) == ("benchwright-notice", "regressed")
    assert {v["metric"]: v["verdict"] for v in body["verdicts"]} == {
        "time": "regressed",
        "load": "same",
        "save": "inconclusive",
    }
    assert body["text"].startswith("sort control → sort treatment")
    assert heard.troubles == []
    assert "S3CRET" not in " ".join(heard.notes)
    assert list((tmp_path / "notices").iterdir()) == []


@pytest.mark.parametrize("status", [500, 503, 429, HANG])
def test_passing_trouble_of_a_webhook_is_tried_again_with_the_same_id(status: int, tmp_path: Path) -> None:
    with webhook_server(status) as server:
        sent, _ = send([f"webhook:{server.url}"], tmp_path)
    assert sent == Notified(delivered=1)
    first, second = server.requests
    assert first["id"] == second["id"]


@pytest.mark.parametrize(("status", "asked"), [(500, 3), (404, 1), (403, 1)])
def test_a_webhook_that_takes_nothing_gets_it_the_next_time_in_order(status: int, asked: int, tmp_path: Path) -> None:
    first, second = a_notice(title="first"), a_notice(title="second")
    with webhook_server(*[status] * asked) as server:
        sent, heard = send([f"webhook:{server.url}"], tmp_path, first)
        assert sent == Notified(waiting=1)
        assert sent.exit_code(1) == 1
        assert sent.exit_code(0) == 0
        assert len(server.requests) == asked
        (trouble,) = heard.troubles
        assert "not notified" in trouble
        assert str(status) in trouble
        assert "S3CRET" not in trouble
        (kept,) = (tmp_path / "notices").iterdir()
        assert "S3CRET" not in kept.read_text()
        assert kept.stat().st_mode & 0o077 == 0
        sent, heard = send([f"webhook:{server.url}"], tmp_path, second)
    assert sent == Notified(delivered=1)
    assert [body["title"] for body in server.taken] == ["first", "second"]
    assert heard.troubles == []


def test_what_waits_for_one_receiver_is_not_sent_to_another(tmp_path: Path) -> None:
    with webhook_server(404) as dead, webhook_server() as other:
        send([f"webhook:{dead.url}"], tmp_path, a_notice(title="private"))
        send([f"webhook:{other.url}"], tmp_path, a_notice(title="public"))
        assert [body["title"] for body in other.taken] == ["public"]


def test_a_dead_receiver_costs_the_others_nothing_and_does_not_raise(tmp_path: Path) -> None:
    with webhook_server() as gone:
        url = gone.url
    junit = tmp_path / "verdict.xml"
    sent, heard = send([f"webhook:{url}", f"junit:{junit}"], tmp_path)
    assert sent == Notified(delivered=1, waiting=1)
    assert len(heard.troubles) == 1
    assert junit.exists()


def test_without_a_spool_a_lost_notice_turns_success_into_failure_and_nothing_else() -> None:
    with webhook_server() as gone:
        url = gone.url
    sent, heard = send([f"webhook:{url}"], None)
    assert sent == Notified(lost=1)
    assert [sent.exit_code(code) for code in (0, 1, 3)] == [3, 1, 3]
    assert heard.troubles


CASE = {"failure": ({"message", "type"}, set[str]()), "error": ({"message", "type"}, set[str]())}
JUNIT: dict[str, tuple[set[str], set[str]]] = {  # attributes and children, as in Jenkins' junit-10.xsd
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"testcase", "system-out"},
    ),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped", "system-out"}),
    "skipped": ({"message", "type"}, set()),
    "system-out": (set(), set()),
    **CASE,
}


def checked_junit(text: str) -> ET.Element:
    """The document, of which every element, attribute and count is as the schema wants it."""
    root = ET.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = JUNIT[element.tag]
        assert set(element.attrib) <= attributes, element.tag
        assert {child.tag for child in element} <= children
    for whole in (root, *root.iter("testsuite")):
        cases = list(whole.iter("testcase"))
        assert int(whole.attrib["tests"]) == len(cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if count in whole.attrib:
                assert int(whole.attrib[count]) == sum(case.find(tag) is not None for case in cases)
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", s.attrib["timestamp"]) for s in root if "timestamp" in s.attrib
    )
    return root


def test_junit_has_a_case_for_each_metric_a_failure_for_a_regression_and_the_reason_of_a_skip(tmp_path: Path) -> None:
    send([f"junit:{tmp_path / 'v.xml'}"], None)
    root = checked_junit((tmp_path / "v.xml").read_text())
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    assert {name: [child.tag for child in case] for name, case in cases.items()} == {
        "time": ["failure"],
        "load": ["system-out"],
        "save": ["skipped", "system-out"],
    }
    assert "+30.0 %" in cases["time"][0].attrib["message"]
    assert cases["save"][0].attrib["message"]
    assert cases["time"].attrib["classname"] == "sort"


def test_junit_of_nothing_measured_is_an_error_and_not_an_empty_success() -> None:
    root = checked_junit(junit_xml(notice_of([])))
    assert root.attrib["errors"] == "1"


def test_junit_holds_any_text() -> None:
    odd = 'a<b>&"\x00\x1b[31m\ud800 é ]]>'
    verdicts = [NoticeVerdict(benchmark=odd, metric=odd, verdict=each, text=odd, reason=odd) for each in Finding]
    root = checked_junit(
        junit_xml(Notice(title=odd, outcome=NoticeOutcome.REGRESSED, verdicts=tuple(verdicts), details=(odd,)))
    )
    assert root.find(".//testcase") is not None


def test_a_comment_can_be_found_again_by_its_topic(tmp_path: Path) -> None:
    send([f"github:{tmp_path / 'c.md'}"], None)
    body = (tmp_path / "c.md").read_text()
    assert body.splitlines()[0] == "<!-- benchwright: sort -->" == marker("sort")
    assert "**regressed** `sort` `time`: +30.0 %" in body
    assert "| ▼ regressed |" in body


def test_nothing_in_a_comment_escapes_or_mentions_anyone() -> None:
    name = "x --> <script>alert(1)</script> @everyone `code` | [a](http://b)"
    verdict = NoticeVerdict(benchmark=name, metric="t", verdict=Finding.REGRESSED, text=name, reason=name)
    body = comment_markdown(Notice(title=name, outcome=NoticeOutcome.REGRESSED, verdicts=(verdict,), topic=name))
    first, _, rest = body.partition("\n")
    assert first.count("-->") == 1
    assert "<script>" not in re.sub(r"``.*?``", "", rest)
    assert "@everyone" not in re.sub(r"``.*?``", "", rest)


def test_a_comment_stays_below_what_github_takes() -> None:
    body = comment_markdown(Notice(title="x", outcome=NoticeOutcome.FINE, markdown="long line\n" * 20_000))
    assert len(body) < 65_536
    assert "cut" in body


def test_annotations_are_as_the_runner_reads_them() -> None:
    verdict = NoticeVerdict(
        benchmark="a:b,c", metric="t", verdict=Finding.REGRESSED, text="50 % slower\nreally", file="src/x,y.py"
    )
    fine = NoticeVerdict(benchmark="b", metric="t", verdict=Finding.SAME)
    (line,) = annotation_lines(Notice(title="", outcome=NoticeOutcome.REGRESSED, verdicts=(verdict, fine)))
    assert line == "::error title=regressed%3A a%3Ab%2Cc t,file=src/x%2Cy.py::50 %25 slower%0Areally"


def test_on_a_github_runner_annotations_come_with_the_comment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    send([f"github:{tmp_path / 'c.md'}"], None)
    assert capsys.readouterr().err == ""
    send(["annotations"], None)
    asked = capsys.readouterr()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    send([f"github:{tmp_path / 'c.md'}"], None)
    assert capsys.readouterr().err == asked.err
    assert asked.out == ""
    assert [line.split(" ")[0] for line in asked.err.splitlines()] == ["::error", "::warning"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("webhok:https://x/S3CRET", "did you mean 'webhook'"),
        ("webhook:", "does not say where to"),
        ("webhook:ftp://x/S3CRET", "no http or https"),
        ("email:a@b", "use --notify webhook:URL"),
        ("junit:/nowhere/x/y.xml", "no folder /nowhere/x"),
        ("junit:/tmp", "is a folder"),
        ("https://x/S3CRET", "no such receiver: 'https'"),
    ],
)
def test_a_wrong_target_is_refused_before_anything_is_measured(word: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)) as error:
        targets_of([word], env=NOTHING)
    assert "S3CRET" not in str(error.value)


def test_secrets_in_names_are_not_sent() -> None:
    verdict = NoticeVerdict(
        benchmark="train --password hunter22",
        metric="t",
        verdict=Finding.REGRESSED,
        text="postgresql://u:hunter22@h/db",
    )
    notice = Notice(title="postgresql://u:hunter22@h/db", outcome=NoticeOutcome.REGRESSED, verdicts=(verdict,))
    for text in (notice_text(notice), comment_markdown(notice), junit_xml(notice), *annotation_lines(notice)):
        assert "u:hunter22" not in text


def test_compare_tells_whoever_is_named_and_its_exit_code_stays(tmp_path: Path) -> None:
    bw = CommandLine(tmp_path / "base", tmp_path)
    bw("run", "--repeat", "2", "--name", "one", "--", "true")
    bw("run", "--repeat", "2", "--name", "two", "--", "true")
    with webhook_server() as gone:
        url = gone.url
    words = [
        "compare",
        "one",
        "two",
        "--notify",
        f"webhook:{url}",
        "--notify",
        "junit:v.xml",
        "--notify",
        "github:c.md",
    ]
    done = bw(*words)
    assert "not notified" in done.stderr
    assert "S3CRET" not in done.stderr
    root = checked_junit((tmp_path / "v.xml").read_text())
    assert root.attrib["tests"] == "1"
    assert "too few" in (tmp_path / "v.xml").read_text() or "launches" in (tmp_path / "v.xml").read_text()
    assert (tmp_path / "c.md").read_text().startswith("<!-- benchwright: compare -->")


def test_the_option_of_mail_names_the_webhook(tmp_path: Path) -> None:
    bw = CommandLine(tmp_path / "base", tmp_path)
    for command in ("ab", "compare", "history", "watch"):
        assert "use --notify webhook:URL" in bw(command, "--smtp", "mail.example.org", code=2).stderr
