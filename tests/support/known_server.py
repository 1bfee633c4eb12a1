"""An OpenAI-compatible server with known service times, which can also misbehave: what a client says of it can be checked.

    python known_server.py [--port 0] [--first S] [--gap S] [--slots N] [--service const:S|exp:S] [--log FILE] [--key KEY]

It prints its address. The model's name chooses how it behaves: `known`, or `known-NAME` with a name of BEHAVIOURS. Of every request the
log has what really happened, in ns of the machine's monotonic clock, which the client shares.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import selectors
import ssl
import time
from select import select
from typing import Any, TextIO

BEHAVIOURS = {
    "": "answers as asked",
    "bundle": "sends four tokens in each chunk",
    "split": "sends its bytes in pieces that respect nothing",
    "role": "says who speaks first, without any text",
    "more": "claims ten times the tokens",
    "less": "claims one token",
    "nousage": "says nothing about tokens",
    "cut": "closes the connection in the middle",
    "endless": "never stops generating",
    "hang": "takes the request and never answers",
    "minute": "takes a minute for one of them",
    "stall": "stops after the first token",
    "429": "is busy",
    "500": "has an error",
    "wrong": "answers something that is no stream",
    "error": "reports an error within the stream",
    "once": "answers the first request and has errors from then on",
}
MINUTE_FOR = 5  # the check before all others counts
PREFIX_WORDS = 8  # what its cache of prefixes knows a prompt by


class FineSelector(selectors.EpollSelector):
    """epoll rounds up to milliseconds, which would make a sleep of 5.25 ms one of 6; select on its descriptor does not."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            select([self.fileno()], [], [], timeout)
        return super().select(0)


class KnownServer:
    """Serves requests in the order they come, `slots` at a time."""

    def __init__(self, options: argparse.Namespace, log: TextIO | None) -> None:
        self._options = options
        self._log = log
        self._slots = asyncio.Semaphore(options.slots) if options.slots else None
        self._random = random.Random(options.seed)
        self._prefixes: set[str] = set()
        self.running = self.waiting = self.served = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        received = time.perf_counter_ns()
        method, path, _ = first.split(" ")
        if path == "/metrics":
            return await _plain(writer, 200, self._metrics(), "text/plain")
        if self._options.key and headers.get("authorization") != f"Bearer {self._options.key}":
            return await _error(writer, 401, "Incorrect API key provided")
        if method == "GET":
            return await _plain(writer, 200, json.dumps({"data": [{"id": "known"}]}))
        asked = json.loads(body)
        name, _, behaviour = str(asked.get("model")).partition("-")
        if name != "known" or behaviour not in BEHAVIOURS:
            return await _error(writer, 404, f"The model `{asked.get('model')}` does not exist.")
        return await self._generate(writer, asked, behaviour, path.endswith("/chat/completions"), headers, received)

    def _metrics(self) -> str:
        return (
            f'vllm:num_requests_running{{model_name="known"}} {self.running}.0\n'
            f'vllm:num_requests_waiting{{model_name="known"}} {self.waiting}.0\n'
            f'vllm:kv_cache_usage_perc{{model_name="known"}} {min(1.0, self.running / 10)}\n'
        )

    async def _generate(
        self,
        writer: asyncio.StreamWriter,
        asked: dict[str, Any],
        behaviour: str,
        chat: bool,
        headers: dict[str, str],
        received: int,
    ) -> bool:
        self.served += 1
        if behaviour == "429":
            return await _error(writer, 429, "Rate limit reached")
        if behaviour == "500" or (behaviour == "once" and self.served > 1):
            return await _error(writer, 500, "engine died")
        if behaviour == "hang":
            await asyncio.sleep(3600)
        if behaviour == "minute" and self.served == MINUTE_FOR:
            await asyncio.sleep(60)
        if behaviour == "wrong":
            return await _plain(writer, 200, "<html>hello</html>", "text/html")
        kind, _, mean = self._options.service.partition(":")
        service_s = self._random.expovariate(1 / float(mean)) if kind == "exp" else float(mean)
        if self._slots is not None:
            self.waiting += 1
            await self._slots.acquire()
            self.waiting -= 1
        self.running += 1
        try:
            started = time.perf_counter_ns()
            await asyncio.sleep(max(0.0, service_s + self._options.first))
            sent = await _Stream(writer, asked, behaviour, chat, self._options).run(self._cached(asked))
            sent["released"] = time.perf_counter_ns()
        finally:
            self.running -= 1
            if self._slots is not None:
                self._slots.release()
        if self._log is not None:
            told = {"id": headers.get("x-request-id"), "received": received, "started": started, "service_s": service_s}
            self._log.write(json.dumps({**told, **sent}) + "\n")
        return behaviour not in ("cut", "stall")

    def _cached(self, asked: dict[str, Any]) -> int:
        words = " ".join(_prompt(asked).split()[:PREFIX_WORDS])
        known = words in self._prefixes
        self._prefixes.add(words)
        return PREFIX_WORDS if known else 0


