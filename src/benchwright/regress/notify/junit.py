"""A notice as JUnit XML, which every CI server reads: one test case for each metric of each benchmark."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from benchwright.core.secrets.redact import redact_text
from benchwright.regress.notify.notice import Finding, Notice, NoticeVerdict

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(notice: Notice) -> str:
    """A regression is a failure, what could not be measured an error, and what has no verdict is skipped, with the reason."""
    counts = {
        "tests": len(notice.verdicts),
        "failures": len(notice.of(Finding.REGRESSED)),
        "errors": len(notice.of(Finding.NOT_MEASURED)),
        "skipped": len(notice.of(Finding.INCONCLUSIVE)),
    }
    numbers = {name: str(count) for name, count in counts.items()} | {"time": "0"}
    overall = {
        name: count for name, count in numbers.items() if name != "skipped"
    }  # which the schema does not have there
    suites = ET.Element("testsuites", {"name": "benchwright", **overall})
    when = {"timestamp": notice.time[:19]} if notice.time else {}
    suite = ET.SubElement(suites, "testsuite", {"name": _clean(notice.title), **numbers, **when})
    for number, each in enumerate(notice.verdicts):
        _add_case(suite, each, _repeated(notice, number))
    if said := [*notice.details, *(f"{link.title}: {link.url}" for link in notice.links)]:
        ET.SubElement(suite, "system-out").text = _clean("\n".join(said))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, each: NoticeVerdict, again: int) -> None:
    """`again`: how many cases of this name came before; two of one name would be taken for one."""
    name = _clean(each.metric) + (f" ({again + 1})" if again else "")
    named = {"classname": _clean(each.benchmark), "name": name, "time": "0"}
    case = ET.SubElement(suite, "testcase", named)
    if each.verdict is Finding.REGRESSED:
        ET.SubElement(
            case, "failure", {"message": _clean(each.text or "regressed"), "type": "regressed"}
        ).text = _clean("\n".join(text for text in (each.text, each.reason) if text))
    elif each.verdict is Finding.NOT_MEASURED:
        message = _clean(each.reason or "not measured")
        ET.SubElement(case, "error", {"message": message, "type": "not measured"}).text = message
    elif each.verdict is Finding.INCONCLUSIVE:
        ET.SubElement(case, "skipped", {"message": _clean(each.reason or "no verdict")})
    if each.text and each.verdict is not Finding.REGRESSED:
        ET.SubElement(case, "system-out").text = _clean(each.text)


def _repeated(notice: Notice, number: int) -> int:
    this = notice.verdicts[number]
    return sum((each.benchmark, each.metric) == (this.benchmark, this.metric) for each in notice.verdicts[:number])


def _clean(text: str) -> str:
    """Without characters that XML cannot hold, and without secrets."""
    return _NO_XML.sub("\ufffd", redact_text(text))
