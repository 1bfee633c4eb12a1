"""Which loop counts, what its rate means and what is no result: real programs, each with a clock of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import CommandLine, metric

Write = Callable[[str, str], Path]

NESTED = """
import time
from benchprobe import iterate
for epoch in iterate("epoch", range(1000)):
    if epoch == EPOCHS: break
    for batch in iterate("train", range(100), batch_size=8):
        time.sleep(0.002)
"""
# The last line is what a stopwatch in the program says of the steps that count.
BURSTS = """
import time
from benchprobe import iterate
for i in iterate("train", range(300), batch_size=4):
    if i == 100: first = time.perf_counter()
    if i % 10 == 9: time.sleep(0.03)
    began = time.perf_counter()
    while time.perf_counter() < began + 0.001: pass
print("stopwatch", 4 * 200 / (time.perf_counter() - first))
"""
LOADER = """
import time
from benchprobe import iterate
def load():
    for i in range(200):
        if i % 8 == 7: time.sleep(0.03)
        yield i
for i in iterate("train", load(), batch_size=4):
    began = time.perf_counter()
    while time.perf_counter() < began + 0.001: pass
"""


def run(bw: CommandLine, *options: str, code: int = 0) -> dict[str, Any]:
    return bw.json("run", *options, code=code)


def notes(body: dict[str, Any]) -> str:
    return "\n".join(f"{n['text']} ({n['figure']})" for n in body["results"][0]["launches"][0]["notes"])


def test_the_loop_named_train_counts_though_it_stands_in_another(bw: CommandLine, script: Write) -> None:
    script("nested.py", NESTED.replace("EPOCHS", "3"))
    body = run(bw, "nested.py", "--warmup", "20")
    rate = metric(body, "rate")
    assert (rate["unit"], rate["labels"]["loop"]) == ("items/s", "train")
    assert 40 < rate["value"] < 4000
    assert 0.02 < metric(body, "epoch.rate")["value"] < 5


def test_a_loop_around_the_one_that_was_stopped_tells_nothing_wrong(bw: CommandLine, script: Write) -> None:
    """After the stop an epoch is an empty passage: 40,000 a second."""
    script("nested.py", NESTED.replace("EPOCHS", "-1"))
    body = run(bw, "nested.py", "--warmup", "20", "--stop", "330")
    assert metric(body, "rate")["labels"]["loop"] == "train"
    assert body["results"][0]["launches"][0]["facts"]["loops"][0]["steps"]["measured"] == 330
    assert 0.02 < metric(body, "epoch.rate")["value"] < 5


def test_a_loop_before_train_does_not_count_even_if_it_was_stopped(bw: CommandLine, script: Write) -> None:
    script(
        "sanity.py",
        "import time\nfrom benchprobe import iterate\n"
        "for _ in iterate('sanity', range(500), batch_size=1): time.sleep(0.001)\n"
        "for _ in iterate('train', range(500), batch_size=1): time.sleep(0.01)\n",
    )
    body = run(bw, "sanity.py", "--warmup", "5", "--stop", "50")
    (loop,) = body["results"][0]["launches"][0]["facts"]["loops"]
    assert (loop["name"], loop["steps"]) == ("train", {"warmup": 5, "measured": 50, "after": 0})
    assert metric(body, "rate")["value"] < 100
    assert metric(body, "rate")["value"] < metric(body, "sanity.rate")["value"] < 1000


def test_the_rate_is_what_a_stopwatch_says_in_every_format_and_the_median_step_stands_beside_it(
    bw: CommandLine, script: Write, tmp_path: Path
) -> None:
    script("bursts.py", BURSTS)
    body = run(bw, "bursts.py", "--warmup", "100")
    stopwatch = float(bw("logs").stdout.split()[-1])
    assert metric(body, "rate")["value"] == pytest.approx(stopwatch, rel=0.05)
    assert metric(body, "step_rate")["value"] > 1.5 * stopwatch
    assert "delivers less than its median step would, because of slow steps" in notes(body)
    shown = re.sub(r"\s+", " ", bw("report").stdout)
    assert "median step" in shown
    assert "because of slow steps" in shown
    value = metric(body, "rate")["value"]
    assert metric(bw.json("show"), "rate")["value"] == value
    table = bw("report", "--format", "csv").stdout.splitlines()
    heads = table[0].split(",")
    row = next(line.split(",") for line in table if line.split(",")[heads.index("metric")] == "rate")
    assert float(row[heads.index("value")]) == pytest.approx(value, rel=1e-6)
    texts = {f"{n:,}" for n in (int(value), round(value))}
    for name in ("markdown", "screen", "html"):
        shown = bw("report", "--format", name).stdout.replace("\u202f", ",")
        assert any(text in shown for text in texts), name
    assert "because of slow steps" in bw("report", "--format", "markdown").stdout
    exported = tmp_path / "run.json"
    bw("export", "--format", "json", "-o", str(exported))
    assert f'"value":{value!r}'[:14] in exported.read_text()


def test_waiting_for_data_has_its_own_line_and_is_named_as_the_reason(bw: CommandLine, script: Write) -> None:
    script("loader.py", LOADER)
    body = run(bw, "loader.py", "--warmup", "20")
    assert 20 < metric(body, "wait_share")["value"] < 95
    assert "because of waits for data" in notes(body)
    assert "waiting for data" in bw("report").stdout


def test_what_a_program_gives_never_joins_what_is_measured(bw: CommandLine, script: Write) -> None:
    script(
        "lies.py",
        "import time\nfrom benchprobe import give, iterate\n"
        "for _ in iterate('train', range(60), batch_size=1):\n    time.sleep(0.005)\n    give(rate=7.0, step_time=2.0)\n",
    )
    body = run(bw, "lies.py", "--warmup", "10")
    assert 10 < metric(body, "rate")["value"] <= 200
    assert metric(body, "step_time")["value"] < 0.1
    assert (metric(body, "given.rate")["value"], metric(body, "given.step_time")["value"]) == (7.0, 2.0)
    assert "the program's own 'rate' is shown as 'given.rate'" in notes(body)
    refused = bw("run", "--metric", r"process.duration=(\d+)", "--", "true", code=2)
    assert "is a name for what benchwright itself measures" in refused.stderr


@pytest.mark.parametrize(
    ("printed", "why"),
    [("nan", "speed is nan"), ("inf", "speed is inf"), ("0", "no rate can be"), ("-5", "no rate can be")],
)
def test_a_number_that_is_none_is_invalid(bw: CommandLine, printed: str, why: str) -> None:
    done = bw("run", "--metric", "speed=speed: (.*)", "--", "echo", f"speed: {printed}", code=1)
    assert "FAILED invalid" in done.stdout
    assert why in re.sub(r"\s+", " ", done.stdout)


def test_a_loop_without_a_step_is_no_success(bw: CommandLine, script: Write) -> None:
    script("empty.py", "from benchprobe import iterate\nfor _ in iterate('train', []): pass\n")
    done = bw("run", "empty.py", code=1)
    assert "loop 'train' completed no step" in re.sub(r"\s+", " ", done.stdout)


@pytest.mark.compat
@pytest.mark.parametrize("loss", ["nan", *(pytest.param(loss, marks=pytest.mark.long) for loss in ("inf", "-inf"))])
def test_a_diverged_loss_told_through_voir_fails_its_benchmark_and_no_other(
    bw: CommandLine, tmp_path: Path, loss: str
) -> None:
    """voir's lines, written as voir writes them; for so long that the loss is among what is told while it runs."""
    says = (
        "import json, os, time\nout = os.fdopen(int(os.environ['DATA_FD']), 'w')\n"
        "for i in range(30):\n"
        f"    for data in ({{'task': 'train', 'rate': 9.0, 'units': 'items/s'}}, {{'task': 'train', 'loss': float('{loss}')}}):\n"
        "        print(json.dumps(data), file=out, flush=True)\n    time.sleep(0.05)\n"
    )
    entries: dict[str, Any] = {}
    for name, text in (("diverges", says), ("after", says.replace(f"float('{loss}')", "0.5"))):
        folder = tmp_path / "suite" / name
        folder.mkdir(parents=True)
        (folder / "main.py").write_text(text)
        (folder / "voirfile.py").write_text("")
        voir = {"options": {"stop": 20, "interval": "50ms"}}
        entries[name] = {"definition": f"./{name}", "max_duration": 600, "plan": {"method": "per_gpu"}, "voir": voir}
        entries[name]["argv"] = {}
        entries[name]["install_variant"] = "unpinned"
    (tmp_path / "suite" / "suite.yaml").write_text(yaml.safe_dump(entries))
    body = bw.json("run", str(tmp_path / "suite" / "suite.yaml"), "--use-current-env", code=1)
    assert {r["benchmark"]: (r["status"], r["reason"]) for r in body["results"]} == {
        "diverges": ("failed", "invalid"),
        "after": ("ok", None),
    }