class _Stream:
    """The answer to one request."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        asked: dict[str, Any],
        behaviour: str,
        chat: bool,
        options: argparse.Namespace,
    ) -> None:
        self._writer, self._asked, self._behaviour, self._chat = writer, asked, behaviour, chat
        self._gap_s: float = options.gap
        self._tokens = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)

    async def run(self, cached: int) -> dict[str, Any]:
        await self._send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", raw=True
        )
        if self._behaviour == "role":
            await self._send(_event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}))
            await asyncio.sleep(self._gap_s)
        each = 4 if self._behaviour == "bundle" else 1
        stamps: list[int] = []
        done = 0
        while done < self._tokens or self._behaviour == "endless":
            if stamps:
                await asyncio.sleep(self._gap_s)
            if done and self._behaviour == "stall":
                await asyncio.sleep(3600)
            if done >= self._tokens // 2 and self._behaviour == "cut":
                self._writer.close()
                break
            if done and self._behaviour == "error":
                await self._send(_event({"error": {"message": "engine died"}}))
            now = min(each, self._tokens - done) if self._behaviour != "endless" else 1
            stamps.append(time.perf_counter_ns())
            await self._send(_event({"choices": [self._choice(" word" * now)]}))
            done += now
        if self._behaviour != "cut":
            await self._end(done, cached)
        return {"stamps": stamps, "tokens": done, "prompt_tokens": len(_prompt(self._asked).split())}

    async def _end(self, done: int, cached: int) -> None:
        claimed = {"more": done * 10, "less": 1}.get(self._behaviour, done)
        if self._behaviour != "nousage" and (self._asked.get("stream_options") or {}).get("include_usage"):
            prompt = len(_prompt(self._asked).split())
            usage = {"prompt_tokens": prompt, "completion_tokens": claimed, "total_tokens": prompt + claimed}
            await self._send(
                _event({"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": cached}}})
            )
        await self._send(b"data: [DONE]\n\n")
        await self._send(b"0\r\n\r\n", raw=True)

    def _choice(self, text: str) -> dict[str, Any]:
        return {"index": 0, "delta": {"content": text}} if self._chat else {"index": 0, "text": text}

    async def _send(self, data: bytes, raw: bool = False) -> None:
        whole = data if raw else b"%x\r\n%s\r\n" % (len(data), data)
        pieces = [whole[i : i + 7] for i in range(0, len(whole), 7)] if self._behaviour == "split" else [whole]
        for piece in pieces:
            self._writer.write(piece)
            if len(pieces) > 1:
                await asyncio.sleep(0)
        await self._writer.drain()


def _event(body: dict[str, Any]) -> bytes:
    plain = any("text" in choice for choice in body.get("choices", ()))
    kind = "text_completion" if plain else "chat.completion.chunk"  # aiperf reads no other
    return f"data: {json.dumps({'object': kind, **body})}\n\n".encode()


def _prompt(asked: dict[str, Any]) -> str:
    contents = [asked.get("prompt") or "", *(m["content"] for m in asked.get("messages", []))]
    texts = [c if isinstance(c, str) else " ".join(part.get("text", "") for part in c) for c in contents]
    return " ".join(filter(None, texts))


async def _plain(writer: asyncio.StreamWriter, status: int, text: str, kind: str = "application/json") -> bool:
    body = text.encode()
    head = f"HTTP/1.1 {status} Told\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return True


async def _error(writer: asyncio.StreamWriter, status: int, text: str) -> bool:
    return await _plain(writer, status, json.dumps({"error": {"message": text}}))


async def serve(options: argparse.Namespace) -> None:
    log = open(options.log, "a", buffering=1) if options.log else None  # noqa: SIM115
    context = None
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate)
    known = KnownServer(options, log)
    server = await asyncio.start_server(known.connected, "127.0.0.1", options.port, ssl=context, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    print(f"{'https' if context else 'http'}://127.0.0.1:{port}/v1", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first", type=float, default=0.01, help="seconds to the first token")
    parser.add_argument("--gap", type=float, default=0.002, help="seconds between tokens")
    parser.add_argument("--slots", type=int, default=0, help="requests at a time; 0: all")
    parser.add_argument("--service", default="const:0", help="seconds before --first, while a slot is held")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", help="file for what really happened")
    parser.add_argument("--key", help="the only key that is let in")
    parser.add_argument("--certificate", help="file with certificate and key, for https")
    parser.add_argument("--core", type=int, help="the only core to use")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(FineSelector())) as runner:
        runner.run(serve(options))


if __name__ == "__main__":
    main()
