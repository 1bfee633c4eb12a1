"""The one table of options: an option that does not apply to the target is refused, and says what it applies to."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.options.keywords import RunOptions
from benchwright.options.table import (
    COMMAND,
    ENDPOINT,
    LOOP,
    MODEL_FILE,
    MODELS,
    OPTIONS,
    SORTS,
    SPEC,
    SUITE,
    TASKS,
    ZOO,
    Option,
)
from benchwright.runner.requests import order_of
from benchwright.runner.run import resolve_order

# A value of each option that is well formed; those of a suite or a script are checked by it afterwards.
VALUES: dict[str, Any] = {
    "metrics": ("speed",),
    "as_": "command",
    "script_args": "--x 1",
    "python": sys.executable,
    "cwd": ".",
    "params": ("batch_size=1,2",),
    "sweep": "zip",
    "turns": "1s",
    "runtimes": ("torch-eager",),
    "devices": ("cpu",),
    "precisions": ("fp32",),
    "shapes": ("x=1x3",),
    "rebuild": "never",
    "build_timeout": "5m",
    "find_timeout": "5m",
    "scale": "tiny",
    "sequence_file": None,
    "tasks": ("one",),
    "set_flags": ("x=1",),
    "remove_flags": ("x",),
    "overrides": ("one.weight=2",),
    "select": ("one",),
    "exclude": ("two",),
    "capacity": "8GiB",
    "size": "auto",
    "format": "tasks",
    "loop": "train",
    "programs": ("true",),
    "info": '{"treatment": {"program": "true"}}',
    "string_map": '{"A": "b"}',
    "shared_libs": (".",),
    "root_model_dir": ".",
    "run_type": "verify",
    "regressed_types": "[]",
    "shard": "1/2",
    "stop_grace": "5s",
    "threads": "2",
    "streams": "2",
    "batch": "1,2",
    "search_dirs": (".",),
}


def value_of(option: Option) -> Any:
    if option.name in VALUES:
        return VALUES[option.name]
    return {"flag": True, "count": 2}.get(option.form, "x")


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """One target of each sort, as `order_of` takes it."""
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text("print(1)\n")
    Path("loop.py").write_text("from benchprobe import iterate\nfor x in iterate('train', [1]):\n    pass\n")
    Path("models.py").write_text("import torch\nmodel = torch.nn.Linear(2, 2)\nmodel(torch.ones(1, 2))\n")
    Path("model.onnx").write_bytes(b"\x08\x08")
    Path("tasks.cfg").write_text("[one]\ncommand_to_execute = python one.py\npatterns = ['(.*)']\nmetrics = ['m']\n"
                                 "compute_method = ['last']\n")  # fmt: skip
    Path("suite.yaml").write_text("one:\n  definition: .\n  plan: {method: njobs, n: 1}\n")
    Path("main.py").write_text("pass\n")
    Path("spec.json").write_text('{"model": {"name": "net"}, "tests": [{"identifier": "one", "command": "true"}]}')
    named = {TASKS: "tasks.cfg", SUITE: "suite.yaml", LOOP: "loop.py", MODELS: "models.py", MODEL_FILE: "model.onnx"}
    named |= {SPEC: "spec.json", ZOO: "transformers:bert", ENDPOINT: "openai:http://127.0.0.1:9/v1"}
    return {COMMAND: {"command": ("true",)}, **{sort: {"targets": (path,)} for sort, path in named.items()}}


# Refused before the benchmarks are known, in words of their own.
IN_OTHER_WORDS = ("params", "script_args", "all_scripts", "shard", "metrics_template")
LIMITED = [option.name for option in OPTIONS.values() if option.applies]


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("sort", SORTS)
def test_an_option_that_does_not_apply_says_what_it_applies_to(
    name: str, sort: str, targets: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    option = OPTIONS[name]
    if sort in option.applies:
        return  # whether it is obeyed is shown by the tests of its kind
    if (name, sort) == ("all_scripts", COMMAND):
        return  # what follows -- are arguments of the scripts
    needed = {"served_model": "m"} if sort == ENDPOINT else {}
    order = order_of({name: value_of(option), "base": str(tmp_path / "base"), **needed}, [name], **targets[sort])
    with pytest.raises(InvalidInput) as refused:
        resolve_order(order)
    said = str(refused.value)
    if name in IN_OTHER_WORDS:
        return
    assert re.search(
        rf"{option.flags[-1]}\b.* applies to {option.applies_to}, not to {SORTS[sort]}; leave it out", said
    )


@pytest.mark.parametrize("sort", SORTS)
def test_options_for_everything_and_for_this_are_taken(
    sort: str, targets: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    values = {"repeat": 2, "timeout": "5s", "labels": ("a=b",), "base": str(tmp_path / "base")}
    if sort == SUITE:
        values["use_current_env"] = True
    if sort == ENDPOINT:
        values["served_model"] = "m"
    resolved = resolve_order(order_of(values, list(values), **targets[sort]))
    assert [b.labels["a"] for b in resolved.benchmarks] == ["b"]


def test_one_target_of_many_that_an_option_applies_to_is_enough(
    targets: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    values = {"threads": "2", "commands": ("true",), "base": str(tmp_path / "base")}
    order = order_of(values, ["threads"], targets=targets[MODELS]["targets"])
    assert len(resolve_order(order).benchmarks) == 2


@pytest.mark.parametrize(
    ("word", "said"), [("one", "'one' is not a label"), ("a=b", "there is nothing to select from")]
)
def test_a_selection_that_would_select_nothing_of_a_script_is_refused(
    word: str, said: str, targets: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=said):
        resolve_order(order_of({"select": (word,), "base": str(tmp_path)}, ["select"], **targets[LOOP]))


def test_the_keywords_of_python_are_the_options_of_the_command_line() -> None:
    only_printed = {"show_output", "as_json", "dash", "quiet", "verbose"}
    assert set(RunOptions.__annotations__) == set(OPTIONS) - only_printed


def test_every_option_has_a_help_text_that_is_a_sentence() -> None:
    for option in OPTIONS.values():
        assert re.match(r"[A-Z].*[.\]]$", option.help), option.help
