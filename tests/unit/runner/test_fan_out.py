"""Who measures what when several nodes share a queue, and what is known of it afterwards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from builders import benchmark
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark
from benchwright.core.model import Model
from benchwright.kinds.base import Resolved
from benchwright.options.table import Options
from benchwright.runner.fan_out import PartQueue, parts_of
from benchwright.runner.run import RunOrder
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.fan_out_folder import MeasuredPart, add_part, read_parts


def part(name: str, run: str = "r", *, lost: bool = False) -> MeasuredPart:
    return MeasuredPart(names=(name,), run=run, node="n1", results=(name,), lost=lost)


def parts(*benchmarks: Benchmark, interleave: bool, asked: bool | None = None) -> list[tuple[str, ...]]:
    order = RunOrder(options=Options(interleave=asked), base=BaseFolder(Path("base")))
    resolved = Resolved(benchmarks=benchmarks, options=Options(interleave=interleave), name="x")
    return parts_of(order, resolved)


def model(zoo: str, runtime: str) -> Benchmark:
    work = Model(runtime=runtime, python="python", cwd="/", zoo=zoo, identity=zoo)
    return benchmark(f"{zoo}@{runtime}", kind="zoo", source=zoo, workload=work)


def test_models_of_a_zoo_are_independent_and_the_runtimes_of_one_are_not():
    models = [model(zoo, runtime) for zoo in ("z:bert", "z:gpt2") for runtime in ("torch-eager", "onnxruntime")]
    names = [m.name for m in models]
    assert parts(*models, interleave=True) == [tuple(names[:2]), tuple(names[2:])]
    assert parts(*models, interleave=True, asked=True) == [tuple(names)]


def test_commands_that_are_compared_stay_together_and_others_do_not():
    commands = [benchmark("a"), benchmark("b")]
    assert parts(*commands, interleave=True) == [("a", "b")]
    assert parts(*commands, interleave=False) == [("a",), ("b",)]


def test_each_node_that_asks_gets_the_next_part():
    queue = PartQueue([("a",), ("b",), ("c",)])
    queue.asks("n1")
    queue.asks("n2")
    assert list(queue.answers()) == [("n1", ("a",)), ("n2", ("b",))]
    queue.asks("n2")
    assert list(queue.answers()) == [("n2", ("c",))]


def test_one_node_without_work_is_kept_while_others_measure():
    queue = PartQueue([("a",)])
    for node in ("n1", "n2", "n3"):
        queue.asks(node)
    assert list(queue.answers()) == [("n1", ("a",)), ("n2", ())]
    assert queue.leaves("n1")
    assert list(queue.answers()) == [("n3", ("a",))]


def test_a_part_that_was_lost_goes_to_another_node_first():
    queue = PartQueue([("a",), ("b",)])
    queue.asks("n1")
    assert list(queue.answers()) == [("n1", ("a",))]
    assert queue.loses("n1")
    queue.asks("n1")
    queue.asks("n2")
    assert list(queue.answers()) == [("n1", ("b",)), ("n2", ("a",))]


def test_the_only_node_is_to_begin_another_run():
    queue = PartQueue([("a",)])
    queue.asks("n1")
    list(queue.answers())
    queue.loses("n1")
    queue.asks("n1")
    assert list(queue.answers()) == [("n1", ())]
    assert not queue.is_over


def test_a_part_is_given_up_when_three_nodes_have_lost_it():
    queue = PartQueue([("a",)])
    moved = []
    for node in ("n1", "n2", "n3"):
        queue.asks(node)
        list(queue.answers())
        moved.append(queue.leaves(node))
    assert moved == [True, True, False]
    assert queue.is_over
    assert queue.unmeasured == [("a",)]


@given(st.integers(1, 12), st.integers(1, 4), st.randoms(use_true_random=False), st.floats(0, 0.6))
def test_nothing_is_measured_twice_or_forgotten(parts, nodes, random, losses):
    queue = PartQueue([(str(number),) for number in range(parts)])
    measuring: dict[str, str] = {}
    measured: Counter[str] = Counter()
    living = [f"n{number}" for number in range(nodes)]
    for node in living:
        queue.asks(node)
    for step in range(500):
        for node, names in queue.answers():
            if names:
                assert node not in measuring
                measuring[node] = names[0]
            elif not queue.is_over:  # another run of the same node
                queue.asks(f"{node}+{step}")
        if queue.is_over:
            break
        if not measuring:
            continue
        node = random.choice(sorted(measuring))
        name = measuring.pop(node)
        if random.random() < losses:
            queue.loses(node)
        else:
            measured[name] += 1
        queue.asks(node)
    left = Counter(name for names in queue.unmeasured for name in names)
    assert measured + left == Counter(str(number) for number in range(parts))
    assert queue.is_over


def test_what_was_measured_is_known_even_if_a_writer_was_killed(tmp_path):
    add_part(str(tmp_path), part("a"))
    with open(tmp_path / "measured.jsonl", "ab") as file:
        file.write(b'\n{"names": ["b"], "ru')
    add_part(str(tmp_path), part("c"))
    assert [each.names for each in read_parts(tmp_path)] == [("a",), ("c",)]


def test_a_part_that_was_lost_counts_once_it_is_measured_and_stays_so(tmp_path):
    for each in (part("a", "first", lost=True), part("a", "second"), part("a", "third", lost=True)):
        add_part(str(tmp_path), each)
    [known] = read_parts(tmp_path)
    assert (known.run, known.lost) == ("second", False)


def test_nothing_is_known_at_the_beginning(tmp_path):
    assert read_parts(tmp_path) == []
