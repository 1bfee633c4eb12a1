"""An endpoint's target, its options, and the command line of the client that they become."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchload.settings import parse, words_of
from benchload.workload import Workload, arrivals_s
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import kind_for, kind_named
from benchwright.options.table import Options

URL = "openai:http://127.0.0.1:8000/v1"


def words(benchmark: Benchmark) -> list[str]:
    assert isinstance(benchmark.workload, Command)
    return list(benchmark.workload.argv[3:])


def read(**options: object) -> list[str]:
    (found,) = kind_named("endpoint").read(URL, Options(**{"served_model": "m", **options}))  # type: ignore[arg-type]
    return words(found)


def test_an_address_is_recognised_and_no_zoo() -> None:
    kind = kind_for(URL)
    assert kind is not None
    assert kind.name == "endpoint"
    assert not kind.recognises("openai:model")


def test_options_become_words_that_are_read_back_the_same() -> None:
    given = read(
        request_load="constant:5/s",
        objective="ttft=.5s,tpot=50ms@p95",
        stop=StopRule(steps=50),
        request_workload="random:in=8-16,out=4~2,prefix=0.5",
        extra_body='{"ignore_eos": true}',
        endpoint_api="completions",
        client_processes=2,
    )
    settings = parse(given)
    assert words_of(settings) == given
    assert (settings.requests, settings.load.number, settings.processes) == (50, 5.0, 2)
    assert settings.objective is not None
    assert settings.objective.share == 0.95


def test_a_launchs_limit_leaves_time_to_start_and_to_end() -> None:
    limits = [parse(read(timeout=timeout)).limit_s for timeout in (600.0, 10.0, 2.0, None)]
    assert limits == [540.0, 8.0, 1.0, None]


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"served_model": None}, "--model"),
        ({"request_load": "much"}, "--load"),
        ({"objective": "fast"}, "--slo"),
        ({"request_workload": "random:in=0"}, "--workload"),
        ({"request_workload": "absent.jsonl"}, "--workload"),
        ({"extra_body": "[]"}, "--extra-body"),
        ({"stop": StopRule(precision=0.01)}, "--stop"),
        ({"sweep": "rate"}, "--sweep"),
        ({"request_load": "trace"}, "--load"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], where: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(**options)
    assert error.value.where == where


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    settings = parse(["http://h/v1", "--model", "m", "--workload", "random:in=20~5,out=3-9,prefix=0.5", "--seed", "4"])
    one, same, other = Workload(settings), Workload(settings), Workload(settings._replace(seed=5))
    assert [one.body(i) for i in range(20)] == [same.body(i) for i in (*range(20),)]
    assert one.digest() == same.digest() == Workload(settings, salt="some words").digest() != other.digest()
    texts = [one.question(i).text.split() for i in range(20)]
    assert len({tuple(words[:5]) for words in texts if len(words) > 10}) == 1, "the shared prefix"
    assert len({tuple(words) for words in texts}) == 20


def test_the_digest_of_a_file_is_part_of_the_setting(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(
        '{"prompt": "a b", "max_tokens": 3, "at": 1.5}\n{"input_length": 5, "output_length": 2, "timestamp": 500}\n'
    )
    before = read(request_workload=str(file), request_load="trace")
    settings = parse(before)
    workload = Workload(settings)
    assert arrivals_s(settings, workload, None, None) == [0.0, 1.0], "in the order of their times, from the first on"
    assert len(workload.question(0).text.split()) == 5
    file.write_text(file.read_text().replace("a b", "a c"))
    assert read(request_workload=str(file), request_load="trace") != before


def test_arrivals_are_as_many_and_as_random_as_asked_for() -> None:
    settings = parse(["http://h/v1", "--model", "m", "--load", "100"])
    times = arrivals_s(settings, Workload(settings), 10_000, None)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert sum(gaps) / len(gaps) == pytest.approx(0.01, rel=0.05)
    assert sum(gap > 0.01 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.02), "exponential"
    constant = arrivals_s(parse(["http://h/v1", "--model", "m", "--load", "constant:4"]), Workload(settings), None, 1.0)
    assert constant == [0.0, 0.25, 0.5, 0.75]
