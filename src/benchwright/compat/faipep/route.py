"""A server for FAI-PEP's remote reporter: POST `{"access_token", "logs"}`, answered by `{"count": N}`.

All messages of one test are one run, in however many requests they come. A run keeps its messages, so that it can be made again
when more of them arrive; one that is sent twice counts once, by its `message_id` or, without one, by all it says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchwright.compat.faipep.importer import runs_of
from benchwright.compat.faipep.record_file import RecordBody, exact_number, shaped_record
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.runs.foreign_json import ForeignFile
from benchwright.server.route import DeliveredRun, FindRun, ForeignPost

_OF_RECORD = ("type", "metric", "unit", "info_string", "message_id")
_NUMBERS = ("time", "commit_time", "control_commit_time")
_COUNTS = ("num_runs", "regressed")
_SUMMARIES = {"control_": "control_summary", "diff_": "diff_summary"}
_KEPT = "messages"  # in the facts of a run's first launch
_MOST_MESSAGES = 10_000
_WHERE = "fai-pep"


class _Log(msgspec.Struct):
    message: str
    category: Any = None


class _Message(msgspec.Struct):
    """One record of one test."""

    normal: dict[str, Any]
    int: dict[str, Any] = {}
    normvector: dict[str, list[Any]] = {}


class FaiPepRoute:
    path = "/fai-pep"

    def read(self, body: bytes) -> ForeignPost:
        sent = _decoded(body, "the request")
        if not isinstance(sent, dict) or not isinstance(sent.get("access_token"), str):
            raise InvalidInput('it has no "access_token"', where=_WHERE, remedy="give --remote_access_token")
        logs = sent.get("logs")
        if isinstance(logs, str):
            logs = _decoded(logs.encode("utf-8", "surrogatepass"), "logs")
        try:
            found = msgspec.convert(logs, list[_Log])
        except msgspec.ValidationError as error:
            raise InvalidInput(f"logs: {error}", where=_WHERE) from None
        if len(found) > _MOST_MESSAGES:
            raise InvalidInput(f"takes at most {_MOST_MESSAGES:,} messages at once", where=_WHERE)
        return ForeignPost(token=sent["access_token"], messages=tuple(log.message for log in found))

    def runs(self, post: ForeignPost, stored: FindRun) -> Sequence[DeliveredRun]:
        tests: dict[str, dict[str, str]] = {}
        for text in map(str, post.messages):
            message = _message(text)
            tests.setdefault(_test_of(message), {})[_identity(message, text)] = text
        return [_run(test, messages, stored) for test, messages in tests.items()]

    def answer(self, post: ForeignPost) -> object:
        return {"count": len(post.messages)}


def _run(test: str, messages: Mapping[str, str], stored: FindRun) -> DeliveredRun:
    known = stored(f"import.{_WHERE}.{test[:16]}")
    every = {**(_kept(known) if known else {}), **messages}
    decoded = [_message(text) for text in every.values()]
    first = decoded[0]
    meta = {key: value for key, value in first.normal.items() if isinstance(value, str) and value}
    when = first.int.get("time")
    records = [_record(message, text) for message, text in zip(decoded, every.values(), strict=True)]
    name = "-".join(filter(None, (meta.get("net_name"), meta.get("identifier")))) or _WHERE
    file = ForeignFile(path=f"{name.replace('/', '_')}.json", body=None, digest=test, changed=0.0)
    found = runs_of(file, meta, when if isinstance(when, int | float) else None, {name: records}, ())
    if not found:
        raise InvalidInput("a test has no values", where=_WHERE)
    run = _with_messages(found[0], every)
    return DeliveredRun(run=run, digest=hashlib.sha256("\0".join(sorted(every)).encode()).hexdigest())


def _with_messages(run: Run, messages: Mapping[str, str]) -> Run:
    replace = msgspec.structs.replace
    result = run.results[0]
    launch = result.launches[0]
    launch = replace(launch, facts={**launch.facts, _KEPT: dict(messages)})
    result = replace(result, launches=(launch, *result.launches[1:]))
    return replace(run, results=(result, *run.results[1:]), folder="")


def _kept(run: Run) -> dict[str, str]:
    facts = run.results[0].launches[0].facts if run.results and run.results[0].launches else {}
    return {str(key): str(text) for key, text in facts.get(_KEPT, {}).items()}


def _message(text: str) -> _Message:
    try:
        return msgspec.convert(_decoded(text.encode("utf-8", "surrogatepass"), "a message"), _Message)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a message: {error}", where=_WHERE) from None


def _test_of(message: _Message) -> str:
    """The same for all records of a test."""
    about = {key: value for key, value in message.normal.items() if key not in _OF_RECORD}
    times = {key: message.int.get(key) for key in _NUMBERS}
    return hashlib.sha256(json.dumps([about, times], sort_keys=True, default=str).encode()).hexdigest()


def _identity(message: _Message, text: str) -> str:
    given = message.normal.get("message_id")
    return given if isinstance(given, str) and given else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _record(message: _Message, text: str) -> RecordBody:
    given: dict[str, Any] = {key: message.normal[key] for key in _OF_RECORD[:-1] if key in message.normal}
    given |= {key: message.int[key] for key in _COUNTS if key in message.int}
    summaries: dict[str, dict[str, Any]] = {}
    for key, value in message.int.items():
        if key not in (*_NUMBERS, *_COUNTS):
            prefix = next((each for each in _SUMMARIES if key.startswith(each)), "")
            summaries.setdefault(_SUMMARIES.get(prefix, "summary"), {})[key.removeprefix(prefix)] = value
    exact = json.loads(text, parse_float=exact_number)
    vectors = exact.get("normvector") or {}
    return shaped_record({**given, **summaries, **message.normvector}, vectors, _WHERE)


def _decoded(text: bytes, what: str) -> Any:
    """Without what no database can keep: NUL and lone surrogates."""
    try:
        return _plain(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidInput(f"{what} is not JSON", where=_WHERE) from None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "�").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {_plain(key): _plain(each) for key, each in value.items()} if isinstance(value, dict) else value
