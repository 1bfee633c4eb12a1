"""Where notices go: `--notify webhook:URL`, `github:FILE`, `annotations`, `junit:FILE`."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import msgspec

from benchwright.artifacts.outbox import checked_url, post_json
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.secrets import redact_text
from benchwright.core.whole_file import unwritable, write_whole
from benchwright.regress.notify.notice import Finding, Notice, NoticeVerdict
from benchwright.report.text.markdown import code, plain

# A notice as JUnit XML, which every CI server reads: one test case for each metric of each benchmark.


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
    if lines := [*notice.details, *(f"{link.title}: {link.url}" for link in notice.links)]:
        ET.SubElement(suite, "system-out").text = _clean("\n".join(lines))
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


# A notice in words: plain text for chats, Markdown for a comment, and lines that GitHub's runner makes annotations of.


_MARKS = {
    Finding.REGRESSED: "▼",
    Finding.IMPROVED: "▲",
    Finding.SAME: "=",
    Finding.INCONCLUSIVE: "?",
    Finding.NOT_MEASURED: "✗",
}
_LEVELS = {Finding.REGRESSED: "error", Finding.NOT_MEASURED: "error", Finding.INCONCLUSIVE: "warning"}
_MOST_IN_A_COMMENT = 60_000  # GitHub takes 65,536 characters
_UNSAFE = re.compile(r"[^\w .:/@#+-]")


def notice_text(notice: Notice) -> str:
    """Plain text, one paragraph for each verdict."""
    lines = [one_line(notice.title), "", *map(one_line, notice.details), *([""] if notice.details else [])]
    for each in notice.verdicts:
        lines.append(f"{_MARKS[each.verdict]} {each.verdict.value}: {_subject(each)}")
        lines += [f"    {one_line(text)}" for text in (each.text, each.reason) if text]
    lines += ["", *(f"{one_line(link.title)}: {link.url}" for link in notice.links)] if notice.links else []
    return redact_text("\n".join(lines) + "\n")


def comment_markdown(notice: Notice) -> str:
    """The body of a comment. Its first line, which is not shown, names the topic: a CI step finds the comment to update by it."""
    blocks = [marker(notice.topic), f"### {plain(notice.title)}"]
    blocks += [plain(text) for text in notice.details]
    blocks += [_summary(notice)]
    blocks += [notice.markdown.strip()] if notice.markdown.strip() else []
    blocks += [" · ".join(f"[{plain(link.title)}](<{link.url}>)" for link in notice.links)] if notice.links else []
    body = redact_text("\n\n".join(blocks) + "\n")
    if len(body) > _MOST_IN_A_COMMENT:
        body = body[:_MOST_IN_A_COMMENT].rpartition("\n")[0] + "\n\n… cut: the comment would be too long\n"
    return body


def marker(topic: str) -> str:
    """A comment in HTML; nothing of `topic` can end it early."""
    return f"<!-- benchwright: {' '.join(_UNSAFE.sub(' ', topic).replace('--', '-').split()) or 'notice'} -->"


def annotation_lines(notice: Notice) -> Iterator[str]:
    """`::error title=…,file=…::message` for each regression and failure, `::warning` where there is no verdict."""
    for each in notice.verdicts:
        if (level := _LEVELS.get(each.verdict)) is not None:
            named = {"title": f"{each.verdict.value}: {_subject(each)}"} | ({"file": each.file} if each.file else {})
            properties = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in named.items())
            message = "; ".join(text for text in (each.text, each.reason) if text)
            yield redact_text(f"::{level} {properties}::{_escaped(message or each.verdict.value)}")


def one_line(text: str) -> str:
    """Without line ends and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _subject(each: NoticeVerdict) -> str:
    return one_line(f"{each.benchmark} {each.metric}")


def _summary(notice: Notice) -> str:
    """Every verdict but `same`, of which the number is enough; the tables that follow have them all."""
    lines = []
    for each in notice.of(Finding.REGRESSED, Finding.NOT_MEASURED, Finding.INCONCLUSIVE, Finding.IMPROVED):
        message = "; ".join(text for text in (each.text, each.reason) if text)
        lines.append(
            f"- {_MARKS[each.verdict]} **{each.verdict.value}** {code(each.benchmark)} {code(each.metric)}: {plain(message)}"
        )
    same = len(notice.of(Finding.SAME))
    lines += [f"- = {same} the same"] if same else []
    return "\n".join(lines)


