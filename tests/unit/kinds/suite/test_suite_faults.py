"""Whatever a suite file holds: benchmarks, or an error that names the file; never a traceback, never long."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.keys import entry_table
from benchwright.kinds.suite.read.suite import read_suite
from benchwright.options.table import Options

SAMPLES = Path(__file__).parents[3] / "compat" / "suites"
TEXTS = {path.name: path.read_text() for path in SAMPLES.glob("*.yaml")}
SPECIAL = (
    "{", "}", "[", "]", ":", "- ", "&a ", "*a", "!delete", "!expand-dot", "!!int ", "${", "${name}", "${..x}", "<<: ", "<<<: ",
    "|", ">", "'", '"', "#", "\t", "\n", "\n  ", "\x85", "\u2028", "\ufeff", "\x00", "null", "~", "_", "*", "include: ", "---\n", "? ",
    "inherits: ", "matrix: ", "job: ", "append: ", "argv: ", "{x:9999999}", "1e400", "0x", ".nan", "2001-01-01", "9" * 30, "=",
)  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["${name}", "${..weight}", "{x}"]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from([*entry_table().keys, "append", "stop", "options"]), scalars.filter(lambda s: s == s)
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
words = st.one_of(
    st.dictionaries(st.text(max_size=3), st.one_of(scalars, st.lists(scalars, max_size=2)), max_size=3),
    st.lists(scalars, max_size=3),
)
short = st.text(max_size=3)
# Values that are nearly right, so that the parts behind the checks are reached.
NEARLY = {
    "inherits": st.sampled_from(["_c", "a", "b", "_defaults"]),
    "argv": words,
    "weight": st.one_of(st.floats(0, 10), st.just("${num_machines}")),
    "num_machines": st.one_of(st.integers(1, 3), st.just("${weight}")),
    "plan": st.sampled_from([{"method": "per_gpu"}, {"method": "njobs", "n": 2}, {"method": "njobs", "n": "${num_machines}"}, {}]),
    "voir": st.fixed_dictionaries({}, optional={"stop": st.integers(0, 3), "interval": st.sampled_from(["1s", 1, "2", 0.5, "${weight}"]), "skip": st.floats(0, 5)}).map(
        lambda options: {"options": options}
    ),
    "stop": st.sampled_from([9, "30s", "1%", {"steps": 2}, {"observations": 2, "interval": "3s"}, {"precision": 0.5}, {}, {"steps": "${num_machines}"}]),
    "warmup": st.sampled_from(["auto", 3, "5s", {"steps": 0}, {"seconds": 1}, "${weight}"]),
    "metrics": st.dictionaries(short, st.one_of(short, st.none()), max_size=2),
    "labels": st.dictionaries(short, scalars, max_size=2),
    "env": st.dictionaries(st.one_of(short, st.integers()), scalars, max_size=2),
    "matrix": st.dictionaries(st.one_of(short, st.integers()), st.one_of(scalars, st.lists(anything, max_size=2)), max_size=2),
    "job": st.sampled_from(["j", "j{x}", "j-{1}", "{}", "{{x}}"]).map(lambda name: {"name": name}),
    "server": st.sampled_from([{}, {"argv": ["x"]}, {"script": "x", "ready": "${name}", "ready_timeout": "3s"}]),
    "launcher": st.sampled_from(["torchrun", {"name": "accelerate", "args": {"--x": 1}}, {"processes": "${num_machines}"}]),
    "torchrun": anything,
    "requires_capabilities": st.one_of(short, st.lists(st.one_of(short, st.none()), max_size=2)),
    "tags": st.one_of(scalars, st.lists(scalars, max_size=3), st.lists(scalars, max_size=2).map(lambda tags: {"append": tags})),
    "pip": st.sampled_from([{"constraints": ["x"], "args": "a b"}, {"args": ["${name}"]}]),
    "group": short,
    "install_group": st.sampled_from(["a", "${name}", "${group}", "${argv}"]),
    "install_variant": st.sampled_from(["unpinned", "{arch}", "${system.arch}", "a/b", "${weight}"]),
    "max_duration": st.sampled_from([1, "3m", "${weight}", 0.1]),
    "validation": anything,
}  # fmt: skip
definitions = st.sampled_from(
    [".", "~/x", "${name}", {"git": "https://x/y.git"}, {"git": "${name}", "branch": None}, ""]
)
entry_like = st.one_of(
    st.dictionaries(st.sampled_from(list(entry_table().keys)), anything, max_size=5),
    st.fixed_dictionaries({"definition": definitions}, optional=NEARLY),
)
suite_like = st.dictionaries(
    st.sampled_from(["a", "b", "_c", "*", "_defaults", "a/b", "", "é"]), entry_like, max_size=4
)


def read_or_refused(text: str | bytes, **options: Any) -> list[Benchmark] | InvalidInput:
    """Reads `text` as a suite, beside the samples it may include."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.yaml")
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        Path(folder, "base.yaml").write_text(TEXTS["base.yaml"])
        source = SuiteKind()
        assert source.recognises(str(path)) in (True, False)
        try:
            found = source.read(str(path), Options(**options))
        except InvalidInput as error:
            found, wrong = [], error
        else:
            wrong = None
        if wrong is not None:
            said = str(wrong)
            assert said.startswith((folder, "--override: ", "--select: ", "--exclude: ")), said
            assert wrong.remedy, said
            assert len(said) < 2000
            assert wrong.line is None or 1 <= wrong.line <= len(text) + len(TEXTS["base.yaml"]) + 1
    assert bool(found) != bool(wrong)
    for benchmark in found:
        assert msgspec.json.decode(msgspec.json.encode(benchmark), type=Benchmark) == benchmark
    return found if wrong is None else wrong


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example("a: &a {b: &b {<<: *a}}")
@example("a: {<<: [1]}")
@example("!expand-dot {}")
@example("!expand-dot {a.: {weight: 1}, .b: {weight: 1}}")
@example("'a b': {definition: .}\n")
@example("a: {definition: ., argv: {yes: 1, 3: 4, null: 5, .nan: 6}, labels: {1: .inf}}")
@example("a: {definition: ., x-y: 123456789012345678901234567890}")
def test_any_text(text: str | bytes) -> None:
    assert read_or_refused(text)


