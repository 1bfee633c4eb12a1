"""HTML that cannot be broken by what it holds: every text is escaped unless it is already Html."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any

_VOID = frozenset(("meta", "input", "br", "link", "col"))
# What a parser would drop or refuse, what UTF-8 cannot hold, and what turns the direction of the text around it.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def clean(text: str) -> str:
    """`text` without the characters that have no place in a page; each is shown as �."""
    return _UNSAFE.sub("�", text)


@lru_cache(maxsize=4096)
def _escaped(text: str) -> Html:
    """Most texts of a table come many times."""
    return Html(escape(clean(text)))


def html(content: object) -> Html:
    """What `content` looks like inside an element."""
    return content if isinstance(content, Html) else _escaped(str(content))


def element(kind: str, /, *children: object, **attributes: object) -> Html:
    """`<kind …>children</kind>`. `class_` and `for_` lose their underscore, others turn into dashes; None and False
    leave a child or an attribute out, True is an attribute without a value."""
    words = [kind]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        words.append(label if value is True else f'{label}="{_escaped(str(value))}"')
    if kind in _VOID:
        return Html(f"<{' '.join(words)}>")
    inner = "".join(html(child) for child in children if child is not None and child is not False)
    return Html(f"<{' '.join(words)}>{inner}</{kind}>")


def together(parts: Iterable[object], between: str = "") -> Html:
    """The parts one after the other."""
    return Html(html(between).join(html(part) for part in parts if part is not None and part is not False))


def data_block(identifier: str, body: Any) -> Html:
    """JSON for the page's own script. `<` is written so that no text can end the block."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    safe = clean(text).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Html(f'<script type="application/json" id="{identifier}">{safe}</script>')