def _escaped(text: str, more: str = "") -> str:
    """As GitHub's runner decodes it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for sign in more:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


OPTION = "--notify"
FORMS = "webhook:URL, github:FILE, annotations or junit:FILE"
INSTEAD_OF_MAIL = "use --notify webhook:URL, with a chat or mail service that takes webhooks"


class Target(Protocol):
    """`is_remote`: it may be down just now; a notice for it waits in the spool, and is tried again."""

    @property
    def is_remote(self) -> bool: ...

    @property
    def key(self) -> str:
        """Tells this receiver from others without naming it: an address may be a secret."""
        ...

    def deliver(self, notice: Notice, *, timeout_s: float) -> None:
        """Rejected, or CannotWrite, if it is not delivered."""
        ...

    def __str__(self) -> str:
        """For messages; without secrets."""
        ...


class Webhook(msgspec.Struct, frozen=True):
    url: str
    is_remote = True

    @property
    def key(self) -> str:
        return _key(self.url)

    def deliver(self, notice: Notice, *, timeout_s: float) -> None:
        """The notice as JSON, with the same `id` each time it is sent; `text` is all of it in words."""
        body = {"format": "benchwright-notice", "version": 1, "id": notice.identity, "text": notice_text(notice)}
        post_json(self.url, msgspec.json.encode(body | msgspec.to_builtins(notice)), timeout_s=timeout_s)

    def __str__(self) -> str:
        return f"the webhook at {urlsplit(self.url).hostname}"


class CommentFile(msgspec.Struct, frozen=True):
    """`-` is standard output. On a GitHub runner the annotations come along."""

    path: str
    annotate: bool = False
    is_remote = False

    @property
    def key(self) -> str:
        return _key(self.path)

    def deliver(self, notice: Notice, *, timeout_s: float) -> None:
        _write(self.path, comment_markdown(notice))
        if self.annotate:
            _annotate(notice)

    def __str__(self) -> str:
        return f"the comment in {self.path}"


class Annotations(msgspec.Struct, frozen=True):
    is_remote = False
    key = "annotations"

    def deliver(self, notice: Notice, *, timeout_s: float) -> None:
        _annotate(notice)

    def __str__(self) -> str:
        return "annotations"


class JunitFile(msgspec.Struct, frozen=True):
    path: str
    is_remote = False

    @property
    def key(self) -> str:
        return _key(self.path)

    def deliver(self, notice: Notice, *, timeout_s: float) -> None:
        _write(self.path, junit_xml(notice))

    def __str__(self) -> str:
        return f"JUnit in {self.path}"


def targets_of(words: Sequence[str], *, env: Mapping[str, str] = os.environ) -> list[Target]:
    """The targets of `--notify`, each once; refused now rather than after hours of measuring."""
    return list(dict.fromkeys(_target(word, env) for word in words))


def _target(word: str, env: Mapping[str, str]) -> Target:
    kind, _, rest = word.strip().partition(":")
    where = f"{OPTION} {kind}"
    if kind == "annotations" and not rest:
        return Annotations()
    if kind in ("webhook", "github", "junit") and not rest:
        raise InvalidInput("does not say where to", where=where, remedy=f"write {FORMS}")
    if kind == "webhook":
        return Webhook(checked_url(rest, where=where, remedy="write webhook:https://HOST/PATH"))
    if kind == "email":
        raise InvalidInput("benchwright sends no mail", where=where, remedy=INSTEAD_OF_MAIL)
    if kind == "github":
        return CommentFile(_path(rest, where), annotate=env.get("GITHUB_ACTIONS") == "true")
    if kind == "junit":
        return JunitFile(_path(rest, where))
    # Only its first word: what follows may be a secret.
    near = did_you_mean(kind, ["webhook", "github", "annotations", "junit"])
    raise InvalidInput(f"no such receiver: '{kind[:40]}'", where=OPTION, remedy=near or f"write {FORMS}")


def _path(text: str, where: str) -> str:
    """Absolute, since a run may change folders; `-` stays."""
    if text == "-":
        return text
    path = os.path.abspath(os.path.expanduser(text))
    folder = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(folder):
        wrong = f"{path} is a folder" if os.path.isdir(path) else f"there is no folder {folder}"
        raise InvalidInput(wrong, where=where, remedy="name a file in a folder that exists")
    return path


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise unwritable(path, error) from error


def _annotate(notice: Notice) -> None:
    """On standard error, which GitHub's runner reads too: standard output may be JSON."""
    for line in annotation_lines(notice):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
