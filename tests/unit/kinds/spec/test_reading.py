"""Specifications of both dialects, read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from specifications import read, spec_of, written

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import RevisionInfo
from benchwright.kinds.registry import kind_for
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.read.specification import read_specification, specification_faults
from benchwright.kinds.spec.spec_test import SpecInput

PROGRAM = SpecOptions(programs={"program": "/bin/prog"})
INPUTS = {"data": {"shapes": [[1, 3, 8, 8], [4, 3, 8, 8]], "type": "float"}}
FILES = {
    "init": {"filename": "init.pb", "location": "https://h/init.pb", "md5": "0" * 32},
    "predict": {"filename": "p.pb", "location": "//models/p.pb", "md5": ""},
}


def line_of(benchmark: Benchmark) -> str:
    test = spec_of(benchmark)
    return " ".join((*test.commands, *test.arguments))


def test_several_shapes_are_several_tests_with_their_number(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"identifier": "first-{ID}", "inputs": INPUTS},
        {"identifier": "{ID}", "inputs": {"a": {"shapes": [2, "3"]}}},
    )
    assert [b.name for b in found] == ["net-first-0", "net-first-1", "net-2"]
    assert spec_of(found[1]).inputs == (SpecInput(name="data", shape=(4, 3, 8, 8)),)
    assert spec_of(found[2]).inputs == (SpecInput(name="a", shape=(2, 3)),)
    assert [spec_of(b).number for b in found] == [0, 1, 2]


def test_names_are_short_and_no_two_are_alike(tmp_path: Path) -> None:
    names = [b.name for b in read(tmp_path, *({"identifier": "net-x", "command": "a"},) * 2)]
    assert names == ["net-x", "net-x-2"]


@pytest.mark.compat
def test_the_command_of_the_seed(tmp_path: Path) -> None:
    test = {"identifier": "x", "warmup": 1, "iter": 50, "inputs": {**INPUTS, "b": {"shapes": [[2]], "type": "int"}}}
    first, _ = read(tmp_path, test, options=PROGRAM, files=FILES)
    assert line_of(first) == (
        "{program} --init_net {files.init} --net {files.predict} --warmup 1 --iter 50 --input data,b"
        ' --input_dims "1,3,8,8;2" --input_type "float;int"'
    )
    (lite,) = read(
        tmp_path,
        {"identifier": "x", "warmup": 1, "iter": 50, "inputs": {"in": {"shapes": [[1, 8]]}}},
        options=PROGRAM,
        files={"graph": FILES["init"]},
        format="tflite",
    )
    assert line_of(lite) == (
        '{program} --graph={files.graph} --warmup_runs=1 --num_runs=50 --input_layer=in --input_layer_shape="1,8"'
    )


@pytest.mark.compat
def test_the_dialect_of_2018(tmp_path: Path) -> None:
    """Flags by framework, lists of paths, and expected outputs that are only named."""
    test = {
        "identifier": "{ID}",
        "metric": "error",
        "commands": {"caffe2": {"run_individual": "true"}, "other": {"x": 1}},
        "input_files": {"data": ["t/0/data.txt", "t/1/data.txt"]},
        "output_files": {"gpu_0/out": ["t/0/out.txt", "t/1/out.txt"]},
    }
    found = read(
        tmp_path,
        test,
        options=PROGRAM,
        files=FILES,
        inputs={"data": {"shapes": [["variable", 3]]}},
        outputs=[{"gpu_0/out": {"shapes": [[9]]}}],
    )
    assert spec_of(found[0]).outputs == ("gpu_0/out",)
    assert [spec_of(b).goldens[0].location for b in found] == ["t/0/out.txt", "t/1/out.txt"]
    assert [spec_of(b).input_files[0].location for b in found] == ["t/0/data.txt", "t/1/data.txt"]
    assert line_of(found[0]).endswith(
        "--input data --input_file {input_files.data} --output gpu_0/out --text_output true"
        " --output_folder {TGTDIR} --run_individual true"
    )


def test_what_came_between_the_dialects(tmp_path: Path) -> None:
    """Lists of files with sums, both kinds of command, and outputs without their folder."""
    entry = {"filename": "out.txt", "location": "t/out.txt", "md5": "a" * 32}
    (found,) = read(
        tmp_path,
        {
            "identifier": "x",
            "metric": "error",
            "commands": {"caffe2": {"num_threads": "4", "more": True}},
            "arguments": "--num_threads=2 --output out --text_output true ",
            "input_files": {"data": [{**entry, "filename": "data.txt"}]},
            "output_files": {"out": [entry]},
        },
    )
    assert line_of(found) == (
        "{program} --num_threads=2 --output out --text_output true  --more true --output_folder {TGTDIR}"
    )
    assert spec_of(found).goldens[0].md5 == "a" * 32
    (twice,) = read(tmp_path, {"identifier": "x", "arguments": "{program} --a"})
    assert spec_of(twice).commands == ("{program} --a",)


def test_every_field_is_kept(tmp_path: Path) -> None:
    test = {
        "identifier": "all",
        "metric": "power",
        "command": "{program} {own}",
        "own": "mine",
        "platform_args": {"taskset": "c", "sleep_before_run": 20, "env": {"A": 1}},
        "env": "B=2 'C=3 4'",
        "timeout": "90",
        "cpu-list": "0-1",
        "statistics": ["mean", "p95"],
        "profiler": {"enabled": True},
        "log_output": "true",
        "method": "software",
        "collection_time": 180,
        "voltage": 4.2,
        "tolerance": {"max_abs": 0.1},
        "files": {"more": {"location": "/abs/more.bin", "sha256": "F" * 64}},
        "output_files": {
            "o": {"filename": "o.txt", "location": "{TGTDIR}/o.txt", "converter": {"name": "json_converter"}}
        },
        "preprocess": {"commands": ["one", "two"], "platform_args": {"env": {"P": "1"}}},
        "postprocess": {"commands": "three"},
    }
    model = {
        "cooldown": 30,
        "repeat": 3,
        "timeout": 10,
        "group": "CNN",
        "libraries": [{"location": "lib/x.so", "target": "x.so"}],
        "converter": {"name": "json_with_identifier_converter", "args": {"identifier": "Mine"}},
        "preprocess": {"commands": ["first"]},
        "postprocess": {"commands": ["last"]},
    }
    one, other = read(tmp_path, test, {"identifier": "b", "command": "x"}, files=FILES, **model)
    found = spec_of(one)
    assert one.env == {"A": "1", "B": "2", "C": "3 4"}
    assert (one.timeout_s, other.timeout_s, one.launches) == (90.0, 10.0, 3)
    assert (found.cooldown_s, found.wait_s, found.core_mask, found.core_list) == (30.0, 20.0, "c", "0-1")
    assert (found.statistics, found.log_output, found.tolerance) == (("mean", "p95"), True, {"max_abs": 0.1})
    assert found.power is not None
    assert (found.power.method, found.power.collection_time_s, found.power.voltage) == ("software", 180.0, 4.2)
    assert {f.key: f.location for f in found.files} == {
        "init": "https://h/init.pb",
        "predict": "//models/p.pb",
        "more": "/abs/more.bin",
    }
    assert found.files[2].sha256 == "f" * 64
    assert found.files[1].md5 is None
    assert found.preprocess is not None
    assert (found.preprocess.commands, found.preprocess.env) == (("one", "two"), {"P": "1"})
    assert found.postprocess is not None
    assert found.postprocess.commands == ("three",)
    assert found.first is not None
    assert found.last is None
    assert spec_of(other).last is not None
    assert spec_of(other).first is None
    assert found.converter is not None
    assert found.converter.args == {"identifier": "Mine"}
    assert found.values["own"] == "mine"
    assert found.libraries[0].key == "x.so"
    assert one.labels["group"] == "CNN"
    assert msgspec.json.decode(msgspec.json.encode(one), type=Benchmark) == one


def test_a_folder_has_no_sum(tmp_path: Path) -> None:
    (found,) = read(tmp_path, files={"data": {"location": "/data", "md5": "directory"}})
    assert spec_of(found).files[0].directory
    assert spec_of(found).files[0].md5 is None


def test_numbers_may_be_placeholders(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {"identifier": "x", "command": "a", "iter": "{count}", "warmup": "2"}, count=7)
    assert (spec_of(found).iterations, spec_of(found).warmup) == (7, 2)


# -- lists of specifications ----------------------------------------------------------------------------------------


def test_meta_adds_what_a_model_does_not_say(tmp_path: Path) -> None:
    written(tmp_path / "m" / "a.json", {"name": "a"})
    written(tmp_path / "m" / "b.json", {"name": "b", "group": "own", "command_args": "--own"})
    outer, inner = tmp_path / "l" / "outer.json", tmp_path / "l" / "inner.json"
    inner.parent.mkdir()
    inner.write_text('{"meta": {"group": "inner"}, "benchmarks": ["../m/a.json", "../m/b.json"]}')
    outer.write_text('{"meta": {"group": "outer", "command_args": "--x mkl"}, "benchmarks": ["inner.json"]}')
    found = read_specification(str(outer), SpecOptions())
    assert [(b.name, b.labels["group"], spec_of(b).arguments) for b in found] == [
        ("a-0", "inner", ("--x mkl",)),
        ("b-0", "own", ("--own",)),
    ]


def test_paths_of_2018_begin_in_a_folder_above(tmp_path: Path) -> None:
    written(tmp_path / "specs" / "models" / "caffe2" / "a.json")
    listed = tmp_path / "specs" / "benchmarks" / "caffe2" / "cnn.json"
    listed.parent.mkdir(parents=True)
    listed.write_text('{"meta": {}, "benchmarks": ["models/caffe2/a.json"]}')
    assert len(read_specification(str(listed), SpecOptions())) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"meta": {},\n "benchmarks": ["nothing.json"]}', "l.json:2:17: no such file: nothing.json"),
        ('{"meta": {},\n "benchmarks": ["l.json"]}', "the list names itself"),
        ('{"meta": {}, "benchmarks": []}', "is not a list of files"),
        ('{"meta": {}, "benchmarks": [3]}', "this is not a path"),
        ('{"meta": {"group": []}, "benchmarks": ["a.json"]}', "group is a list, not text"),
        ('{"meta": {"a": 1}\n },\n "benchmarks": ["a.json"]}', "l.json:2:3: this is not JSON: extra data"),
    ],
)
def test_wrong_lists(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path / "a.json")
    (tmp_path / "l.json").write_text(text)
    with pytest.raises(InvalidInput) as error:
        read_specification(str(tmp_path / "l.json"), SpecOptions())
    assert said in str(error.value)


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ({"identifier": "x"}, ":19:3: the test has no commands, command, arguments or inputs"),
        ({"command": "a", "arguments": "b"}, "command and arguments exclude each other"),
        ({"command": "a", "metric": "dealy"}, "'dealy' is not a metric; did you mean 'delay'?"),
        ({"command": "a", "iter": "many"}, "iter is 'many', not a number of iterations"),
        ({"command": "a", "iter": 0}, "iter is 0, not a number of iterations"),
        ({"command": "a", "iter": 1.5}, "iter is 1.5, not a number"),
        ({"command": "a", "iter": "{warmup}"}, "iter is '{warmup}', not a number"),
        ({"command": "a", "timeout": -1}, "timeout is -1, not a number of seconds"),
        ({"command": ""}, "no commands"),
        ({"commands": ["a", " "]}, "the command is empty"),
        ({"commands": [1]}, "an item of commands is 1, not text"),
        ({"command": "a", "files": {"f": {"filename": "../../etc/passwd", "location": "x"}}}, "not the name of a file"),
        ({"command": "a", "files": {"f": {"filename": "a"}}}, "file 'f' has no location"),
        ({"command": "a", "files": {"f": {"location": "x", "md5": "12"}}}, "sum of 32 hexadecimal digits"),
        ({"command": "a", "output_files": {"o": {"filename": "a/b"}}}, "'a/b' is not the name of a file"),
        ({"command": "a", "platform_args": {"taskset": "zz"}}, "'zz' is not a mask of cores"),
        ({"command": "a", "cpu-list": "x"}, "'x' is not a list of cores"),
        ({"command": "a", "converter": {"name": "jsonconverter"}}, "unknown converter 'jsonconverter'"),
        ({"command": "a", "converter": {}}, "the converter has no name"),
        ({"command": "a", "env": "A"}, "'A' is not a list of variables"),
        ({"inputs": {"a": {"shapes": [[1, "x"]]}}}, "'x', not a dimension"),
        ({"inputs": {"a": {"shapes": ["x"]}}}, "'x', not a dimension"),
        ({"inputs": {"a": {"shapes": []}}}, "shapes is empty"),
        (
            {"inputs": {"a": {"shapes": [[1], [2], [3]]}, "b": {"shapes": [[1], [2]]}}},
            "2 items, where another input has 3",
        ),
        ({"inputs": {"data": {"shapes": [[1, 3, 8, 8], [1, 3]]}}}, "data has 2 dimensions here, but 4 in the model"),
        ({"command": "{a}", "a": "{b}", "b": "{a}"}, "placeholders refer to each other: {a} → {b} → {a}"),
    ],
)
def test_what_is_wrong_is_placed(tmp_path: Path, test: dict[str, Any], said: str) -> None:
    model = {"inputs": {"data": {"shapes": [["variable", 3, 8, 8]]}}}
    path = written(tmp_path / "s.json", model, {"identifier": "x", **test})
    with pytest.raises(InvalidInput) as error:
        read_specification(path, SpecOptions())
    assert str(error.value).startswith(f"{path}:")
    assert error.value.line is not None
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the specification is a list, not a map"),
        ('{"model": {"name": "a"}}', "has no tests"),
        ('{"tests": []}', "has no model"),
        ('{"model": {}, "tests": [{}]}', "the model has no name"),
        ('{"model": {"name": "a"}, "tests": []}', "there is no test"),
        ('{"model": {"name": "a"}, "tests": {}}', "tests is a map, not a list"),
        ('{"model": "a", "tests": [{}]}', "model is 'a', not a map"),
        ('{"model": {"name": "a"}, "tests": [nul', "this is not JSON"),
    ],
)
def test_what_is_no_specification(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"s\.json:1:"):
        read_specification(str(path), SpecOptions())
    with pytest.raises(InvalidInput) as error:
        read_specification(str(path), SpecOptions())
    assert said in str(error.value)


def test_a_key_that_nothing_uses_is_told_and_a_placeholder_is_not(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {"identifier": "x", "command": "a {itre}", "itre": 5, "wramup": 1, "mine": 2})
    misspelt, other = found.notes
    unused = "is not used: it is no key, and no placeholder names it"
    assert misspelt.endswith(f"spec.json:11: 'wramup' {unused}; did you mean 'warmup'?")
    assert other.endswith(f"spec.json:12: 'mine' {unused}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "s.json",
            '{"model": {"name": "a"}, "tests": [{"identifier": "x",\n "commands": ["a"],\n "commands": ["b"]}]}',
        ),
        ("s.yaml", "{model: {name: a}, tests: [{identifier: x,\n commands: [a],\n commands: [b]}]}"),
    ],
)
def test_a_key_given_twice_is_named_with_its_lines(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    (found,) = read_specification(str(path), SpecOptions())
    assert spec_of(found).commands == ("b",)
    assert found.notes == (f"{path}:3: 'commands' appears twice, first in line 2; the last one counts",)


def test_yaml_is_read_alike(tmp_path: Path) -> None:
    as_json = read(tmp_path, {"identifier": "{ID}", "inputs": INPUTS}, options=PROGRAM, files=FILES)
    path = tmp_path / "spec.yaml"
    path.write_text(
        "model:\n  name: net\n  format: caffe2\n  files:\n"
        f"    init: {json.dumps(FILES['init'])}\n    predict: {json.dumps(FILES['predict'])}\n"
        "tests:\n  - identifier: '{ID}'\n    inputs:\n      data: {shapes: [[1, 3, 8, 8], [4, 3, 8, 8]], type: float}\n"
    )
    kind = kind_for(str(path))
    assert kind is not None
    assert kind.name == "spec"
    as_yaml = read_specification(str(path), PROGRAM)
    drop = {"path": "", "line": 0}
    assert [msgspec.structs.replace(spec_of(b), **drop) for b in as_yaml] == [
        msgspec.structs.replace(spec_of(b), **drop) for b in as_json
    ]
    path.write_text("model: {name: a}\ntests:\n  - identifier: x\n    iter: many\n    command: a\n")
    with pytest.raises(InvalidInput, match=r"spec\.yaml:4:11: iter is 'many'"):
        read_specification(str(path), SpecOptions())


# -- the command line ---------------------------------------------------------------------------------------------------


def test_both_sides_of_info_are_paired_and_the_control_comes_first(tmp_path: Path) -> None:
    options = SpecOptions(
        treatment=RevisionInfo(commit="new", programs={"program": "/new"}),
        control=RevisionInfo(commit="old", programs={"program": "/old"}),
        programs={"helper": "/help"},
    )
    control, treatment = read(tmp_path, options=options)
    assert (control.name, treatment.name) == ("net-0 control", "net-0 treatment")
    assert control.pair == treatment.pair != ""
    assert (control.env["AIBENCH_TREATMENT_GROUP"], treatment.env["AIBENCH_TREATMENT_GROUP"]) == ("0", "1")
    assert spec_of(control).programs == {"program": "/old", "helper": "/help"}
    assert treatment.labels["commit"] == "new"


def test_the_backend_is_appended_to_the_command(tmp_path: Path) -> None:
    (found,) = read(tmp_path, options=SpecOptions(backends=("mkl",)), command_args="--fast")
    assert spec_of(found).arguments == ("--fast", "--backend mkl")
    assert found.labels["backend"] == "mkl"


@pytest.mark.compat
def test_the_framework_chooses_the_flags_of_2018(tmp_path: Path) -> None:
    test = {"identifier": "x", "inputs": INPUTS, "commands": {"caffe2": {"a": 1}, "tflite": {"b": 2}}}
    found = read(tmp_path, test, options=SpecOptions(framework="tflite", programs={"program": "/p"}))
    assert spec_of(found[0]).arguments == ("--b", "2")
    assert spec_of(found[0]).commands[0].startswith("{program} --graph=")


@pytest.mark.parametrize("name", ["result.json", "suite.yaml", "x.txt"])
def test_other_files_are_not_specifications(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        '{"context": {}, "benchmarks": [{"name": "BM"}]}' if name.endswith("json") else "one: {argv: [a]}\n"
    )
    kind = kind_for(str(path))
    assert kind is None or kind.name != "spec"


def test_a_specification_that_was_cut_off_is_still_one(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('{\n "model": {"name": "a", "fil')
    kind = kind_for(str(path))
    assert kind is not None
    assert kind.name == "spec"


def test_a_broken_file_of_a_list_fails_by_itself(tmp_path: Path) -> None:
    written(tmp_path / "good.json")
    (tmp_path / "broken.json").write_text('{"model": ')
    (tmp_path / "inner.json").write_text('{"benchmarks": ["good.json", "gone.json"]}')
    names = ["good.json", "broken.json", "inner.json"]
    (tmp_path / "list.json").write_text(json.dumps({"benchmarks": names}, indent=1))
    found = read_specification(str(tmp_path / "list.json"), PROGRAM)
    assert [b.name for b in found] == ["net-0", "broken", "net-0-2", "gone"]
    assert [b.fault is not None for b in found] == [False, True, False, True]
    assert "broken.json:1:" in (found[1].fault or "")
    assert found[1].source.endswith("list.json:4")
    assert len(specification_faults(str(tmp_path / "list.json"))) == 2


def test_a_list_of_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('{"benchmarks": ["gone.json", "list.json"]}')
    with pytest.raises(InvalidInput, match="no such file: gone"):
        read_specification(str(tmp_path / "list.json"), PROGRAM)
    assert len(specification_faults(str(tmp_path / "list.json"))) == 2


def test_steps_may_have_one_command_and_files_of_their_own(tmp_path: Path) -> None:
    steps = {"command": "{files.tool} a", "files": {"tool": {"filename": "tool.sh", "location": "tool.sh"}}}
    (found,) = read(tmp_path, {"identifier": "x", "command": "true", "preprocess": steps}, postprocess={"command": "b"})
    test = spec_of(found)
    assert test.preprocess is not None
    assert test.preprocess.commands == ("{files.tool} a",)
    assert test.last is not None
    assert test.last.commands == ("b",)
    assert [file.key for file in test.files] == ["tool"]


def test_patterns_are_not_looked_for_in_files(tmp_path: Path) -> None:
    output = {"o": {"location": "{TGTDIR}/o", "converter": {"name": "regex", "args": {"a": "([0-9]+)"}}}}
    with pytest.raises(InvalidInput, match="not its files"):
        read(tmp_path, {"identifier": "x", "command": "true", "output_files": output})