SLOW_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static long long first;
int clock_gettime(clockid_t id, struct timespec *t) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, t);
    if (id == CLOCK_MONOTONIC) {
        long long ns = t->tv_sec * 1000000000LL + t->tv_nsec;
        if (!first) first = ns;
        ns = first + (ns - first) / SLOWER;
        t->tv_sec = ns / 1000000000LL;
        t->tv_nsec = ns % 1000000000LL;
    }
    return done;
}
"""


@pytest.mark.parametrize(("slower", "steps"), [pytest.param(4, 60, marks=pytest.mark.long), (10, 10)])
def test_a_program_whose_clock_runs_slow_is_found_out_by_the_supervisors(
    bw: CommandLine, script: Write, tmp_path: Path, slower: int, steps: int
) -> None:
    """By its own clock every step takes a fraction of its time, so it seems to be that much faster."""
    source = tmp_path / "slow_clock.c"
    source.write_text(SLOW_CLOCK)
    library = tmp_path / "slow_clock.so"
    try:
        made = subprocess.run(
            ["cc", f"-DSLOWER={slower}", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("there is no C compiler here")
    assert made.returncode == 0, made.stderr
    script(
        "loop.py",
        "import select\nfrom benchprobe import iterate\n"
        f"for _ in iterate('train', range({steps}), batch_size=1): select.select([], [], [], 0.1)\n",
    )
    body = run(bw, "--env", f"LD_PRELOAD={library}", "loop.py", "--warmup", "2", code=1)
    (result,) = body["results"]
    assert result["reason"] == "invalid"
    assert "the supervisor's clock" in result["detail"]


def test_a_loop_of_one_step_says_why_it_has_no_rate(bw: CommandLine, script: Write) -> None:
    script("one.py", "from benchprobe import iterate\nfor i in iterate('train', range(1), batch_size=4): pass\n")
    told = notes(run(bw, "one.py", code=1))
    assert "loop 'train' has a single step, its warm-up, so it has no rate" in told
    assert "has a single step" in notes(run(bw, "--", "python", "one.py"))
    assert metric(run(bw, "one.py", "--warmup", "0"), "rate")["value"] > 0


def test_a_loop_in_two_threads_counts_once_and_says_so(bw: CommandLine, script: Write) -> None:
    script(
        "threads.py",
        "import threading, time\nfrom benchprobe import iterate\nmeeting = threading.Barrier(2)\n"
        "def work():\n    for i in iterate('train', range(20), batch_size=1):\n"
        "        if i == 0: meeting.wait()\n        time.sleep(0.002)\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "for each in threads: each.start()\nfor each in threads: each.join()\n",
    )
    told = notes(run(bw, "threads.py"))
    assert "loop 'train' also ran at the same time in another thread or task, where it was not counted (1 more)" in told
    assert "RANK" not in told
