"""One address where results meet: `benchwright serve`, and every command that uses a store, with that as its store."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import own_certificate
from command_line import CommandLine, metric
from served_stores import ServedStores

from benchwright.store.base import RunFilter, open_store


@contextmanager
def serving(bw: CommandLine, base: Path, *options: str) -> Iterator[tuple[str, str]]:
    """Address and token of `benchwright serve`, a process of its own; the token is empty if it was printed before."""
    argv = bw.argv("serve", "--port", "0", "--base", str(base), *options)
    env = {k: v for k, v in bw.env.items() if k != "BENCHWRIGHT_STORE"} | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        argv, cwd=bw.cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            said = ""
            while "export BENCHWRIGHT_STORE" not in said:
                line = server.stdout.readline()
                assert line, server.communicate()[1]
                said += line
            token = re.search(r"BENCHWRIGHT_TOKEN=(\S+)", said)
            address = re.search(r"BENCHWRIGHT_STORE=(\S+)", said)
            assert address is not None
            yield address[1], "" if token is None else token[1]
        finally:
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=600)
    assert "Traceback" not in errors


def in_server(address: str, token: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("BENCHWRIGHT_TOKEN", token)
    with open_store(address) as store:
        return [row.name for row in store.runs(RunFilter())]


def test_every_command_works_with_a_server_as_its_store(bw: CommandLine, tmp_path: Path) -> None:
    with serving(bw, tmp_path / "central") as (address, token):
        bw.env |= {"BENCHWRIGHT_STORE": address, "BENCHWRIGHT_TOKEN": token}
        for name in ("one", "two"):
            done = bw("run", "--run-name", name, "--repeat", "6", "--", "true")
            assert "not in the store" not in done.stderr
        seen = bw("run", "--metric", "seen={number}", "--json", "--", "sh", "-c", 'echo "${#BENCHWRIGHT_TOKEN}"').stdout
        assert metric(json.loads(seen), "seen")["value"] == 0  # measured programs do not see the token
        elsewhere = {"BENCHWRIGHT_BASE": str(tmp_path / "other")}  # another machine, which has no run folder
        assert {row["name"] for row in json.loads(bw("runs", "--json", env=elsewhere).stdout)} >= {"one", "two"}
        assert "6 launches" in bw("report", "one", env=elsewhere).stdout
        assert json.loads(bw("compare", "one", "two", "--json", env=elsewhere, code=None).stdout)
        bw("baseline", "set", "main", "one")
        assert "main" in bw("baseline", "list", env=elsewhere).stdout
        assert "one" in bw("report", "baseline:main", env=elsewhere).stdout
        assert bw("history", "true", env=elsewhere, code=None).returncode in (0, 1)
        (number,) = json.loads(bw("history", "true", "--json", env=elsewhere).stdout)
        assert [point["run"].partition(".")[0] for point in number["points"]] == ["one", "two"]
        bw("run", "--run-name", "bad", "--", "sh", "-c", "seq 500; echo token=hunter2hunter2; exit 3", code=1)
        bw.last_run().rename(tmp_path / "gone")  # as on another machine
        said = bw("logs", "bad", env=elsewhere).stdout.splitlines()
        assert (len(said), said[1], "hunter2" in said[-1]) == (201, "302", False)
        assert bw("logs", "bad", "-n", "3", env=elsewhere).stdout.splitlines()[1:3] == ["499", "500"]
        assert "500" in bw("report", "bad", env=elsewhere, code=None).stdout
        bw("export", "one", "-o", str(tmp_path / "one.json"), env=elsewhere)
        assert (tmp_path / "one.json").stat().st_size > 100
        assert "already there" in bw("import", str(bw.last_run())).stdout
        assert "intact" in bw("store", "check").stdout
        assert "nothing to delete" in bw("runs", "prune", "--keep", "0s", env=elsewhere).stdout
        pruned = bw("runs", "prune", "--keep", "0s", "--yes", "--store", address, env=elsewhere).stdout
        assert "deleted 3 runs" in pruned  # not the baseline
        assert [row["name"] for row in json.loads(bw("runs", "--json", env=elsewhere).stdout)] == ["one"]
        assert "already imported" not in bw("import", str(tmp_path / "one.json"), env=elsewhere, code=None).stdout
    assert (tmp_path / "central" / "store.db").exists()
    assert not (bw.base / "store.db").exists()


def test_a_server_that_is_away_costs_no_result(
    bw: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    served = tmp_path / "central"
    token = bw("token", "create", "ci", "--scope", "write", "--base", str(served)).stdout.strip()
    bw.env |= {"BENCHWRIGHT_STORE": address, "BENCHWRIGHT_TOKEN": token}
    for number in (1, 2, 3):
        done = bw("run", "--run-name", f"away{number}", "--", "true")
        assert f"away{number}" in done.stderr
        assert "cannot be reached: Connection refused; the next benchwright command adds it" in done.stderr
        assert ("it waits" if number == 1 else f"{number} runs wait") in done.stderr
        assert token not in done.stderr + done.stdout
    assert "cannot be reached" in bw("store", "send", code=3).stderr
    with serving(bw, served, "--port", str(port)) as (found, none):
        assert (found, none) == (address, "")
        assert "3 of 3 waiting runs are in" in bw("store", "send").stdout
        assert "0 of 0 waiting runs" in bw("store", "send").stdout
        assert sorted(in_server(address, token, monkeypatch)) == ["away1", "away2", "away3"]
    bw("run", "--run-name", "late", "--", "true")
    with serving(bw, served, "--port", str(port)):
        bw("run", "--run-name", "last", "--", "true")  # sends the one before, too
        assert len(in_server(address, token, monkeypatch)) == 5


def test_a_run_with_a_token_that_may_not_write_waits(bw: CommandLine, tmp_path: Path) -> None:
    with ServedStores(tmp_path) as stores:
        address = stores.serve(tmp_path / "store.db")
        from_reader = {"BENCHWRIGHT_STORE": address, "BENCHWRIGHT_TOKEN": bw_token(bw, tmp_path, "look", "read")}
        done = bw("run", "--run-name", "one", "--", "true", env=from_reader)
        assert "may only read; this needs write" in done.stderr
        writer = from_reader | {"BENCHWRIGHT_TOKEN": bw_token(bw, tmp_path, "ci", "write")}
        assert "1 of 1 waiting runs" in bw("store", "send", env=writer).stdout


def bw_token(bw: CommandLine, base: Path, name: str, scope: str) -> str:
    return bw("token", "create", name, "--scope", scope, "--days", "1", "--base", str(base)).stdout.strip()


def test_a_second_server_of_one_store_is_refused(bw: CommandLine, tmp_path: Path) -> None:
    served = tmp_path / "central"
    with serving(bw, served):
        done = bw("serve", "--port", "0", "--base", str(served), code=3)
        assert "is served by another process already" in done.stderr
        assert "is served by another process already" in bw("serve", "--check", "--base", str(served), code=1).stdout


def test_a_server_others_could_listen_to_is_refused(bw: CommandLine) -> None:
    done = bw("serve", "--host", "0.0.0.0", code=2)
    assert "--behind-proxy" in done.stderr
    assert "give --tls-key" in bw("serve", "--host", "0.0.0.0", "--tls-cert", "c.pem", code=2).stderr
    assert "certificate cannot be used" in bw("serve", "--tls-cert", "c.pem", "--tls-key", "c.pem", code=2).stderr
    assert "only SQLite and PostgreSQL" in bw("serve", "--store", "https://x.example.org", code=2).stderr


def test_a_deployment_is_checked_without_serving(bw: CommandLine) -> None:
    assert "there is no store yet" in bw("serve", "--check", code=1).stdout
    bw("run", "--", "true")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert "cannot listen there" in bw("serve", "--check", "--port", port, code=1).stdout
    assert "ready to be served" in bw("serve", "--check", "--port", port).stdout
    bw("token", "create", "ci")
    os.chmod(bw.base / "server.db", 0o644)
    assert "others can read it" in bw("serve", "--check", "--port", port, code=1).stdout


def test_tokens_are_made_listed_and_revoked(bw: CommandLine) -> None:
    secret = bw("token", "create", "ci", "--scope", "write", "--days", "90").stdout.strip()
    listed = bw("token", "list").stdout
    assert "ci: write, until 20" in listed
    assert "never used" in listed
    assert secret not in listed
    assert [row["scope"] for row in json.loads(bw("token", "list", "--json").stdout)] == ["write"]
    assert "did you mean 'ci'" in bw("token", "revoke", "cii", code=2).stderr
    bw("token", "revoke", "ci")
    assert "there are no tokens" in bw("token", "list").stdout


def test_a_server_with_a_certificate_is_trusted_only_if_that_is(bw: CommandLine, tmp_path: Path) -> None:
    pem = str(own_certificate(tmp_path))
    with serving(bw, tmp_path / "central", "--tls-cert", pem, "--tls-key", pem) as (address, token):
        assert address.startswith("https://127.0.0.1:")
        bw.env |= {"BENCHWRIGHT_STORE": address, "BENCHWRIGHT_TOKEN": token}
        assert "its certificate is not trusted" in bw("store", "check", code=3).stderr
        assert "intact" in bw("store", "check", env={"SSL_CERT_FILE": pem}).stdout
