"""Where notices go: `--notify webhook:URL`, `github:FILE`, `annotations`, `junit:FILE`."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.files.whole_file import unwritable, write_whole
from benchwright.delivery.http_post import checked_url, post_json
from benchwright.regress.notify.junit import junit_xml
from benchwright.regress.notify.notice import Notice
from benchwright.regress.notify.texts import annotation_lines, comment_markdown, notice_text

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
        """NotTaken, or CannotWrite, if it is not delivered."""
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
