"""`benchwright.benchmark_model`: a model of this process, measured, checked and kept like any other."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

import benchwright
from benchwright.core.errors import InvalidInput
from benchwright.core.status import Status

torch = pytest.importorskip("torch")


@pytest.fixture
def net() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(), torch.nn.Linear(32, 4))


def measured(net: Any, inputs: Any, base: Path, **options: Any) -> Any:
    return benchwright.benchmark_model(net, inputs, cache_dir=base, stop=20, warmup=2, **options)


def test_eager_is_measured_here_and_nothing_of_the_caller_changes(net: Any, tmp_path: Path) -> None:
    before, state, threads = {k: v.clone() for k, v in net.state_dict().items()}, torch.get_rng_state(), 0
    threads, folder = torch.get_num_threads(), os.getcwd()
    run = measured(net, torch.ones(8, 16), tmp_path, items=8, name="mlp", labels={"author": "me"}, threads=threads + 1)
    result = run.result("mlp@torch-eager")
    assert result.status is Status.OK
    (launch,) = result.launches
    assert len(launch.measurement("latency").samples) == 20
    assert launch.facts["check"]["ok"]
    assert launch.facts["items"]["items"] == 8
    assert launch.facts["model"]["class"] == "Sequential"
    assert net.training
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert "BENCHPROBE_CONFIG" not in os.environ
    assert os.getcwd() == folder
    assert "process that called benchmark_model" in repr(run)


def test_the_run_is_kept_and_found_by_every_command(net: Any, tmp_path: Path) -> None:
    run = measured(net, (torch.ones(2, 16),), tmp_path / "base", name="mlp", labels={"author": "me"}, repeat=2)
    bw = CommandLine(tmp_path / "base", tmp_path)
    assert "mlp@torch-eager" in bw("show", "last").stdout
    assert benchwright.load("last", base=tmp_path / "base") == run
    (name,) = (path.stem for path in (tmp_path / "base" / "labels").iterdir())
    assert name.startswith("mlp_me_")
    assert benchwright.load_labels(name, cache_dir=tmp_path / "base")["author"] == ["me"]
    assert "mlp" in bw("report", "--all").stdout
    assert len(run.result("mlp@torch-eager").counted) == 2


def test_a_build_is_made_here_measured_in_its_own_process_and_used_again(net: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    first = measured(net, {"input": torch.ones(2, 16)}, tmp_path, runtimes=["torch-eager", "onnxruntime"])
    build = first.result("Sequential@onnxruntime")
    assert build.status is Status.OK, build.detail
    (launch,) = build.launches
    assert launch.measurement("time.build").samples[0] > 0
    assert not any(step["cached"] for step in launch.facts["build"])
    assert launch.facts["check"]["ok"]
    assert launch.facts["python"]["executable"]
    again = measured(net, {"input": torch.ones(2, 16)}, tmp_path, runtimes="onnxruntime").result(
        "Sequential@onnxruntime"
    )
    assert all(step["cached"] for step in again.launches[0].facts["build"])
    with torch.no_grad():
        net[0].weight += 1
    other = measured(net, {"input": torch.ones(2, 16)}, tmp_path, runtimes="onnxruntime").result(
        "Sequential@onnxruntime"
    )
    assert not any(step["cached"] for step in other.launches[0].facts["build"])


class Broken(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        raise RuntimeError("no such kernel")


def test_a_model_that_fails_is_a_result(tmp_path: Path) -> None:
    result = measured(Broken(), torch.ones(1), tmp_path).result("Broken@torch-eager")
    assert result.status is Status.FAILED
    assert "no such kernel" in result.detail


def test_what_is_printed_meanwhile_is_in_the_log_and_not_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxscript")
    telling = logging.getLogger("telling")
    telling.addHandler(logging.StreamHandler())

    class Chatty(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            print("I am called")
            telling.warning("and warn")
            return 2 * x if x.sum() > 1 else x  # which cannot be exported

    run = measured(Chatty(), torch.ones(2), tmp_path, runtimes=["torch-eager", "onnxruntime"])
    telling.warning("as before")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "as before\n")
    assert run.result("Chatty@onnxruntime").status is Status.FAILED
    bw = CommandLine(tmp_path, tmp_path)
    log = bw("logs", "last", "Chatty@torch-eager").stdout
    assert "I am called" in log
    assert "and warn" in log
    assert "Traceback" in bw("logs", "last", "Chatty@onnxruntime").stdout


def test_a_handler_whose_stream_cannot_be_set_is_left_alone(
    net: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`dill` and `multiprocess` log this way: `logging._StderrHandler` computes its stream."""
    logger = logging.Logger("as dill's")
    logging.getLogger().manager.loggerDict["as dill's"] = logger
    logger.addHandler(logging._StderrHandler())  # type: ignore[attr-defined]
    made_meanwhile: list[logging.Handler] = []

    class Telling(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            if not made_meanwhile:
                made_meanwhile.append(logging.StreamHandler())
                logger.addHandler(made_meanwhile[0])
                logger.warning("once")
            return x

    try:
        run = measured(Telling(), torch.ones(2), tmp_path)
        logger.warning("afterwards")
    finally:
        del logging.getLogger().manager.loggerDict["as dill's"]
    assert run.result("Telling@torch-eager").status is Status.OK
    assert [each.filters for each in logger.handlers] == [[], []]
    assert capsys.readouterr().err == "afterwards\nafterwards\n"
    assert CommandLine(tmp_path, tmp_path)("logs", "last", "Telling@torch-eager").stdout.count("once") == 2


def test_the_example_of_the_notebooks_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "notebooks.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "benchmark_model" in block)
    assert '["torch-eager", "onnxruntime"]' in code
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(tmp_path))
    names: dict[str, Any] = {"bw": benchwright}
    exec(code.replace(', "onnxruntime"]', "], stop=20"), names)
    assert names["run"].result("mlp@torch-eager").status is Status.OK
    assert "mlp" in names["run"]._repr_html_()


def test_wrong_input_is_told(net: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"is not a torch\.nn\.Module"):
        measured(lambda x: x, torch.ones(1), tmp_path)
    with pytest.raises(InvalidInput, match="unknown runtime 'nothing'"):
        measured(net, torch.ones(1, 16), tmp_path, runtimes="nothing")
    with pytest.raises(TypeError, match="unexpected keyword argument 'script_args'"):
        measured(net, torch.ones(1, 16), tmp_path, script_args="x")
    assert not (tmp_path / "runs").exists()
