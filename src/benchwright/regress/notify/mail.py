"""A notice by email, to a server that the user names. A password comes from the environment, and only ever over TLS."""

from __future__ import annotations

import os
import smtplib
import socket
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import urlsplit

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.delivery.http_post import unreachable
from benchwright.delivery.not_taken import ConversationLimit, NotTaken
from benchwright.regress.notify.notice import Notice
from benchwright.regress.notify.texts import notice_text, one_line

OPTION, SERVER, USER, PASSWORD, SENDER = (
    "--smtp",
    "BENCHWRIGHT_SMTP",
    "BENCHWRIGHT_SMTP_USER",
    "BENCHWRIGHT_SMTP_PASSWORD",
    "BENCHWRIGHT_SMTP_FROM",
)
_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
_FORM = "write HOST[:PORT] (STARTTLS), smtps://HOST (TLS) or smtp+plain://HOST (none)"
_LONGEST_SUBJECT = 200


class MailServer(msgspec.Struct, frozen=True):
    """`scheme`: smtp with STARTTLS, smtps with TLS from the start, smtp+plain without."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def mail_server(given: str | None, env: Mapping[str, str]) -> MailServer:
    """What the option, or else the environment, names."""
    where = OPTION if given else f"${SERVER}"
    text = given or env.get(SERVER)
    if not text:
        raise InvalidInput(
            "email needs a mail server", where="--notify", remedy=f"name one with {OPTION} HOST[:PORT] or ${SERVER}"
        )
    try:
        parts = urlsplit(text if "://" in text else f"smtp://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("is no mail server", where=where, remedy=_FORM) from None
    if parts.username is not None or parts.password is not None:
        remedy = f"set ${USER} and ${PASSWORD} instead"
        raise InvalidInput("a user or password does not belong here", where=where, remedy=remedy)
    if parts.scheme not in _PORTS or not host or port == 0 or parts.path.strip("/") or not text.isprintable():
        raise InvalidInput("is no mail server", where=where, remedy=_FORM)
    server = MailServer(parts.scheme, host, port or _PORTS[parts.scheme])
    if env.get(PASSWORD) and server.scheme == "smtp+plain":
        raise InvalidInput("a password would be sent in the clear", where=where, remedy=_FORM)
    return server


def mail_addresses(text: str, *, where: str) -> tuple[str, ...]:
    """One or more, separated by commas."""
    found = tuple(part.strip() for part in text.split(","))
    for each in found:
        name, _, host = each.rpartition("@")
        if not name or not host or "@" in name or not each.isascii() or any(c.isspace() or c in '<>"' for c in each):
            raise InvalidInput(f"'{each}' is no email address", where=where, remedy="write NAME@HOST")
    return found


def send_mail(notice: Notice, addresses: tuple[str, ...], server: MailServer, *, timeout_s: float) -> None:
    """NotTaken unless the server took it for every address."""
    limit = ConversationLimit(timeout_s)
    try:
        with limit, _connected(server, timeout_s, limit) as smtp:
            if user := os.environ.get(USER):
                smtp.login(user, os.environ.get(PASSWORD, ""))
            refused = smtp.send_message(_message(notice, addresses, server))
    except smtplib.SMTPException as error:
        raise NotTaken("no answer in time", again=True) if limit.is_over else _refused(error) from None
    except OSError as error:
        raise unreachable(TimeoutError() if limit.is_over else error) from None
    if refused:
        raise NotTaken(f"it did not take {', '.join(refused)}", again=False, alone=True)


def _message(notice: Notice, addresses: tuple[str, ...], server: MailServer) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = one_line(f"benchwright: {notice.title}")[:_LONGEST_SUBJECT]
    message["From"] = os.environ.get(SENDER) or f"benchwright@{socket.getfqdn()}"
    message["To"] = ", ".join(addresses)
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{notice.identity}@benchwright>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(notice_text(notice))
    return message


def _connected(server: MailServer, timeout_s: float, limit: ConversationLimit) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.scheme == "smtps":
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=timeout_s, context=context)
        limit.watch(smtp)
        return smtp
    smtp = smtplib.SMTP(server.host, server.port, timeout=timeout_s)
    limit.watch(smtp)
    if server.scheme == "smtp":
        try:
            smtp.starttls(context=context)
        except smtplib.SMTPNotSupportedError:
            smtp.close()
            remedy = "use smtp+plain://HOST if that is meant"
            raise NotTaken(f"it offers no encryption; {remedy}", again=False) from None
        except BaseException:
            smtp.close()
            raise
    return smtp


def _refused(error: smtplib.SMTPException) -> NotTaken:
    """What the server says is not shown: some repeat what was sent."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return NotTaken(f"it did not accept the user and password; check ${USER} and ${PASSWORD}", again=False)
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return NotTaken("the connection was cut", again=True)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        what = f"it refused {', '.join(error.recipients)} ({', '.join(map(str, sorted(set(codes))))})"
        return NotTaken(what, again=all(400 <= code < 500 for code in codes), alone=True)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return NotTaken("it takes no password", again=False)
    if isinstance(error, smtplib.SMTPResponseException):
        return NotTaken(f"it answers {error.smtp_code}", again=400 <= error.smtp_code < 500)
    return NotTaken(type(error).__name__, again=False)
