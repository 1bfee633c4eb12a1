"""`benchwright doctor`, as a user runs it. What it finds depends on the machine; what it says about that must agree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from benchwright.doctor import check as doctor

SEVERITIES = {"ok", "warning", "error", "unknown"}


def check_agreement(body: dict[str, Any], code: int) -> None:
    """The schema, and that verdict, reasons and exit code say the same."""
    assert body["version"] == 2
    kinds = [note["kind"] for note in body["notes"]]
    assert len(set(kinds)) == len(kinds)
    for note in body["notes"]:
        assert set(note) == {"kind", "severity", "text", "remedy"}
        assert note["severity"] in SEVERITIES
        assert note["text"]
        assert note["remedy"] or note["severity"] not in ("warning", "error"), note
    assert body["errors"] == [note["kind"] for note in body["notes"] if note["severity"] == "error"]
    assert code == (1 if body["errors"] else 0)
    assert (body["verdict"] == "error") == bool(body["errors"])
    assert body["machine"]["cores"] >= 1


@pytest.mark.long
def test_the_noise_is_measured_and_told_in_json(bw: CommandLine) -> None:
    done = bw("doctor", "--json", code=None)
    assert done.stderr == ""
    body = json.loads(done.stdout)
    check_agreement(body, done.returncode)
    assert [n["metric"] for n in body["noise"]] == ["process.duration", "process.cpu_time"]
    for noise in body["noise"]:
        assert noise["launches"] == 12
        assert [len(pair) for pair in noise["pairs_s"]] == [2] * 6
        assert 0.02 < noise["median_s"] < 30
        assert noise["interval_95"][0] <= noise["ratio"] <= noise["interval_95"][1]
        assert noise["floor"] > 0
        assert noise["spread"] > 0
        assert noise["detectable"]["6"] > noise["detectable"]["12"] > noise["detectable"]["20"] > 0
    kinds = {note["kind"] for note in body["notes"]}
    assert {"noise.wall", "noise.cpu"} <= kinds
    assert not bw.base.exists()


def test_on_a_screen_of_eighty_columns(bw: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PROGRAM", "sum(range(500_000))")  # how noisy it is does not matter here
    done = bw("doctor", code=None)
    assert done.returncode in (0, 1)
    assert "\x1b" not in done.stdout + done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if str(bw.base) not in line) <= 80
    assert "noise floor ±" in done.stdout
    assert "14 launches" in done.stderr
    assert ("cannot be trusted" in done.stdout) == (done.returncode == 1)


def test_quick_measures_no_noise_and_leaves_nothing(bw: CommandLine) -> None:
    done = bw("doctor", "--quick", "--json", code=None)
    body = json.loads(done.stdout)
    check_agreement(body, done.returncode)
    assert body["noise"] == []
    found = {note["kind"]: note for note in body["notes"]}
    assert {"cpu.governor", "cpu.load", "heat.zones", "memory.free", "disk.free", "runtime.own"} <= set(found)
    assert "rss_bytes" in found["sampler.process"]["text"]
    assert body["health"]["memory"]["total_bytes"] > 0
    assert not bw.base.exists()
    assert "noise not measured" in " ".join(bw("doctor", "--quick", code=None).stdout.split())


def test_a_base_that_cannot_be_written_is_bad_and_exit_1(bw: CommandLine) -> None:
    (bw.cwd / "file").write_text("")
    done = bw("doctor", "--quick", "--json", "--base", "file/base", code=1)
    assert "disk.free" in json.loads(done.stdout)["errors"]
    text = bw("doctor", "--quick", "--base", "file/base", code=1).stdout
    assert "✗ free" in text
    assert "→ choose another folder with --base" in text


def test_a_sampler_that_breaks_and_a_python_that_does_not_start_are_told(bw: CommandLine, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "broken-1.0.dist-info").mkdir(parents=True)
    (site / "broken-1.0.dist-info" / "entry_points.txt").write_text("[benchwright.samplers]\nbroken = no_such:open\n")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\necho version gone >&2\nexit 1\n")
    python.chmod(0o755)
    bw.is_process = True  # what is installed is looked up when Python starts
    env = {"PYTHONPATH": str(site), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    body = json.loads(bw("doctor", "--quick", "--json", code=None, env=env).stdout)
    found = {note["kind"]: note for note in body["notes"]}
    assert found["sampler.broken"]["severity"] == "warning"
    assert "no_such" in found["sampler.broken"]["text"]
    assert "version gone" in found["runtime.python"]["text"]
    assert found["runtime.own"]["severity"] == "ok"


def test_an_interrupted_checkup_is_exit_130_and_leaves_no_folder(bw: CommandLine, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    started = subprocess.Popen(
        bw.argv("doctor"),
        cwd=bw.cwd,
        env={**bw.env, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stderr is not None
    assert "measuring the noise" in started.stderr.readline()
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=600)
    assert started.returncode == 130
    assert "nothing was kept" in said
    assert "--resume" not in said
    assert list(scratch.iterdir()) == []
