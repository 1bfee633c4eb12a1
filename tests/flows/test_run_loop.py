"""Instrumented loops, measured through the command line and the Python API."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, metric

import benchwright

Write = Callable[[str, str], Path]
PY = sys.executable

LOOP = """
import sys, time
from benchprobe import give, iterate
count = 0
for batch in iterate("train", range(int(sys.argv[1])), batch_size=32):
    time.sleep(0.002)
    give(loss=1.0 / (batch + 1))
    count += 1
print("after the loop:", count)
"""


def test_a_script_with_a_loop_is_measured_for_exactly_the_steps_asked_for(bw: CommandLine, script: Write) -> None:
    script("loop.py", LOOP)
    body = bw.json("run", "loop.py", "--python", PY, "--script-args", "100000", "--stop", "40", "--warmup", "10")
    (launch,) = body["results"][0]["launches"]
    (loop,) = launch["facts"]["loops"]
    assert loop["steps"] == {"warmup": 10, "measured": 40, "after": 0}
    assert metric(body, "rate")["unit"] == "items/s"
    assert 100 < metric(body, "rate")["value"] < 16000
    assert "after the loop: 50" in bw("logs").stdout


def test_words_after_dashes_are_the_arguments_of_every_script_that_is_named(bw: CommandLine, script: Write) -> None:
    script("loop.py", LOOP)
    script(
        "other.py",
        "import sys\nfrom benchprobe import iterate\nprint(sys.argv[1:])\nfor _ in iterate('x', range(3)): pass\n",
    )
    bw("run", "other.py", "--script-args", "-a", "--python", PY, "--", "--epochs", "1", "a,--b c", "--repeat")
    assert bw("logs").stdout == "['-a', '--epochs', '1', 'a,--b c', '--repeat']\n"
    planned = bw.json("plan", "loop.py", "other.py", "-c", "true x", "--", "60")["benchmarks"]
    assert [each["jobs"][0]["argv"][-1] for each in planned] == ["60", "60", "x"]
    assert bw("plan", "other.py", "--").stdout.count("other.py\n") == 1
    assert bw.json("plan", "--", PY, "loop.py", "60")["benchmarks"][0]["jobs"][0]["argv"][1:] == ["loop.py", "60"]


def test_iterate_inside_a_command_joins_the_pattern_metrics(bw: CommandLine, script: Write) -> None:
    script("loop.py", LOOP)
    body = bw.json("run", "--metric", r"count=after the loop: (\d+)", "--warmup", "5", "--", PY, "loop.py", "60")
    assert metric(body, "count")["value"] == 60
    assert metric(body, "rate")["source"] == "loop"
    assert metric(body, "loss")["value"] == pytest.approx(1 / 60)


def test_jobs_of_one_launch_measure_together(bw: CommandLine, script: Write) -> None:
    script("loop.py", LOOP)
    body = bw.json(
        "run", "loop.py", "--python", PY, "--script-args", "100000", "--stop", "300", "--warmup", "20", "--jobs", "2"
    )
    (result,) = body["results"]
    assert [x["job"] for x in result["launches"]] == ["loop.py.0", "loop.py.1"]
    assert result["overlap"] is not None
    assert result["overlap"] > 0.3
    assert {m["labels"]["job"] for m in result["metrics"]} == {"0", "1"}
    for launch in result["launches"]:
        assert launch["facts"]["loops"][0]["steps"]["measured"] == 300


def test_a_diverging_loss_is_invalid(bw: CommandLine, script: Write) -> None:
    script(
        "nan.py",
        "from benchprobe import give, iterate\nfor n in iterate('train', range(50)):\n    give(loss=float('nan'))\n",
    )
    done = bw("run", "--", PY, "nan.py", code=1)
    assert "FAILED invalid" in done.stdout
    assert "loss became nan" in done.stdout


@pytest.mark.long
def test_a_real_torch_loop_is_measured(bw: CommandLine, script: Write) -> None:
    script(
        "real.py",
        """
import torch
from torch.utils.data import DataLoader, TensorDataset
from benchprobe import give, iterate
torch.set_num_threads(1)
model = torch.nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = DataLoader(TensorDataset(torch.randn(1000, 64), torch.randint(0, 4, (1000,))), batch_size=48)
for epoch in range(5):
    for x, y in iterate("train", data):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        give(loss=loss)
