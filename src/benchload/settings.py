"""The command line of the client, which is also how a benchmark of an endpoint is written down: every setting is one of its words."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple
from urllib.parse import urlsplit

OPEN, CLOSED, OFFLINE = "open", "closed", "offline"
POISSON, CONSTANT, TRACE, USERS = "poisson", "constant", "trace", "users"
CHAT, COMPLETIONS = "chat", "completions"
KEY_VARIABLE = "OPENAI_API_KEY"
USUAL_REQUESTS = 200
USUAL_WORKLOAD = "random:in=256,out=64"
FIRST_TOKEN, PER_TOKEN, WHOLE = "ttft", "tpot", "e2e"
_UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0}


class Load(NamedTuple):
    """How requests are issued. `kind`: poisson or constant (`number` a second), trace, users (`number` at a time) or offline."""

    kind: str
    number: float = 0.0

    @property
    def loop(self) -> str:
        """Open: requests come at planned times. Closed: each user waits for an answer before asking again."""
        return {USERS: CLOSED, OFFLINE: OFFLINE}.get(self.kind, OPEN)

    def __str__(self) -> str:
        if self.kind in (POISSON, CONSTANT):
            return f"{self.kind}:{self.number:g}"
        return f"{self.kind}:{int(self.number)}" if self.kind == USERS else self.kind

    @property
    def words(self) -> str:
        """`8 users`, `10/s poisson`."""
        if self.kind == USERS:
            return f"{int(self.number)} user{'' if self.number == 1 else 's'}"
        return f"{self.number:g}/s {self.kind}" if self.number else self.kind


class Objective(NamedTuple):
    """Limits that a request has to meet, in seconds, and the share of requests that have to meet them."""

    limits: Tuple[Tuple[str, float], ...]
    share: float = 0.9

    def met(self, times: Dict[str, Optional[float]]) -> bool:
        """Whether a request with these times meets it. A time that a request does not have (of a single token) counts as met."""
        return all((found := times.get(name)) is None or found <= limit for name, limit in self.limits)

    def __str__(self) -> str:
        limits = ",".join(f"{name}={limit * 1000:g}ms" for name, limit in self.limits)
        return f"{limits}@p{self.share * 100:g}"


class Address(NamedTuple):
    """Where the API is: `path` ends in /v1."""

    tls: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.tls else 80) else f"{name}:{self.port}"


class Settings(NamedTuple):
    """One launch of the client."""

    url: str
    model: str
    api: str = CHAT
    load: Load = Load(POISSON, 1.0)
    requests: Optional[int] = None
    seconds: Optional[float] = None
    workload: str = USUAL_WORKLOAD
    seed: int = 0
    digest: Optional[str] = None
    salt: Optional[str] = None  # None: another one in each launch; empty: none
    key_from: str = KEY_VARIABLE
    processes: int = 1
    extra_body: Dict[str, Any] = {}
    request_timeout_s: float = 600.0
    limit_s: Optional[float] = None  # of the whole launch: requests that are unfinished then have timed out
    objective: Optional[Objective] = None
    sweep: bool = False

    @property
    def address(self) -> Address:
        return parse_url(self.url)


class WrongSetting(ValueError):
    """A mistake on the command line, and the option it is about."""

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


def parse_url(text: str) -> Address:
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise WrongSetting(f"'{text}' is not an address; write http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise WrongSetting(f"'{parts.hostname}': a key does not belong into the address; see --key-from")
    tls = parts.scheme == "https"
    return Address(tls, parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"))


def parse_load(text: str) -> Load:
    """`10` or `poisson:10` (requests a second), `constant:10`, `users:8`, `trace` or `offline`."""
    kind, colon, number = text.strip().partition(":")
    if not colon and re.fullmatch(r"[\d.]+(/s)?", kind):
        kind, number = POISSON, kind
    if kind in (TRACE, OFFLINE) and not number:
        return Load(kind)
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(/s)?", number)
    if kind not in (POISSON, CONSTANT, USERS) or found is None or not 0 < float(found[1]) <= 1e6:
        raise WrongSetting(f"'{text}' is not a load; write 10/s, constant:10/s, users:8, trace or offline", "--load")
    if kind == USERS and (found[2] or float(found[1]) != int(float(found[1]))):
        raise WrongSetting(f"'{number}' is not a number of users", "--load")
    return Load(kind, float(found[1]))


def parse_objective(text: str) -> Objective:
    """`ttft=500ms,tpot=50ms@p90`."""
    limits_text, at, share = text.strip().partition("@")
    percent = re.fullmatch(r"p(\d{1,2}(?:\.\d+)?)", share) if at else None
    limits: Dict[str, float] = {}
    for part in limits_text.split(","):
        found = re.fullmatch(r"\s*(ttft|tpot|e2e)\s*=\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|)\s*", part)
        if found is None or found[1] in limits or float(found[2]) <= 0:
            raise WrongSetting(f"'{text}' is not an objective; write ttft=500ms,tpot=50ms@p90", "--slo")
        limits[found[1]] = float(found[2]) * _UNITS[found[3]]
    if at and (percent is None or float(percent[1]) <= 0):
        raise WrongSetting(f"'@{share}' is not a percentile; write @p90", "--slo")
    return Objective(tuple(limits.items()), float(percent[1]) / 100 if percent else 0.9)


def _body(text: str) -> Dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise WrongSetting(f"'{text}' is not a JSON object", "--extra-body")
    return found


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongSetting(message)


def parse(words: Sequence[str]) -> Settings:
    """WrongSetting says what is wrong."""
    parser = _Words(prog="python -m benchload", add_help=False, allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("--model", required=True)
    parser.add_argument("--api", choices=(CHAT, COMPLETIONS), default=CHAT)
    parser.add_argument("--load", default="1")
    parser.add_argument("--requests", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--workload", default=USUAL_WORKLOAD)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--digest")
    parser.add_argument("--salt")
    parser.add_argument("--key-from", default=KEY_VARIABLE)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--extra-body", default="{}")
    parser.add_argument("--request-timeout", type=float, default=600.0)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--slo")
    parser.add_argument("--sweep", action="store_true")
    given = parser.parse_args(list(words))
    settings = Settings(
        url=given.url,
        model=given.model,
        api=given.api,
        load=parse_load(given.load),
        requests=given.requests,
        seconds=given.seconds,
        workload=given.workload,
        seed=given.seed,
        digest=given.digest,
        salt=given.salt,
        key_from=given.key_from,
        processes=given.processes,
        extra_body=_body(given.extra_body),
        request_timeout_s=given.request_timeout,
        limit_s=given.limit,
        objective=None if given.slo is None else parse_objective(given.slo),
        sweep=given.sweep,
    )
    return checked(settings)


def checked(settings: Settings) -> Settings:
    """`settings` themselves; WrongSetting if they do not go together."""
    parse_url(settings.url)
    for name, value, least in (("--requests", settings.requests, 1), ("--processes", settings.processes, 1)):
        if value is not None and value < least:
            raise WrongSetting(f"{value} is too few", name)
    times = (settings.seconds, settings.request_timeout_s, settings.limit_s)
    for name, seconds in zip(("--seconds", "--request-timeout", "--limit"), times):
        if seconds is not None and not 0 < seconds < 1e7:
            raise WrongSetting(f"{seconds:g} seconds make no sense", name)
    if settings.requests is not None and settings.seconds is not None:
        raise WrongSetting("give requests or seconds, not both", "--requests")
    if settings.sweep and (settings.objective is None or settings.load.kind not in (POISSON, CONSTANT)):
        raise WrongSetting(
            "a sweep of rates needs --slo, such as ttft=500ms,tpot=50ms@p90, and an open load", "--sweep"
        )
    if settings.load.kind == OFFLINE and settings.seconds is not None:
        raise WrongSetting("an offline load is a number of requests, not a time", "--load")
    return settings


def words_of(settings: Settings) -> List[str]:
    """The command line that `parse` reads as `settings`; what is as usual is left out."""
    words = [settings.url, "--model", settings.model, "--load", str(settings.load)]
    usual = Settings(url="", model="")
    plain = ("api", "requests", "seconds", "workload", "seed", "digest", "salt", "key_from", "processes")
    for name in plain:
        value = getattr(settings, name)
        if value is not None and value != getattr(usual, name):
            words += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    if settings.extra_body:
        words += ["--extra-body", json.dumps(settings.extra_body, sort_keys=True)]
    if settings.request_timeout_s != usual.request_timeout_s:
        words += ["--request-timeout", f"{settings.request_timeout_s:g}"]
    if settings.limit_s is not None:
        words += ["--limit", f"{settings.limit_s:g}"]
    if settings.objective is not None:
        words += ["--slo", str(settings.objective)]
    return [*words, "--sweep"] if settings.sweep else words
