"""Every way to get a suite wrong is told with file, line, column, the line itself and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.suite import read_suite
from benchwright.options.table import Options

RUNS = "  definition: .\n"


def error_of(folder: Path, text: str | bytes, name: str = "s.yaml") -> str:
    """What reading it says, with the folder left out."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InvalidInput) as raised:
        SuiteKind().read(str(path), Options())
    return str(raised.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a:\n  inherit: b\n", "s.yaml:2:3: 'inherit' is not a key of an entry; did you mean 'inherits'?\n      inherit: b\n      ^"),
        ("a:\n  zzz: 1\n", "s.yaml:2:3: 'zzz' is not a key of an entry; a key of your own begins with x- or _\n"),
        ("a:\n  plan: {method: per_gpus}\n", "s.yaml:2:18: 'per_gpus' is not a plan; did you mean 'per_gpu'?\n"),
        ("a:\n  plan: {methods: per_gpu}\n", "s.yaml:2:10: 'methods' is not a key of a plan; did you mean 'method'?\n"),
        ("a:\n  plan: per_gpu\n", "s.yaml:2:9: plan is 'per_gpu', not a map; it has the keys method, n, launcher\n"),
        ("a:\n  plan: {method: njobs, n: 0}\n", "s.yaml:2:28: n is 0, not a number of processes; write 1 or more\n"),
        ("a:\n  inherits: [b, c]\n", "s.yaml:2:13: inherits is a list, not text"),
        ("a:\n  inherits: _b\n", "s.yaml:2:13: 'a' inherits '_b', which is not defined"),
        ("_torch: {}\na:\n  inherits: _troch\n", "s.yaml:3:13: 'a' inherits '_troch', which is not defined; did you mean '_torch'?"),
        ("a: {inherits: b}\nb: {inherits: c}\nc: {inherits: a}\n", "s.yaml:3:15: entries inherit each other: a → b → c → a;"),
        ("a: {inherits: a}\n", "s.yaml:1:15: entries inherit each other: a → a;"),
        ("'*': {inherits: a}\na: {}\n", "s.yaml:1:17: '*' applies to all entries and cannot inherit"),
        ("a:\n  max_duration: soon\n", "s.yaml:2:17: max_duration is 'soon', not a duration; write 600 (seconds), 90s, 10m or 2h"),
        ("a:\n  weight: heavy\n", "s.yaml:2:11: weight is 'heavy', not a weight; write 0 or more"),
        ("a:\n  weight: .inf\n", "s.yaml:2:11: weight is inf, not a weight"),
        ("a:\n  enabled: 'yes'\n", "s.yaml:2:12: enabled is 'yes', not true or false"),
        ("a:\n  argv: --lr 3\n", "s.yaml:2:9: argv is '--lr 3', not a map or a list"),
        ("a:\n  argv:\n    --lr: {x: 1}\n", "s.yaml:3:11: --lr of argv is a map, not one value or a list"),
        ("a:\n  argv: [x, [y]]\n", "s.yaml:2:13: an item of argv is a list, not one value"),
        ("a:\n  tags: {append: x}\n", "s.yaml:2:18: tags is 'x', not a list"),
        ("a:\n  num_machines: 1.5\n", "s.yaml:2:17: num_machines is 1.5, not a number of machines; write 1 or more"),
        pytest.param("a:\n  voir: {options: {stop: many}}\n", "s.yaml:2:26: stop is 'many', not a number of observations or a map", marks=pytest.mark.compat),
        pytest.param("a:\n  voir: {options: {intervall: 1s}}\n", "s.yaml:2:20: 'intervall' is not a key of voir.options; did you mean 'interval'?", marks=pytest.mark.compat),
        ("a:\n  launcher: torchrunn\n", "s.yaml:2:13: 'torchrunn' is not a launcher; did you mean 'torchrun'?"),
        ("a:\n  env: [X]\n", "s.yaml:2:8: env is a list, not a map"),
        ("a:\n" + RUNS + "  env: {'A=B': 1}\n", "s.yaml:3:16: 'A=B' cannot be the name of a variable"),
        ("a:\n" + RUNS + "  metrics: {x: '('}\n", "s.yaml:3:16: the pattern of 'x' is not a regular expression"),
        ("a:\n" + RUNS + "  install_group: ../x\n", "s.yaml:3:18: install_group is '../x', which cannot be the name of a folder"),
        ("'../a':\n" + RUNS, "s.yaml:1:1: group is '../a', which cannot be the name of a folder"),
        ("a:\n" + RUNS + "  stop: {steps: 3, seconds: 4}\n", "s.yaml:3:9: steps and seconds exclude each other; give one of steps, seconds"),
        ("a:\n" + RUNS + "  stop: {steps: 3, interval: 1s}\n", "s.yaml:3:30: steps cannot have an interval; only observations can"),
        ("a:\n" + RUNS + "  stop: soon\n", "s.yaml:3:9: 'soon' is not a stop rule"),
        ("a:\n  stop: 0\n", "s.yaml:2:9: stop is 0, not a stop rule or a number of steps or a map; write 100 (steps), 30s or 1%"),
        ("a:\n  stop: 1.5\n", "s.yaml:2:9: stop is 1.5, not a stop rule or a number of steps or a map"),
        ("a:\n" + RUNS + "  warmup: {}\n", "s.yaml:3:11: the map is empty; give one of steps, seconds"),
        ("a:\n" + RUNS + "  stop: {precision: 200%}\n", "s.yaml:3:21: '200%' is not a percentage"),
        ("a:\n" + RUNS + "  launcher: {args: [x]}\n", "s.yaml:3:13: the launcher has no name"),
        ("a:\n  definition: {branch: x}\n", "s.yaml:2:15: the definition names no repository"),
        ("a:\n  definition: {git: --upload-pack=x}\n", "s.yaml:2:15: the definition names no repository"),
        ("a:\n" + RUNS + "  num_machines: '${weigth}'\n  weight: 1\n", "s.yaml:3:17: the entry has no 'weigth' for ${weigth}; did you mean 'weight'?"),
        ("a:\n" + RUNS + "  num_machines: '${group}'\n", "s.yaml:3:17: num_machines is 'a', not a number of machines"),
        ("a:\n" + RUNS + "  num_machines: '${system.count}'\n", "s.yaml:3:17: num_machines is '${system.count}', not a whole number"),
        ("a:\n  url: '${group}'\n  group: '${url}'\n", "refers to itself"),
        ("a:\n  url: '${....x}'\n", "s.yaml:2:8: ${....x} is not a key of the entry; write ${{name}} for the literal text"),
        ("a:\n  url: '${oc.env:HOME}'\n", "s.yaml:2:8: ${oc.env:HOME} is not a key of the entry"),
        ("a:\n", "s.yaml:1:1: 'a' is empty, not an entry; write its keys below it, indented"),
        ("a: 3\n", "s.yaml:1:1: 'a' is 3, not an entry; an entry is a map: write 'key: value' below its name"),
        ("arch: cuda\n", "s.yaml:1:1: 'arch' is 'cuda', not an entry; this looks like a system file: give it with --system"),
        ("1: {}\n", "s.yaml:1:1: 1 cannot be the name of an entry"),
        ("a: {definition: x}\noff: {definition: x}\n", "s.yaml:2:1: false cannot be the name of an entry"),
        ("a: {definition: x}\n~: {definition: x}\n", "s.yaml:2:1:"),
        ("[a, b]\n", "s.yaml:1:1: a suite is a map of entries, this is a list"),
        ("hello\n", "s.yaml:1:1: a suite is a map of entries, this is 'hello'"),
        ("", "s.yaml:1:1: the file has no entries; an entry has a name, a definition and a plan"),
        ("# nothing\n---\n# here\n", "s.yaml:4:1: the file has no entries"),
        ("a: {weight: 1, weight 2}\n", "s.yaml:1:"),
        ("a:\n\tweight: 1\n", "s.yaml:2:1: this is not YAML: a tab where none may be; indent with spaces\n     weight: 1\n    ^"),
        ("a: 'x\n", "s.yaml:2:1: this is not YAML: found unexpected end of stream"),
        ("a: b: c\n", "s.yaml:1:5: this is not YAML: mapping values are not allowed in this context; put the value in quotes"),
        ("a: {weight: 1}\n---\nb: {weight: 1}\n", "s.yaml:2:1: this is not YAML: but found another document"),
        ("a: {url: !secret x}\n", "s.yaml:1:10: the tag !secret has no meaning here"),
        ("a: {url: !!python/object/apply:os.system [x]}\n", "s.yaml:1:10: the tag !!python/object/apply:os.system has no meaning here"),
        ("a: {tags: [!delete x]}\n", "s.yaml:1:12: !delete removes a key of a map, not an item of a list"),
        ("a: &a {x-b: *a}\n", "s.yaml:1:4: this contains itself through an alias"),
        ("a: {? [x] : 1}\n", "s.yaml:1:7: a key must be one word"),
        ("a: {weight: " + "9" * 5000 + "}\n", "s.yaml:1:13: this cannot be read as int"),
        ("a: " + "[" * 5000 + "\n", "s.yaml:1:102: values are nested too deep here"),
        ("a:\n  x-b: " + "- " * 200000 + "\n", "s.yaml:2:8: this is not YAML"),
        (b"a: {url: \xff}\n", "s.yaml:1:10: byte 0xff at offset 9 is not UTF-8; save the file as UTF-8"),
        (b"a: \x00\n", "s.yaml:1:4: the character U+0000 is not allowed in YAML"),
        ("include: [gone.yaml]\n", "s.yaml:1:11: there is no file 'gone.yaml'; expected at gone.yaml"),
        ("include: {a: b}\n", "s.yaml:1:10: include is a map, not a file or a list of files"),
        ("include: [a.yaml, 3]\n", "s.yaml:1:19: include is 3, not a file or a list of files"),
        ("include: s.yaml\n", "s.yaml:1:10: the files include each other: s.yaml → s.yaml"),
        ("a: {matrix: {x: [1]}}\n", "s.yaml:1:5: 'a' has a matrix but no job"),
        ("a: {matrix: {}, job: {name: x}}\n", "s.yaml:1:5: the matrix is empty"),
        ("a: {matrix: {x: []}, job: {name: x}}\n", "s.yaml:1:17: 'x' of the matrix has no values"),
        ("a: {matrix: {x: [1, 2]}, job: {name: b}}\n", "s.yaml:1:38: there are two entries 'b'; put every key of the matrix into the job's name"),
        ("a: {matrix: {x: [1]}, job: {name: 'b{y}'}}\n", "s.yaml:1:35: the matrix has no key 'y'; it has x"),
        ("a: {matrix: {x: [1]}, job: {argv: [x]}}\n", "s.yaml:1:23: the job of 'a' has no name"),
        ("a: {matrix: {x: [1]}, job: {name: b, argw: []}}\n", "s.yaml:1:38: 'argw' is not a key of an entry; did you mean 'argv'?"),
        ("a: {matrix: {x: [1]}, job: 3}\n", "s.yaml:1:28: job is not a map"),
        ("a: {matrix: {" + ", ".join(f"{k}: [1,2,3,4,5,6,7,8,9,0]" for k in "bcdef") + "}, job: {name: b}}\n", "the matrix makes more than 10000 entries"),
        ("_a:\n" + RUNS, "s.yaml: the suite has no entry to run"),
        ("a:\n  enabled: false\n" + RUNS, "s.yaml: every entry is disabled; write enabled: true, or name one with --select"),
        ("a: {weight: 1}\n", "s.yaml: no enabled entry has a definition"),
    ],
    ids=lambda value: repr(value)[:50],
)  # fmt: skip
def test_what_is_wrong_is_told_where(tmp_path: Path, text: str | bytes, says: str) -> None:
    assert says in error_of(tmp_path, text)


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("\n\na:\n  wieght: 1\n")
    assert error_of(tmp_path, "include: base.yaml\n").startswith("base.yaml:4:3: 'wieght' is not a key")