""",
    )
    body = bw.json("run", "--warmup", "21", "--", PY, "real.py")
    (loop,) = body["results"][0]["launches"][0]["facts"]["loops"]
    assert loop["steps"] == {"warmup": 21, "measured": 84, "after": 0}
    assert metric(body, "rate")["unit"] == "items/s"
    assert 0.5 < metric(body, "loss")["value"] < 3
    packages = (bw.last_run() / "packages.json").read_text()
    assert '"torch"' in packages


def test_the_python_api_returns_the_run(tmp_path: Path) -> None:
    run = benchwright.run([PY, "-c", "print('speed=5')"], metrics=["speed=kv:speed"], base=tmp_path)
    assert run.ok
    (result,) = run.results
    speed = result.launches[0].measurement("speed")
    assert speed is not None
    assert speed.samples == (5.0,)
    assert Path(run.folder).parent == tmp_path / "runs"


def test_a_program_that_changes_benchprobe_is_told_and_the_next_launch_has_ours(bw: CommandLine, script: Write) -> None:
    script(
        "tamper.py",
        "import benchprobe, os\n"
        "folder = os.path.dirname(benchprobe.__file__)\n"
        "print('read', 'tampered' in open(f'{folder}/loop/timed_loop.py').read())\n"
        "open(f'{folder}/loop/timed_loop.py', 'a').write('# tampered\\n')\n",
    )
    body = bw.json("run", "--repeat", "2", "--metric", "read=read (.*)", "--", PY, "tamper.py", code=None)
    notes = [note["text"] for note in body["notes"] if "benchprobe" in note["text"]]
    assert [note.split(" while ")[1].split(" ran")[0] for note in notes] == ["tamper.py.R0.D0", "tamper.py.R1.D0"]
    for format in ("screen", "markdown", "html", "json"):
        assert "files were changed while" in " ".join(bw("report", "last", "--format", format).stdout.split())


TOKENS = """
import sys, time
from benchprobe import give, iterate
give(**{"flops_per_item.fp32": 2e6})
for batch in iterate("train", range(40), batch_size=32, unit=sys.argv[1]):
    time.sleep(0.002)
"""


def test_what_a_loop_counts_is_said_wherever_its_rate_is(bw: CommandLine, script: Write) -> None:
    script("lm.py", TOKENS)
    asked = ("run", "--warmup", "5", "--run-name", "first", "--", PY, "lm.py", "tokens")
    assert " tokens/s" in bw(*asked).stdout
    for format_ in ("screen", "markdown", "html", "csv", "json"):
        assert "tokens/s" in bw("report", "first", "--format", format_).stdout, format_
    assert "tokens/s" in bw("show", "first").stdout
    bw("export", "first", "--format", "csv", "-o", "samples.csv")
    assert "tokens/s" in (bw.cwd / "samples.csv").read_text()
    stored = json.loads((bw.last_run() / "run.json").read_text())
    assert metric(stored, "rate")["unit"] == "tokens/s"
    with sqlite3.connect(bw.base / "store.db") as store:
        assert ("tokens/s",) in store.execute("select unit from series where metric = 'rate'").fetchall()
    assert "flops_per_item" not in bw("report", "first").stdout, "a fact of the benchmark, and no result"
    assert "(2 MFLOP an item)" in bw("show", "first").stdout


def test_a_unit_whose_items_are_only_guessed_says_so(bw: CommandLine, script: Write) -> None:
    script("guess.py", TOKENS.replace("batch_size=32, ", ""))
    done = bw("run", "--warmup", "5", "--", PY, "guess.py", "tokens")
    assert "tokens are counted by the size of each batch; give batch_size" in " ".join(done.stdout.split())
    assert " steps/s" in done.stdout
    assert " tokens/s" not in done.stdout


def test_runs_that_count_different_things_are_not_compared(bw: CommandLine, script: Write) -> None:
    script("lm.py", TOKENS)
    for name, unit in (("a", "tokens"), ("b", "images")):
        bw("run", "--warmup", "5", "--run-name", name, "--name", "lm", "--", PY, "lm.py", unit)
    done = bw("compare", "a", "b", "--anyway", code=None)
    assert "rate: measured in tokens/s in control, measured in images/s in treatment; not compared" in " ".join(
        done.stdout.split()
    )
    assert "same" not in done.stdout
