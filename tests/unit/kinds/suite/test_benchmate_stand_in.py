"""Our stand-in for benchmate: every name that milabench's public benchmarks use, and what each does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright.kinds.suite.benchfile.stand_in import STAND_IN

NAMES = """observer.BenchObserver monitor.voirfile_monitor monitor.bench_monitor monitor.log_patterns monitor.monitor_monogpu
monitor.multigpu_monitor monitor.setupvoir monitor.milabench_sys_monitor datagen.generate_fakeimagenet datagen.device_count
metrics.StopProgram metrics.give_push dataloader.imagenet_dataloader dataloader.dataloader_arguments progress.tqdm
hugginface.download_hf_dataset hugginface.download_hf_model timings.StepTimer profiler.jax_profiler
jaxmem.memory_peak_fetcher timeline.timeline ux.long_action toggles.get_observation_count benchrun.forward_voir_file""".split()


def printed(code: str, **env: str) -> str:
    environment = {"PYTHONPATH": STAND_IN, "PATH": "/usr/bin:/bin", **env}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pushed(code: str, **env: str) -> list[dict[str, Any]]:
    """What the code pushed, printed as lines of JSON."""
    return [json.loads(line) for line in printed(code, **env).splitlines() if line.startswith("{")]


def test_every_name_in_use_is_there() -> None:
    imports = "".join("from benchmate.{} import {}\n".format(*name.split(".")) for name in NAMES)
    assert len(NAMES) == 24
    printed(imports + "import sys\nassert 'torch' not in sys.modules, 'torch is imported for nothing'\n")


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("from benchmate.metrics import Sparkle", "benchmate.metrics.Sparkle"),
        ("import benchmate.warden", "benchmate.warden"),
        ("from benchmate import warden", "benchmate.warden"),
        ("import benchmate.ux as ux; ux.glow", "benchmate.ux.glow"),
    ],
)
def test_a_name_that_is_not_there_is_told_with_the_remedy(code: str, missing: str) -> None:
    said = printed(f"try:\n    {code}\nexcept ImportError as error:\n    print(error)\n")
    assert f"has no {missing};" in said
    assert "copy milabench's benchmate folder to beside benchmarks/" in said


LOOP = """
import time
from benchmate.metrics import StopProgram
from benchmate.observer import BenchObserver
observer = BenchObserver(earlystop=EARLY, raise_stop_program=RAISES, batch_size_fn=len)
loader = observer.loader([[1, 2], [3, 4], [5, 6]])
bodies = 0
try:
    for epoch in range(4):
        for batch in loader:
            time.sleep(0.02)
            observer.record_loss(float(sum(batch)))
            bodies += 1
except StopProgram:
    print("stopped")
print(bodies)
"""


def test_rates_come_at_the_end_of_an_epoch_and_exactly_as_many_as_asked_for() -> None:
    code = LOOP.replace("EARLY", "5").replace("RAISES", "True")
    found = pushed(code)
    rates = [one for one in found if "rate" in one]
    assert printed(code).splitlines()[-2:] == ["stopped", "5"]
    assert len(rates) == 5
    assert all(0 < one["rate"] <= 2 / 0.02 and one["units"] == "items/s" and one["task"] == "train" for one in rates)
    assert [one["loss"] for one in found if "loss" in one] == [3.0, 7.0, 11.0, 3.0, 7.0]
    order = ["rate" if "rate" in one else "loss" if "loss" in one else "." for one in found]
    assert order.index("rate") > order.index("loss") > 3, "something was pushed while the first epoch was timed"
    assert [one["progress"] for one in found if "progress" in one][-1] == [5, 5]


def test_without_raising_the_loops_end_and_the_environment_may_ask_for_fewer() -> None:
    code = LOOP.replace("EARLY", "5").replace("RAISES", "False")
    assert printed(code).splitlines()[-1] == "5"
    assert printed(code, BENCHMATE_OBSERVATION_COUNT="2").splitlines()[-1] == "2"
    counted = LOOP.replace("earlystop=EARLY, raise_stop_program=RAISES, ", "")
    assert printed(counted, VOIR_EARLYSTOP_COUNT="3", VOIR_EARLYSTOP_SKIP="1").splitlines()[-1] == "4"


def test_the_wait_for_the_first_batch_is_not_timed_and_later_ones_are() -> None:
    code = """