def test_files_that_include_each_other_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("include: [s.yaml]\n")
    assert error_of(tmp_path, "include: [b.yaml]\n").startswith(
        "b.yaml:1:11: the files include each other: s.yaml → b.yaml → s.yaml"
    )


def test_what_is_inherited_is_blamed_where_it_stands(tmp_path: Path) -> None:
    """The child is fine; the value that cannot be meant comes from far above, or from '*'."""
    (tmp_path / "base.yaml").write_text("_p:\n  install_group: a/b\n")
    text = "include: base.yaml\nc:\n  inherits: _p\n  definition: .\n"
    assert error_of(tmp_path, text).startswith("base.yaml:2:18: install_group is 'a/b'")
    text = "c:\n  definition: .\n  group: fine\n'*':\n  group: a/b\n"
    assert error_of(tmp_path, text).startswith("s.yaml:5:10: group is 'a/b'")


def test_a_value_a_matrix_made_is_blamed_in_its_job(tmp_path: Path) -> None:
    text = "m:\n  matrix: {x: [1]}\n  job:\n    name: 'c{x}'\n    definition: .\n    group: a/b\n"
    assert error_of(tmp_path, text).startswith("s.yaml:6:12: group is 'a/b'")


def test_a_long_chain_and_many_includes_end(tmp_path: Path) -> None:
    chain = "".join(f"e{n}: {{inherits: e{n + 1}}}\n" for n in range(300)) + "e300: {weight: 1}\n"
    assert "'e0' inherits through more than 100 entries" in error_of(tmp_path, chain)
    for n in range(20):
        below = f"include: [{n - 1}.yaml, {n - 1}.yaml]\n" if n else ""
        (tmp_path / f"{n}.yaml").write_text(f"{below}a: {{weight: {n}}}\n")
    assert "more than 1000 files are included" in error_of(tmp_path, "include: 19.yaml\n")


def test_a_bomb_of_aliases_is_refused_quickly(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join(['*' + old] * 10)}]" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
    ]
    assert "too much when they are written out" in error_of(
        tmp_path, "_x:\n" + "".join(f"  x-{line}\n" for line in lines)
    )
    doubled = "".join(f"  x-{n}: '${{x-{n + 1}}}${{x-{n + 1}}}'\n" for n in range(20))
    assert "grows too long" in error_of(tmp_path, f"a:\n{doubled}  x-20: {'y' * 50}\n")
    maps = "".join(f"  x-{n}: {{a: '${{x-{n + 1}}}', b: '${{x-{n + 1}}}'}}\n" for n in range(20))
    assert "grows too large" in error_of(tmp_path, f"a:\n{maps}  x-20: y\n")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    for target, says in (
        (str(tmp_path), "this is not a file"),
        (str(tmp_path / "no.yaml"), "cannot be read: No such file"),
        ("a\0b", "not a path"),
    ):
        with pytest.raises(InvalidInput, match=says):
            read_suite(target)
