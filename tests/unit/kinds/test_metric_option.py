"""The --metric option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.core.metric import JSON_LINES, KEY_VALUE, Direction, MetricSpec
from benchwright.kinds.metric_option import check_distinct, parse_metric_option
from benchwright.kinds.unit_guess import guess_unit


def test_a_name_and_a_pattern_are_enough() -> None:
    assert parse_metric_option(r"speed=Speed: ([\d.]+) samples/sec") == MetricSpec(
        name="speed",
        pattern=r"Speed: ([\d.]+) samples/sec",
        unit="samples/s",
        direction=Direction.HIGHER,
        aggregate="median",
    )


def test_unit_direction_and_aggregate_stand_in_brackets_in_any_order() -> None:
    for inside in ("img/s,lower,p90", "p90, lower ,img/s", "unit=img/s,aggregate=p90,direction=lower"):
        spec = parse_metric_option(f"speed[{inside}]=Speed: (.*) x")
        assert (spec.unit, spec.direction, spec.aggregate) == ("img/s", Direction.LOWER, "p90")
        assert spec.pattern == "Speed: (.*) x"


def test_brackets_and_equals_signs_in_the_pattern_belong_to_the_pattern() -> None:
    assert parse_metric_option("acc=accuracy=([0-9]+)[lower]").pattern == "accuracy=([0-9]+)[lower]"
    assert parse_metric_option("acc[last]=[a]=(.)").pattern == "[a]=(.)"


def test_min_is_an_aggregate_unless_it_is_said_to_be_the_unit() -> None:
    assert parse_metric_option("t[min]=x(.)").aggregate == "min"
    assert parse_metric_option("t[unit=min]=x(.)").unit == "min"


@pytest.mark.parametrize(
    ("text", "kind", "pattern"),
    [
        ("loss=json:train.loss", JSON_LINES, "train.loss"),
        ("loss=kv:loss", KEY_VALUE, "loss"),
        ("loss", KEY_VALUE, "loss"),
        ("loss[lower,last]", KEY_VALUE, "loss"),
        ("val/loss", KEY_VALUE, "val/loss"),
    ],
)
def test_json_lines_and_key_value_pairs(text: str, kind: str, pattern: str) -> None:
    spec = parse_metric_option(text)
    assert (spec.kind, spec.pattern, spec.direction) == (kind, pattern, Direction.LOWER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with a name"),
        ("=x", "does not begin with a name"),
        ("[s]=x", "does not begin with a name"),
        (r"Speed: ([\d.]+)", r"write NAME=PATTERN"),
        ("two words", "has no pattern"),
        ("a=", "the pattern of 'a' is empty"),
        ("a=(", r"not a regular expression: missing \), unterminated subpattern \(at character 1\)"),
        ("a=json:", "names no key; write a=json:a"),
        ("a[higer]=x", "did you mean 'higher'.*unit=higer"),
        ("a[averag]=x", "did you mean 'average'"),
        ("a[higher,lower]=x", "gives its direction twice, 'higher' and 'lower'"),
        ("a[ms,s]=x", "gives its unit twice"),
        ("a[p101]=x", "'p101' is not a compute method"),
        ("a[aggregate=foo]=x", "'foo' is not a compute method"),
        ("a[colour=red]=x", "'colour=red' is not an option of a metric"),
        ("a[s=x", "does not begin with a name"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        parse_metric_option(text)
    assert caught.value.where == "--metric"
    assert caught.value.remedy


@given(st.text(max_size=40) | st.text(alphabet="ab[]=(),|*\\+?:pjsonkv90{}", max_size=20))
def test_any_text_is_a_metric_or_the_users_error(text: str) -> None:
    try:
        assert isinstance(parse_metric_option(text), MetricSpec)
    except InvalidInput:
        pass


def test_two_metrics_of_one_name_are_refused() -> None:
    spec = parse_metric_option("loss")
    with pytest.raises(InvalidInput, match="'loss' is given twice"):
        check_distinct((spec, spec))


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        (r"Speed: (\d+\.\d+|\d+) samples/sec", "samples/s"),
        (r"(?:a|b) (?P<x>\d+) images per second", "images/s"),
        (r"took (\d+) milliseconds", "ms"),
        (r"took (\d+)ms", "ms"),
        (r"took ([)\d]+)\s+seconds", "s"),
        (r"acc (\d+)%", "%"),
        (r"mem ((?:\d+)) MiB", "MiB"),
        (r"loss (\d+) steps", None),
        (r"loss=(\d+)", None),
        (r"no group samples/sec", None),
        (r"\(\d+\) ms", None),
        ("(", None),
    ],
)
def test_the_unit_is_told_from_what_follows_the_number(pattern: str, unit: str | None) -> None:
    assert guess_unit(pattern) == unit


@given(st.text(alphabet="()[]\\?P<>:ab ms/^%", max_size=20))
def test_a_unit_can_be_asked_of_any_text(pattern: str) -> None:
    unit = guess_unit(pattern)
    assert unit is None or unit.strip()


def test_a_count_of_percentages_is_no_percentage() -> None:
    assert parse_metric_option(r"done=(\d+)%").unit == "%"
    assert parse_metric_option(r"done[count]=(\d+)%").unit is None
    assert parse_metric_option(r"done[count,unit=bars]=(\d+)%").unit == "bars"


def test_number_in_a_pattern_tells_the_unit_and_refuses_another_group() -> None:
    spec = parse_metric_option("speed=Speed: {number} samples/sec")
    assert (spec.pattern, spec.unit) == ("Speed: {number} samples/sec", "samples/s")
    with pytest.raises(InvalidInput, match=r"another group; write \(\?:…\)"):
        parse_metric_option(r"speed=step (\d+): {number}")
