"""What every extractor must do; a new one is one more parameter here."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import pytest
from plugin_package import variants

from benchwright.agent.extractors.base import Block, Extractor
from benchwright.agent.extractors.registry import EXTRACTORS
from benchwright.core.errors import InvalidInput


class Variant(msgspec.Struct, frozen=True):
    """A kind, the text that asks for the metric, and how a program prints one value of it."""

    kind: str
    pattern: str
    line: Callable[[str], str]


VARIANTS = [
    Variant("regex", r"loss is (\S+) now", lambda value: f"at step 7 loss is {value} now"),
    Variant("json", "train.loss", lambda value: f'INFO: {{"train": {{"loss": {value}}}, "step": 7}}'),
    Variant("table", "loss", lambda value: f"| loss | {value} |"),
    Variant("key_value", "loss", lambda value: f"step: 7 val_loss=99 loss={value} lr=0.1"),
]


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.kind)
def variant(request: pytest.FixtureRequest, plugins: None) -> Variant:
    chosen: Variant = request.param
    return chosen


@pytest.fixture
def extractor(variant: Variant) -> Extractor:
    return EXTRACTORS.load(variant.kind)(variant.pattern)


def test_every_built_in_kind_is_held_to_the_contract() -> None:
    assert {variant.kind for variant in VARIANTS} == set(variants(EXTRACTORS))


def test_values_come_in_order_with_their_line_numbers(variant: Variant, extractor: Extractor) -> None:
    log = "\n".join(["hello", variant.line("0.5"), "", variant.line("-2"), "bye", variant.line("1e-4")])
    hits = extractor.scan(Block(log.encode(), first_line=100))
    assert (hits.values, hits.lines, hits.unparsed) == ([0.5, -2.0, 1e-4], [101, 103, 105], 0)


def test_a_loss_that_diverged_is_a_value(variant: Variant, extractor: Extractor) -> None:
    hits = extractor.scan(Block(f"{variant.line('NaN')}\n{variant.line('Infinity')}".encode()))
    assert math.isnan(hits.values[0])
    assert hits.values[1:] == [math.inf]


def test_a_match_that_is_no_number_is_counted_and_shown(variant: Variant, extractor: Extractor) -> None:
    text = '"1,234"' if variant.kind == "json" else "1,234"
    hits = extractor.scan(Block(f"{variant.line('3')}\n{variant.line(text)}".encode()))
    assert (hits.values, hits.unparsed) == ([3.0], 1)
    assert [(example.line, example.text) for example in hits.examples] == [(2, "1,234")]


@pytest.mark.parametrize("lines_without", [0, 50], ids=["dense", "sparse"])
def test_a_block_gives_what_its_lines_give_one_by_one(variant: Variant, lines_without: int) -> None:
    text = "".join(f"{variant.line(str(i))}\r\n" + f"noise {i} é\r\n" * lines_without for i in range(300))
    block = Block(text.encode())
    whole = EXTRACTORS.load(variant.kind)(variant.pattern).scan(block)
    single = EXTRACTORS.load(variant.kind)(variant.pattern)
    lines = [single.scan(line) for line in block.single_lines()]
    assert whole.values == [value for hits in lines for value in hits.values] == list(range(300))
    assert whole.lines == [line for hits in lines for line in hits.lines]


def test_parts_of_a_progress_bar_are_lines_with_one_number(variant: Variant, extractor: Extractor) -> None:
    bar = "\r".join(variant.line(str(i)) for i in range(20))
    hits = extractor.scan(Block(f"start\n{bar}\r\n{variant.line('5')}".encode()))
    assert hits.values == [*range(20), 5]
    assert hits.lines == [2] * 20 + [3]


def test_colours_do_not_hide_a_value(variant: Variant, extractor: Extractor) -> None:
    coloured = variant.line("2.5").replace("loss", "\x1b[1;32mlo\x1b[0mss")
    assert extractor.scan(Block(coloured.encode())).values == [2.5]


def test_bytes_that_are_no_text_do_no_harm(variant: Variant, extractor: Extractor) -> None:
    hits = extractor.scan(Block(b"\xff\xfe\x00\n" + variant.line("4").encode() + b"\n{\x00\xc3\n"))
    assert (hits.values, hits.lines) == ([4.0], [2])


def test_nothing_to_look_for_is_an_error_with_a_remedy(variant: Variant) -> None:
    with pytest.raises(InvalidInput, match="; ") as caught:
        EXTRACTORS.load(variant.kind)("")
    assert caught.value.remedy


def test_the_text_to_look_for_is_told_for_the_nearest_lines(extractor: Extractor) -> None:
    assert any("loss" in fragment for fragment in extractor.fragments)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'regex'"):
        EXTRACTORS.load("regexp")