import time
from benchmate.observer import BenchObserver
def batches():
    for wait in (2.0, 0.1):
        time.sleep(wait)
        yield [1]
for _ in BenchObserver(earlystop=None, batch_size_fn=len).loader(batches()): pass
"""
    first, second = (one["elapsed"] for one in pushed(code) if "rate" in one)
    assert first < 2.0
    assert second >= 0.1


def test_other_ranks_say_nothing() -> None:
    assert pushed(LOOP.replace("EARLY", "5").replace("RAISES", "False"), RANK="1") == []


def test_with_gradient_accumulation_the_program_says_when_a_step_is_done() -> None:
    code = """
from benchmate.observer import BenchObserver
observer = BenchObserver(earlystop=2, batch_size_fn=len)
for number, _ in enumerate(observer.iterate([[1]] * 10, custom_step=True)):
    if number % 3 == 2: observer.step()
print(number)
"""
    assert printed(code).splitlines()[-1] == "5"
    assert len([one for one in pushed(code) if "rate" in one]) == 2


def test_a_step_timer_gives_the_rate_of_the_work_since_the_last() -> None:
    code = """
import time
from benchmate.metrics import give_push
from benchmate.timings import StepTimer
timer = StepTimer(give_push())
for _ in range(2):
    timer.step(3); timer.step(4); time.sleep(0.05); timer.end()
"""
    rates = [one["rate"] for one in pushed(code) if "rate" in one]
    assert len(rates) == 2
    assert all(rate <= 7 / 0.05 for rate in rates)


def test_pictures_are_made_once_in_imagenets_layout(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    script = tmp_path / "prepare.py"
    script.write_text(
        "from benchmate.datagen import generate_fakeimagenet\nif __name__ == '__main__':\n    generate_fakeimagenet()\n"
    )
    words = [
        sys.executable,
        str(script),
        "--batch-size",
        "5",
        "--batch-count",
        "4",
        "--image-size",
        "3",
        "8",
        "6",
        "--other",
    ]
    environment = {"PYTHONPATH": STAND_IN, "MILABENCH_DIR_DATA": str(tmp_path)}
    assert subprocess.run(words, env=environment).returncode == 0
    pictures = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.JPEG")}
    assert len(pictures) == 20 + 2 + 2
    assert tmp_path / "FakeImageNet" / "train" / "7" / "7_7.JPEG" in pictures
    assert tmp_path / "FakeImageNet" / "val" / "1" / "ILSVRC2012_val_00000001.JPEG" in pictures
    assert subprocess.run(words, env=environment).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.JPEG")} == pictures


def test_tokens_are_spread_over_the_time_of_their_request() -> None:
    code = """
import json
from benchmate.timeline import timeline
requests = [{"start_time": 10.0, "latency": 2.0, "output_tokens": 30, "prompt_len": 10},
            {"start_time": 11.0, "latency": 3.0, "output_tokens": 60, "prompt_len": 0}]
print(json.dumps({"parts": timeline(requests, 4)}))
"""
    (found,) = pushed(code)
    parts = found["parts"]
    assert [part["rate"] for part in parts] == pytest.approx([20, 40, 20, 20])
    assert sum(part["rate"] for part in parts) == pytest.approx(100), "tokens are lost"


def test_the_data_descriptor_reaches_what_torchrun_starts(tmp_path: Path) -> None:
    code = f"""
import os, subprocess, sys
from benchmate.benchrun import forward_voir_file
file = os.open({str(tmp_path / "data")!r}, os.O_WRONLY | os.O_CREAT)
os.environ["DATA_FD"] = str(file)
child = [sys.executable, "-c", "import os; os.write(int(os.environ['DATA_FD']), b'here')"]
outside = subprocess.call(child, stderr=subprocess.DEVNULL)
with forward_voir_file():
    inside = subprocess.call(child)
print(outside != 0, inside == 0, subprocess.call(child, stderr=subprocess.DEVNULL) != 0)
"""
    assert printed(code).strip() == "True True True"
    assert (tmp_path / "data").read_bytes() == b"here"
