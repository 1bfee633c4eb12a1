"""A small mail server (RFC 5321) that takes messages, offers STARTTLS and PLAIN, and can be told to misbehave."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path


class MailReceiver(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, certificate: Path | None, *, implicit: bool, login: tuple[str, str] | None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.messages: list[EmailMessage] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.encrypted: list[bool] = []
        self.conversations = 0
        self.refusals: list[str] = []  # of DATA, one for each message in turn, such as "451 later"
        self.implicit, self.login = implicit, login
        self.context: ssl.SSLContext | None = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Conversation(socketserver.StreamRequestHandler):
    server: MailReceiver

    def handle(self) -> None:
        self.server.conversations += 1
        self.secure = False
        with suppress(OSError, ssl.SSLError):
            if self.server.implicit:
                self._encrypt()
            self._say("220 ready")
            self._sender, self._recipients, self._known = "", list[str](), self.server.login is None
            while line := self.rfile.readline().decode().strip():
                if not self._answer(line):
                    return

    def _answer(self, line: str) -> bool:
        verb, _, rest = line.partition(" ")
        verb = verb.upper()
        if verb == "EHLO":
            offers = ["STARTTLS"] if self.server.context and not self.secure else []
            offers += ["AUTH PLAIN"] if self.server.login else []
            for number, offer in enumerate(["here", *offers]):
                self._say(f"250{' ' if number == len(offers) else '-'}{offer}")
        elif verb == "STARTTLS":
            self._say("220 go")
            self._encrypt()
        elif verb == "AUTH":
            _, user, password = base64.b64decode(rest.partition(" ")[2]).decode().split("\0")
            self._known = (user, password) == self.server.login
            self._say("235 welcome" if self._known else f"535 no, {user} {password}")
        elif verb == "MAIL":
            self._sender = rest
            self._say("250 fine" if self._known else "530 who are you?")
        elif verb == "RCPT":
            unknown = "nobody@" in rest
            self._recipients += [] if unknown else [rest.partition("<")[2].partition(">")[0]]
            self._say("550 unknown" if unknown else "250 fine")
        elif verb == "DATA":
            self._take()
        else:
            self._say("221 bye" if verb == "QUIT" else "250 fine")
        return verb != "QUIT"

    def _take(self) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        if self.server.refusals:
            self._say(self.server.refusals.pop(0))
            return
        self.server.envelopes.append((self._sender, self._recipients))
        self.server.encrypted.append(self.secure)
        self.server.messages.append(message_from_bytes(b"".join(lines), policy=policy.default))
        self._say("250 taken")

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # which `_encrypt` may have put in the place of the server's

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def _encrypt(self) -> None:
        assert self.server.context is not None
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
        self.secure = True


@contextmanager
def mail_receiver(
    certificate: Path | None = None, *, implicit: bool = False, login: tuple[str, str] | None = None
) -> Iterator[MailReceiver]:
    with MailReceiver(certificate, implicit=implicit, login=login) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
