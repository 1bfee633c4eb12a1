"""The requests of a workload: the same seed gives the same bytes, whichever process sends them, but for a launch's salt."""

from __future__ import annotations

import hashlib
import json
import random
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from benchload.settings import CHAT, OFFLINE, POISSON, TRACE, Settings, WrongSetting

# Short common words: one token each for nearly every tokenizer. The server's `usage` says how many they really were.
WORDS = (
    "the of and to in is you that it he was for on are as with his they at be this have from or one had by word but not "
    "what all were we when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way could people my "
    "than first water been call who oil its now find long down day did get come made may part"
).split()
SALT_WORDS = 4
_DIGESTED = 64  # requests
_MOST_BYTES = 256 << 20  # of a file of requests


class Length(NamedTuple):
    """A number of tokens: `low` to `high`, each as likely; or, with `spread`, Gaussian around `low`."""

    low: int
    high: int
    spread: float = 0.0

    def draw(self, source: random.Random) -> int:
        if self.spread:
            return max(1, round(source.gauss(self.low, self.spread)))
        return source.randint(self.low, self.high)


class Question(NamedTuple):
    """One request: its messages or prompt, and the most tokens to answer with; `at_s`: when it came, in a trace."""

    text: str
    messages: Optional[List[Dict[str, Any]]]
    tokens: int
    at_s: Optional[float] = None


def _length(text: str) -> Length:
    found = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})|~(\d{1,7}))?", text)
    if found is not None:
        low = int(found[1])
        length = Length(low, int(found[2] or low), float(found[3] or 0))
        if 1 <= length.low <= length.high:
            return length
    raise WrongSetting(f"'{text}' is not a length; write 256, 128-512 (uniform) or 256~64 (Gaussian)", "--workload")


class RandomWords:
    """`random:in=256,out=64,prefix=0.5`: random words; `prefix` of each prompt is the same in all."""

    def __init__(self, text: str, seed: int) -> None:
        given = dict(part.partition("=")[::2] for part in text.split(",") if part)
        unknown = given.keys() - {"in", "out", "prefix"}
        if unknown:
            raise WrongSetting(
                f"'{sorted(unknown)[0]}' is not part of a random workload: in, out, prefix", "--workload"
            )
        self._in, self._out = _length(given.get("in", "256")), _length(given.get("out", "64"))
        try:
            self._prefix = float(given.get("prefix", "0"))
        except ValueError:
            self._prefix = -1.0
        if not 0 <= self._prefix <= 1:
            raise WrongSetting(f"prefix={given['prefix']} is not a share from 0 to 1", "--workload")
        self._seed = seed
        longest = int(max(self._in.high, self._in.low + 6 * self._in.spread))
        self._shared = random.Random(f"{seed}/prefix").choices(WORDS, k=longest) if self._prefix else []

    def question(self, index: int, lengths: Optional[List[int]] = None) -> Question:
        source = random.Random(f"{self._seed}/{index}")
        words, tokens = self._in.draw(source), self._out.draw(source)
        if lengths is not None:
            words, tokens = lengths
        shared = self._shared[: round(words * self._prefix)]
        return Question(" ".join([*shared, *source.choices(WORDS, k=max(0, words - len(shared)))]), None, tokens)

    times_s: Optional[List[float]] = None


