"""What an entry of a suite becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark, Environment, Launcher, Placement, Runner, Script, Serving
from benchwright.core.errors import InvalidInput
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.kinds.metric_option import parse_metric_option
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.folder import argv_words
from benchwright.kinds.suite.read.suite import refuse_unrunnable, suite_file
from benchwright.options.table import Options


def one(folder: Path, keys: str, options: Options = Options()) -> Benchmark:  # noqa: B008
    """The benchmark of an entry with these keys, in flow style."""
    path = folder / "s.yaml"
    path.write_text(f"bench: {{definition: code, {keys}}}\n")
    (found,) = SuiteKind().read(str(path), options)
    return found


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "main.py").write_text("print(1)\n")
    return folder


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (None, ()),
        ({}, ()),
        ({"--flag": True, "word": True, "--no": False, "--none": None}, ("word", "--flag")),
        ({"--epochs": 5, "dqn": True, "--": ["x"], "--lr": 0.1}, ("dqn", "--epochs", "5", "x", "--lr", "0.1")),
        (
            {"--lr": 0.01, "--n": 3, "--s": "a b", "--empty": ""},
            ("--lr", "0.01", "--n", "3", "--s", "a b", "--empty", ""),
        ),
        ({"--list": [1, "b", 2.5], "--: ": 1}, ("--list", "1,b,2.5", "--: ", "1")),
        ({"-x": 1, "--": ["-p", "n:16", 3]}, ("-x", "1", "-p", "n:16", "3")),
        ({"--": "one"}, ("one",)),
        (["a", 1, True, "{x}"], ("a", "1", "True", "{x}")),
        ({"append": ["a"]}, ("a",)),
    ],
)
def test_arguments_become_words(argv: Any, words: tuple[str, ...]) -> None:
    assert argv_words(argv) == words


def test_an_entry_may_have_the_name_of_a_system_files_key(tmp_path: Path) -> None:
    suite, system = tmp_path / "suite.yaml", tmp_path / "system.yaml"
    suite.write_text("nodes: {definition: code}\narch: {definition: code}\n")
    system.write_text("nodes: [{name: a, ip: localhost}]\n")
    assert [SuiteKind().recognises(str(path)) for path in (suite, system)] == [True, False]


def test_an_entry_with_nothing_but_a_folder(tmp_path: Path, code: Path) -> None:
    found = one(tmp_path, "")
    assert found.name == "bench"
    assert found.workload == Script(path=str(code / "main.py"), args=(), cwd=str(code), python="")
    assert found.source == f"{tmp_path / 's.yaml'}:1 [bench]"
    assert found.timeout_s == 600
    assert found.placement == Placement(numbered=True)
    assert (found.stop, found.warmup, found.weight, found.enabled) == (None, Warmup(), 1.0, True)
    assert found.folder is not None
    assert (found.folder.group, found.folder.runner) == ("bench", None)
    assert found.environment == Environment(name="bench", folder=str(code))
    assert found.folder.prepare_script is None
    assert found.notes == ()
    assert suite_file(found) == str(tmp_path / "s.yaml")


@pytest.mark.parametrize(
    ("plan", "placement"),
    [
        ("{method: per_gpu}", Placement(per_device=True)),
        ("{method: per-gpu, n: 4}", Placement(per_device=True)),
        ("{method: njobs, n: 3}", Placement(jobs=3, numbered=True)),
        ("{method: n_jobs}", Placement(numbered=True)),
        ("{method: njobs, n: 1}, num_machines: 2", Placement(numbered=True, machines=2)),
    ],
)
def test_plans(tmp_path: Path, code: Path, plan: str, placement: Placement) -> None:
    assert one(tmp_path, f"plan: {plan}").placement == placement


@pytest.mark.parametrize(
    ("keys", "stop", "warmup"),
    [
        pytest.param("voir: {options: {stop: 60, interval: 1s}}", StopRule(observations=60), Warmup(), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 20}}", StopRule(observations=20, interval_s=1.0), Warmup(), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 20, interval: 500ms, skip: 4}}", StopRule(observations=20, interval_s=0.5), Warmup(seconds=2.0), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 3, interval: 10, skip: 2}}", StopRule(steps=30), Warmup(steps=20), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 3, skip: 0}}", StopRule(observations=3), Warmup(steps=0), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 0}}", None, Warmup(), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: {steps: 7}}}", StopRule(steps=7), Warmup(), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: {seconds: 2m}}}", StopRule(seconds=120.0), Warmup(), marks=pytest.mark.compat),
        pytest.param("voir: {options: {stop: 60}}, stop: {steps: 5}, warmup: 3", StopRule(steps=5), Warmup(steps=3), marks=pytest.mark.compat),
        ("stop: {observations: 4, interval: 2s}, warmup: {seconds: 1.5}", StopRule(observations=4, interval_s=2.0), Warmup(seconds=1.5)),
        ("stop: {precision: 1%}, warmup: auto", StopRule(precision=0.01), Warmup()),
        ("stop: {precision: 0.05}", StopRule(precision=0.05), Warmup()),
        ("stop: 30s, warmup: 5s", StopRule(seconds=30.0), Warmup(seconds=5.0)),
        ("stop: 100", StopRule(steps=100), Warmup()),
        ("stop: 1%", StopRule(precision=0.01), Warmup()),
        ("weight: 7, stop: \"${weight}\"", StopRule(steps=7), Warmup()),
        pytest.param("voir: null", None, Warmup(), marks=pytest.mark.compat),
    ],
)  # fmt: skip
def test_stop_rules(tmp_path: Path, code: Path, keys: str, stop: StopRule | None, warmup: Warmup) -> None:
    found = one(tmp_path, keys)
    assert (found.stop, found.warmup) == (stop, warmup)


@pytest.mark.compat
def test_observations_of_steps_are_told(tmp_path: Path, code: Path) -> None:
    assert one(tmp_path, "voir: {options: {stop: 3, interval: 10}}").notes == (
        "3 observations of 10 steps are measured as 30 steps",
    )


@pytest.mark.parametrize(
    ("keys", "launcher"),
    [
        ("launcher: torchrun", Launcher(name="torchrun")),
        ("plan: {launcher: accelerate}", Launcher(name="accelerate")),
        ("launcher: {name: torchrun, processes: 4, args: {--max-restarts: 0}}", Launcher(name="torchrun", processes=4, args=("--max-restarts", "0"))),
        ("accelerate: [--mixed_precision=bf16]", Launcher(name="accelerate", args=("--mixed_precision=bf16",))),
        ("torchrun: true", Launcher(name="torchrun")),
        ("torchrun: false", None),
    ],
)  # fmt: skip
def test_launchers(tmp_path: Path, code: Path, keys: str, launcher: Launcher | None) -> None:
    folder = one(tmp_path, keys).folder
    assert folder is not None
    assert folder.launcher == launcher


def test_everything_else_an_entry_may_say(tmp_path: Path, code: Path) -> None:
    found = one(
        tmp_path,
        "argv: {--a: 1}, client: {argv: [-c], script: client.py}, server: {argv: {--port: 80}, script: serve, ready: 'tcp:x:80', ready_timeout: 2m},"
        " env: {A: 1, B: null, C: true}, metrics: {loss: null, 'speed[x/s]': 'v=(.*)'}, labels: {k: 3}, tags: [b, a, b, 7], weight: 2, loop: train,"
        " requires_capabilities: gpu, validation: {usage: {gpu_load_threshold: 0.1}}, max_duration: 10m, group: g, install_group: i,"
        " install_variant: unpinned, pip: {constraints: [x<2], args: '--pre  -q'}, prepare: get.py",
    )
    folder = found.folder
    assert folder is not None
    assert isinstance(found.workload, Script)
    assert found.workload.args == ("--a", "1", "-c")
    assert found.workload.path == str(code / "client.py")
    assert folder.serving == Serving(script="serve", args=("--port", "80"), ready="tcp:x:80", ready_timeout_s=120.0)
    assert found.env == {"A": "1", "B": None, "C": "true"}
    assert found.metrics == (parse_metric_option("loss"), parse_metric_option("speed[x/s]=v=(.*)"))
    assert found.labels == {"k": "3"}
    assert found.tags == ("b", "a", "7")
    assert (found.weight, found.loop, found.timeout_s, found.requires) == (2.0, "train", 600.0, ("gpu",))
    assert found.validation == {"usage": {"gpu_load_threshold": 0.1}}
    assert (folder.group, folder.prepare_script) == ("g", "get.py")
    assert found.environment == Environment(
        name="i", folder=str(code), variant="unpinned", constraints=("x<2",), pip_args=("--pre", "-q")
    )
    assert folder.config["server"]["script"] == "serve"


def test_metrics_of_the_command_line_are_added(tmp_path: Path, code: Path) -> None:
    more = Options(metrics=("b",))
    assert [m.name for m in one(tmp_path, "metrics: {a: null}", more).metrics] == ["a", "b"]
    with pytest.raises(InvalidInput, match="metric 'b' is given twice"):
        one(tmp_path, "metrics: {b: null}", more)


def test_the_values_of_a_matrix_are_parameters(tmp_path: Path, code: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("\n\nm:\n  matrix: {n: [1, 2], p: fp16}\n  job: {name: 'm{n}', definition: code, argv: ['{n}']}\n")
    found = SuiteKind().read(str(path), Options())
    assert [(b.name, b.parameters, b.workload.args) for b in found if isinstance(b.workload, Script)] == [
        ("m1", {"n": "1", "p": "fp16"}, ("1",)),
        ("m2", {"n": "2", "p": "fp16"}, ("2",)),
    ]
    assert {b.source for b in found} == {f"{path}:3 [m1]", f"{path}:3 [m2]"}


def test_keys_that_json_cannot_hold_are_written_as_text(tmp_path: Path, code: Path) -> None:
    folder = one(tmp_path, "argv: {yes: 1, 3: 4}, x-y: {1.5: .inf, null: 123456789012345678901234567890}").folder
    assert folder is not None
    assert folder.config["argv"] == {"true": 1, "3": 4}
    assert folder.config["x-y"] == {"1.5": "inf", "null": "123456789012345678901234567890"}


# --- the folder -----------------------------------------------------------------------------------------------------


@pytest.mark.compat
def test_a_folder_with_a_voirfile_is_run_by_voir(tmp_path: Path, code: Path) -> None:
    (code / "voirfile.py").write_text("")
    folder = one(tmp_path, "voir: {options: {stop: 5, dash: true}}").folder
    assert folder is not None
    assert folder.runner == Runner(name="voir", dialect="milabench", settings={"options": {"stop": 5, "dash": True}})


@pytest.mark.compat
def test_attributes_of_a_benchfile_are_used_and_the_entry_wins(tmp_path: Path, code: Path) -> None:
    (code / "benchfile.py").write_text(
        "from milabench.pack import Package\nclass P(Package):\n    main_script = 'go.py'\n    base_requirements = ['a.in', 'b.in']\n__pack__ = P\n"
    )
    found = one(tmp_path, "")
    assert found.folder is not None
    assert found.environment is not None
    assert (found.folder.main_script, found.environment.requirements) == ("go.py", ("a.in", "b.in"))
    assert one(tmp_path, "main: other.py").workload == Script(
        path=str(code / "other.py"), args=(), cwd=str(code), python=""
    )


def test_a_missing_folder_is_noted_and_refused_only_for_a_run(tmp_path: Path) -> None:
    found = one(tmp_path, "")
    assert found.notes == (f"its folder {tmp_path / 'code'} is missing",)
    with pytest.raises(InvalidInput, match="is missing; check 'definition' of its entry"):
        refuse_unrunnable([found])


@pytest.mark.compat
def test_a_benchfile_that_is_broken_is_noted_and_refused_only_for_a_run(tmp_path: Path, code: Path) -> None:
    (code / "benchfile.py").write_text("from milabench.pack import Package\nclass P(Package:\n")
    found = one(tmp_path, "")
    assert len(found.notes) == 1
    assert "it cannot run as it is: this is not Python" in found.notes[0]
    with pytest.raises(InvalidInput, match="not Python"):
        refuse_unrunnable([found])
    refuse_unrunnable([one(tmp_path, "x-benchfile: attributes")])


def test_a_missing_script_is_refused(tmp_path: Path, code: Path) -> None:
    (code / "main.py").unlink()
    with pytest.raises(InvalidInput, match=r"there is no script .*main\.py; write it"):
        refuse_unrunnable([one(tmp_path, "")])
    (code / "main.py").write_text("")
    refuse_unrunnable([one(tmp_path, "")])


@pytest.mark.parametrize(("written", "expected"), [("'3.12'", "3.12"), ("bin/python", "{code}/bin/python")])
def test_an_entry_may_name_its_interpreter(tmp_path: Path, code: Path, written: str, expected: str) -> None:
    environment = one(tmp_path, f"venv: {{python: {written}}}").environment
    assert environment is not None
    assert environment.python == expected.format(code=code)


def test_a_definition_from_git_has_a_place_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "a: {definition: {git: 'https://example.org/x/flops.git'}}\nb: {definition: {git: 'https://example.org/x/flops.git', branch: dev}}\n"
    )
    first, second = (b.folder for b in SuiteKind().read(str(path), Options(base="/base")))
    assert first is not None
    assert second is not None
    assert (first.git, first.branch, second.branch) == ("https://example.org/x/flops.git", "main", "dev")
    assert first.path.startswith("/base/extra/.definitions/flops-")
    assert first.path != second.path
