"""Damaged files: what disks, editors, other programs and people make of a file. The same seed makes the same damage."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

Damage = Callable[[random.Random, bytes], bytes]

HUGE = 10**400
_ODD_TOKENS = [
    *("null", "true", "false", "0", "-1", "1", "-0.0", "0.5", "1e308", "-1e308", "1e-320", "1e999", "-1e999"),
    *("NaN", "Infinity", "-Infinity", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *(str(HUGE), str(-HUGE), "1" + "0" * 5000, "2147483648", "1000000000", "0.1e1"),
    *('""', '"\\ud800"', '"\\udfff\\u0000"', '"nan"', '"x"', '"ok"', '"../../x"', '"\\u001b[31m"', '"' + "y" * 70000 + '"'),
    *("[]", "{}", "[[]]", "[null]", '["x"]', "[1,2,3]", '{"a":1}', "[1e999]", "[" * 3000 + "]" * 3000),
    *('{"a":' * 2000 + "1" + "}" * 2000, '"2026-13-45T99:99:99"', '"9999-12-31T23:59:59+00:00"', '"0001-01-01T00:00:00"'),
]  # fmt: skip
_ODD_BYTES = [
    b"\xff",
    b"\x00",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\xf4\x90\x80\x80",
    b"\r",
    b"\x1b[2J",
    b"NaN",
]


def _flip(r: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(r.choice([1, 1, 1, 4, 30])):
        changed[r.randrange(len(changed))] ^= 1 << r.randrange(8)
    return bytes(changed)


def _put(r: random.Random, content: bytes) -> bytes:
    at, odd = r.randrange(len(content)), r.choice(_ODD_BYTES)
    return content[:at] + odd + content[at + (len(odd) if r.random() < 0.5 else 0) :]


def _cut(r: random.Random, content: bytes) -> bytes:
    at = r.randrange(len(content))
    return content[:at] + content[at + r.choice([1, 1, 2, 10, 100, 5000]) :]


def _truncate(r: random.Random, content: bytes) -> bytes:
    return content[: r.randrange(len(content))]


def _repeat(r: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = r.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def _swap(r: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    a, b = r.randrange(len(lines)), r.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _drop_line(r: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[r.randrange(len(lines))]
    return b"".join(lines)


def _noise(r: random.Random, content: bytes) -> bytes:
    return r.randbytes(r.choice([1, 10, 1000]))


def _append(r: random.Random, content: bytes) -> bytes:
    return content + r.choice(
        [b"{", b"\xff\xfe", b"x" * 1000, b"\n\n\n", b'{"event":"end"}\n', b"[]\n", b"{}\n", content]
    )


def _zeros(r: random.Random, content: bytes) -> bytes:
    """What a file system leaves after a power cut."""
    at = r.randrange(len(content))
    return content[:at] + b"\0" * (len(content) - at)


_ANYTHING: list[Damage] = [
    _flip,
    _flip,
    _put,
    _put,
    _cut,
    _truncate,
    _repeat,
    _swap,
    _drop_line,
    _noise,
    _append,
    _zeros,
]
_ANYTHING += [lambda r, c: b"", lambda r, c: b"null", lambda r, c: b"[]", lambda r, c: b"{}", lambda r, c: b'"x"']


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [p for k, v in value.items() for p in _places(v, (*path, k))]
    if isinstance(value, list):
        return found + [p for k, v in list(enumerate(value))[:40] for p in _places(v, (*path, k))]
    return found


def damaged_json(r: random.Random, text: str) -> str:
    """One value of a JSON document replaced by something odd, or a key gone, renamed or there twice."""
    body = json.loads(text)
    places = _places(body)
    if not places:
        return r.choice(_ODD_TOKENS)
    *way, last = r.choice(places)
    parent = body
    for step in way:
        parent = parent[step]
    kind = r.random()
    if kind < 0.12:
        del parent[last]
    elif kind < 0.18 and isinstance(parent, dict):
        parent[r.choice(["", "x", "\ud800", "event", "t", "version"])] = parent.pop(last)
    elif kind < 0.24:
        parent[last] = [parent[last]]
    elif kind < 0.30:
        parent[last] = {"value": parent[last]}
    else:
        mark = "@@mutant@@"
        parent[last] = mark
        return json.dumps(body).replace(json.dumps(mark), r.choice(_ODD_TOKENS))
    return json.dumps(body)


def _json_document(r: random.Random, content: bytes) -> bytes:
    return damaged_json(r, content.decode()).encode("utf-8", "surrogatepass")


def _json_line(r: random.Random, content: bytes) -> bytes:
    lines = content.splitlines()
    at = r.randrange(len(lines))
    lines[at] = damaged_json(r, lines[at].decode()).encode("utf-8", "surrogatepass")
    return b"\n".join(lines) + b"\n"


def damaged(r: random.Random, content: bytes, kind: str) -> bytes:
    """`kind`: json, lines (of JSON) or bytes."""
    if kind == "json" and r.random() < 0.7:
        return _json_document(r, content)
    if kind == "lines" and r.random() < 0.7:
        return _json_line(r, content)
    return r.choice(_ANYTHING)(r, content or b"x")


def gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "x").write_text("x")


# In place of the file. A reader that takes a pipe or an endless device for a file never ends.
STRANGE: dict[str, Callable[[Path], None]] = {
    "gone": lambda path: None,
    "a folder": _folder,
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "unreadable": lambda path: path.touch(mode=0),
}


def mutate(r: random.Random, path: Path, kind: str, *, strange: bool = True) -> str:
    """Damages the file in its place; what was done, for the message of a failing test.

    `strange`: it may become something else than a file.
    """
    content = path.read_bytes()
    if strange and r.random() < 0.06:
        what = r.choice(sorted(STRANGE))
        gone(path)
        STRANGE[what](path)
        return what
    path.write_bytes(changed := damaged(r, content, kind))
    return f"{len(content)} → {len(changed)} bytes"
