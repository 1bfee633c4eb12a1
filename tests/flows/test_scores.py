"""A suite that is run, checked and scored through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine

LOOP = """
import sys, time
from benchprobe import give, iterate

for i, batch in enumerate(iterate("train", [[0] * 16] * 40, batch_size=16)):
    time.sleep(0.004)
    give(loss=1 / (i + 1))
"""
SUITE = """
loop: {definition: loop, weight: 2, plan: {method: njobs, n: 2}}
silent: {definition: silent, plan: {method: njobs, n: 1}}
crashing: {definition: crashing, weight: 0, plan: {method: njobs, n: 1}}
unused: {definition: loop, enabled: false}
"""


@pytest.fixture(scope="module")
def bw(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Where the suite has been run once, with every layer of validation that cannot depend on the machine's load."""
    folder = tmp_path_factory.mktemp("suite")
    for name, code in {"loop": LOOP, "silent": "pass", "crashing": "raise SystemExit('no luck')"}.items():
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(code)
    (folder / "suite.yaml").write_text(SUITE)
    bw = CommandLine(folder / "base", folder)
    bw("run", "suite.yaml", "--validations", "version,plausibility,usage", "--run-name", "first.{time}", code=1)
    return bw


def report(bw: CommandLine, *options: str) -> str:
    return bw("report", *options).stdout


def test_the_table_states_what_failed_and_the_score_is_over_the_rest(bw: CommandLine) -> None:
    text = report(bw)
    rows = [line.split() for line in text.splitlines()]
    assert next(row for row in rows if row[:2] == ["loop", "ok"])[4] == "items/s"
    assert next(row for row in rows if row[:2] == ["silent", "FAILED"])[3:5] == ["no", "data:"]
    assert "| no luck" in text
    assert "2 of 3 failed · score" in text
    assert "over 1 of 2" in text


def test_json_holds_the_checks_with_their_explanations(bw: CommandLine) -> None:
    body = json.loads(report(bw, "--format", "json"))
    (loop,) = (r for r in body["results"] if r["benchmark"] == "loop")
    verdicts = {c["layer"]: c["status"] for c in loop["checks"]}
    assert verdicts == {
        "error": "passed",
        "ensure_rate": "passed",
        "loss": "passed",
        "usage": "not_applicable",
        "version": "passed",
        "plausibility": "not_applicable",  # too short for another clock to tell
    }
    kept = json.loads((bw.last_run() / "run.json").read_text())
    assert [r["checks"] for r in kept["results"]][2] == [r["checks"] for r in body["results"]][2]
    (scored,) = (s for s in body["score"]["benchmarks"] if s["benchmark"] == "loop")
    assert 2 * 16 / 0.004 * 0.01 < scored["score"] < 2 * 16 / 0.004
    assert (scored["weight"], scored["processes"]) == (2.0, 2)


@pytest.mark.compat
def test_milabenchs_figures_weights_and_price(bw: CommandLine) -> None:
    (bw.cwd / "weights.yaml").write_text(
        "loop: {definition: loop, weight: 1}\nnew: {definition: loop, weight: 1}\n"
        "silent: {definition: silent, enabled: false}"
    )
    body = json.loads(report(bw, "--format", "json", "--score", "milabench", "--price", "100"))
    rows = {row["benchmark"]: row for row in body["milabench"]["benchmarks"]}
    assert (rows["loop"]["n"], rows["loop"]["fail"], rows["silent"]["fail"]) == (2, 0, 1)
    assert body["score"]["price_per_score"] == pytest.approx(100 / body["score"]["value"])
    other = json.loads(report(bw, "--format", "json", "--config", "weights.yaml"))["score"]
    assert {s["benchmark"]: s["weight"] for s in other["benchmarks"]} == {
        "loop": 1.0,
        "silent": 0.0,
        "crashing": 0.0,
        "new": 1.0,
    }
    assert other["missing"] == 1


def test_devices_another_run_and_a_page(bw: CommandLine, tmp_path: Path) -> None:
    assert ["benchmark", "0", "1"] in [line.split() for line in report(bw, "--per-device").splitlines()]
    assert "1.000" in report(bw, "--compare", "last")
    bw("report", "--html", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert 'id="score"' in page
    assert 'id="checks"' in page


def test_a_layer_that_does_not_exist_is_refused_before_anything_runs(bw: CommandLine) -> None:
    done = bw("run", "suite.yaml", "--validations", "plausable", code=2)
    assert "did you mean 'plausibility'?" in done.stderr
