"""Driver task files through the command line: what they compute, what they write, what is refused."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine

from benchwright.agent.machine.fingerprint import read_machine

Write = Callable[[str, str], Path]

PROGRAM = """
import sys
print("gpus", sys.argv[1:])
for n, speed in enumerate((800.0, 850.0, 840.0, 845.0, 835.0)):
    print(f"INFO:root:Epoch[0] Batch [{n}]\\tSpeed: {speed} samples/sec\\taccuracy=0.{n}")
print("[Epoch 0] time cost: 69.5")
print("[Epoch 0] validation: accuracy=-1e-4")
print("[Epoch 1] time cost: 60.5")
print("[Epoch 1] validation: accuracy=0.39")
"""
TASKS = r"""
[resnet_small]
patterns = ['Speed: (\d+\.\d+|\d+) samples/sec', 'Speed: (\d+\.\d+|\d+) samples/sec', 'time cost: (\d+\.\d+|\d+)', 'validation: accuracy=(\S+)', 'validation: accuracy=(\S+)']
metrics = ['speed', 'speed-p90', 'total_training_time', 'validation_acc', 'first_acc']
compute_method = ['average', 'p90', 'total', 'last', 'first']
command_to_execute = {python} train.py --gpus 8 --epochs 20 --kvstore device
num_gpus = 0

[crashes]
patterns = ['Speed: (\d+)']
metrics = ['speed']
compute_method = ['average']
command_to_execute = {python} -c "print('Speed: 5'); raise SystemExit(3)"
num_gpus = 0

[needs_gpus]
patterns = ['x (\d+)']
metrics = ['x']
compute_method = ['last']
command_to_execute = {python} train.py
num_gpus = 64

