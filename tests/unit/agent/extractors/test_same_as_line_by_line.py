"""The key property: however a log is divided and scanned, the result is that of `re` on each line by itself."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchwright.agent.extractors import regex
from benchwright.agent.extractors.base import MetricValues
from benchwright.agent.extractors.numbers import read_number
from benchwright.agent.extractors.regex import _SPACES, understand
from benchwright.agent.extractors.scanner import LogScanner
from benchwright.core.metric import MetricSpec


def matches_by_line(pattern: str, log: bytes) -> tuple[list[str], list[int], int]:
    """The plain meaning: for each line, for each part between carriage returns, each match. Values as text: nan == nan."""
    values, numbers, unparsed = [], [], 0
    lines = log.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    parts = [(number, part) for number, line in enumerate(lines, 1) for part in line.split("\r")]
    if not parts[-1][1]:
        parts.pop()  # nothing after the last line end
    for number, part in parts:
        for match in re.finditer(pattern, part):
            groups = [group for group in match.groups() if group is not None]
            text = match[0] if not match.re.groups else groups[0] if groups else "none"
            value = read_number(text)
            if value is None:
                unparsed += 1
            else:
                values.append(repr(value))
                numbers.append(number)
    return values, numbers, unparsed


def matches_by_scanner(pattern: str, blocks: list[bytes]) -> tuple[list[str], list[int], int]:
    scanner = LogScanner([MetricSpec(name="m", pattern=pattern)], match_limit_s=30)
    found: list[MetricValues] = [f for block in blocks for f in scanner.feed(block)] + scanner.close()
    values = [repr(value) for f in found for value in f.values]
    numbers = [line for f in found for line in f.lines]
    return values, numbers, scanner.summary()["metrics"]["m"]["unparsed"]


WORDS = ["Speed", "speed", "loss", "val_loss", "acc", "samples/sec", "Epoch", "é", "K", "s"]
ATOMS = [
    *(
        r"\d",
        r"\d+",
        r"(\d+\.\d+|\d+)",
        r"([\d.]+)",
        r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)",
        r"(\S+)",
        r"(nan|inf|\d+)",
    ),
    *(
        r"\s",
        r"\s*",
        r"\s+",
        r"[\s:]",
        r"[\s\d]+",
        r"[\S\s]",
        r"\D",
        r"\D*",
        r"\W",
        r"[\W]+",
        r"[^\d]",
        r"[^,]*",
        r"[^=]+?",
    ),
    *(
        ".",
        ".*",
        ".*?",
        ".+",
        "(.)",
        "[:=]",
        ": ?",
        "=",
        "%",
        r"\.",
        r"[\t-\r]",
        r"[\x00-\x20]",
        r"\x00",
        r"[^\S]",
        "[^a-z]",
    ),
    *(
        "^",
        "$",
        r"\A",
        r"\Z",
        r"\b",
        r"\B",
        "(?:)",
        r"\n",
        r"\n?",
        "[a\n]",
        r"(?m:^)",
        r"(?s:.)",
        r"(?-m:$)",
        r"(?i:LOSS)",
    ),
    *(
        "(?=\\d)",
        "(?!\\d)",
        "(?=.*loss)",
        "(?![^,])",
        "(?<=:)",
        "(?<![\\w])",
        "(?<!val_)",
        "(?<=\\s)",
        "(?=$)",
        "(?<!^)",
        r"(?=\Z)",
    ),
    *(
        "(a|b)?",
        "(?:loss|acc)",
        "(?:Speed|speed):",
        "(?P<v>\\d)?",
        "(?>\\d+)",
        "\\d++",
        "(x)?(?(1)y|z)",
        "(?:ab){2}",
        "(?:\\d,)*",
    ),
]
LOG_WORDS = [word.encode() for word in WORDS] + [
    *(b"1", b"2.5", b"-3", b"+0.25e-3", b"nan", b"inf", b"1,234.5", b"1,234", b"12,", b"7%", b".", b"0", b"e5"),
    *(
        b"\n",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\r\r\n",
        b"\n\n",
        b" ",
        b" ",
        b": ",
        b"=",
        b"\t",
        b"\x0b",
        b"\x0c",
        b"\x1c",
        b",",
    ),
    *(
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xe2\x82",
        b"\xe2\x96\x88",
        b"\xf0\x9f\x98\x80",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\x80",
    ),
    *(b"a", b"b", b"aa", b"xy", b"z", b"SPEED: 4", b"LOSS", b"\xc5\xbf", b"\xe2\x84\xaa", b"_"),
]


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(WORDS + ATOMS), min_size=1, max_size=5))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), r"(\d+)")
    if draw(st.integers(0, 4)) == 0:
        middle = draw(st.integers(0, len(parts)))
        parts = ["(?:", *parts[:middle], "|", *parts[middle:], ")"]
    flags = draw(st.sampled_from(["", "", "", "", "(?i)", "(?s)", "(?m)", "(?a)", "(?ia)", "(?ms)"]))
    pattern = flags + "".join(parts)
    try:
        re.compile(pattern)
    except re.error:
        return r"loss=(\d+)"
    return pattern


@st.composite
def divided_logs(draw: st.DrawFn) -> list[bytes]:
    tail = b"".join(draw(st.lists(st.sampled_from(LOG_WORDS), max_size=60)))
    line = b"".join(draw(st.lists(st.sampled_from(LOG_WORDS), max_size=8)))
    log = line * draw(st.sampled_from([0, 1, 30])) + tail
    cuts = draw(st.lists(st.integers(0, len(log)), max_size=8))
    edges = [0, *sorted(cuts), len(log)]
    return [log[a:b] for a, b in pairwise(edges)]


@settings(
    max_examples=min(400, 3 * settings().max_examples), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(patterns(), divided_logs())
@example(r"\n1", [b"a\n1\n1\n"])
@example(r"a\r(\d)", [b"a\r1\na\n1\r\n"])
@example(r"(?s)a.*b", [b"a\nab\nb\n" * 9])
@example(r"(?i)loss(\d)", [b"los\xc5\xbf1\nLOSS2\n" * 9])
@example(r"s(\d)", [b"s1s2\n\n\ns3\n" * 9])
@example(r"s(\d)", [b"s1\rs2\r\n\xe2\x96\x88\r\n\r\ns3\n" * 9])
@example(r"a(?-m:$)", [b"a\nb\na\n" * 9])
@example(r"(\d*)", [b"1\n\n2\r", b"\n3\r4\n"])
@example(r"\B", [b"\n\na\n"])
@example(r"(?i)k(\d)", [b"K1\n\xe2\x84\xaa2\nk3"])
@example(r"[^,]*", [b"a\r", b"\r", b"\nb,c"])
@example(r"x(\d)?", [b"x\nx1\nxx2" * 50])
def test_a_scan_finds_what_re_finds_in_each_line(pattern: str, blocks: list[bytes]) -> None:
    assert matches_by_scanner(pattern, blocks) == matches_by_line(pattern, b"".join(blocks))


@settings(
    max_examples=min(400, 3 * settings().max_examples), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(patterns(), divided_logs())
@example(r"(?s)a.*b", [b"a\nab\nb\n" * 9])
@example(r"(?s:a.*)b", [b"a\nab\nb\n" * 9])
@example(r"a(?-m:$)", [b"a\nb\na\n" * 9])
@example(r"s(\d)", [b"s1s2\n\n\ns3\n" * 9])
@example(r"(?i)K(\d)", [b"x\nk1\n\xe2\x84\xaa2\nK3\n" * 9])
def test_so_does_a_scan_that_takes_every_log_for_a_dense_one(pattern: str, blocks: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regex, "_BYTES_PER_LINE_QUICK", 10**9)
        patch.setattr(regex, "_BYTES_PER_LINE_SLOW", 10**9)
        assert matches_by_scanner(pattern, blocks) == matches_by_line(pattern, b"".join(blocks))


def test_the_spaces_spelt_out_are_all_that_python_counts_as_space() -> None:
    listed = {code for low, high in _SPACES for code in range(low, high + 1)} | {10}
    assert listed == {code for code in range(sys.maxunicode + 1) if re.match(r"\s", chr(code))}


@pytest.mark.parametrize(
    "pattern",
    [
        r"Speed: (\d+\.\d+|\d+) samples/sec",
        r"Epoch \d+, Batch \d+, Speed=(\d+\.\d+|\d+)",
        r"exact_match': (\d+\.\d+)",
        r"loss:\s*([^,\s]+)",
        r"^\[(?:INFO|WARN)\].*?lr=(\S+)$",
        r"(?i)throughput\D+([\d.]+)",
        r"(?<!val_)loss=([-+\d.e]+)",
    ],
)
def test_patterns_as_people_write_them_can_be_scanned_by_block(pattern: str) -> None:
    known = understand(pattern)
    assert known.block_pattern is not None
    assert len(known.literal) >= 3


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"Speed: (\d+) samples/sec", " samples/sec"),
        (r"a(?:bc)?def", "def"),
        (r"(?:one|two) three", " three"),
        (r"(loss)=(\d)", "loss="),
        (r"(?:abc)+", "abc"),
        (r"(?:abc)*x", "x"),
        (r"(?i)LOSS \d", "loss "),
        (r"(?i)é+", ""),
        (r"(?i:loss)(\d)", ""),
        (r"lo(?=s)ss\b=", "loss="),
        (r"\d+", ""),
        (r"\nab\rcde", "cde"),
    ],
)
def test_the_text_that_every_match_needs_is_found(pattern: str, literal: str) -> None:
    assert understand(pattern).literal == literal
