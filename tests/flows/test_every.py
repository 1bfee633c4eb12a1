"""`benchwright run --every`: the same run again and again, until it is stopped."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import CommandLine
from processes import wait_for

# Each launch notes that it has begun, then waits for the test unless it may go on.
HELD = 'echo "$$" >> begun; while [ ! -e goes-on ]; do sleep 0.05; done; echo value=$(cat value)'
METRIC = ("--metric", "value=kv:value")


@contextmanager
def series(bw: CommandLine, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        bw.argv("run", *words), cwd=bw.cwd, env=bw.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def begun(bw: CommandLine) -> int:
    file = bw.cwd / "begun"
    return len(file.read_text().split()) if file.exists() else 0


def runs(bw: CommandLine) -> list[str]:
    return [row["id"] for row in json.loads(bw("runs", "--json").stdout)]


def folders(bw: CommandLine) -> list[Path]:
    return list((bw.base / "runs").iterdir()) if (bw.base / "runs").exists() else []


def test_each_run_is_a_run_of_the_store_and_sees_what_changed_since_the_last(bw: CommandLine) -> None:
    (bw.cwd / "value").write_text("1")
    (bw.cwd / "goes-on").touch()
    with series(bw, "--every", "10ms", "--run-name", "same", "--json", *METRIC, "--", "sh", "-c", HELD) as process:
        assert wait_for(lambda: begun(bw) >= 2)
        (bw.cwd / "value").write_text("2")
        seen = begun(bw)
        assert wait_for(lambda: begun(bw) >= seen + 2)  # one of them began after the change
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    decoder, made = json.JSONDecoder(), []
    while output.strip():
        body, end = decoder.raw_decode(output.lstrip())
        made.append(body)
        output = output.lstrip()[end:]
    values = [m["value"] for body in made for m in body["results"][0]["metrics"] if m["metric"] == "value"]
    assert (values[0], values[-1]) == (1, 2)
    assert len(made) == begun(bw)  # the run in hand was finished
    assert sorted(runs(bw)) == sorted({body["id"] for body in made})  # each once, all in the store
    assert "intact" in bw("store", "check", "--folders").stdout


def test_a_failed_run_does_not_end_the_series(bw: CommandLine) -> None:
    words = ("--every", "10ms", "--", "sh", "-c", 'echo "$$" >> begun; [ $(wc -l < begun) -gt 2 ]')
    with series(bw, *words) as process:
        assert wait_for(lambda: begun(bw) >= 4)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 1  # some failed
    assert errors.count("the run failed (exit code 1); the series goes on") == 2
    assert len(runs(bw)) == begun(bw)


def test_a_run_that_was_killed_does_not_end_the_series(bw: CommandLine) -> None:
    line = 'echo "$$" >> begun; [ $(wc -l < begun) -gt 1 ] || kill -9 $(ps -o ppid= -p $PPID) $PPID'
    with series(bw, "--every", "10ms", "--", "sh", "-c", line) as process:
        assert wait_for(lambda: begun(bw) >= 3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=90)
    assert "the series goes on" in errors
    assert len(runs(bw)) >= begun(bw) - 1


def test_sigterm_while_it_waits_ends_it(bw: CommandLine) -> None:
    with series(bw, "--every", "6h", "--", "true") as process:
        assert process.stderr is not None
        assert any("1 made; the next run begins in 6 h" in line or "begins in 5" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
    assert process.returncode == 0
    assert len(runs(bw)) == 1


def test_ctrl_c_while_it_waits_ends_it(bw: CommandLine) -> None:
    with series(bw, "--every", "6h", "--", "true") as process:
        assert process.stderr is not None
        assert any("the next run begins" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
    assert (process.returncode, "Traceback" in errors) == (130, False)
    assert len(runs(bw)) == 1


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM, signal.SIGINT], [signal.SIGHUP]])
def test_ctrl_c_stops_the_run_in_hand_which_can_be_resumed(bw: CommandLine, signals: list[signal.Signals]) -> None:
    (bw.cwd / "value").write_text("1")
    with series(bw, "--every", "1h", *METRIC, "--", "sh", "-c", HELD) as process:
        assert wait_for(lambda: begun(bw) >= 1)
        for number in signals:
            process.send_signal(number)
        _, errors = process.communicate(timeout=90)
    assert (process.returncode, "Traceback" in errors) == (130, False), errors
    (bw.cwd / "goes-on").touch()
    (folder,) = folders(bw)
    assert bw.json("run", "--resume")["id"] == folder.name


@pytest.mark.parametrize("every", ["nonsense", "0", "0s", "-5m", "nan", "inf", "", "6 parsecs", "1e99h", "400d"])
def test_nonsense_is_refused(bw: CommandLine, every: str) -> None:
    assert "--every" in bw("run", f"--every={every}", "--", "true", code=2).stderr
    assert folders(bw) == []


def test_wrong_input_ends_the_series_at_once(bw: CommandLine) -> None:
    assert "is a new one" in bw("run", "--every", "1h", "--resume", code=2).stderr
    with series(bw, "--every", "1h", "no-such-file.yaml") as process:
        _, errors = process.communicate(timeout=90)
    assert process.returncode == 2, errors


def test_words_after_the_dashes_belong_to_the_program(bw: CommandLine) -> None:
    line = 'echo "$@" > words; echo "$$" >> begun'
    with series(bw, "--every=1h", "--", "sh", "-c", line, "sh", "--every", "3") as process:
        assert process.stderr is not None
        assert any("the next run begins" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
    assert (bw.cwd / "words").read_text().split() == ["--every", "3"]