[metrics_speed_only]
patterns = ['Speed: (\d+\.\d+|\d+) samples/sec']
metrics = ['speed']
compute_method = ['max']
"""


@pytest.fixture
def tasks(bw: CommandLine) -> Path:
    """A task file in a folder of its own; commands run there, not where the user is."""
    folder = bw.cwd.parent / "tasks"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    path = folder / "tasks.cfg"
    path.write_text(TASKS.replace("{python}", sys.executable))
    return path


def written(bw: CommandLine) -> dict[str, float]:
    here = json.loads((bw.cwd / "dlbenchmark_result.json").read_text())
    assert json.loads((bw.last_run() / "dlbenchmark_result.json").read_text()) == here
    return dict(here)


@pytest.mark.compat
def test_a_task_writes_the_drivers_keys(bw: CommandLine, tasks: Path) -> None:
    bw("run", str(tasks), "--task", "resnet_small")
    found = written(bw)
    assert found["resnet_small.speed"] == pytest.approx(834.0)
    assert found["resnet_small.speed-p90"] == pytest.approx(848.0)
    assert found["resnet_small.total_training_time"] == pytest.approx(130.0)
    assert found["resnet_small.validation_acc"] == 0.39
    assert found["resnet_small.first_acc"] == -1e-4
    assert found["resnet_small.cpu_memory_usage"] > 1000
    assert found["resnet_small.uptime_in_seconds"] > 0


@pytest.mark.compat
def test_a_second_run_does_not_double_a_total(bw: CommandLine, tasks: Path) -> None:
    for _ in range(2):
        bw("run", str(tasks), "--task", "resnet_small")
        assert written(bw)["resnet_small.total_training_time"] == pytest.approx(130.0)


@pytest.mark.compat
def test_names_are_decorated_and_the_workers_count_divides_totals(bw: CommandLine, tasks: Path) -> None:
    args = ("run", str(tasks), "--task", "resnet_small", "--framework", "mxnet", "--metrics-suffix", "ci")
    bw(*args, env={"DEEPLEARNING_WORKERS_COUNT": "4"})
    assert written(bw)["mxnet.resnet_small.total_training_time.ci"] == pytest.approx(32.5)


@pytest.mark.compat
def test_a_failed_task_publishes_nothing_and_the_others_go_on(bw: CommandLine, tasks: Path) -> None:
    done = bw("run", str(tasks), code=1)
    assert "crashes  FAILED crashed: exit code 3" in done.stdout
    assert "needs 64 GPUs" in done.stdout
    assert not [key for key in written(bw) if not key.startswith("resnet_small.")]


def test_overrides_rewrite_the_command(bw: CommandLine, tasks: Path) -> None:
    args = (
        "plan",
        str(tasks),
        "--task",
        "resnet_small",
        "--json",
        "--epochs",
        "2",
        "--num-gpus",
        "0",
        "--kvstore",
        "local",
    )
    body = json.loads(bw(*args, "--set-flag", "batch-size=64").stdout)
    (job,) = body["benchmarks"][0]["jobs"]
    assert job["argv"][1:] == ["train.py", "--epochs", "2", "--kvstore", "local", "--batch-size", "64"]
    assert job["cwd"] == str(tasks.parent)


def test_an_override_without_effect_is_mentioned(bw: CommandLine, tasks: Path) -> None:
    done = bw("run", str(tasks), "--task", "resnet_small", "--dtype", "float16")
    assert "--dtype" in done.stdout


@pytest.mark.compat
def test_a_policy_reads_a_command_of_the_command_line(bw: CommandLine, tasks: Path) -> None:
    command = f"{sys.executable} {tasks.parent / 'train.py'}"
    bw("run", str(tasks), "--metrics-policy", "metrics_speed_only", "--command-to-execute", command, "--task", "mine")
    assert written(bw)["mine.speed"] == 850.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("[a]\n[b]\n[a]\n", ":3"),
        (
            "[a]\npatterns = ['x']\nmetrics = []\ncompute_method = []\ncommand_to_execute = true\n",
            "patterns 1, metrics 0, compute_method 0",
        ),
        (
            "[a]\npatterns = ['x']\nmetrics = ['x']\ncompute_method = ['avrage']\ncommand_to_execute = true\n",
            "did you mean 'average'",
        ),
    ],
)
def test_a_wrong_task_file_is_placed_and_exit_2(bw: CommandLine, script: Write, text: str, says: str) -> None:
    script("bad.cfg", text)
    done = bw("run", "bad.cfg", code=2)
    assert "bad.cfg" in done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_utf_8_is_placed(bw: CommandLine) -> None:
    (bw.cwd / "latin.cfg").write_bytes(b"[a]\ncommand_to_execute = echo \xe9\n")
    done = bw("run", "latin.cfg", code=2)
    assert "latin.cfg:2" in done.stderr
    assert "UTF-8" in done.stderr


def test_logs_are_discarded_as_the_driver_did(bw: CommandLine, tasks: Path) -> None:
    bw("run", str(tasks), "--task", "resnet_small", "--discard-logs")
    assert not list(bw.last_run().glob("*.log*"))


def test_a_task_file_behind_resume_is_the_target_not_the_name_of_a_run(bw: CommandLine, script: Write) -> None:
    script("tasks.cfg", "[a]\ncommand_to_execute = true\n")
    for target in (["tasks.cfg"], ["--", "true"]):
        bw("run", *target)
        path = bw.last_run() / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"ended": None}))  # as if it had been killed
    command = bw.last_run().name
    body = bw.json("run", "--resume", "tasks.cfg")
    assert body["results"][0]["benchmark"] == "a"
    assert body["id"] != command


@pytest.mark.compat
def test_a_task_that_needs_a_shell_is_run_by_one_and_every_report_says_so(bw: CommandLine) -> None:
    path = bw.cwd / "tasks.cfg"
    path.write_text(
        "[piped]\ncommand_to_execute = export N=3 && echo speed $N | cat\n"
        "patterns = ['speed (.)']\nmetrics = ['speed']\ncompute_method = ['last']\n"
    )
    bw("validate", "tasks.cfg")
    [planned] = json.loads(bw("plan", "tasks.cfg", "--json").stdout)["benchmarks"]
    assert planned["jobs"][0]["shell"]
    [result] = bw.json("run", "tasks.cfg")["results"]
    assert result["status"] == "ok"
    assert json.loads((bw.cwd / "dlbenchmark_result.json").read_text())["piped.speed"] == 3
    note = "piped runs in a shell: '&&' needs one"
    assert note in planned["notes"]
    for format in ("screen", "markdown", "html", "json"):
        assert "'&&' needs one" in html.unescape(bw("report", "last", "--format", format).stdout)


@pytest.mark.compat
def test_the_drivers_own_file_is_read_where_a_task_is_named_and_no_file(bw: CommandLine) -> None:
    assert "nothing to measure" in bw("run", "--task-name", "small", code=2).stderr
    (bw.cwd / "task_config_template.cfg").write_text(
        "[small]\ncommand_to_execute = true\n[other]\ncommand_to_execute = false\n"
    )
    body = bw.json("run", "--task-name", "small", "--framework", "mxnet")
    assert [(r["benchmark"], r["status"]) for r in body["results"]] == [("small", "ok")]
    assert "mxnet.small.cpu_memory_usage" in json.loads((bw.cwd / "dlbenchmark_result.json").read_text())
    assert "no task 'smal'; did you mean 'small'" in bw("plan", "--task-name", "smal", code=2).stderr


@pytest.mark.skipif(bool(read_machine().accelerators), reason="needs a machine without GPUs")
def test_a_task_for_gpus_is_shown_on_a_machine_without_them(bw: CommandLine) -> None:
    (bw.cwd / "tasks.cfg").write_text("[big]\ncommand_to_execute = python big.py --gpus 8\nnum_gpus = 8\n")
    text = bw("plan", "tasks.cfg").stdout
    assert "skipped: needs 8 GPUs, this machine has no GPU" in text
    assert "\n  python big.py --gpus 8\n" in text
    assert "--assume-gpus 8" in text
    [planned] = json.loads(bw("plan", "tasks.cfg", "--assume-gpus", "8", "--json").stdout)["benchmarks"]
    [job] = planned["jobs"]
    assert (planned["status"], job["argv"], job["devices"]) == (
        "planned",
        ["python", "big.py", "--gpus", "8"],
        [*range(8)],
    )
    [lacking] = json.loads(bw("plan", "tasks.cfg", "--assume-gpus", "4", "--json").stdout)["benchmarks"]
    assert lacking["reason"].startswith("needs 8 GPUs, this machine has 4")


def test_a_task_that_cannot_run_fails_with_its_reason_and_the_others_run(bw: CommandLine) -> None:
    path = bw.cwd / "tasks.cfg"
    path.write_text(
        "[quoted]\ncommand_to_execute = echo 'a\n[plain]\ncommand_to_execute = true\n[empty]\nnum_gpus = 1\n"
        "[latencies]\npatterns = ['x (.)']\nmetrics = ['x']\ncompute_method = ['last']\n"
    )
    planned = {b["name"]: b for b in json.loads(bw("plan", "tasks.cfg", "--json").stdout)["benchmarks"]}
    assert {name: b["status"] for name, b in planned.items()} == {
        "quoted": "failed", "plain": "planned", "empty": "failed",
    }  # fmt: skip
    body = bw.json("run", "tasks.cfg", code=1)
    results = {r["benchmark"]: r for r in body["results"]}
    assert {name: r["status"] for name, r in results.items()} == {
        "quoted": "failed", "plain": "ok", "empty": "failed",
    }  # fmt: skip
    assert results["quoted"]["reason"] == "misconfigured"
    assert "tasks.cfg:2:27: a quote (') opens here and never closes" in results["quoted"]["detail"]
    for format in ("screen", "csv", "markdown", "html", "json"):
        assert "misconfigured" in bw("report", "last", "--format", format).stdout
    faults = bw("validate", "tasks.cfg", code=2).stdout
    assert "never closes" in faults
    assert "[empty] has no command_to_execute" in faults
    assert bw("run", "--resume", code=2).stderr.startswith("benchwright: --resume: there is no unfinished run")
