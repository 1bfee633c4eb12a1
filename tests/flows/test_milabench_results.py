"""milabench's results in, and ours out as milabench has them, by the command line."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.compat

RUNS = Path(__file__).parents[1] / "compat" / "imports" / "milabench"
LOOP = (
    "from benchprobe import iterate, give\nfor n in iterate('train', range(50), batch_size=4): give(loss=1 / (n + 1))\n"
)


def test_their_runs_are_imported_once_and_give_their_figures(bw: CommandLine) -> None:
    first = bw("import", "milabench", str(RUNS / "rijubigo.2023-03-24")).stdout
    assert "1 benchmarks, imported" in first
    assert "already imported" in bw("import", str(RUNS / "rijubigo.2023-03-24")).stdout
    report = bw("report", "--score", "milabench").stdout
    for figure in ("7979.82", "2.9%", "17.2%", "7980.82"):
        assert figure in report


def test_a_benchmark_that_they_skipped_is_skipped_here_and_costs_no_score(bw: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "skipping"
    shutil.copytree(RUNS / "rijubigo.2023-03-24", folder)
    text = "Skip llm-nodes because the following capability is not satisfied: len(nodes) >= 2"
    line = {"event": "message", "data": {"message": text}, "pipe": None}
    (folder / "llm-nodes.data").write_text(json.dumps(line) + "\n")
    assert "2 benchmarks, imported" in bw("import", "milabench", str(folder)).stdout
    report = bw("report", "--score", "milabench").stdout
    assert "Score: 7980.82" in report
    why = "llm-nodes (lacks capability: needs len(nodes) >= 2, which did not hold there)"
    assert f"not in milabench's report: {why}" in " ".join(report.split())
    assert "went away" not in report
    assert "no end" not in report


def test_their_energy_columns_are_shown_where_power_was_recorded(bw: CommandLine, tmp_path: Path) -> None:
    config = {"name": "bert", "tag": ["bert", "D0"], "device": 0, "weight": 2.0, "enabled": False}
    said: list[tuple[str, object]] = [("config", config), ("start", {"command": ["x"], "time": 1750000000.0})]
    for n in range(3):
        gpu = {"0": {"memory": [9, 99], "load": 0.5, "power": 250.0}}
        said.append(("data", {"task": "main", "gpudata": gpu, "time": 1750000001.0 + 4 * n}))
        said.append(("data", {"task": "train", "rate": 30.0, "units": "items/s"}))
    said.append(("end", {"command": ["x"], "time": 1750000010.0, "return_code": 0}))
    (tmp_path / "power").mkdir()
    text = "".join(json.dumps({"event": kind, "data": data, "pipe": None}) + "\n" for kind, data in said)
    (tmp_path / "power" / "bert.D0.data").write_text(text)
    body = json.loads(bw("report", str(tmp_path / "power"), "--score", "milabench", "--json").stdout)
    (row,) = body["milabench"]["benchmarks"]
    figures = {key: row[key] for key in ("ngpu", "energy_kj", "perf_watt", "weight", "enabled")}
    assert figures == {"ngpu": 1, "energy_kj": 2.0, "perf_watt": 120.0, "weight": 2.0, "enabled": False}
    table = bw("report", str(tmp_path / "power"), "--score", "milabench", "--format", "markdown").stdout
    assert "| enabled | energy | perf\\_watt |" in table


def test_a_benchmark_without_rates_has_null_in_json(bw: CommandLine) -> None:
    replay = str(RUNS / "replays" / "ensure_rate.data")
    (row,) = json.loads(bw("report", replay, "--score", "milabench", "--json").stdout)["milabench"]["benchmarks"]
    assert (row["perf"], row["sem"], row["std"], row["fail"]) == (None, None, None, 1)


def test_a_folder_of_replays_is_imported(bw: CommandLine, tmp_path: Path) -> None:
    for file in (RUNS / "replays").glob("*.data"):
        shutil.copy(file, tmp_path / f"{file.stem}.txt")
    assert "2 benchmarks, imported" in bw("import", "milabench", str(tmp_path)).stdout
    assert "2 benchmarks, already imported" in bw("import", str(tmp_path)).stdout
    assert "davit_large-multi" in bw("report", "--score", "milabench").stdout


def test_several_runs_are_pooled_in_one_table(bw: CommandLine, tmp_path: Path) -> None:
    halves = []
    for repeat in ("R0", "R1"):
        folder = tmp_path / repeat
        folder.mkdir()
        for file in (RUNS / "rijubigo.2023-03-24").glob(f"*.{repeat}.data"):
            shutil.copy(file, folder)
        halves.append(str(folder))
    report = bw("report", *halves, "--score", "milabench").stdout
    assert report.count("Score:") == 1
    assert [line.split()[:3] for line in report.splitlines() if line.startswith(" benchio")] == [["benchio", "0", "4"]]
    for figure in ("7979.82", "2.9%", "17.2%", "Score: 7980.82"):
        assert figure in report
    body = json.loads(bw("report", *halves, "--score", "milabench", "--json").stdout)
    assert [run["milabench"]["benchmarks"][0]["n"] for run in body["runs"]] == [2, 2]
    assert (body["milabench"]["benchmarks"][0]["n"], round(body["milabench"]["score"], 2)) == (4, 7980.82)
    assert "7980.82" in bw("report", *halves, "--score", "milabench", "--format", "markdown").stdout
    page = bw("report", *halves, "--score", "milabench", "--format", "html").stdout
    assert "7980.82" in page
    assert "Score: 7980.82" not in bw("report", *halves).stdout  # ours is never pooled


def test_what_is_not_theirs_is_refused_with_its_place(bw: CommandLine, tmp_path: Path) -> None:
    other = tmp_path / "x.data"
    other.write_text('{"event": "stream"}\n')
    assert f"{other}:1: not a file of milabench" in bw("import", "milabench", str(other), code=2).stderr
    assert "/nowhere" in bw("import", "milabench", "/nowhere", code=2).stderr


def test_a_run_of_ours_goes_out_and_comes_back(bw: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    bw("run", str(script), "--python", sys.executable, "--repeat", "2", "--stop", "20steps", "--name", "train")
    bw("export", "--format", "milabench", "-o", str(tmp_path / "out"))
    files = sorted(path.name for path in (tmp_path / "out").glob("*/*.data"))
    assert files == ["train.R0.D0.data", "train.R1.D0.data"]
    (imported,) = bw("import", "milabench", str(tmp_path / "out")).stdout.splitlines()
    bw("export", imported.partition(":")[0], "-o", str(tmp_path / "again.json"))
    bw("export", "last", "-o", str(tmp_path / "ours.json"))
    ours, again = (json.loads((tmp_path / f"{name}.json").read_text())["runs"][0] for name in ("ours", "again"))
    for before, after in zip(ours["results"][0]["launches"], again["results"][0]["launches"], strict=True):
        for metric in ("rate", "loss"):
            (was,) = [m for m in before["measurements"] if m["metric"] == metric]
            (now,) = [m for m in after["measurements"] if m["metric"] == metric]
            assert now["samples"] == [*was["warmup_samples"], *was["samples"]]
