"""A notice in words: plain text for chats, Markdown for a comment, and lines that GitHub's runner makes annotations of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchwright.core.secrets.redact import redact_text
from benchwright.regress.notify.notice import Finding, Notice, NoticeVerdict
from benchwright.report.text.markdown import code, plain

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
            said = "; ".join(text for text in (each.text, each.reason) if text)
            yield redact_text(f"::{level} {properties}::{_escaped(said or each.verdict.value)}")


def one_line(text: str) -> str:
    """Without line ends and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _subject(each: NoticeVerdict) -> str:
    return one_line(f"{each.benchmark} {each.metric}")


def _summary(notice: Notice) -> str:
    """Every verdict but `same`, of which the number is enough; the tables that follow have them all."""
    lines = []
    for each in notice.of(Finding.REGRESSED, Finding.NOT_MEASURED, Finding.INCONCLUSIVE, Finding.IMPROVED):
        said = "; ".join(text for text in (each.text, each.reason) if text)
        lines.append(
            f"- {_MARKS[each.verdict]} **{each.verdict.value}** {code(each.benchmark)} {code(each.metric)}: {plain(said)}"
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