class FileOfRequests:
    """A line of JSON for each request: `prompt` or `messages`, or `input_length`; `max_tokens` or `output_length`; of a trace also
    `at` in seconds or `timestamp` in milliseconds. After the last line it begins again."""

    def __init__(self, path: str, seed: int) -> None:
        self._filler = RandomWords("", seed)
        self._questions: List[Question] = []
        try:
            with open(path, "rb") as file:
                content = file.read(_MOST_BYTES)
        except OSError as error:
            raise WrongSetting(f"{path}: {error.strerror}", "--workload") from None
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                self._questions.append(self._read(line, f"{path}:{number}", len(self._questions)))
        if not self._questions:
            raise WrongSetting(f"{path} has no requests", "--workload")
        times = [q.at_s for q in self._questions]
        known = [t for t in times if t is not None]
        if len(known) == len(times):
            first = min(known)
            self._questions = sorted((q._replace(at_s=(q.at_s or 0.0) - first) for q in self._questions), key=_when)
            self.times_s: Optional[List[float]] = [_when(q) for q in self._questions]
        else:
            self.times_s = None

    def _read(self, line: bytes, where: str, index: int) -> Question:
        try:
            body = json.loads(line)
            tokens = int(body.get("max_tokens") or body.get("output_length") or body.get("output_tokens") or 64)
            at = body.get("at")
            at_s = float(at) if at is not None else body["timestamp"] / 1000 if "timestamp" in body else None
            messages = body.get("messages")
            if "input_length" in body and "prompt" not in body and messages is None:
                made = self._filler.question(index, [int(body["input_length"]), tokens])
                return made._replace(at_s=at_s)
            text = body.get("prompt") or body.get("text") or ""
            if not (isinstance(text, str) and (text or messages)) or tokens < 1:
                raise ValueError("no prompt")
            return Question(text, messages, tokens, at_s)
        except (ValueError, TypeError, AttributeError):
            remedy = 'write {"prompt": "…", "max_tokens": 64} on each line'
            raise WrongSetting(f"{where} is not a request; {remedy}", "--workload") from None

    def question(self, index: int) -> Question:
        return self._questions[index % len(self._questions)]


def _when(question: Question) -> float:
    return question.at_s or 0.0


class Workload:
    """Makes the requests of a launch. `salt`: words before every prompt, so that no cache of prefixes knows it from another launch."""

    def __init__(self, settings: Settings, salt: str = "") -> None:
        kind, _, rest = settings.workload.partition(":")
        self._settings = settings
        self._source = (
            RandomWords(rest, settings.seed) if kind == "random" else FileOfRequests(settings.workload, settings.seed)
        )
        self._salt = salt
        self.times_s = self._source.times_s
        if settings.load.kind == TRACE and self.times_s is None:
            raise WrongSetting("a trace needs a file in which every request has a time", "--load")

    def question(self, index: int) -> Question:
        return self._source.question(index)

    def body(self, index: int) -> bytes:
        """Of the request."""
        settings, asked = self._settings, self.question(index)
        body: Dict[str, Any] = {"model": settings.model}
        text = f"{self._salt} {asked.text}" if self._salt else asked.text
        if settings.api == CHAT:
            messages = asked.messages or [{"role": "user", "content": text}]
            if asked.messages and self._salt:
                messages = [{"role": "system", "content": self._salt}, *messages]
            body["messages"] = messages
        else:
            body["prompt"] = text
        body |= {"max_tokens": asked.tokens, "temperature": 0, "stream": True}
        body["stream_options"] = {"include_usage": True}
        body |= settings.extra_body
        return json.dumps({key: value for key, value in body.items() if value is not None}).encode()

    def digest(self) -> str:
        """Of what is asked, without salt, and of when."""
        found, unsalted = hashlib.sha256(str(self._settings.load).encode()), Workload(self._settings)
        for index in range(_DIGESTED):
            found.update(unsalted.body(index))
        for time_s in self.times_s or ():
            found.update(b"%d" % round(time_s * 1e6))
        return found.hexdigest()[:16]


def fresh_salt() -> str:
    return " ".join(random.SystemRandom().choices(WORDS, k=SALT_WORDS))


def arrivals_s(
    settings: Settings, workload: Workload, requests: Optional[int], seconds: Optional[float]
) -> List[float]:
    """When requests are planned, in seconds from the start: so many, or for so long. Of an open load, or an offline one."""
    load, times = settings.load, workload.times_s
    if load.kind == OFFLINE:
        return [0.0] * (requests or 0)
    if load.kind == TRACE and times is not None:
        chosen = times if requests is None else times[:requests]
        return [t for t in chosen if seconds is None or t < seconds]
    found: List[float] = []
    for time_s in _times(load.kind, load.number, settings.seed):
        if (requests is not None and len(found) >= requests) or (seconds is not None and time_s >= seconds):
            break
        found.append(time_s)
    return found


def _times(kind: str, rate: float, seed: int) -> Iterator[float]:
    source, time_s = random.Random(f"{seed}/arrivals"), 0.0
    while True:
        yield time_s
        time_s += source.expovariate(rate) if kind == POISSON else 1 / rate
