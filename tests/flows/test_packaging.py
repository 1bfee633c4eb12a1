"""The units and the compose file of packaging/: their commands are run as they are written, in another folder."""

from __future__ import annotations

import configparser
import http.client
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from command_line import CommandLine

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "packaging").glob("*.service"))
SERVER, RUNS = "benchwright.service", "benchwright-runs.service"


def command_of(unit: str) -> list[str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(ROOT / "packaging" / unit)
    return shlex.split(parser["Service"]["ExecStart"])


def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "packaging" / "compose.yaml").read_text())
    return found


def environment(bw: CommandLine) -> dict[str, str]:
    own = {name: value for name, value in bw.env.items() if not name.startswith("BENCHWRIGHT_")}
    return own | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{bw.env['PATH']}"}


def put(argv: list[str], **places: str) -> list[str]:
    """The command with other places; each must be there."""
    for option, place in places.items():
        argv[argv.index(f"--{option}") + 1] = place
    return argv


@contextmanager
def started(bw: CommandLine, argv: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        argv, cwd=bw.cwd, env=environment(bw), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def first_match(process: subprocess.Popen[str], pattern: str) -> str:
    """In its output, which is waited for."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(process.communicate()[1])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="without systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_the_unit(unit: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert said == []


def test_there_are_two_units() -> None:
    assert {unit.name for unit in UNITS} == {SERVER, RUNS}


def test_the_server_of_the_unit_starts_in_an_empty_folder_and_ends_on_sigterm(bw: CommandLine, tmp_path: Path) -> None:
    argv = put(command_of(SERVER), base=str(tmp_path / "state"))
    with started(bw, [*argv, "--port", "0"]) as server:
        address = first_match(server, r"BENCHWRIGHT_STORE=(\S+)")
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=90)
    assert "Traceback" not in errors
    done = subprocess.run(
        [*argv, "--port", "0", "--check"], capture_output=True, text=True, env=environment(bw), cwd=bw.cwd
    )
    assert (done.returncode, "ready to be served" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_runs_of_the_unit_are_made_and_sigterm_ends_them(bw: CommandLine, tmp_path: Path) -> None:
    argv = put(command_of(RUNS), base=str(tmp_path / "state"))
    assert argv.pop() == "/etc/benchwright/suite.yaml"
    with started(bw, [*argv, "--", "true"]) as series:
        assert first_match(series, r"saved: (\S+)").startswith(str(tmp_path / "state"))
        series.send_signal(signal.SIGTERM)
        series.communicate(timeout=90)
    assert series.returncode == 0


def test_the_command_of_the_composed_server_is_understood(bw: CommandLine, tmp_path: Path) -> None:
    bw("run", "--base", str(tmp_path / "data"), "--", "true")
    server = composed()["services"]["benchwright"]
    install, _, line = server["command"][2].partition(" && exec ")
    extras = re.search(r"benchwright\[([\w,]+)\]", install)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras is not None
    assert set(extras[1].split(",")) <= set(known)
    argv = shlex.split(line)
    assert argv[argv.index("--base") + 1] == server["volumes"][0].partition(":")[2]
    assert server["ports"] == ["127.0.0.1:8642:8642"]  # the server's own, on loopback
    argv = put(argv, base=str(tmp_path / "data"), store=f"sqlite:///{tmp_path / 'data' / 'store.db'}")
    done = subprocess.run(
        [*argv, "--port", "0", "--check"], capture_output=True, text=True, env=environment(bw), cwd=bw.cwd
    )
    assert (done.returncode, "ready to be served" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_composed_server_reaches_the_composed_database() -> None:
    services = composed()["services"]
    line = services["benchwright"]["command"][2]
    store = urlsplit(re.search(r"--store (\S+)", line)[1])  # type: ignore[index]
    database = services[store.hostname]
    assert store.username == database["environment"]["POSTGRES_USER"] == store.path.strip("/")  # its default database
    assert services["benchwright"]["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    volumes = [each.partition(":")[0] for service in services.values() for each in service["volumes"]]
    assert sorted(volumes) == sorted(composed()["volumes"])