@given(st.lists(st.one_of(st.sampled_from(SPECIAL), st.sampled_from(["a", "b: ", " ", "x"])), max_size=25).map("".join))
def test_any_pieces_of_yaml(text: str) -> None:
    assert read_or_refused(text)


@given(suite_like)
def test_any_structure(content: dict[str, Any]) -> None:
    assert read_or_refused(yaml.dump(content, Dumper=yaml.CSafeDumper, allow_unicode=True))


@given(
    name=st.sampled_from(sorted(TEXTS)),
    cuts=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 30), st.one_of(st.sampled_from(SPECIAL), st.text(max_size=3))),
        min_size=1,
        max_size=4,
    ),
)
def test_samples_with_pieces_replaced(name: str, cuts: list[tuple[float, int, str]]) -> None:
    text = TEXTS[name]
    for where, length, instead in cuts:
        at = int(where * len(text))
        text = text[:at] + instead + text[at + length :]
    assert read_or_refused(text)


@given(
    overrides=st.lists(
        st.one_of(
            st.text(max_size=12),
            st.builds(
                lambda name, key, value: f"{name}.{key}={value}",
                st.sampled_from(["small", "*", "_vision", "smal", "policy"]),
                st.sampled_from(
                    ["weight", "argv.--lr", "plan.method", "plan", "inherits", "tags", "argv.x.y", "definition"]
                ),
                st.one_of(
                    st.text(max_size=6),
                    st.sampled_from(["!delete", "{append: [x]}", "per_gpu", "3", "[", "null", "small"]),
                ),
            ),
        ),
        max_size=3,
    ),
    select=st.lists(
        st.one_of(st.text(max_size=6), st.sampled_from(["small", "*", "nlp", "w*", "[", ",", "torch,small"])),
        max_size=2,
    ),
)
def test_any_options(overrides: list[str], select: list[str]) -> None:
    assert read_or_refused(TEXTS["base.yaml"], overrides=tuple(overrides), select=tuple(select))


@given(suite_like)
@example({"a": {"definition": ".", "matrix": {"k": [1, 2]}, "job": {"name": "j{k}"}}})
def test_resolved_entries_can_be_read_again(content: dict[str, Any]) -> None:
    """What `resolve` prints is itself a suite that resolves to the same."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a.yaml"), Path(folder, "b.yaml")
        first.write_text(yaml.dump(content, allow_unicode=True), encoding="utf-8")
        try:
            entries = read_suite(str(first)).entries
        except InvalidInput:
            return
        if not entries:
            return
        second.write_text(yaml.dump(entries, allow_unicode=True, sort_keys=False), encoding="utf-8")
        again = read_suite(str(second)).entries
        for name, entry in entries.items():
            if "matrix" in entry:  # what a matrix made was written nowhere; now it is
                again[name] = {k: v for k, v in again[name].items() if k in entry or not k.startswith("config_")}
        assert repr(again) == repr(entries)
