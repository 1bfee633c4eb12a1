"""The columns of whole generations in the table of a model."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.kinds.models.gathering.generations import FIRST_TOKEN, PER_TOKEN, TOKENS, TOKENS_UNIT
from benchwright.kinds.models.report.rows import ModelRow
from benchwright.report.text.numbers import format_number, format_value

GENERATION_HINTS = {
    "tokens_per_s": "new tokens of all sequences over the time of the whole generation",
    "first_token_ms": "from the call of generate to the end of the model's first call",
    "per_token_ms": "of each further token of the longest sequence",
}


def generation_cells(row: ModelRow) -> dict[str, object]:
    """By the names of CSV."""
    tokens, first, further = map(row.figure, (TOKENS, FIRST_TOKEN, PER_TOKEN))
    return {
        "tokens_per_s": None if tokens is None else tokens.value,
        "first_token_ms": None if first is None else first.value * 1e3,
        "per_token_ms": None if further is None else further.value * 1e3,
    }


def _tokens(row: ModelRow) -> str:
    figure = row.figure(TOKENS)
    return "" if figure is None else format_number(figure.value)


def _seconds_of(metric: str) -> Callable[[ModelRow], str]:
    def words(row: ModelRow) -> str:
        figure = row.figure(metric)
        return "" if figure is None else format_value(figure.value, figure.unit)

    return words


# Title, priority where room is short, text.
GENERATION_FIELDS: dict[str, tuple[str, int, Callable[[ModelRow], str]]] = {
    "tokens_per_s": (TOKENS_UNIT, 1, _tokens),
    "first_token_ms": ("first token", 2, _seconds_of(FIRST_TOKEN)),
    "per_token_ms": ("per token", 2, _seconds_of(PER_TOKEN)),
}
